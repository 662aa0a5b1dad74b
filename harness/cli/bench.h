// What the files of `fsdpmark bench` share: cmd_bench.c (options, reports), bench_plan.c (which rows).
#ifndef HARNESS_CLI_BENCH_H
#define HARNESS_CLI_BENCH_H

#include "harness/bench/rounds.h"
#include "harness/cli/cli.h"

struct bench_request {
    struct option_list implementations, workloads, fabrics, strategies;
    const char *precision, *batch, *memory, *suite, *hostfile, *agent, *json, *csv, *store, *figures;
    int64_t ranks, rounds, seed;
    double seconds, narrow, deadline_s;
    bool unprobed, keep;
};

struct bench_fabric { struct fabric fabric; struct fabric_place *place; char *absent; const char *name; bool given; };
struct bench_plan {
    int implementation_count; struct implementation *implementations;
    int fabric_count; struct bench_fabric *fabrics;
    int file_count; char **files;      // of workloads
};

// Reads manifests, workloads and fabrics, opens the fabrics, and makes a row of each that was asked for. What one cannot do is a row that says so.
bool bench_plan(const struct cli *cli, const struct bench_request *r, struct bench_plan *p, struct bench *b, struct error *error);
void bench_plan_free(struct bench_plan *p);

#endif
