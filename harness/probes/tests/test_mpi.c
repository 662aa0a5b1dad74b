// The mpi probe on 2, 3 and 4 ranks: every call of its table once or more, with uneven counts, in place, on parts of the world and on
// topologies: its payload, its wire bytes and its size as written here by hand. And without MPI the probe does nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>

#include "harness/probes/tests/preloaded.h"
#include "harness/probes/tests/seen.h"

enum { C = 5, ROOM = 256 };
static int n, me;
static float a[ROOM], b[ROOM];

#define F ((int64_t)sizeof(float))
#define OK(call) ((call) == MPI_SUCCESS ? (void)0 : (fprintf(stderr, "rank %d: %s failed\n", me, #call), exit(1)))
#define COLLECTIVE(call, op_, type_, count_, size_, wire_) \
    seen_at(__LINE__, call, (struct probe_record){.kind = PROBE_COLLECTIVE, .op = op_, .type = type_, .count = count_, .bytes = (count_) * (size_), \
                                                  .wire = (uint64_t)(wire_), .size = (uint16_t)n})
#define FLOATS(call, op, count, wire) COLLECTIVE(call, op, PROBE_F32, count, F, wire)
#define POINT(call, op_, count_, wire_) \
    seen_at(__LINE__, call, (struct probe_record){.kind = PROBE_POINT, .op = op_, .type = PROBE_F32, .count = count_, .bytes = (count_) * F, \
                                                  .wire = (uint64_t)(wire_), .size = (uint16_t)n})
#define UNSEEN(call) seen_at(__LINE__, call, (struct probe_record){.kind = PROBE_UNSEEN})

// Both forms of a collective, and what they must leave behind.
#define BOTH(name, nonblocking, arguments, request, check) \
    do { \
        MPI_Request q; \
        OK(MPI_##name arguments); \
        check("MPI_" #name); \
        OK(MPI_##nonblocking request); \
        check("MPI_" #nonblocking); \
        OK(MPI_Wait(&q, MPI_STATUS_IGNORE)); \
    } while (0)
#define ARGS(...) (__VA_ARGS__)
#define EACH(name, nonblocking, check, ...) BOTH(name, nonblocking, ARGS(__VA_ARGS__), ARGS(__VA_ARGS__, &q), check)

static void collectives(MPI_Comm comm)
{
    int root = n - 1, at_root = me == root;
#define IS(c) FLOATS(c, PROBE_ALL_GATHER, n * C, (n - 1) * C * F)
    EACH(Allgather, Iallgather, IS, a, C, MPI_FLOAT, b, C, MPI_FLOAT, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_ALL_REDUCE, C, 2 * (n - 1) * C * F / n)
    EACH(Allreduce, Iallreduce, IS, a, b, C, MPI_FLOAT, MPI_SUM, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_ALL_TO_ALL, n * C, (n - 1) * C * F)
    EACH(Alltoall, Ialltoall, IS, a, C, MPI_FLOAT, b, C, MPI_FLOAT, comm);
#undef IS
#define IS(c) COLLECTIVE(c, PROBE_BARRIER, PROBE_TYPE_OTHER, 0, 1, 0)
    EACH(Barrier, Ibarrier, IS, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_BROADCAST, C, at_root ? (n - 1) * C * F : 0)
    EACH(Bcast, Ibcast, IS, a, C, MPI_FLOAT, root, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_GATHER, at_root ? n * C : C, at_root ? 0 : C * F)
    EACH(Gather, Igather, IS, a, C, MPI_FLOAT, b, C, MPI_FLOAT, root, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_SCATTER, at_root ? n * C : C, at_root ? (n - 1) * C * F : 0)
    EACH(Scatter, Iscatter, IS, a, C, MPI_FLOAT, b, C, MPI_FLOAT, root, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_REDUCE, C, at_root ? 0 : C * F)
    EACH(Reduce, Ireduce, IS, a, b, C, MPI_FLOAT, MPI_MAX, root, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_REDUCE_SCATTER, n * C, (n - 1) * C * F)
    EACH(Reduce_scatter_block, Ireduce_scatter_block, IS, a, b, C, MPI_FLOAT, MPI_SUM, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_REDUCE, C, me < n - 1 ? C * F : 0)
    EACH(Scan, Iscan, IS, a, b, C, MPI_FLOAT, MPI_SUM, comm);
    EACH(Exscan, Iexscan, IS, a, b, C, MPI_FLOAT, MPI_SUM, comm);
#undef IS
}

// Rank r's part has r + 1 elements; in the w forms every second part is of doubles.
static void uneven(MPI_Comm comm)
{
    int counts[8], starts[8], mine[8], sides[8], bytes[8], total = n * (n + 1) / 2, root = 0, at_root = me == root;
    MPI_Datatype types[8], my_types[8];
    int64_t sent = 0, own = 0;
    for (int r = 0; r < n; r++) {
        counts[r] = r + 1, starts[r] = r * (r + 1) / 2;
        mine[r] = me + 1, sides[r] = r * (me + 1); // I get me + 1 from each
        types[r] = r % 2 ? MPI_DOUBLE : MPI_FLOAT, my_types[r] = me % 2 ? MPI_DOUBLE : MPI_FLOAT;
        bytes[r] = 16 * r;
        sent += counts[r] * (r % 2 ? 8 : 4);
    }
    own = (me + 1) * (me % 2 ? 8 : 4);
#define IS(c) FLOATS(c, PROBE_ALL_GATHER, total, (n - 1) * (me + 1) * F)
    EACH(Allgatherv, Iallgatherv, IS, a, me + 1, MPI_FLOAT, b, counts, starts, MPI_FLOAT, comm);
    EACH(Allgatherv, Iallgatherv, IS, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, starts, MPI_FLOAT, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_ALL_TO_ALL, total, (total - me - 1) * F)
    EACH(Alltoallv, Ialltoallv, IS, a, counts, starts, MPI_FLOAT, b, mine, sides, MPI_FLOAT, comm);
#undef IS
#define IS(c) COLLECTIVE(c, PROBE_ALL_TO_ALL, PROBE_TYPE_OTHER, sent, 1, sent - own)
    EACH(Alltoallw, Ialltoallw, IS, a, counts, bytes, types, b, mine, bytes, my_types, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_GATHER, at_root ? total : me + 1, at_root ? 0 : (me + 1) * F)
    EACH(Gatherv, Igatherv, IS, a, me + 1, MPI_FLOAT, b, counts, starts, MPI_FLOAT, root, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_SCATTER, at_root ? total : me + 1, at_root ? (total - 1) * F : 0)
    EACH(Scatterv, Iscatterv, IS, a, counts, starts, MPI_FLOAT, b, me + 1, MPI_FLOAT, root, comm);
#undef IS
#define IS(c) FLOATS(c, PROBE_REDUCE_SCATTER, total, (total - me - 1) * F)
    EACH(Reduce_scatter, Ireduce_scatter, IS, a, b, counts, MPI_FLOAT, MPI_SUM, comm);
#undef IS
}

// A line of processes: the ends have one neighbour, the others two.
static void neighbours(void)
{
    MPI_Comm line;
    int size = n, open = 0, sides = (me > 0) + (me < n - 1), two[2] = {C, C}, zero[2] = {0, 0};
    MPI_Aint none[2] = {0, 0};
    MPI_Datatype types[2] = {MPI_FLOAT, MPI_FLOAT};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &open, 0, &line));
    seen_nothing();
#define IS(c) FLOATS(c, PROBE_ALL_GATHER, 2 * C, sides * C * F)
    EACH(Neighbor_allgather, Ineighbor_allgather, IS, a, C, MPI_FLOAT, b, C, MPI_FLOAT, line);
    EACH(Neighbor_allgatherv, Ineighbor_allgatherv, IS, a, C, MPI_FLOAT, b, two, zero, MPI_FLOAT, line);
#undef IS
#define IS(c) FLOATS(c, PROBE_ALL_TO_ALL, 2 * C, sides * C * F)
    EACH(Neighbor_alltoall, Ineighbor_alltoall, IS, a, C, MPI_FLOAT, b, C, MPI_FLOAT, line);
    EACH(Neighbor_alltoallv, Ineighbor_alltoallv, IS, a, two, zero, MPI_FLOAT, b, two, zero, MPI_FLOAT, line);
#undef IS
#define IS(c) COLLECTIVE(c, PROBE_ALL_TO_ALL, PROBE_TYPE_OTHER, 2 * C * F, 1, sides * C * F)
    EACH(Neighbor_alltoallw, Ineighbor_alltoallw, IS, a, two, none, types, b, two, none, types, line);
#undef IS
    MPI_Comm_free(&line);
    // Directed: each sends to the next alone.
    int next = (me + 1) % n, last = (me + n - 1) % n, weight = 1;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &line));
    OK(MPI_Neighbor_allgather(a, C, MPI_FLOAT, b, C, MPI_FLOAT, line));
    FLOATS("MPI_Neighbor_allgather", PROBE_ALL_GATHER, C, C * F);
    MPI_Comm_free(&line);
}

// Each sends to the next and gets from the one before; the receive has more room than is sent.
#define SEND(name, nonblocking, lasting) \
    do { \
        MPI_Request get, put; \
        OK(MPI_Irecv(b, C + 3, MPI_FLOAT, last, 0, comm, &get)); \
        POINT("MPI_Irecv", PROBE_OP_RECEIVE, C + 3, 0); \
        MPI_Barrier(comm), seen_next(); /* a ready send needs its receive posted */ \
        OK(MPI_##name(a, C, MPI_FLOAT, next, 0, comm)); \
        POINT("MPI_" #name, PROBE_OP_SEND, C, C * F); \
        OK(MPI_Wait(&get, MPI_STATUS_IGNORE)); \
        OK(MPI_Irecv(b, C, MPI_FLOAT, last, 0, comm, &get)); \
        POINT("MPI_Irecv", PROBE_OP_RECEIVE, C, 0); \
        MPI_Barrier(comm), seen_next(); \
        OK(MPI_##nonblocking(a, C, MPI_FLOAT, next, 0, comm, &put)); \
        POINT("MPI_" #nonblocking, PROBE_OP_SEND, C, C * F); \
        OK(MPI_Wait(&get, MPI_STATUS_IGNORE)); \
        OK(MPI_Wait(&put, MPI_STATUS_IGNORE)); \
        OK(MPI_Recv_init(b, C, MPI_FLOAT, last, 0, comm, &get)); \
        OK(MPI_##lasting(a, C, MPI_FLOAT, next, 0, comm, &put)); \
        seen_nothing(); /* nothing moves yet */ \
        for (int i = 0; i < 2; i++) { \
            OK(MPI_Start(&get)); \
            POINT("MPI_Start", PROBE_OP_RECEIVE, C, 0); \
            MPI_Barrier(comm), seen_next(); \
            OK(MPI_Startall(1, &put)); \
            POINT("MPI_Startall", PROBE_OP_SEND, C, C * F); \
            OK(MPI_Wait(&get, MPI_STATUS_IGNORE)); \
            OK(MPI_Wait(&put, MPI_STATUS_IGNORE)); \
        } \
        MPI_Request_free(&get); \
        MPI_Request_free(&put); \
    } while (0)

static void points(MPI_Comm comm)
{
    static char room[65536];
    int next = (me + 1) % n, last = (me + n - 1) % n;
    MPI_Message message;
    MPI_Request q, r;
    OK(MPI_Buffer_attach(room, sizeof room));
    SEND(Send, Isend, Send_init);
    SEND(Bsend, Ibsend, Bsend_init);
    SEND(Ssend, Issend, Ssend_init);
    SEND(Rsend, Irsend, Rsend_init);
    OK(MPI_Sendrecv(a, C, MPI_FLOAT, next, 1, b, C + 9, MPI_FLOAT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE));
    POINT("MPI_Sendrecv", PROBE_OP_SEND, C, C * F);
    POINT("MPI_Sendrecv", PROBE_OP_RECEIVE, C, 0); // what came, not the room for it
    OK(MPI_Sendrecv_replace(a, C, MPI_FLOAT, next, 2, last, 2, comm, MPI_STATUS_IGNORE));
    POINT("MPI_Sendrecv_replace", PROBE_OP_SEND, C, C * F);
    POINT("MPI_Sendrecv_replace", PROBE_OP_RECEIVE, C, 0);
    OK(MPI_Isend(a, C, MPI_FLOAT, next, 3, comm, &q)), seen_next();
    OK(MPI_Recv(b, C + 9, MPI_FLOAT, last, 3, comm, MPI_STATUS_IGNORE));
    POINT("MPI_Recv", PROBE_OP_RECEIVE, C, 0);
    OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    for (int wait = 0; wait < 2; wait++) { // matched: the probe does not know the communicator
        OK(MPI_Isend(a, C, MPI_FLOAT, next, 4, comm, &q)), seen_next();
        OK(MPI_Mprobe(last, 4, comm, &message, MPI_STATUS_IGNORE));
        OK(wait ? MPI_Mrecv(b, C + 9, MPI_FLOAT, &message, MPI_STATUS_IGNORE) : MPI_Imrecv(b, C, MPI_FLOAT, &message, &r));
        seen_at(__LINE__, wait ? "MPI_Mrecv" : "MPI_Imrecv", (struct probe_record){.kind = PROBE_POINT, .op = PROBE_OP_RECEIVE, .type = PROBE_F32,
                .count = C, .bytes = C * F});
        if (!wait)
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    }
    OK(MPI_Send(a, C, MPI_FLOAT, MPI_PROC_NULL, 0, comm));
    seen_nothing();
    OK(MPI_Sendrecv(a, C, MPI_FLOAT, me, 1, b, C, MPI_FLOAT, me, 1, comm, MPI_STATUS_IGNORE));
    POINT("MPI_Sendrecv", PROBE_OP_SEND, C, 0); // to itself: nothing leaves
    POINT("MPI_Sendrecv", PROBE_OP_RECEIVE, C, 0);
}

// Open MPI's types by kind, and one that a program made.
static void types(MPI_Comm comm)
{
    const struct { MPI_Datatype type; enum probe_type is; int size; } list[] = {
        {MPI_DOUBLE, PROBE_F64, 8}, {MPI_BYTE, PROBE_BYTE, 1}, {MPI_CHAR, PROBE_BYTE, 1}, {MPI_INT32_T, PROBE_I32, 4}, {MPI_INT, PROBE_I32, 4},
        {MPI_INT64_T, PROBE_I64, 8}, {MPI_UINT16_T, PROBE_U16, 2}, {MPI_UINT32_T, PROBE_TYPE_OTHER, 4}};
    MPI_Datatype pair;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        OK(MPI_Bcast(a, C, list[i].type, 0, comm));
        COLLECTIVE("MPI_Bcast", PROBE_BROADCAST, list[i].is, C, list[i].size, me == 0 ? (n - 1) * C * list[i].size : 0);
    }
    MPI_Type_contiguous(2, MPI_FLOAT, &pair);
    MPI_Type_commit(&pair);
    OK(MPI_Bcast(a, C, pair, 0, comm));
    COLLECTIVE("MPI_Bcast", PROBE_BROADCAST, PROBE_TYPE_OTHER, C, 8, me == 0 ? (n - 1) * C * 8 : 0);
    MPI_Type_free(&pair);
}

static void one_sided(void)
{
    static float window[ROOM];
    MPI_Win w;
    MPI_Request q;
    int to = (me + 1) % n, x = 1, y = 0, z;
    OK(MPI_Win_create(window, sizeof window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
    OK(MPI_Win_lock_all(0, w));
#define DO(name, ...) \
    OK(MPI_##name(__VA_ARGS__)); \
    UNSEEN("MPI_" #name)
    DO(Put, a, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, w);
    DO(Get, b, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, w);
    DO(Accumulate, a, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, MPI_SUM, w);
    DO(Get_accumulate, a, C, MPI_FLOAT, b, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, MPI_SUM, w);
    DO(Fetch_and_op, &x, &y, MPI_INT, to, 9, MPI_SUM, w);
    DO(Compare_and_swap, &x, &y, &z, MPI_INT, to, 9, w);
    DO(Rput, a, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, w, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
    DO(Rget, b, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, w, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
    DO(Raccumulate, a, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, MPI_SUM, w, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
    DO(Rget_accumulate, a, C, MPI_FLOAT, b, C, MPI_FLOAT, to, 0, C, MPI_FLOAT, MPI_SUM, w, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
#undef DO
    OK(MPI_Win_unlock_all(w));
    MPI_Win_free(&w);
}

// What fails, and what happens between two groups.
static void refused(void)
{
    MPI_Comm half, between;
    int color = me > 0, count;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Bcast(a, -1, MPI_FLOAT, 0, MPI_COMM_WORLD) == MPI_SUCCESS || MPI_Send(a, 1, MPI_FLOAT, n + 7, 0, MPI_COMM_WORLD) == MPI_SUCCESS)
        exit(1);
    seen_nothing();
    OK(MPI_Comm_split(MPI_COMM_WORLD, color, me, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, color ? 0 : 1, 77, &between));
    while (seen_next() != NULL) // Open MPI may make one by calls that are wrapped
        continue;
    OK(MPI_Comm_size(half, &count));
    OK(MPI_Allreduce(a, b, C, MPI_FLOAT, MPI_SUM, half));
    int all = n;
    n = count;
    FLOATS("MPI_Allreduce", PROBE_ALL_REDUCE, C, 2 * (n - 1) * C * F / n);
    n = all;
    OK(MPI_Barrier(between));
    UNSEEN("MPI_Barrier");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

// The handle of a communicator that was freed comes again, for one of another size.
static void handles(void)
{
    MPI_Comm pair;
    int all = n, again = 0;
    void *before = NULL;
    for (int i = 0; i < 8; i++) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? me : 0, me, &pair));
        again += (void *)pair == before;
        before = (void *)pair;
        while (seen_next() != NULL)
            continue;
        n = i % 2 ? 1 : all;
        OK(MPI_Allreduce(a, b, C, MPI_FLOAT, MPI_SUM, pair));
        FLOATS("MPI_Allreduce", PROBE_ALL_REDUCE, C, 2 * (n - 1) * C * F / n);
        OK(MPI_Comm_free(&pair));
    }
    n = all;
    if (again == 0) { // or this shows nothing
        fprintf(stderr, "rank %d: no handle came again\n", me);
        exit(1);
    }
}

static int act_as_rank(void)
{
    setenv("RANK", getenv("OMPI_COMM_WORLD_RANK"), 1);
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Barrier(MPI_COMM_WORLD); // before the first mark
    actor_mark("case", 0);
    seen_open();
    collectives(MPI_COMM_WORLD);
    uneven(MPI_COMM_WORLD);
    neighbours();
    points(MPI_COMM_WORLD);
    types(MPI_COMM_WORLD);
    one_sided();
    refused();
    handles();
    seen_all(CALLS_MPI, "MPI_Recv_init MPI_Send_init MPI_Bsend_init MPI_Ssend_init MPI_Rsend_init " // seen as MPI_Start
                        "MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Testall MPI_Testany MPI_Testsome MPI_Probe MPI_Mprobe"); // test_wait.c
    MPI_Finalize();
    return 0;
}

// ---- the tests ---------------------------------------------------------------------------------
// Without the sanitizer's quarantine, since no handle would come again.
static void on_ranks(void **state)
{
    const char *ranks = *state, *job = preloaded_job();
    char build[4096], command[20000];
    preloaded_build(build);
    snprintf(command, sizeof command,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec timeout 120 mpirun --oversubscribe --mca btl_base_warn_component_unused 0"
             " -n %s -x FSDPMARK_JOB=%s -x FSDPMARK_PROBES=mpi -x ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
             " -x LD_PRELOAD=%s/libfsdpmark-probe.so:%s/libfsdpmark-probe-mpi.so %s/tests/harness/probes/test_mpi rank",
             ranks, job, build, build, build);
    assert_int_equal(system(command), 0);
}

// The probe needs nothing of MPI where a worker has none.
static void without_mpi(void **state)
{
    (void)state;
    char build[4096], command[12000];
    preloaded_build(build);
    snprintf(command, sizeof command, "LD_BIND_NOW=1 LD_PRELOAD=%s/libfsdpmark-probe.so:%s/libfsdpmark-probe-mpi.so /bin/true 2>&1 | grep . && exit 1 || exit 0", build, build);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"rank", act_as_rank}, {0}};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    const struct CMUnitTest tests[] = {
        {"every call on 2 ranks", on_ranks, NULL, NULL, (void *)(uintptr_t)"2"}, {"every call on 3 ranks", on_ranks, NULL, NULL, (void *)(uintptr_t)"3"},
        {"every call on 4 ranks", on_ranks, NULL, NULL, (void *)(uintptr_t)"4"}, cmocka_unit_test(without_mpi)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
