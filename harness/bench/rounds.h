// Runs what the rows of a bench say: which starts, in which order, until when. See bench.h.
#ifndef HARNESS_BENCH_ROUNDS_H
#define HARNESS_BENCH_ROUNDS_H

#include "harness/bench/bench.h"
#include "harness/run/memo.h"

// A start's purpose, which says what is preloaded besides the recorder: nothing; the heap probe; what sees bytes and waits.
enum bench_purpose { BENCH_TIMED, BENCH_MEMORY, BENCH_TRAFFIC, BENCH_PURPOSES };

// Those of all purposes together: bits of enum probe_id.
unsigned bench_probes(void);

// What a row runs. Borrowed: implementation, place. Owned: plan, of the one case, memo, and the templates.
struct bench_item {
    const struct implementation *implementation;
    const struct fabric_place *place;
    struct plan plan;
    struct run_memo memo;
    struct template *templates[BENCH_PURPOSES]; // made when they are needed
};

struct bench_limits {
    int64_t most_rounds;   // 0: any
    double seconds, narrow;// of the rounds; of each interval's half width
    bool probed;           // starts with probes, before the rounds
    uint64_t seed;         // of the shuffled orders
};

struct bench {
    struct bench_table table;    // rows[i] is what items[i] runs
    struct bench_item *items;
    struct session session;      // open: store, cache, scratch
    struct bench_limits limits;
    FILE *news;                  // progress
    char *energy_events;         // owned; NULL: none, for the reason
    char energy_why[BENCH_WHY];
};

// Which events of energy PAPI has here.
void bench_find_energy(struct bench *b);
// False only where the store cannot be written or memory is out; an interrupt ends it early, and what there is stays.
bool bench_rounds(struct bench *b, struct error *error);
// One start of a row at another number of rows of the global batch: for fit.c. The peak is in row->peak_bytes where the row stays open.
bool bench_probe_memory(struct bench *b, int row, struct error *error);
void bench_items_free(struct bench *b);

#endif
