// Measured series in the results store: what `net`, `bench` and `advise --validate` measured, with every raw sample.
//
// A series is one point of a measurement: one collective at one size on one fabric; one workload of one implementation on one fabric. Its samples come by
// launch: each start of the workers gives one array. Summaries are made by whoever reads (harness/statistics), never stored.
#ifndef HARNESS_STORE_SERIES_H
#define HARNESS_STORE_SERIES_H

#include "harness/store/store.h"

struct series {
    const char *tool;         // "net", "bench", "validate"
    const char *fabric;       // name of the fabric
    const char *subject;      // "mpi", "reference", "pytorch-fsdp2", ...
    const char *name;         // "all-gather", or the workload's name
    const char *quantity;     // "seconds" of one iteration or step, slowest rank
    json_t *point;            // object: whatever fixes the point: {"ranks", "bytes", "dtype", "strategy", ...}; borrowed
    json_t *facts;            // object: what is the same for all samples: errors counted, line rate, flop, tokens, peak bytes; borrowed, or NULL
};
struct stored_series {
    int64_t id, run;
    const char *tool, *fabric, *subject, *name, *quantity;
    json_t *point, *facts;
    int launch_count;
    struct { int count; const double *values; } *launches;
    int count; const double *values; // all of them, launch after launch
};
struct stored_serieses { int count; struct stored_series *items; void *arena; };

bool store_add_series(struct store *s, int64_t run, const struct series *series, int64_t *id, struct error *error);
bool store_set_series_facts(struct store *s, int64_t id, json_t *facts, struct error *error);
bool store_add_samples(struct store *s, int64_t series, int launch, int count, const double *values, struct error *error);
// How many series a run has.
bool store_count_series(struct store *s, int64_t run, int *count, struct error *error);
// tool NULL: of all tools. Run 0: the newest that has any. A run without any is an error.
bool store_load_series(struct store *s, int64_t run, const char *tool, struct stored_serieses *out, struct error *error);
// The tool that all are of, "" where there are several.
const char *stored_series_tool(const struct stored_serieses *s);
void stored_series_free(struct stored_serieses *s);

#endif
