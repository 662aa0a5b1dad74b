// Advice on a model and a machine: each strategy's step, memory and throughput, the changes over bandwidth, and the verdict in words.
#ifndef HARNESS_ADVISE_H
#define HARNESS_ADVISE_H

#include <jansson.h>
#include <stdio.h>

#include "harness/advise/crossover.h"
#include "harness/advise/measured.h"
#include "harness/advise/settings.h"

struct advice_question {
    const struct fsdp_case *c;     // model, wrap policy, precision, optimizer; its strategy and ranks are not looked at
    struct machine machine;
    struct spread spread;
    struct machine_facts facts;    // memory 0: unknown; peak 0: unknown
    int ranks;
    int hybrid_shards;             // of the hybrid mesh
    int64_t rows;                  // of a rank in a microbatch; 0: for each strategy as many as fit into memory_limit
    double memory_limit;           // bytes of a rank; 0: none
    const struct measured *measured; // where the line was measured, else NULL
    const struct settings *settings; // likewise: Open MPI's
};
struct advice_row {
    struct candidate candidate;
    struct workload_model w;       // of candidate
    struct prediction p;
    int64_t rows;
    double memory_bytes, tokens_per_s, mfu; // tokens of all ranks; mfu NAN: peak unknown
    bool fits;
};
struct advice {
    const struct advice_question *q;
    int count, best;               // best: among those that fit; -1: none fits
    struct advice_row rows[CANDIDATES];
    double low, high;              // range of bandwidths that was looked at [bytes/s]
    int crossing_count;
    struct crossing crossings[CROSSINGS]; // among those that fit
    struct interval pays, bound;   // full against none; full bound by computing
};

// memory.c: at the peak of a step, by harness/judge/memory_model.h, with the units in use, activations and communication buffers as the engine plans them.
double advise_memory(const struct fsdp_case *c, const struct workload_model *w, const struct schedule *s, int64_t rows, struct error *error); // < 0: error
// Largest rows whose memory is at most limit; 0: not even one.
int64_t advise_rows_that_fit(const struct fsdp_case *c, const struct schedule *s, double limit, struct error *error);

// advise.c
const struct advice_row *advice_find(const struct advice *a, enum strategy s); // NULL: not among the rows
bool advise_make(const struct advice_question *q, struct advice *out, struct error *error); // to be freed in either case
void advise_free(struct advice *a);
// words.c
void advise_words(const struct advice *a, FILE *out);        // one paragraph
void advise_settings(const struct advice *a, FILE *out);     // Open MPI's, where the line was measured
void advise_assumptions(const struct advice *a, FILE *out);  // what the figures rest on, a line each
// table.c
void advise_table(const struct advice *a, FILE *out);
json_t *advise_json(const struct advice *a);

#endif
