// Times the steps of a case's model, sharding and precision on made-up data.
#ifndef REFERENCE_WORKER_BENCH_H
#define REFERENCE_WORKER_BENCH_H

#include "reference/engine/engine.h"

// arguments: CASE.json [STEPS]. Rank 0 prints a JSON line for each step. Returns the exit status.
int bench_run(int count, char **arguments);

// Made-up parameters and data of one step. Errors: a model that has nothing to time.
bool bench_tensors(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error);
// zero_grad, the microbatches, clip, and the optimizer.
bool bench_step(struct engine *e, double *loss, struct error *error);

#endif
