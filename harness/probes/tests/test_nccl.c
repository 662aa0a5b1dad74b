// The nccl probe against a stand-in of the tests' own (standin_nccl.c): NOT against NCCL, for which no GPU is at hand. Every call of its table,
// with the library opened for its opener alone, as Python does: payload, wire, type, operator, size; groups; what fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/probes/tests/preloaded.h"
#include "harness/probes/tests/seen.h"

typedef struct ncclComm *comm_t;
typedef struct { char internal[128]; } id_t_;
enum { N = 4, ME = 2, C = 10, F16 = 6, F32 = 7, BF16 = 9, UNKNOWN = 99, SUM = 0, AVERAGE = 4, OWN = 9 };
static uint16_t n = N; // ranks that a record should tell of
static uint8_t grouped;

// The function as a framework's library would be bound: to the probe, which is first in the search.
#define CALLED(name, type, ...) (((int(*) type)(uintptr_t)dlsym(RTLD_DEFAULT, #name))(__VA_ARGS__))
#define COLLECTIVE(call, op_, type_, count_, width_, wire_, reduction_) \
    do { \
        uint64_t at = seen_count; \
        seen_at(__LINE__, call, (struct probe_record){.kind = PROBE_COLLECTIVE, .op = op_, .type = type_, .count = count_, .bytes = (count_) * (width_), \
                                                      .wire = wire_, .size = n}); \
        if (seen_file.records[at].reduction != (reduction_) || seen_file.records[at].grouped != grouped) \
            return fprintf(stderr, "%s: found reduction %d, grouped %d\n", call, seen_file.records[at].reduction, seen_file.records[at].grouped), 1; \
    } while (0)
#define POINT(call, op_, wire_) \
    seen_at(__LINE__, call, (struct probe_record){.kind = PROBE_POINT, .op = op_, .type = PROBE_F32, .count = C, .bytes = C * 4, .wire = wire_, .size = n})
#define MADE(call, ranks) seen_at(__LINE__, call, (struct probe_record){.kind = PROBE_CONNECT, .size = ranks})

#define BOTH (const void *, void *, size_t, int, comm_t, void *)
#define BOTH_INT (const void *, void *, size_t, int, int, comm_t, void *)

static int collectives(comm_t comm)
{
    char a[1024], b[1024];
    CALLED(ncclAllGather, BOTH, a, b, C, BF16, comm, NULL);
    COLLECTIVE("ncclAllGather", PROBE_ALL_GATHER, PROBE_BF16, N * C, 2, (N - 1) * C * 2, PROBE_REDUCTION_NONE);
    CALLED(ncclReduceScatter, BOTH_INT, a, b, C, F32, AVERAGE, comm, NULL);
    COLLECTIVE("ncclReduceScatter", PROBE_REDUCE_SCATTER, PROBE_F32, N * C, 4, (N - 1) * C * 4, PROBE_AVERAGE);
    CALLED(ncclAllReduce, BOTH_INT, a, b, C, F16, SUM, comm, NULL);
    COLLECTIVE("ncclAllReduce", PROBE_ALL_REDUCE, PROBE_F16, C, 2, 2 * 3 * C * 2 / 4, PROBE_SUM);
    CALLED(ncclAllReduce, BOTH_INT, a, b, C, F32, OWN, comm, NULL);
    COLLECTIVE("ncclAllReduce", PROBE_ALL_REDUCE, PROBE_F32, C, 4, 2 * 3 * C * 4 / 4, PROBE_REDUCTION_OTHER);
    for (int root = 0; root < N; root++) {
        CALLED(ncclBroadcast, BOTH_INT, a, b, C, F32, root, comm, NULL);
        COLLECTIVE("ncclBroadcast", PROBE_BROADCAST, PROBE_F32, C, 4, root == ME ? 3 * C * 4 : 0, PROBE_REDUCTION_NONE);
        CALLED(ncclBcast, (void *, size_t, int, int, comm_t, void *), a, C, F32, root, comm, NULL);
        COLLECTIVE("ncclBcast", PROBE_BROADCAST, PROBE_F32, C, 4, root == ME ? 3 * C * 4 : 0, PROBE_REDUCTION_NONE);
        CALLED(ncclReduce, (const void *, void *, size_t, int, int, int, comm_t, void *), a, b, C, F32, SUM, root, comm, NULL);
        COLLECTIVE("ncclReduce", PROBE_REDUCE, PROBE_F32, C, 4, root == ME ? 0 : C * 4, PROBE_SUM);
        CALLED(ncclGather, BOTH_INT, a, b, C, F32, root, comm, NULL);
        COLLECTIVE("ncclGather", PROBE_GATHER, PROBE_F32, root == ME ? N * C : C, 4, root == ME ? 0 : C * 4, PROBE_REDUCTION_NONE);
        CALLED(ncclScatter, BOTH_INT, a, b, C, F32, root, comm, NULL);
        COLLECTIVE("ncclScatter", PROBE_SCATTER, PROBE_F32, root == ME ? N * C : C, 4, root == ME ? 3 * C * 4 : 0, PROBE_REDUCTION_NONE);
    }
    CALLED(ncclAlltoAll, BOTH, a, b, C, F32, comm, NULL);
    COLLECTIVE("ncclAlltoAll", PROBE_ALL_TO_ALL, PROBE_F32, N * C, 4, 3 * C * 4, PROBE_REDUCTION_NONE);
    return 0;
}

static int points(comm_t comm)
{
    char a[64];
    CALLED(ncclSend, (const void *, size_t, int, int, comm_t, void *), a, C, F32, 0, comm, NULL);
    POINT("ncclSend", PROBE_OP_SEND, C * 4);
    CALLED(ncclSend, (const void *, size_t, int, int, comm_t, void *), a, C, F32, ME, comm, NULL);
    POINT("ncclSend", PROBE_OP_SEND, 0);
    CALLED(ncclRecv, (void *, size_t, int, int, comm_t, void *), a, C, F32, 1, comm, NULL);
    POINT("ncclRecv", PROBE_OP_RECEIVE, 0);
    return 0;
}

static int communicators(comm_t comm, id_t_ id)
{
    comm_t other, all[3];
    CALLED(ncclCommInitRankConfig, (comm_t *, int, id_t_, int, void *), &other, 5, id, 1, NULL);
    MADE("ncclCommInitRankConfig", 5);
    CALLED(ncclCommDestroy, (comm_t), other);
    MADE("ncclCommDestroy", 0);
    CALLED(ncclCommInitRankScalable, (comm_t *, int, int, int, id_t_ *, void *), &other, 6, 1, 1, &id, NULL);
    MADE("ncclCommInitRankScalable", 6);
    CALLED(ncclCommAbort, (comm_t), other);
    MADE("ncclCommAbort", 0);
    CALLED(ncclCommSplit, (comm_t, int, int, comm_t *, void *), comm, 0, 0, &other, NULL);
    MADE("ncclCommSplit", 2);
    n = 2;
    POINT((CALLED(ncclSend, (const void *, size_t, int, int, comm_t, void *), &id, C, F32, 0, other, NULL), "ncclSend"), PROBE_OP_SEND, C * 4);
    n = N;
    CALLED(ncclCommShrink, (comm_t, int *, int, comm_t *, void *, int), comm, NULL, 1, &other, NULL, 0);
    MADE("ncclCommShrink", 3);
    CALLED(ncclCommInitAll, (comm_t *, int, const int *), all, 3, NULL);
    for (int i = 0; i < 3; i++)
        MADE("ncclCommInitAll", 3);
    return 0;
}

// What fails, or has a type that nobody knows, and what is one-sided.
static int uncounted(comm_t comm)
{
    char a[64];
    if (CALLED(ncclAllReduce, BOTH_INT, a, a, SIZE_MAX, F32, SUM, comm, NULL) == 0)
        return 1;
    seen_nothing();
    CALLED(ncclAllGather, BOTH, a, a, C, UNKNOWN, comm, NULL);
    seen_at(__LINE__, "ncclAllGather", (struct probe_record){.kind = PROBE_UNSEEN});
    CALLED(ncclPutSignal, (const void *, size_t, int, int, void *, size_t, int, int, unsigned, comm_t, void *), a, C, F32, 0, NULL, 0, 0, 0, 0, comm, NULL);
    seen_at(__LINE__, "ncclPutSignal", (struct probe_record){.kind = PROBE_UNSEEN});
    return 0;
}

static int act(void)
{
    char build[4096], path[4200];
    id_t_ id;
    comm_t comm, before;
    preloaded_build(build);
    snprintf(path, sizeof path, "%s/tests/libstandin-nccl.so", build);
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    for (int i = 0; i < 128; i++)
        id.internal[i] = (char)i;
    CALLED(ncclCommInitRank, (comm_t *, int, id_t_, int), &before, N, id, ME); // before the first mark
    actor_mark("case", 0);
    seen_open();
    seen_nothing();
    CALLED(ncclCommInitRank, (comm_t *, int, id_t_, int), &comm, N, id, ME);
    MADE("ncclCommInitRank", N);
    if (collectives(comm) || points(comm) || communicators(comm, id) || uncounted(before))
        return 1;
    CALLED(ncclGroupStart, (void));
    CALLED(ncclGroupStart, (void));
    CALLED(ncclGroupEnd, (void));
    grouped = 1;
    if (collectives(comm))
        return 1;
    CALLED(ncclGroupEnd, (void));
    grouped = 0;
    if (collectives(comm))
        return 1;
    seen_nothing();
    seen_all(CALLS_NCCL, "");
    return 0;
}

static void every_call(void **state)
{
    (void)state;
    char output[256];
    assert_int_equal(preloaded_run("act", "nccl", preloaded_job(), NULL, output, sizeof output), 0);
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"act", act}, {0}};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
