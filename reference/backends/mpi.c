// The MPI backend: nonblocking collectives of MPI 3, advanced by test().
//
// How:  all-gather is MPI_Iallgatherv. Reduce-scatter is MPI_Ialltoallv (each rank gets every rank's version of
//       its part) followed by the local sum in rank order; all-reduce of a large buffer is that and an
//       MPI_Iallgatherv; of a small one an all-gather of everything and the sum. The bytes sent are those of the
//       bandwidth-optimal algorithms, (n-1)/n of the buffer for each half.
// Why:  MPI has no sum of bfloat16 or binary16, and the order of its own sums may depend on size and version.
//       Here it is ascending rank, each addition rounded, whatever the element type.
// Progress: MPI_THREAD_FUNNELED, no progress thread: a thread would take a core from the arithmetic. Open MPI moves
//       large messages only inside MPI calls, so the engine calls test() between the model's calls.
// Source: MPI: A Message-Passing Interface Standard, version 3.1, section 5.12.
#include "reference/backends/backend.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 64, MAX_REQUESTS = 64 };

// What remains to be done when the present MPI request has ended.
enum phase { PHASE_LAST, PHASE_SUM, PHASE_SUM_THEN_GATHER, PHASE_SUM_SMALL };

struct backend_request {
    bool used;
    const struct backend_group *group;
    MPI_Request mpi;
    enum phase phase;
    enum dtype type;
    enum reduce_op op;
    void *values, *work;
    int64_t count;               // elements of the sum: this rank's part, or all where small
    int *send_counts, *send_starts, *recv_counts, *recv_starts; // [world size] each
};

struct backend_state {
    int group_count;
    MPI_Comm comms[MAX_GROUPS];
    bool reducing[MAX_GROUPS];
    struct backend_request requests[MAX_REQUESTS];
    int *counts;                 // of all requests
};

static struct backend_state the_state; // MPI itself is one per process

static bool mpi_ok(int code, const char *what, struct error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, text, &length);
    return error_set(error, "%s: %s", what, text);
}

static MPI_Datatype mpi_type(enum dtype type)
{
    switch (type) {
    case DTYPE_F32: return MPI_FLOAT;
    case DTYPE_F64: return MPI_DOUBLE;
    case DTYPE_I32: return MPI_INT32_T;
    case DTYPE_I64: return MPI_INT64_T;
    default: return MPI_UINT16_T; // bf16 and f16: moved as they are, summed by the kernels
    }
}

static MPI_Comm comm_of(const struct backend_group *g) { return g->state->comms[g->index]; }

static bool add_group(struct backend_state *s, MPI_Comm comm, struct backend_group *out, struct error *error)
{
    if (s->group_count == MAX_GROUPS)
        return error_set(error, "more than %d groups of ranks", MAX_GROUPS);
    s->comms[s->group_count] = comm;
    *out = (struct backend_group){.state = s, .index = s->group_count++};
    MPI_Comm_rank(comm, &out->rank);
    MPI_Comm_size(comm, &out->size);
    return mpi_ok(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", error);
}

static bool mpi_open(struct backend_group *world, double deadline_s, struct error *error)
{
    (void)deadline_s;
    struct backend_state *s = &the_state;
    int provided;
    MPI_Comm comm;
    if (!mpi_ok(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", error))
        return false;
    if (provided < MPI_THREAD_FUNNELED)
        return error_set(error, "MPI gives thread level %d, expected MPI_THREAD_FUNNELED (%d)", provided, MPI_THREAD_FUNNELED);
    if (!mpi_ok(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup", error) || !add_group(s, comm, world, error))
        return false;
    s->counts = calloc((size_t)world->size * 4 * MAX_REQUESTS, sizeof *s->counts);
    if (!s->counts)
        return error_set(error, "no memory for the requests of %d ranks", world->size);
    for (int i = 0; i < MAX_REQUESTS; i++) {
        int *counts = s->counts + (size_t)i * 4 * (size_t)world->size;
        s->requests[i].send_counts = counts;
        s->requests[i].send_starts = counts + world->size;
        s->requests[i].recv_counts = counts + 2 * world->size;
        s->requests[i].recv_starts = counts + 3 * world->size;
    }
    return true;
}

static void mpi_close(struct backend_group *world)
{
    struct backend_state *s = world->state;
    for (int i = 0; i < s->group_count; i++)
        MPI_Comm_free(&s->comms[i]);
    free(s->counts);
    memset(s, 0, sizeof *s);
    MPI_Finalize();
}

static bool mpi_split(const struct backend_group *parent, int color, int key, struct backend_group *out,
                      struct error *error)
{
    MPI_Comm comm;
    return mpi_ok(MPI_Comm_split(comm_of(parent), color, key, &comm), "MPI_Comm_split", error) &&
           add_group(parent->state, comm, out, error);
}

static struct backend_request *take_request(const struct backend_group *g, enum dtype type, struct error *error)
{
    for (int i = 0; i < MAX_REQUESTS; i++) {
        struct backend_request *r = &g->state->requests[i];
        if (r->used)
            continue;
        r->used = true;
        r->group = g;
        r->type = type;
        r->phase = PHASE_LAST;
        return r;
    }
    error_set(error, "more than %d collectives in flight", MAX_REQUESTS);
    return NULL;
}

static bool started(struct backend_request *r, int code, const char *what, struct backend_request **out, struct error *error)
{
    r->used = code == MPI_SUCCESS;
    *out = r;
    return mpi_ok(code, what, error);
}

// MPI counts are int.
static bool narrow(const struct backend_group *g, const int64_t *counts, const int64_t *starts, int *to_counts,
                   int *to_starts, struct error *error)
{
    for (int i = 0; i < g->size; i++) {
        if (counts[i] + starts[i] > INT_MAX)
            return error_set(error, "a collective of %lld elements: expected at most %d", (long long)(counts[i] + starts[i]),
                             INT_MAX);
        to_counts[i] = (int)counts[i];
        to_starts[i] = (int)starts[i];
    }
    return true;
}

static bool mpi_all_gather(const struct backend_group *g, enum dtype type, const void *send, void *recv,
                           const int64_t *counts, const int64_t *starts, struct backend_request **request,
                           struct error *error)
{
    struct backend_request *r = take_request(g, type, error);
    if (!r || !narrow(g, counts, starts, r->recv_counts, r->recv_starts, error))
        return false;
    bool in_place = send == (const char *)recv + (size_t)starts[g->rank] * dtype_size(type);
    return started(r, MPI_Iallgatherv(in_place ? MPI_IN_PLACE : send, r->recv_counts[g->rank], mpi_type(type), recv,
                                      r->recv_counts, r->recv_starts, mpi_type(type), comm_of(g), &r->mpi),
                   "MPI_Iallgatherv", request, error);
}

// Gives every rank all versions of its part, one after another in rank order.
static bool exchange_parts(struct backend_request *r, const void *send, struct backend_request **out, struct error *error)
{
    const struct backend_group *g = r->group;
    for (int i = 0; i < g->size; i++) {
        r->recv_counts[i] = r->send_counts[g->rank];
        r->recv_starts[i] = i * r->send_counts[g->rank];
    }
    r->count = r->send_counts[g->rank];
    return started(r, MPI_Ialltoallv(send, r->send_counts, r->send_starts, mpi_type(r->type), r->work, r->recv_counts,
                                     r->recv_starts, mpi_type(r->type), comm_of(g), &r->mpi),
                   "MPI_Ialltoallv", out, error);
}

static bool mpi_reduce_scatter(const struct backend_group *g, enum dtype type, const void *send, void *work,
                               const int64_t *counts, const int64_t *starts, struct backend_request **request,
                               struct error *error)
{
    struct backend_request *r = take_request(g, type, error);
    if (!r || !narrow(g, counts, starts, r->send_counts, r->send_starts, error))
        return false;
    r->op = REDUCE_SUM;
    r->work = work;
    r->phase = PHASE_SUM;
    return exchange_parts(r, send, request, error);
}

static bool reduce_small(struct backend_request *r, struct backend_request **out, struct error *error)
{
    r->phase = PHASE_SUM_SMALL;
    return started(r, MPI_Iallgather(r->values, (int)r->count, mpi_type(r->type), r->work, (int)r->count, mpi_type(r->type),
                                     comm_of(r->group), &r->mpi),
                   "MPI_Iallgather", out, error);
}

static bool mpi_all_reduce(const struct backend_group *g, enum dtype type, enum reduce_op op, void *values, void *work,
                           int64_t count, struct backend_request **request, struct error *error)
{
    int64_t chunk = (count + g->size - 1) / g->size;
    if (op == REDUCE_MAX && type != DTYPE_F64)
        return error_set(error, "maximum of %s: expected f64", dtype_name(type));
    if (count + chunk > INT_MAX)
        return error_set(error, "an all-reduce of %lld elements: expected at most %d", (long long)count, INT_MAX);
    if (g->state->reducing[g->index])
        return error_set(error, "a second all-reduce in a group while one is in flight");
    struct backend_request *r = take_request(g, type, error);
    if (!r)
        return false;
    g->state->reducing[g->index] = true;
    r->op = op;
    r->values = values;
    r->work = work;
    r->count = count;
    if (count <= BACKEND_SMALL_COUNT)
        return reduce_small(r, request, error);
    r->phase = PHASE_SUM_THEN_GATHER;
    for (int i = 0; i < g->size; i++) {
        int64_t begin = i * chunk < count ? i * chunk : count, end = begin + chunk < count ? begin + chunk : count;
        r->send_starts[i] = (int)begin;
        r->send_counts[i] = (int)(end - begin);
    }
    return exchange_parts(r, values, request, error);
}

static bool mpi_broadcast(const struct backend_group *g, enum dtype type, void *values, int64_t count, int root,
                          struct backend_request **request, struct error *error)
{
    struct backend_request *r = take_request(g, type, error);
    if (count > INT_MAX)
        return error_set(error, "a broadcast of %lld elements: expected at most %d", (long long)count, INT_MAX);
    return r && started(r, MPI_Ibcast(values, (int)count, mpi_type(type), root, comm_of(g), &r->mpi), "MPI_Ibcast", request,
                        error);
}

static bool mpi_barrier(const struct backend_group *g, struct backend_request **request, struct error *error)
{
    struct backend_request *r = take_request(g, DTYPE_F32, error);
    return r && started(r, MPI_Ibarrier(comm_of(g), &r->mpi), "MPI_Ibarrier", request, error);
}

// work[0 ..) = op over the versions, ascending.
static void combine(const struct backend_request *r)
{
    char *first = r->work;
    size_t bytes = (size_t)r->count * dtype_size(r->type);
    for (int i = 1; i < r->group->size; i++) {
        const void *version = first + (size_t)i * bytes;
        if (r->op == REDUCE_SUM)
            kernels_cpu(r->type)->add(r->count, version, first);
        for (int64_t e = 0; r->op == REDUCE_MAX && e < r->count; e++) {
            double value = ((const double *)version)[e], *best = (double *)(void *)first + e;
            *best = value > *best || value != value ? value : *best;
        }
    }
}

// Does what follows the MPI request that has just ended; *done where nothing does.
static bool next_phase(struct backend_request *r, bool *done, struct error *error)
{
    if (r->phase != PHASE_LAST)
        combine(r);
    if (r->phase == PHASE_SUM_SMALL)
        memcpy(r->values, r->work, (size_t)r->count * dtype_size(r->type));
    *done = r->phase != PHASE_SUM_THEN_GATHER;
    if (*done)
        return true;
    r->phase = PHASE_LAST;
    return mpi_ok(MPI_Iallgatherv(r->work, (int)r->count, mpi_type(r->type), r->values, r->send_counts, r->send_starts,
                                  mpi_type(r->type), comm_of(r->group), &r->mpi),
                  "MPI_Iallgatherv", error);
}

static bool mpi_test(struct backend_request *r, bool *done, struct error *error)
{
    int flag = 0;
    *done = false;
    if (!mpi_ok(MPI_Test(&r->mpi, &flag, MPI_STATUS_IGNORE), "MPI_Test", error))
        return false;
    if (!flag)
        return true;
    if (!next_phase(r, done, error))
        return false;
    if (*done) {
        if (r->values)
            r->group->state->reducing[r->group->index] = false;
        r->values = r->work = NULL;
        r->used = false;
    }
    return true;
}

const struct backend backend_mpi = {
    .name = "mpi", .device = &device_cpu, .open = mpi_open, .close = mpi_close, .split = mpi_split,
    .all_gather = mpi_all_gather, .reduce_scatter = mpi_reduce_scatter, .all_reduce = mpi_all_reduce,
    .broadcast = mpi_broadcast, .barrier = mpi_barrier, .test = mpi_test,
};
