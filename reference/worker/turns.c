// Steps of several cases in turns. See turns.h.
#include "reference/worker/turns.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/statistics/statistics.h"
#include "reference/worker/bench.h"
#include "reference/worker/serve.h"

enum { ENGINES = 2 * TURNS_CASES };
struct turns { int cases; struct fsdp_case c[TURNS_CASES]; struct tensors init, data; struct engine engines[ENGINES]; int open; };

static bool time_step(struct engine *e, struct comm *real, double *seconds, double *update, struct error *error)
{
    double loss, norm, scale;
    bool skipped;
    if (!comm_barrier(real, error))
        return false;
    double start = comm_seconds();
    engine_zero_grad(e);
    for (int m = 0; m < e->c->data.micros; m++)
        if (!engine_micro(e, 0, m, m == e->c->data.micros - 1, &loss, error))
            return false;
    if (e->c->clip != CLIP_OFF && !engine_clip(e, &norm, error))
        return false;
    double before = comm_seconds();
    if (!engine_step(e, &skipped, &scale, error))
        return false;
    *update = comm_seconds() - before;
    if (!comm_barrier(real, error))
        return false;
    *seconds = comm_seconds() - start;
    return true;
}

// All parts of an all-gather [bytes]; an even share of each for up to 64 ranks.
static const int64_t sizes[TURNS_SIZES] = {8 << 10, 32 << 10, 128 << 10, 256 << 10}, drain = 512 << 10;

static bool gathers(struct comm *c, int64_t bytes, int times, char *buffer, struct error *error)
{
    int n = c->groups->mesh.shards;
    int64_t counts[64], starts[64], part = bytes / (int64_t)sizeof(float) / n;
    bool ok = n <= 64 || error_set(error, "more than 64 shards");
    for (int i = 0; ok && i < n; i++) {
        counts[i] = part;
        starts[i] = i * part;
    }
    for (int i = 0; ok && i < times; i++) {
        struct comm_request r = {0};
        ok = comm_all_gather(c, DTYPE_F32, buffer + (size_t)(c->groups->mesh.shard * part) * sizeof(float), buffer, counts, starts, &r, error) && comm_wait(c, &r, error);
    }
    return ok;
}

// The group of the case whose shards are spread over most ranks.
static struct comm *widest(struct turns *t)
{
    struct comm *found = &t->engines[0].comm;
    for (int i = 2; i < t->open; i += 2)
        if (t->engines[i].mesh.shards > found->groups->mesh.shards)
            found = &t->engines[i].comm;
    return found;
}

// Engine 2 k is case k on the real backend, 2 k + 1 on the null backend. Those on the real one follow each other, behind a gather that drains the line, so
// that each finds it as a step of training would: as the step before left it. The order among each kind changes by round.
static bool take_turn(struct turns *t, int engine, int round, struct error *error)
{
    double seconds, update;
    if (!time_step(&t->engines[engine], &t->engines[0].comm, &seconds, &update, error))
        return false;
    if (round >= 0 && t->engines[0].rank == 0)
        printf("{\"case\": %d, \"free\": %s, \"round\": %d, \"seconds\": %.9f, \"update_seconds\": %.9f}\n", engine / 2, engine % 2 ? "true" : "false", round, seconds, update);
    return true;
}

static bool take_turns(struct turns *t, int rounds, struct error *error)
{
    struct comm *line = widest(t);
    char *buffer = calloc(1, (size_t)drain);
    bool ok = buffer != NULL || error_set(error, "no memory to gather into");
    for (int round = -1; ok && round < rounds; round++) {
        int order[TURNS_CASES];
        statistics_shuffle(t->cases, order, (uint64_t)round + 2);
        ok = gathers(line, drain, 1, buffer, error);
        for (int i = 0; ok && i < 2 * t->cases; i++)
            ok = take_turn(t, 2 * order[i % t->cases] + i / t->cases, round, error);
    }
    free(buffer);
    return ok;
}

static bool time_size(struct comm *c, int64_t bytes, char *buffer, double *seconds, struct error *error)
{
    if (!gathers(c, drain, 1, buffer, error) || !comm_barrier(c, error))
        return false;
    double start = comm_seconds();
    bool ok = gathers(c, bytes, TURNS_GATHERS_IN_A_ROW, buffer, error) && comm_barrier(c, error);
    *seconds = (comm_seconds() - start) / TURNS_GATHERS_IN_A_ROW;
    return ok;
}

static bool time_gathers(struct comm *c, int rounds, struct error *error)
{
    char *buffer = calloc(1, (size_t)drain);
    bool ok = buffer != NULL || error_set(error, "no memory to gather into");
    for (int round = 0; ok && round < rounds; round++)
        for (int i = 0; ok && i < TURNS_SIZES; i++) {
            double seconds;
            ok = time_size(c, sizes[i], buffer, &seconds, error);
            if (ok && c->world->all.rank == 0)
                printf("{\"gather_bytes\": %lld, \"round\": %d, \"seconds\": %.9f}\n", (long long)sizes[i], round, seconds);
        }
    free(buffer);
    return ok;
}

static bool run(struct turns *t, struct comm_world *world, int rounds, struct error *error)
{
    struct comm_world null = *world;
    null.backend = &backend_null;
    bool ok = bench_tensors(&t->c[0], &t->init, &t->data, error);
    while (ok && t->open < 2 * t->cases) {
        ok = engine_open(&t->engines[t->open], &t->c[t->open / 2], t->open % 2 ? &null : world, &t->data, &t->init, error);
        t->open += ok;
    }
    ok = ok && take_turns(t, rounds, error) && time_gathers(widest(t), rounds, error);
    while (t->open > 0)
        engine_close(&t->engines[--t->open]);
    tensors_free(&t->init);
    tensors_free(&t->data);
    return ok;
}

static bool read_cases(struct turns *t, int count, char **paths, struct error *error)
{
    for (t->cases = 0; t->cases < count; t->cases++) {
        struct fsdp_case *c = &t->c[t->cases];
        if (!case_read(paths[t->cases], c, error))
            return false;
        if (c->world_size != t->c[0].world_size || c->global_rows != t->c[0].global_rows || c->parameter_count != t->c[0].parameter_count) {
            t->cases++;
            return error_set(error, "%s: found another model, batch or number of ranks than in %s, expected the same", paths[t->cases - 1], paths[0]);
        }
    }
    return true;
}

int turns_run(int count, char **arguments)
{
    static struct turns t;
    struct comm_world world;
    struct error error = {""};
    int rounds = atoi(arguments[0]);
    if (rounds < 1 || count < 2 || count > TURNS_CASES + 1) {
        fprintf(stderr, "--turns: found '%s' and %d cases, expected a number of rounds and 1 to %d cases\n", arguments[0], count - 1, TURNS_CASES);
        return 2;
    }
    bool read = read_cases(&t, count - 1, arguments + 1, &error), ok = false;
    if (read) {
        serve_threads();
        ok = serve_open(&world, t.c[0].world_size, &error);
        if (ok && world.backend != &backend_mpi)
            ok = error_set(&error, "--turns: found the backend %s, expected that of MPI and the CPU: several ranks under mpirun", world.backend->name);
        ok = ok && run(&t, &world, rounds, &error);
    }
    if (ok)
        comm_world_close(&world);
    else
        fprintf(stderr, "%s\n", error.text);
    for (int i = 0; i < t.cases; i++)
        case_free(&t.c[i]);
    return ok ? 0 : read ? 1 : 2;
}
