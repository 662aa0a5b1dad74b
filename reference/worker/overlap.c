// Exposed communication of the reference's step. See overlap.h.
#include "reference/worker/overlap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probes/interval.h"
#include "reference/engine/engine.h"
#include "reference/worker/bench.h"
#include "reference/worker/serve.h"

enum { DEFAULT_STEPS = 40, WARM_UP = 2 };
enum way { REAL, FREE, SERIAL, WAYS };

static void put_median(const char *name, double *values, int n)
{
    struct interval i = interval_of(values, n);
    printf(", \"%s\": [%.9g, %.9g, %.9g]", name, i.median, i.low, i.high);
}

static void put_summary(double (*seconds)[WAYS], int n)
{
    double *figures[4];
    for (int k = 0; k < 4; k++)
        figures[k] = calloc((size_t)n, sizeof *figures[k]);
    for (int i = 0; i < n; i++) {
        figures[0][i] = seconds[i][REAL];
        figures[1][i] = seconds[i][REAL] - seconds[i][FREE];
        figures[2][i] = figures[1][i] / seconds[i][REAL];
        figures[3][i] = seconds[i][REAL] / seconds[i][SERIAL];
    }
    static const char *const names[] = {"seconds", "exposed_seconds", "exposed_share", "over_serial"};
    printf("{\"steps\": %d", n);
    for (int k = 0; k < 4; k++) {
        put_median(names[k], figures[k], n);
        free(figures[k]);
    }
    puts("}");
}

static bool time_step(struct engine *e, struct comm *real, double *seconds, struct error *error)
{
    double loss;
    if (!comm_barrier(real, error))
        return false;
    double start = comm_seconds();
    if (!bench_step(e, &loss, error) || !comm_barrier(real, error))
        return false;
    *seconds = comm_seconds() - start;
    return true;
}

// The first of a round changes, so that none always follows the same.
static bool time_steps(struct engine engines[WAYS], int steps, double (*seconds)[WAYS], struct error *error)
{
    for (int step = -WARM_UP; step < steps; step++) {
        double now[WAYS];
        for (int k = 0; k < WAYS; k++) {
            int way = (step + WARM_UP + k) % WAYS;
            if (!time_step(&engines[way], &engines[REAL].comm, &now[way], error))
                return false;
        }
        if (step < 0)
            continue;
        memcpy(seconds[step], now, sizeof now);
        if (engines[REAL].rank == 0)
            printf("{\"step\": %d, \"seconds\": %.9f, \"free_seconds\": %.9f, \"serial_seconds\": %.9f}\n", step, now[REAL], now[FREE], now[SERIAL]);
    }
    return true;
}

static bool run(const struct fsdp_case cases[WAYS], struct comm_world *world, int steps, struct error *error)
{
    struct tensors init = {0}, data = {0};
    struct engine engines[WAYS];
    struct comm_world null = *world;
    double (*seconds)[WAYS] = calloc((size_t)steps, sizeof *seconds);
    null.backend = &backend_null;
    int open = 0;
    bool ok = bench_tensors(&cases[REAL], &init, &data, error);
    while (ok && open < WAYS) {
        ok = engine_open(&engines[open], &cases[open], open == FREE ? &null : world, &data, &init, error);
        open += ok;
    }
    ok = ok && time_steps(engines, steps, seconds, error);
    if (ok && world->all.rank == 0)
        put_summary(seconds, steps);
    while (open > 0)
        engine_close(&engines[--open]);
    free(seconds);
    tensors_free(&init);
    tensors_free(&data);
    return ok;
}

int overlap_run(int count, char **arguments)
{
    struct fsdp_case cases[WAYS];
    struct comm_world world;
    struct error error = {""};
    int steps = count > 1 ? atoi(arguments[1]) : DEFAULT_STEPS;
    if (steps < 1 || count > 2) {
        fprintf(stderr, "--overlap: found '%s', expected CASE.json and a number of steps\n", count > 1 ? arguments[1] : "");
        return 2;
    }
    if (!case_read(arguments[0], &cases[REAL], &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    case_copy(&cases[FREE], &cases[REAL]);
    case_copy(&cases[SERIAL], &cases[REAL]);
    cases[SERIAL].sharding.prefetch_forward = cases[SERIAL].sharding.prefetch_backward = 0;
    serve_threads();
    bool ok = comm_world_open(&world, serve_backend(cases[REAL].world_size), serve_deadline(), &error);
    if (ok && world.backend != &backend_mpi)
        ok = error_set(&error, "--overlap: one rank communicates with none, expected several under mpirun");
    ok = ok && run(cases, &world, steps, &error);
    if (ok)
        comm_world_close(&world);
    else
        fprintf(stderr, "%s\n", error.text);
    for (int k = 0; k < WAYS; k++)
        case_free(&cases[k]);
    return !ok;
}
