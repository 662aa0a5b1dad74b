// Exposed communication of the reference's step. See overlap.h.
#include "reference/worker/overlap.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/engine/engine.h"
#include "reference/worker/bench.h"
#include "reference/worker/serve.h"

enum { DEFAULT_STEPS = 40, WORKER_STEPS = 24, WARM_UP = 2 };
static const double worker_seconds = 10; // a worker that says nothing for long counts as hanging
enum way { REAL, FREE, SERIAL, WAYS };

static struct overlap summary(double (*seconds)[WAYS], int n)
{
    struct overlap out = {.steps = n};
    struct interval *to[4] = {&out.step, &out.exposed, &out.share, &out.over_serial};
    double *values = malloc((size_t)n * sizeof *values);
    for (int k = 0; values != NULL && k < 4; k++) {
        for (int i = 0; i < n; i++) {
            double step = seconds[i][REAL], exposed = step - seconds[i][FREE];
            values[i] = k == 0 ? step : k == 1 ? exposed : k == 2 ? exposed / step : step / seconds[i][SERIAL];
        }
        *to[k] = statistics_median(n, values);
    }
    free(values);
    return out;
}

static void put_summary(const struct overlap *o)
{
    const struct { const char *name; const struct interval *i; } figures[] = {
        {"seconds", &o->step}, {"exposed_seconds", &o->exposed}, {"exposed_share", &o->share}, {"over_serial", &o->over_serial}};
    printf("{\"steps\": %d", o->steps);
    for (int k = 0; k < 4; k++)
        printf(", \"%s\": [%.9g, %.9g, %.9g]", figures[k].name, figures[k].i->value, figures[k].i->low, figures[k].i->high);
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
// Only the first `ways` of them. After `limit_s` on any rank all ranks end; returns the steps that were timed in *done.
static bool time_steps(struct engine engines[WAYS], int ways, int steps, double limit_s, bool prints, double (*seconds)[WAYS], int *done, struct error *error)
{
    double start = comm_seconds();
    for (int step = -WARM_UP; step < steps; step++) {
        double now[WAYS] = {0}, spent = comm_seconds() - start;
        if (!comm_scalars(&engines[REAL].comm, &engines[REAL].comm.world->all, REDUCE_MAX, &spent, 1, error))
            return false;
        if (spent > limit_s)
            break;
        for (int k = 0; k < ways; k++) {
            int way = (step + WARM_UP + k) % ways;
            if (!time_step(&engines[way], &engines[REAL].comm, &now[way], error))
                return false;
        }
        if (step < 0)
            continue;
        memcpy(seconds[step], now, sizeof now);
        *done = step + 1;
        if (prints && engines[REAL].rank == 0)
            printf("{\"step\": %d, \"seconds\": %.9f, \"free_seconds\": %.9f, \"serial_seconds\": %.9f}\n", step, now[REAL], now[FREE], now[SERIAL]);
    }
    return true;
}

// in_worker: the first two ways alone, within its time, and nothing is printed. out->steps 0: not one was timed.
static bool run(const struct fsdp_case *c, struct comm_world *world, int steps, bool in_worker, struct overlap *out, struct error *error)
{
    struct tensors init = {0}, data = {0};
    struct engine engines[WAYS];
    struct fsdp_case cases[WAYS];
    struct comm_world null = *world;
    double (*seconds)[WAYS] = calloc((size_t)steps, sizeof *seconds);
    null.backend = &backend_null;
    null.mesh_count = 0; // its groups are its own
    for (int k = 0; k < WAYS; k++)
        case_copy(&cases[k], c);
    cases[SERIAL].sharding.prefetch_forward = cases[SERIAL].sharding.prefetch_backward = 0;
    int open = 0, ways = in_worker ? SERIAL : WAYS, done = 0;
    bool ok = seconds != NULL || error_set(error, "no memory for the times of %d steps", steps);
    ok = ok && bench_tensors(c, &init, &data, error);
    while (ok && open < ways) {
        ok = engine_open(&engines[open], &cases[open], open == FREE ? &null : world, &data, &init, error);
        open += ok;
    }
    ok = ok && time_steps(engines, ways, steps, in_worker ? worker_seconds : INFINITY, !in_worker, seconds, &done, error);
    *out = ok && done > 0 ? summary(seconds, done) : (struct overlap){0};
    while (open > 0)
        engine_close(&engines[--open]);
    for (int k = 0; k < WAYS; k++)
        case_free(&cases[k]);
    free(seconds);
    tensors_free(&init);
    tensors_free(&data);
    return ok;
}

bool overlap_asked(const struct fsdp_case *c, const struct comm_world *world)
{
    const char *probes = getenv("FSDPMARK_PROBES");
    return world->backend == &backend_mpi && probes && strstr(probes, "wait") && c->layer == LAYER_MEASURED && c->world_size > 1 && c->model.kind != MODEL_WITNESS && c->data.steps > OVERLAP_LEAST;
}

bool overlap_measure(const struct fsdp_case *c, struct comm_world *world, struct overlap *out, struct error *error)
{
    void (*pause)(int) = NULL;
    *(void **)&pause = dlsym(RTLD_DEFAULT, "fsdpmark_pause");
    if (pause)
        pause(1);
    bool ok = run(c, world, WORKER_STEPS, true, out, error);
    if (pause)
        pause(0);
    if (out->steps < STATISTICS_LEAST)
        out->steps = 0;
    return ok;
}

int overlap_run(int count, char **arguments)
{
    struct fsdp_case c;
    struct comm_world world;
    struct overlap figures;
    struct error error = {""};
    int steps = count > 1 ? atoi(arguments[1]) : DEFAULT_STEPS;
    if (steps < 1 || count > 2) {
        fprintf(stderr, "--overlap: found '%s', expected CASE.json and a number of steps\n", count > 1 ? arguments[1] : "");
        return 2;
    }
    if (!case_read(arguments[0], &c, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    serve_threads();
    bool ok = serve_open(&world, c.world_size, &error);
    if (ok && world.backend != &backend_mpi)
        ok = error_set(&error, "--overlap: found the backend %s, expected that of MPI and the CPU: several ranks under mpirun", world.backend->name);
    ok = ok && run(&c, &world, steps, false, &figures, &error);
    if (ok && world.all.rank == 0)
        put_summary(&figures);
    if (ok)
        comm_world_close(&world);
    else
        fprintf(stderr, "%s\n", error.text);
    case_free(&c);
    return !ok;
}
