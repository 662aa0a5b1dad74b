// The backend `cuda + nccl`: a GPU for each rank, collectives on streams of their own.
//
// How:  a group has two communicators, one for gathers on the stream CUDA_GATHER and one for sums on CUDA_REDUCE, so that both move at once. A
//       collective's stream first waits for what the compute stream was given so far; an event behind it is the request; follow() makes the compute
//       stream wait for that event. The host waits for nothing, but for the limit of gathers in flight: before one more is started, the one
//       GATHERS_IN_FLIGHT earlier has ended, so that a host far ahead of its GPU cannot queue a pass of them.
//       Parts that are equal and lie one after another are one ncclAllGather or ncclReduceScatter; others are a group of ncclBroadcast or
//       ncclReduce, one for each part.
// Failure: communicators are nonblocking; while the host waits for the device it asks each for an asynchronous error, and a wait past its deadline
//       aborts all of them, so that their kernels leave the device and the process can end. They are aborted in one group: all are told to stop before the first
//       is taken down, since what frees a communicator's memory waits for the kernels of the others too. If even that hangs, the process ends by itself.
// Order of sums: NCCL's.
// Source: NCCL 2.28 user guide, "Creating a communicator", "Group calls", "Fault tolerance".
#include "reference/backends/cuda/control.h"

#include <nccl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reference/engine/fault.h"

enum { GATHERS_IN_FLIGHT = 4, LANES = 2, ABORT_S = 10, ID_WORDS = NCCL_UNIQUE_ID_BYTES / sizeof(int32_t) };

struct backend_request { bool used; cudaEvent_t event; };

static struct {
    ncclComm_t comms[CUDA_GROUPS][LANES]; // of gathers, of sums
    struct backend_request requests[CUDA_REQUESTS];
    cudaEvent_t gathers[GATHERS_IN_FLIGHT];
    int64_t gather_count;
    double deadline_s;
    bool aborted;
    struct backend_request *barrier; // of the host's backend, while a communicator is made
} state;

static const struct backend *host_backend(void) { return control(); }

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void abort_hangs(int signal)
{
    static const char text[] = "cuda + nccl: ncclCommAbort did not end, so the process ends\n";
    (void)signal;
    _exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 2 : 1);
}

static void abort_all(void)
{
    if (state.aborted)
        return;
    state.aborted = true;
    signal(SIGALRM, abort_hangs);
    alarm(ABORT_S);
    ncclGroupStart();
    for (int i = 0; i < CUDA_GROUPS; i++)
        for (int lane = 0; lane < LANES; lane++)
            if (state.comms[i][lane])
                ncclCommAbort(state.comms[i][lane]);
    ncclGroupEnd();
    alarm(0);
    memset(state.comms, 0, sizeof state.comms);
}

// Moves MPI's messages of the barrier, if there is one.
static bool barrier_moves(struct error *error)
{
    bool done = false;
    bool ok = !state.barrier || control()->test(state.barrier, &done, error);
    state.barrier = ok && !done ? state.barrier : NULL;
    return ok;
}

// A nonblocking call has ended when its communicator says so.
static bool settled(ncclComm_t comm, ncclResult_t code, const char *call, struct error *error)
{
    double limit = seconds() + state.deadline_s;
    while (code == ncclInProgress && comm && ncclCommGetAsyncError(comm, &code) == ncclSuccess && code == ncclInProgress) {
        if (seconds() > limit) {
            error_set(error, "%s did not end within %g s", call, state.deadline_s);
            abort_all();
            return false;
        }
        if (!barrier_moves(error)) {
            abort_all();
            return false;
        }
        sched_yield();
    }
    if (code == ncclSuccess)
        return true;
    error_set(error, "%s: %s (%s)", call, ncclGetErrorString(code), comm ? ncclGetLastError(comm) : "no communicator");
    abort_all();
    return false;
}

// See cuda_watch.
static bool watch(bool late, struct error *error)
{
    if (late)
        abort_all();
    for (int i = 0; i < CUDA_GROUPS && !state.aborted; i++)
        for (int lane = 0; lane < LANES; lane++) {
            ncclResult_t code = ncclSuccess;
            if (state.comms[i][lane] && ncclCommGetAsyncError(state.comms[i][lane], &code) == ncclSuccess && code != ncclSuccess && code != ncclInProgress) {
                error_set(error, "NCCL: %s (%s)", ncclGetErrorString(code), ncclGetLastError(state.comms[i][lane]));
                abort_all();
                return false;
            }
        }
    return true;
}

// ---- communicators ----

// Rank 0's, told by the backend of the host's arrays.
static bool share_id(const struct backend_group *g, ncclUniqueId *id, struct error *error)
{
    struct backend_request *request = NULL;
    int32_t words[ID_WORDS];
    if (g->rank == 0) {
        ncclResult_t code = ncclGetUniqueId(id);
        if (code != ncclSuccess)
            return error_set(error, "ncclGetUniqueId: %s", ncclGetErrorString(code));
    }
    memcpy(words, id, sizeof words);
    if (g->size > 1 && (!control()->broadcast(g, DTYPE_I32, words, ID_WORDS, 0, &request, error) || !control_wait(request, "the exchange of an ncclUniqueId", error)))
        return false;
    memcpy(id, words, sizeof words);
    return true;
}

// Made over all ranks at once. MPI may still hold the id for another rank when the broadcast has ended here, and sends it only inside its calls: a barrier that is tested
// meanwhile moves it, and ends only once all ranks have it.
static bool make(const struct backend_group *g, ncclUniqueId id, ncclComm_t *comm, struct error *error)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (g->size > 1 && !control()->barrier(g, &state.barrier, error))
        return false;
    ncclResult_t code = ncclCommInitRankConfig(comm, g->size, id, g->rank, &config);
    bool ok = settled(*comm, code, "ncclCommInitRankConfig", error) && (!state.barrier || control_wait(state.barrier, "a barrier behind ncclCommInitRankConfig", error));
    state.barrier = NULL;
    return ok;
}

static bool connect(const struct backend_group *g, struct error *error)
{
    int index = control_index(g);
    if (index >= CUDA_GROUPS)
        return error_set(error, "more than %d groups of ranks", CUDA_GROUPS);
    for (int lane = 0; lane < LANES && !state.comms[index][lane]; lane++) {
        ncclUniqueId id;
        memset(&id, 0, sizeof id);
        if (!share_id(g, &id, error) || !make(g, id, &state.comms[index][lane], error))
            return false;
    }
    return true;
}

static bool nccl_open(struct backend_group *world, double deadline_s, struct error *error)
{
    memset(&state, 0, sizeof state);
    state.deadline_s = deadline_s;
    if (!control_open(world, deadline_s, watch, error))
        return false;
    for (int i = 0; i < CUDA_REQUESTS; i++)
        if (!CUDA_OK(cudaEventCreateWithFlags(&state.requests[i].event, cudaEventDisableTiming)))
            return error_set(error, "cuda + nccl: no event");
    for (int i = 0; i < GATHERS_IN_FLIGHT; i++)
        if (!CUDA_OK(cudaEventCreateWithFlags(&state.gathers[i], cudaEventDisableTiming)))
            return error_set(error, "cuda + nccl: no event");
    return connect(world, error);
}

static void nccl_close(struct backend_group *world)
{
    struct error ignored = {""};
    for (int i = 0; i < CUDA_GROUPS && !state.aborted; i++)
        for (int lane = 0; lane < LANES; lane++) {
            ncclComm_t comm = state.comms[i][lane];
            if (!comm || !settled(comm, ncclCommFinalize(comm), "ncclCommFinalize", &ignored))
                continue;
            state.comms[i][lane] = NULL; // a later failure aborts what is left
            ncclCommDestroy(comm);
        }
    for (int i = 0; i < CUDA_REQUESTS; i++)
        if (state.requests[i].event)
            CUDA_OK(cudaEventDestroy(state.requests[i].event));
    for (int i = 0; i < GATHERS_IN_FLIGHT; i++)
        if (state.gathers[i])
            CUDA_OK(cudaEventDestroy(state.gathers[i]));
    memset(&state, 0, sizeof state);
    control_close(world);
}

static bool nccl_split(const struct backend_group *parent, int color, int key, struct backend_group *out, struct error *error)
{
    return control()->split(parent, color, key, out, error) && connect(out, error);
}

// ---- collectives ----

static bool type_of(enum dtype type, ncclDataType_t *out, struct error *error)
{
    switch (type) {
    case DTYPE_F32: *out = ncclFloat32; return true;
    case DTYPE_F64: *out = ncclFloat64; return true;
    case DTYPE_BF16: *out = ncclBfloat16; return true;
    case DTYPE_F16: *out = ncclFloat16; return true;
    case DTYPE_I32: *out = ncclInt32; return true;
    case DTYPE_I64: *out = ncclInt64; return true;
    default: return error_set(error, "cuda + nccl: no collective of %s", dtype_name(type));
    }
}

// Where a collective is put: its communicator and stream, behind what the device was asked for so far.
struct put { ncclComm_t comm; ncclDataType_t type; enum cuda_lane lane; cudaStream_t stream; size_t size; };

static bool open_put(struct put *p, const struct backend_group *g, enum dtype type, enum cuda_lane lane, struct error *error)
{
    bool wrong = FAULT(cuda_reduces_on_wrong_stream) && lane == CUDA_REDUCE; // its event is then that of an empty stream
    *p = (struct put){.comm = state.comms[control_index(g)][lane == CUDA_REDUCE], .lane = lane, .stream = cuda_stream(wrong ? CUDA_GATHER : lane), .size = dtype_size(type)};
    if (state.aborted)
        return error_set(error, "cuda + nccl: the communicators were aborted");
    if (!(FAULT(cuda_gather_not_ordered) && lane == CUDA_GATHER))
        cuda_order(CUDA_COMPUTE, lane);
    return type_of(type, &p->type, error);
}

static bool close_put(const struct put *p, ncclResult_t code, const char *call, struct backend_request **out, struct error *error)
{
    struct backend_request *r = state.requests;
    while (r < state.requests + CUDA_REQUESTS && r->used)
        r++;
    if (r == state.requests + CUDA_REQUESTS)
        return error_set(error, "more than %d collectives in flight", CUDA_REQUESTS);
    if (!settled(p->comm, code, call, error))
        return false;
    r->used = true;
    *out = r;
    return CUDA_OK(cudaEventRecord(r->event, cuda_stream(p->lane))) || error_set(error, "%s: no event could be recorded", call);
}

// Parts are alike and lie one after another.
static bool even(const int64_t *counts, const int64_t *starts, int size)
{
    for (int i = 0; i < size; i++)
        if (counts[i] != counts[0] || starts[i] != i * counts[0])
            return false;
    return true;
}

// What a group's calls have come to: the first failure.
static ncclResult_t first(ncclResult_t so_far, ncclResult_t code) { return so_far != ncclSuccess && so_far != ncclInProgress ? so_far : code; }

// The host is at most GATHERS_IN_FLIGHT gathers ahead of the device.
static bool limit_gathers(struct error *error)
{
    return state.gather_count < GATHERS_IN_FLIGHT || cuda_wait(state.gathers[state.gather_count % GATHERS_IN_FLIGHT], "an all-gather") ||
           (abort_all(), error_set(error, "cuda + nccl: an all-gather failed, or did not end within %g s", state.deadline_s));
}

static bool nccl_all_gather(const struct backend_group *g, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts,
                            struct backend_request **request, struct error *error)
{
    struct put p;
    ncclResult_t code = ncclSuccess;
    if (!limit_gathers(error) || !open_put(&p, g, type, CUDA_GATHER, error))
        return false;
    if (even(counts, starts, g->size)) {
        code = ncclAllGather(send, recv, (size_t)counts[0], p.type, p.comm, p.stream);
    } else {
        code = ncclGroupStart();
        for (int r = 0; r < g->size; r++) {
            char *place = (char *)recv + (size_t)starts[r] * p.size;
            if (counts[r] > 0)
                code = first(code, ncclBroadcast(r == g->rank ? send : place, place, (size_t)counts[r], p.type, r, p.comm, p.stream));
        }
        code = first(code, ncclGroupEnd());
    }
    return close_put(&p, code, "ncclAllGather", request, error) && (CUDA_OK(cudaEventRecord(state.gathers[state.gather_count++ % GATHERS_IN_FLIGHT], p.stream)) ||
                                                                     error_set(error, "ncclAllGather: no event could be recorded"));
}

static bool nccl_reduce_scatter(const struct backend_group *g, enum dtype type, const void *send, void *work, const int64_t *counts, const int64_t *starts,
                                struct backend_request **request, struct error *error)
{
    struct put p;
    ncclResult_t code = ncclSuccess;
    if (!open_put(&p, g, type, CUDA_REDUCE, error))
        return false;
    if (even(counts, starts, g->size)) {
        code = ncclReduceScatter(send, work, (size_t)counts[0], p.type, ncclSum, p.comm, p.stream);
    } else {
        code = ncclGroupStart();
        for (int r = 0; r < g->size; r++)
            if (counts[r] > 0)
                code = first(code, ncclReduce((const char *)send + (size_t)starts[r] * p.size, work, (size_t)counts[r], p.type, ncclSum, r, p.comm, p.stream));
        code = first(code, ncclGroupEnd());
    }
    return close_put(&p, code, "ncclReduceScatter", request, error);
}

static bool nccl_all_reduce(const struct backend_group *g, enum dtype type, enum reduce_op op, void *values, void *work, int64_t count,
                            struct backend_request **request, struct error *error)
{
    struct put p;
    (void)work;
    if (op != REDUCE_SUM)
        return error_set(error, "cuda + nccl: a maximum over ranks is the host's");
    return open_put(&p, g, type, CUDA_REDUCE, error) &&
           close_put(&p, ncclAllReduce(values, values, (size_t)count, p.type, ncclSum, p.comm, p.stream), "ncclAllReduce", request, error);
}

static bool nccl_broadcast(const struct backend_group *g, enum dtype type, void *values, int64_t count, int root, struct backend_request **request, struct error *error)
{
    struct put p;
    return open_put(&p, g, type, CUDA_GATHER, error) &&
           close_put(&p, ncclBroadcast(values, values, (size_t)count, p.type, root, p.comm, p.stream), "ncclBroadcast", request, error);
}

static bool nccl_test(struct backend_request *r, bool *done, struct error *error)
{
    (void)r;
    *done = false;
    return watch(false, error);
}

static bool nccl_follow(struct backend_request *r, struct error *error)
{
    r->used = false;
    return FAULT(cuda_compute_does_not_follow) || CUDA_OK(cudaStreamWaitEvent(cuda_stream(CUDA_COMPUTE), r->event, 0)) ||
           error_set(error, "cuda + nccl: the compute stream cannot wait for a collective");
}

const bool cuda_has_nccl = true;

const struct backend backend_cuda_nccl = {
    .name = "cuda + nccl", .library = "nccl", .device = &device_cuda, .host = host_backend,
    .device_text = cuda_device_text, .emulated = cuda_is_emulated, .open = nccl_open, .close = nccl_close, .split = nccl_split, .all_gather = nccl_all_gather,
    .reduce_scatter = nccl_reduce_scatter, .all_reduce = nccl_all_reduce, .broadcast = nccl_broadcast, .test = nccl_test, .follow = nccl_follow,
};
