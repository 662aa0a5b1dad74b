// Runs a plan on a fabric: several starts of the workers, every sample into the store.
//
// Each start measures the points in another order for its share of the time, and stops where all intervals are narrow. What a start that failed had measured is kept.
#ifndef HARNESS_NET_RUN_H
#define HARNESS_NET_RUN_H

#include <stdio.h>

#include "harness/fabric/fabric.h"
#include "harness/net/plan.h"
#include "harness/store/series.h"

struct net_settings {
    const char *program, *worker;    // paths of fsdpmark and fsdpmark-net
    const char *launcher;
    const struct fabric_place *place;
    const char *scratch;             // folder for the jobs
    struct store *store;
    int64_t run;
    int ranks, within, starts;
    double seconds, narrow;          // for all starts; see struct net_job
    double line_rate;                // byte/s, of the slowest line that ranks use; 0: unknown
    uint64_t seed;
    int corrupt_rank;                // see struct net_job
    int64_t corrupt_iteration;
    FILE *progress;                  // NULL: silent
};

// Errors: a start that failed or hung, with the ends of its logs; interrupted.
bool net_run(const struct net_settings *s, const struct net_plan *plan, struct error *error);

#endif
