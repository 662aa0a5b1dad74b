// The backends of CUDA over the emulation (kernels/cuda/tests), on 1 to 4 ranks: every collective, in every float type, with even, uneven and empty parts, on the
// world and on split groups; what computes before and after a collective is on other streams. And a rank that never comes ends a wait by its deadline,
// after which nothing is left on the device.
//
// Sums: cuda + mpi adds in ascending ranks; the stand-in for NCCL around a ring, from the rank behind the one that the part ends with, and that is another order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/backends/cuda/control.h"
#include "reference/backends/tests/under_mpirun.h"
#include "reference/engine/comm.h"

enum { RANKS = 4, PART = 300, ROOM = RANKS * (PART + RANKS), BYTES = ROOM * sizeof(double) };

static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16};
static const struct backend *backend;
static struct backend_group world, half;
static struct error error;
static double sent[ROOM], expected[ROOM], got[ROOM];
static char *from, *to; // on the device
static int64_t unlike;  // elements of sums that ascending ranks would have rounded otherwise

#define EXPECT(condition)                                                                                                 \
    do {                                                                                                                  \
        if (!(condition)) {                                                                                               \
            fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", world.rank, __FILE__, __LINE__, #condition, error.text);         \
            exit(1);                                                                                                      \
        }                                                                                                                 \
    } while (0)

// Values whose 16-bit sums depend on the order.
static double value_of(int rank, int64_t i) { return rank == 0 ? 256 : (double)((rank * 7 + i) % 5 + 1) / (double)(1 + i % 3); }

// out[i] = the terms of element e added from rank `begin` on, around.
static void add_from(enum dtype type, void *out, int64_t i, int ranks, int begin, int64_t e)
{
    dtype_set(type, out, i, value_of(begin % ranks, e));
    for (int r = 1; r < ranks; r++) {
        double term;
        dtype_set(type, &term, 0, value_of((begin + r) % ranks, e));
        dtype_set(type, out, i, dtype_get(type, out, i) + dtype_get(type, &term, 0));
    }
}

// Elements first .. of a sum whose part ends with rank `owner`, in the order of the backend.
static void sum(enum dtype type, void *out, int ranks, int owner, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double ascending;
        add_from(type, out, i, ranks, backend == &backend_cuda_nccl ? owner + 1 : 0, first + i);
        add_from(type, &ascending, 0, ranks, 0, first + i);
        unlike += dtype_get(type, out, i) != dtype_get(type, &ascending, 0);
    }
}

static int64_t parts(int kind, int ranks, int64_t *counts, int64_t *starts)
{
    int64_t all = 0;
    for (int r = 0; r < ranks; r++) {
        counts[r] = kind == 0 ? PART : r == 0 ? 0 : PART + r;
        starts[r] = all;
        all += counts[r];
    }
    return all;
}

static void upload(enum dtype type, int rank, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dtype_set(type, sent, i, value_of(rank, first + i));
    backend->device->upload(from, sent, (size_t)count * dtype_size(type));
}

static void take(struct backend_request *request, const void *at, size_t bytes)
{
    memset(got, 0x55, sizeof got);
    EXPECT(backend->follow(request, &error));
    backend->device->download(got, at, bytes);
    EXPECT(!backend->device->failed(&error));
}

static void all_collectives(const struct backend_group *g, enum dtype type, int kind)
{
    int64_t counts[RANKS], starts[RANKS], all = parts(kind, g->size, counts, starts), own = counts[g->rank];
    size_t size = dtype_size(type);
    struct backend_request *r = NULL;

    upload(type, g->rank, starts[g->rank], own);
    EXPECT(backend->all_gather(g, type, from, to, counts, starts, &r, &error));
    take(r, to, (size_t)all * size);
    for (int p = 0; p < g->size; p++)
        for (int64_t i = 0; i < counts[p]; i++)
            dtype_set(type, expected, starts[p] + i, value_of(p, starts[p] + i));
    EXPECT(memcmp(got, expected, (size_t)all * size) == 0);

    upload(type, g->rank, 0, all);
    EXPECT(backend->reduce_scatter(g, type, from, to, counts, starts, &r, &error));
    take(r, to, (size_t)own * size);
    sum(type, expected, g->size, g->rank, starts[g->rank], own);
    EXPECT(memcmp(got, expected, (size_t)own * size) == 0);

    upload(type, g->rank, 0, all);
    EXPECT(backend->all_reduce(g, type, REDUCE_SUM, from, to, all, &r, &error));
    take(r, from, (size_t)all * size);
    int64_t chunk = (all + g->size - 1) / g->size;
    for (int p = 0; p < g->size && p * chunk < all; p++)
        sum(type, (char *)expected + (size_t)(p * chunk) * size, g->size, p, p * chunk, all - p * chunk < chunk ? all - p * chunk : chunk);
    EXPECT(memcmp(got, expected, (size_t)all * size) == 0);

    upload(type, g->rank, 0, all);
    EXPECT(backend->broadcast(g, type, from, all, g->size - 1, &r, &error));
    take(r, from, (size_t)all * size);
    for (int64_t i = 0; i < all; i++)
        dtype_set(type, expected, i, value_of(g->size - 1, i));
    EXPECT(memcmp(got, expected, (size_t)all * size) == 0);
}

// Whatever was given up has left the device: communicators were aborted.
static bool device_is_idle(void)
{
    bool idle = false;
    for (int polls = 0; polls < 1000 && !idle; polls++)
        idle = cudaStreamQuery(cuda_stream(CUDA_REDUCE)) == cudaSuccess && cudaStreamQuery(cuda_stream(CUDA_COMPUTE)) == cudaSuccess;
    return idle;
}

static int ranks_part(const char *argument)
{
    bool late = strstr(argument, "late") != NULL;
    backend = strstr(argument, "nccl") ? &backend_cuda_nccl : &backend_cuda_mpi;
    control_choose(&backend_mpi);
    EXPECT(backend->open(&world, late ? 2 : 60, &error) && backend->split(&world, world.rank % 2, world.rank, &half, &error));
    from = backend->device->allocate(BYTES);
    to = backend->device->allocate(BYTES);
    EXPECT(from && to);
    if (late) {
        struct backend_request *r = NULL;
        struct error why = {""};
        if (world.rank == 1)
            sleep(5);
        else if (backend->all_reduce(&world, DTYPE_F32, REDUCE_SUM, from, to, 8, &r, &why) && backend->follow(r, &why))
            backend->device->download(got, from, sizeof(float));
        bool told = why.text[0] || backend->device->failed(&why);
        _exit(world.rank == 1 ? 0 : !told ? 4 : !device_is_idle() ? 5 : 3);
    }
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int kind = 0; kind < 2; kind++) {
            all_collectives(&world, types[t], kind);
            all_collectives(&half, types[t], kind);
        }
    EXPECT((unlike > 0) == (backend == &backend_cuda_nccl && world.size > 2));
    backend->device->release(from);
    backend->device->release(to);
    backend->close(&world);
    return 0;
}

// ---- the tests ----

static void every_collective(void **state)
{
    for (int n = 1; n <= RANKS; n++)
        assert_int_equal(run_ranks(n, *state), 0);
}

static void a_late_rank_ends_the_wait(void **state)
{
    char argument[32];
    snprintf(argument, sizeof argument, "%s-late", (const char *)*state);
    assert_int_equal(run_ranks(2, argument), 3);
}

int main(int argc, char **argv)
{
    if (under_mpirun() && argc > 1)
        return ranks_part(argv[1]);
    setenv("FSDPMARK_EMULATION_DEVICES", "8", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_collective, "mpi"), cmocka_unit_test_prestate(every_collective, "nccl"),
        cmocka_unit_test_prestate(a_late_rank_ends_the_wait, "mpi"), cmocka_unit_test_prestate(a_late_rank_ends_the_wait, "nccl"),
    };
    return cmocka_run_group_tests_name("the backends of CUDA, EMULATED", tests, NULL, NULL);
}
