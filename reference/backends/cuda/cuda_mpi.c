// The backend `cuda + mpi`: arrays of a GPU, collectives of MPI by way of the host. Several ranks may share one GPU.
//
// How:  what is sent is copied to pinned memory of the host on a stream of its own, behind what the device was asked for so far; once it is there the
//       collective of the host's backend starts, and its result goes back the same way. test() moves a request from one stage to the next; follow() waits for the
//       part of MPI, and leaves the copy back to the device. Sums are those of the host's backend: ascending rank, each addition rounded.
// Order: MPI wants the collectives of a communicator in the same order on all ranks, and copies end when they will. So a collective starts
//       only after all requests before it have started theirs, and these have communicators of their own, apart from those of the host's arrays.
// Why:  NCCL refuses two ranks on one device; with this, cases of several ranks run on a machine with one GPU.
#include "reference/backends/cuda/control.h"

#include <stdlib.h>
#include <string.h>

enum stage { STAGE_DOWN, STAGE_MPI, STAGE_UP };
enum kind { GATHER, SCATTER, REDUCE, BROADCAST };

struct backend_request {
    bool used;
    enum kind kind;
    enum stage stage;
    enum cuda_lane lane;
    const struct backend_group *group;
    enum dtype type;
    enum reduce_op op;
    void *device;                // where the result goes
    int64_t count, first;        // elements of the result, and where in `host` it begins
    int64_t counts[1024], starts[1024];
    int root;
    char *host;                  // pinned: what is sent; a gather's result
    char *work;                  // pinned: as backend.h has it
    size_t host_bytes, work_bytes;
    cudaEvent_t event;           // the copy of the present stage
    struct backend_request *mpi;
    struct backend_request *next; // started later
};

static struct {
    struct backend_group staged[CUDA_GROUPS]; // by index of the group of the host's arrays
    struct backend_request requests[CUDA_REQUESTS];
    struct backend_request *first, *last;     // that have not reached STAGE_MPI, in the order of their start
} state;

static const struct backend *host_backend(void) { return control(); }

static bool add_group(const struct backend_group *g, const struct backend_group *parent, int color, int key, struct error *error)
{
    int index = control_index(g);
    if (index >= CUDA_GROUPS)
        return error_set(error, "more than %d groups of ranks", CUDA_GROUPS);
    return control()->split(parent, color, key, &state.staged[index], error);
}

static bool mpi_open(struct backend_group *world, double deadline_s, struct error *error)
{
    memset(&state, 0, sizeof state);
    return control_open(world, deadline_s, NULL, error) && add_group(world, world, 0, world->rank, error);
}

static void mpi_close(struct backend_group *world)
{
    for (int i = 0; i < CUDA_REQUESTS; i++) {
        struct backend_request *r = &state.requests[i];
        cuda_host_release(r->host);
        cuda_host_release(r->work);
        if (r->event)
            CUDA_OK(cudaEventDestroy(r->event));
    }
    memset(&state, 0, sizeof state);
    control_close(world);
}

static bool mpi_split(const struct backend_group *parent, int color, int key, struct backend_group *out, struct error *error)
{
    return control()->split(parent, color, key, out, error) && add_group(out, parent, color, key, error);
}

// ---- stages ----

static bool room(char **memory, size_t *has, size_t needs, struct error *error)
{
    if (*has >= needs)
        return true;
    cuda_host_release(*memory);
    *memory = cuda_host_allocate(needs);
    *has = *memory ? needs : 0;
    return *memory || error_set(error, "no pinned memory of the host for %zu bytes", needs);
}

static struct backend_request *take(const struct backend_group *g, enum kind kind, enum dtype type, enum cuda_lane lane, int64_t host_count, int64_t work_count, struct error *error)
{
    struct backend_request *r = state.requests;
    while (r < state.requests + CUDA_REQUESTS && r->used)
        r++;
    if (r == state.requests + CUDA_REQUESTS || g->size > (int)(sizeof r->counts / sizeof *r->counts)) {
        error_set(error, "more than %d collectives in flight, or %zu ranks", CUDA_REQUESTS, sizeof r->counts / sizeof *r->counts);
        return NULL;
    }
    size_t size = dtype_size(type);
    if ((!r->event && !CUDA_OK(cudaEventCreateWithFlags(&r->event, cudaEventDisableTiming))) || !room(&r->host, &r->host_bytes, (size_t)host_count * size + 1, error) ||
        !room(&r->work, &r->work_bytes, (size_t)work_count * size + 1, error)) {
        error_set(error, "cuda + mpi: no event");
        return NULL;
    }
    r->used = true;
    r->kind = kind;
    r->stage = STAGE_DOWN;
    r->lane = lane;
    r->group = &state.staged[control_index(g)];
    r->type = type;
    r->next = NULL;
    return r;
}

// Puts the request at the end of those that wait for their copy; the lane follows what the device was asked for so far.
static bool start(struct backend_request *r, const void *send, int64_t first, int64_t count, struct backend_request **out)
{
    size_t size = dtype_size(r->type);
    cuda_order(CUDA_COMPUTE, r->lane);
    bool ok = count == 0 || CUDA_OK(cudaMemcpyAsync(r->host + (size_t)first * size, send, (size_t)count * size, cudaMemcpyDeviceToHost, cuda_stream(r->lane)));
    ok = ok && CUDA_OK(cudaEventRecord(r->event, cuda_stream(r->lane)));
    *(state.last ? &state.last->next : &state.first) = r;
    state.last = r;
    *out = r;
    return ok;
}

static bool start_mpi(struct backend_request *r, struct error *error)
{
    const struct backend *b = control();
    const struct backend_group *g = r->group;
    r->stage = STAGE_MPI;
    switch (r->kind) {
    case GATHER: return b->all_gather(g, r->type, r->host + (size_t)r->starts[g->rank] * dtype_size(r->type), r->host, r->counts, r->starts, &r->mpi, error);
    case SCATTER: return b->reduce_scatter(g, r->type, r->host, r->work, r->counts, r->starts, &r->mpi, error);
    case REDUCE: return b->all_reduce(g, r->type, r->op, r->host, r->work, r->count, &r->mpi, error);
    default: return b->broadcast(g, r->type, r->host, r->count, r->root, &r->mpi, error);
    }
}

// Starts what can be started, in order.
static bool advance(struct error *error)
{
    while (state.first) {
        struct backend_request *r = state.first;
        cudaError_t code = cudaEventQuery(r->event);
        if (code == cudaErrorNotReady)
            return true;
        if (!cuda_check(code, "cudaEventQuery", __FILE__, __LINE__))
            return error_set(error, "cuda + mpi: a copy to the host failed");
        state.first = r->next;
        if (!state.first)
            state.last = NULL;
        if (!start_mpi(r, error))
            return false;
    }
    return true;
}

static bool copy_back(struct backend_request *r)
{
    size_t size = dtype_size(r->type);
    const char *from = r->kind == SCATTER ? r->work : r->host;
    r->stage = STAGE_UP;
    return r->count == 0 || CUDA_OK(cudaMemcpyAsync((char *)r->device + (size_t)r->first * size, from + (size_t)r->first * size, (size_t)r->count * size,
                                                    cudaMemcpyHostToDevice, cuda_stream(r->lane)));
}

static bool mpi_test(struct backend_request *r, bool *done, struct error *error)
{
    bool arrived = false;
    *done = false;
    if (!advance(error))
        return false;
    if (r->stage == STAGE_MPI && !control()->test(r->mpi, &arrived, error))
        return false;
    return !arrived || copy_back(r) || error_set(error, "cuda + mpi: a copy to the device failed");
}

static bool mpi_follow(struct backend_request *r, struct error *error)
{
    while (r->stage == STAGE_DOWN)
        if (!cuda_wait(state.first->event, "a copy to the host") || !advance(error))
            return error_set(error, "cuda + mpi: a copy to the host failed");
    bool ok = r->stage == STAGE_UP || (control_wait(r->mpi, "a collective of cuda + mpi", error) && copy_back(r));
    // The pinned memory may be used again only when the copy has been made.
    ok = ok && CUDA_OK(cudaEventRecord(r->event, cuda_stream(r->lane))) && CUDA_OK(cudaStreamWaitEvent(cuda_stream(CUDA_COMPUTE), r->event, 0)) &&
         cuda_wait(r->event, "a copy to the device");
    r->used = false;
    return ok || error_set(error, "cuda + mpi: a collective failed");
}

// ---- collectives ----

static void keep_parts(struct backend_request *r, const int64_t *counts, const int64_t *starts, int size)
{
    memcpy(r->counts, counts, (size_t)size * sizeof *counts);
    memcpy(r->starts, starts, (size_t)size * sizeof *starts);
}

static bool mpi_all_gather(const struct backend_group *g, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts,
                           struct backend_request **request, struct error *error)
{
    int64_t all = starts[g->size - 1] + counts[g->size - 1];
    struct backend_request *r = take(g, GATHER, type, CUDA_GATHER, all, 0, error);
    if (!r)
        return false;
    keep_parts(r, counts, starts, g->size);
    r->device = recv;
    r->first = 0;
    r->count = all;
    return start(r, send, starts[g->rank], counts[g->rank], request) || error_set(error, "cuda + mpi: an all-gather failed");
}

static bool mpi_reduce_scatter(const struct backend_group *g, enum dtype type, const void *send, void *work, const int64_t *counts, const int64_t *starts,
                               struct backend_request **request, struct error *error)
{
    int64_t all = starts[g->size - 1] + counts[g->size - 1];
    struct backend_request *r = take(g, SCATTER, type, CUDA_REDUCE, all, g->size * counts[g->rank], error);
    if (!r)
        return false;
    keep_parts(r, counts, starts, g->size);
    r->device = work;
    r->first = 0;
    r->count = counts[g->rank];
    return start(r, send, 0, all, request) || error_set(error, "cuda + mpi: a reduce-scatter failed");
}

static bool mpi_all_reduce(const struct backend_group *g, enum dtype type, enum reduce_op op, void *values, void *work, int64_t count,
                           struct backend_request **request, struct error *error)
{
    (void)work; // of the device
    struct backend_request *r = take(g, REDUCE, type, CUDA_REDUCE, count, backend_all_reduce_work(count, g->size), error);
    if (!r)
        return false;
    r->op = op;
    r->device = values;
    r->first = 0;
    r->count = count;
    return start(r, values, 0, count, request) || error_set(error, "cuda + mpi: an all-reduce failed");
}

static bool mpi_broadcast(const struct backend_group *g, enum dtype type, void *values, int64_t count, int root, struct backend_request **request, struct error *error)
{
    struct backend_request *r = take(g, BROADCAST, type, CUDA_GATHER, count, 0, error);
    if (!r)
        return false;
    r->root = root;
    r->device = values;
    r->first = 0;
    r->count = count;
    return start(r, values, 0, count, request) || error_set(error, "cuda + mpi: a broadcast failed");
}

const struct backend backend_cuda_mpi = {
    .name = "cuda + mpi", .library = "mpi", .device = &device_cuda, .host = host_backend,
    .device_text = cuda_device_text, .emulated = cuda_is_emulated, .open = mpi_open, .close = mpi_close, .split = mpi_split, .all_gather = mpi_all_gather,
    .reduce_scatter = mpi_reduce_scatter, .all_reduce = mpi_all_reduce, .broadcast = mpi_broadcast, .test = mpi_test, .follow = mpi_follow,
};
