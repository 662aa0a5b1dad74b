// A start of the worker: serves the cases of a job one after another, with one communication library.
#ifndef REFERENCE_WORKER_SERVE_H
#define REFERENCE_WORKER_SERVE_H

#include "reference/backends/backend.h"

// Reads the job from the environment. Returns the exit status: 0 all served, 1 a case failed, 2 unusable input.
int serve_job(void);

// The serial backend for one rank, unless MPI's launcher started it; else MPI.
const struct backend *serve_backend(int ranks);
// Of each collective [s]: FSDPMARK_COLLECTIVE_SECONDS, or 30.
double serve_deadline(void);
// Threads of the BLAS: OMP_NUM_THREADS, or 1.
void serve_threads(void);

#endif
