// Every collective on 1 to 5 ranks, in every float type, with uneven and empty parts, on the world and on split groups:
// against the sum in ascending rank order. And a wait for a rank that never comes ends by its deadline.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/backends/tests/under_mpirun.h"
#include "reference/engine/comm.h"

enum { MAX_RANKS = 8, PART = 300, BUFFER = MAX_RANKS * (PART + MAX_RANKS) };

static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16};

// ---- on every rank ----

#define EXPECT(condition)                                                                                     \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "rank %d: %s:%d: %s\n", world.all.rank, __FILE__, __LINE__, #condition);          \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

static struct comm_world world;
static struct error error;
static double a[BUFFER], b[BUFFER], c[BUFFER];

// Values whose 16-bit sums depend on the order: large, then small ones.
static double value_of(int rank, int64_t i) { return rank == 0 ? 256 : (double)((rank * 7 + i) % 5 + 1) / (1 + i % 3); }

static void fill(enum dtype type, void *array, int rank, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dtype_set(type, array, i, value_of(rank, first + i));
}

static void expected_sum(enum dtype type, void *out, int ranks, int64_t first, int64_t count)
{
    double term[BUFFER];
    fill(type, out, 0, first, count);
    for (int r = 1; r < ranks; r++) {
        fill(type, term, r, first, count);
        kernels_cpu(type)->add(count, term, out);
    }
}

static void finish(struct backend_request *request)
{
    bool done = false;
    while (!done)
        EXPECT(world.backend->test(request, &done, &error));
}

// Parts of 0, PART, PART + 1, ... elements.
static int64_t parts(int ranks, int64_t *counts, int64_t *starts)
{
    int64_t total = 0;
    for (int r = 0; r < ranks; r++) {
        counts[r] = r == 1 ? 0 : PART + r;
        starts[r] = total;
        total += counts[r];
    }
    return total;
}

static void check_all_gather(const struct backend_group *g, enum dtype type, bool in_place)
{
    int64_t counts[MAX_RANKS], starts[MAX_RANKS], total = parts(g->size, counts, starts);
    struct backend_request *request;
    void *send = in_place ? (char *)b + (size_t)starts[g->rank] * dtype_size(type) : (char *)a;
    fill(type, send, g->rank, 0, counts[g->rank]);
    EXPECT(world.backend->all_gather(g, type, send, b, counts, starts, &request, &error));
    finish(request);
    for (int r = 0; r < g->size; r++)
        fill(type, (char *)c + (size_t)starts[r] * dtype_size(type), r, 0, counts[r]);
    EXPECT(!memcmp(b, c, (size_t)total * dtype_size(type)));
}

static void check_reduce_scatter(const struct backend_group *g, enum dtype type)
{
    int64_t counts[MAX_RANKS], starts[MAX_RANKS], total = parts(g->size, counts, starts);
    struct backend_request *request;
    fill(type, a, g->rank, 0, total);
    EXPECT(world.backend->reduce_scatter(g, type, a, b, counts, starts, &request, &error));
    finish(request);
    expected_sum(type, c, g->size, starts[g->rank], counts[g->rank]);
    EXPECT(!memcmp(b, c, (size_t)counts[g->rank] * dtype_size(type)));
}

static void check_all_reduce(const struct backend_group *g, enum dtype type, int64_t count)
{
    struct backend_request *request;
    fill(type, a, g->rank, 0, count);
    EXPECT(backend_all_reduce_work(count, g->size) <= BUFFER);
    EXPECT(world.backend->all_reduce(g, type, REDUCE_SUM, a, b, count, &request, &error));
    finish(request);
    expected_sum(type, c, g->size, 0, count);
    EXPECT(!memcmp(a, c, (size_t)count * dtype_size(type)));
}

static void check_maximum(const struct backend_group *g)
{
    struct backend_request *request;
    double values[3] = {g->rank, -g->rank, g->rank == 0 ? 0.0 / 0.0 * -1 : 5}, work[3 * MAX_RANKS];
    EXPECT(world.backend->all_reduce(g, DTYPE_F64, REDUCE_MAX, values, work, 3, &request, &error));
    finish(request);
    EXPECT(values[0] == g->size - 1 && values[1] == 0 && values[2] != values[2]);
}

static void check_broadcast_and_barrier(const struct backend_group *g)
{
    struct backend_request *request;
    double values[2] = {g->rank + 1, g->rank + 2};
    EXPECT(world.backend->broadcast(g, DTYPE_F64, values, 2, 0, &request, &error));
    finish(request);
    EXPECT(values[0] == 1 && values[1] == 2);
    EXPECT(world.backend->barrier(g, &request, &error));
    finish(request);
}

static void check_group(const struct backend_group *g)
{
    static const int64_t counts[] = {0, 1, 3, BACKEND_SMALL_COUNT, BACKEND_SMALL_COUNT + 1, 1001};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        check_all_gather(g, types[t], false);
        check_all_gather(g, types[t], true);
        check_reduce_scatter(g, types[t]);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            check_all_reduce(g, types[t], counts[i]);
    }
    check_maximum(g);
    check_broadcast_and_barrier(g);
}

// Many in flight at once, finished in the reverse order.
static void check_many(const struct backend_group *g)
{
    enum { MANY = 16 };
    struct backend_request *requests[MANY];
    int64_t counts[MAX_RANKS], starts[MAX_RANKS];
    for (int r = 0; r < g->size; r++) {
        counts[r] = 1;
        starts[r] = r;
    }
    for (int i = 0; i < MANY; i++) {
        a[i] = 100 * i + g->rank;
        EXPECT(world.backend->all_gather(g, DTYPE_F64, &a[i], &b[i * MAX_RANKS], counts, starts, &requests[i], &error));
    }
    for (int i = MANY - 1; i >= 0; i--)
        finish(requests[i]);
    for (int i = 0; i < MANY; i++)
        for (int r = 0; r < g->size; r++)
            EXPECT(b[i * MAX_RANKS + r] == 100 * i + r);
}

static int ranks_check_everything(const struct backend *backend)
{
    struct comm comm;
    EXPECT(comm_world_open(&world, backend, 60, &error));
    check_group(&world.all);
    check_many(&world.all);
    for (int s = 1; s <= world.all.size; s++)
        if (world.all.size % s == 0) {
            EXPECT(comm_open(&comm, &world, world.all.size / s, s, &error));
            EXPECT(comm.groups->shard.size == s && comm.groups->replicate.size == world.all.size / s);
            EXPECT(comm.groups->shard.rank == world.all.rank % s && comm.groups->replicate.rank == world.all.rank / s);
            check_group(&comm.groups->shard);
            check_group(&comm.groups->replicate);
        }
    EXPECT(!comm_open(&comm, &world, world.all.size + 1, 1, &error));
    comm_world_close(&world);
    return 0;
}

// Rank 0 gathers; the others do not. The message names rank, collective, elements and seconds.
static int ranks_check_deadline(void)
{
    struct comm comm;
    struct comm_request request;
    int64_t counts[2] = {2, 2}, starts[2] = {0, 2};
    EXPECT(comm_world_open(&world, &backend_mpi, 0.3, &error) && comm_open(&comm, &world, 1, 2, &error));
    if (world.all.rank == 0) {
        double start = comm_seconds();
        EXPECT(comm_all_gather(&comm, DTYPE_F32, a, b, counts, starts, &request, &error));
        EXPECT(!comm_wait(&comm, &request, &error));
        EXPECT(comm_seconds() - start < 10);
        EXPECT(strstr(error.text, "rank 0: all_gather of 4 elements did not end within 0.3 s"));
        _exit(7);
    }
    sleep(5);
    _exit(8); // mpirun has ended this rank before
}

// ---- the tests ----

static void test_serial(void **state)
{
    (void)state;
    assert_int_equal(ranks_check_everything(&backend_serial), 0);
}

static void test_mpi(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 5; ranks++)
        assert_int_equal(run_ranks(ranks, "everything"), 0);
}

static void test_deadline(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, "deadline"), 7);
}

// Two ranks on MPI's groups: what is this rank's own arrives, what is the other's does not, and nothing is waited for.
static int ranks_check_null(void)
{
    struct error error = {""};
    struct backend_group world, all;
    struct backend_request *request;
    bool done = false;
    const int64_t counts[] = {2, 2}, starts[] = {0, 2};
    float full[4] = {-1, -1, -1, -1}, own[2] = {5, 6}, terms[4] = {1, 2, 3, 4}, work[4] = {0}, value = 7;
    if (!backend_mpi.open(&world, 30, &error) || !backend_null.split(&world, 0, world.rank, &all, &error) || all.size != 2 || all.rank != world.rank)
        return 1;
    int mine = 2 * all.rank, other = 2 - mine;
    if (!backend_null.all_gather(&all, DTYPE_F32, own, full, counts, starts, &request, &error) || !backend_null.test(request, &done, &error) || !done)
        return 2;
    if (full[mine] != 5 || full[mine + 1] != 6 || full[other] != -1 || full[other + 1] != -1)
        return 3;
    if (!backend_null.reduce_scatter(&all, DTYPE_F32, terms, work, counts, starts, &request, &error) || work[0] != terms[mine] || work[1] != terms[mine + 1])
        return 4;
    if (!backend_null.all_reduce(&all, DTYPE_F32, REDUCE_SUM, &value, work, 1, &request, &error) || value != 7)
        return 5;
    // One rank alone may go through a barrier: nobody is waited for.
    if (all.rank == 0 && !(backend_null.barrier(&all, &request, &error) && backend_null.test(request, &done, &error) && done))
        return 6;
    if (backend_null.open(&world, 30, &error) || !strstr(error.text, "null backend"))
        return 7;
    backend_mpi.close(&world);
    return 0;
}

static void test_null(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, "null"), 0);
}

int main(int argc, char **argv)
{
    if (under_mpirun() && argc > 1 && !strcmp(argv[1], "null"))
        return ranks_check_null();
    if (under_mpirun())
        return argc > 1 && !strcmp(argv[1], "deadline") ? ranks_check_deadline() : ranks_check_everything(&backend_mpi);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_serial), cmocka_unit_test(test_mpi), cmocka_unit_test(test_deadline),
                                       cmocka_unit_test(test_null)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
