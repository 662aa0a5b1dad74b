// Times the steps of a case's model, sharding and precision on made-up data.
#ifndef REFERENCE_WORKER_BENCH_H
#define REFERENCE_WORKER_BENCH_H

// arguments: CASE.json [STEPS]. Rank 0 prints a JSON line for each step. Returns the exit status.
int bench_run(int count, char **arguments);

#endif
