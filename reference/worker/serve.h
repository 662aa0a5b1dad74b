// A start of the worker: serves the cases of a job one after another, with one communication library.
#ifndef REFERENCE_WORKER_SERVE_H
#define REFERENCE_WORKER_SERVE_H

#include "reference/engine/comm.h"

// Reads the job from the environment. Returns the exit status: 0 all served, 1 a case failed, 2 unusable input.
int serve_job(void);

// The world of the backend that is chosen (choose.h), opened. False, with the error set, where there is none.
bool serve_open(struct comm_world *world, int ranks, struct error *error);
// Of each collective [s]: FSDPMARK_COLLECTIVE_SECONDS, or 30.
double serve_deadline(void);
// Threads of the BLAS: OMP_NUM_THREADS, or 1.
void serve_threads(void);

#endif
