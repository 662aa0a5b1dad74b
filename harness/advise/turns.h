// Measured step times of the strategies of one model, in turns on one place: `fsdp-reference --turns` (reference/worker/turns.h).
#ifndef HARNESS_ADVISE_TURNS_H
#define HARNESS_ADVISE_TURNS_H

#include "harness/fabric/fabric.h"
#include "harness/protocol/case.h"

enum { TURNS_MOST = 6, TURNS_ROUNDS = 200, TURNS_GATHERS = 8 };

struct turns_plan {
    const char *program, *worker, *scratch; // fsdpmark, fsdp-reference, a folder for the job
    const struct fabric_place *place;
    int ranks, rounds, count;
    const struct fsdp_case *cases;          // [count] of `ranks` ranks each
    double deadline_s;
};
// Steps from barrier to barrier, so that they are those of the slowest rank. free: with communication that takes no time.
struct turns_samples { int count; double seconds[TURNS_ROUNDS], free_s[TURNS_ROUNDS], free_update_s[TURNS_ROUNDS]; };

// All-gathers of a size that followed each other without pause.
struct turns_gather { double bytes; int count; double seconds[TURNS_ROUNDS]; };
struct turns_line { int count; struct turns_gather gathers[TURNS_GATHERS]; };

// out: [count]. Errors: a start that failed or hung, with the end of its log; interrupted.
bool turns_measure(const struct turns_plan *p, struct turns_samples *out, struct turns_line *line, struct error *error);

#endif
