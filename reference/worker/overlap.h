// How much of the communication of a step computation does not hide.
//
// exposed = step - the same step on the null backend (reference/backends/null.c: collectives end at once): the time that communication adds
// to a step, waiting and the work that it takes from the cores together. And overlap must pay: the step against the same step in series
// (no prefetch, so that every collective is waited for where it starts).
// The three take turns step by step in one process a rank, barrier to barrier, so that each difference is of neighbours in time. Each figure is
// the median over the steps, with the nonparametric interval of 95 % from order statistics (Hoefler and Belli, SC 2015).
#ifndef REFERENCE_WORKER_OVERLAP_H
#define REFERENCE_WORKER_OVERLAP_H

#include "harness/statistics/statistics.h"
#include "harness/protocol/case.h"
#include "reference/engine/comm.h"

// arguments: CASE.json [STEPS]. Rank 0 prints a JSON line for each step {"step", "seconds", "free_seconds", "serial_seconds"}, and the summary
// {"steps", "seconds", "exposed_seconds", "exposed_share", "over_serial"}: each figure [median, low, high]. Returns the exit status.
int overlap_run(int count, char **arguments);

// What a worker tells of a case whose waits are recorded, so that the report has both (docs/probes.md, Exposed communication).
struct overlap { int steps; struct interval step, exposed, share, over_serial; };
// Whether it should: the wait probe is loaded, the arrays are the host's, the case is a measured one of several ranks with more than OVERLAP_LEAST steps.
enum { OVERLAP_LEAST = 8 };
bool overlap_asked(const struct fsdp_case *c, const struct comm_world *world);
// All ranks together, in the world of the case's own engine. Nothing of it is recorded. It takes about ten seconds at most; steps 0: too slow for six steps.
bool overlap_measure(const struct fsdp_case *c, struct comm_world *world, struct overlap *out, struct error *error);

#endif
