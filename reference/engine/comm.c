// Counting, overlapping and bounded collectives. See comm.h.
#include "reference/engine/comm.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "reference/engine/fault.h"

enum { TESTS_PER_CLOCK = 64, TESTS_BEFORE_SLEEP = 4096, SLEEP_NS = 50000 };

// Polls eagerly for some milliseconds, then leaves the core to ranks that may share it.
static void pause_between_tests(int64_t tests)
{
    if (tests < TESTS_BEFORE_SLEEP)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

const char *comm_kind_name(enum comm_kind kind)
{
    static const char *const names[COMM_KINDS] = {"all_gather", "near_gather", "reduce_scatter", "all_reduce", "broadcast", "barrier"};
    return names[kind];
}

double comm_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool comm_world_open(struct comm_world *w, const struct backend *backend, double deadline_s, struct error *error)
{
    *w = (struct comm_world){.backend = backend, .deadline_s = deadline_s};
    if (!backend->open(&w->all, deadline_s, error))
        return false;
    w->scalar_work = calloc((size_t)w->all.size * COMM_SCALARS, sizeof *w->scalar_work);
    return w->scalar_work || error_set(error, "no memory for %d ranks", w->all.size);
}

void comm_world_close(struct comm_world *w)
{
    free(w->scalar_work);
    w->backend->close(&w->all);
    *w = (struct comm_world){0};
}

static bool make_groups(struct comm_world *w, struct comm_groups *g, int replicas, int shards, struct error *error)
{
    g->mesh = mesh_at(replicas, shards, w->all.rank);
    return w->backend->split(&w->all, g->mesh.replica, g->mesh.shard, &g->shard, error) &&
           w->backend->split(&w->all, g->mesh.shard, g->mesh.replica, &g->replicate, error);
}

static const struct comm_groups *find_groups(struct comm_world *w, int replicas, int shards, struct error *error)
{
    for (int i = 0; i < w->mesh_count; i++)
        if (w->meshes[i].mesh.replicas == replicas && w->meshes[i].mesh.shards == shards)
            return &w->meshes[i];
    if (w->mesh_count == COMM_MESHES) {
        error_set(error, "more than %d meshes in one start", COMM_MESHES);
        return NULL;
    }
    struct comm_groups *made = &w->meshes[w->mesh_count++];
    return make_groups(w, made, replicas, shards, error) ? made : NULL;
}

bool comm_open(struct comm *c, struct comm_world *w, int replicas, int shards, struct error *error)
{
    *c = (struct comm){.world = w};
    if (replicas * shards != w->all.size)
        return error_set(error, "mesh %d x %d of %d ranks", replicas, shards, w->all.size);
    c->groups = find_groups(w, replicas, shards, error);
    return c->groups != NULL;
}

// They are the shard groups of another mesh of the same ranks.
bool comm_open_near(struct comm *c, int ranks, struct error *error)
{
    if (ranks < 1 || c->groups->mesh.shards % ranks != 0)
        return error_set(error, "groups of %d of %d shards", ranks, c->groups->mesh.shards);
    const struct comm_groups *g = find_groups(c->world, c->world->all.size / ranks, ranks, error);
    c->near = g ? &g->shard : NULL;
    return g != NULL;
}

// Books a collective that has been started.
static bool book(struct comm *c, const struct backend *backend, struct comm_request *r, enum comm_kind kind, enum dtype type, int64_t count, struct error *error)
{
    if (c->in_flight == COMM_IN_FLIGHT)
        return error_set(error, "more than %d collectives in flight", COMM_IN_FLIGHT);
    r->backend = backend;
    r->kind = kind;
    r->count = count;
    r->active = r->unneeded = true;
    r->computations = c->computations;
    c->requests[c->in_flight++] = r;
    c->counts[kind].calls++;
    c->counts[kind].bytes += count * (int64_t)dtype_size(type);
    return true;
}

bool comm_all_gather(struct comm *c, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts,
                     struct comm_request *r, struct error *error)
{
    const struct backend_group *g = &c->groups->shard;
    return c->world->backend->all_gather(g, type, send, recv, counts, starts, &r->request, error) &&
           book(c, c->world->backend, r, COMM_ALL_GATHER, type, starts[g->size - 1] + counts[g->size - 1], error);
}

bool comm_near_gather(struct comm *c, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts,
                      struct comm_request *r, struct error *error)
{
    const struct backend_group *g = c->near;
    return c->world->backend->all_gather(g, type, send, recv, counts, starts, &r->request, error) &&
           book(c, c->world->backend, r, COMM_NEAR_GATHER, type, starts[g->size - 1] + counts[g->size - 1], error);
}

bool comm_reduce_scatter(struct comm *c, enum dtype type, const void *send, void *work, const int64_t *counts,
                         const int64_t *starts, struct comm_request *r, struct error *error)
{
    const struct backend_group *g = &c->groups->shard;
    return c->world->backend->reduce_scatter(g, type, send, work, counts, starts, &r->request, error) &&
           book(c, c->world->backend, r, COMM_REDUCE_SCATTER, type, starts[g->size - 1] + counts[g->size - 1], error);
}

bool comm_all_reduce(struct comm *c, enum dtype type, void *values, void *work, int64_t count, struct comm_request *r,
                     struct error *error)
{
    const struct backend_group *g = FAULT(all_reduced_not_scattered) && c->groups->mesh.replicas == 1 ? &c->groups->shard : &c->groups->replicate;
    return c->world->backend->all_reduce(g, type, REDUCE_SUM, values, work, count, &r->request, error) &&
           book(c, c->world->backend, r, COMM_ALL_REDUCE, type, count, error);
}

static bool fail(const struct comm *c, const struct comm_request *r, double seconds, struct error *error)
{
    return error_set(error, "rank %d: %s of %lld elements did not end within %g s", c->world->all.rank,
                     comm_kind_name(r->kind), (long long)r->count, seconds);
}

bool comm_progress(struct comm *c, bool computed, struct error *error)
{
    int kept = 0;
    c->computations += computed;
    for (int i = 0; i < c->in_flight; i++) {
        struct comm_request *r = c->requests[i];
        bool done = false;
        if (!r->backend->test(r->request, &done, error))
            return error_set(error, "rank %d: %s failed", c->world->all.rank, comm_kind_name(r->kind));
        if (done)
            r->active = false;
        else
            c->requests[kept++] = r;
    }
    c->in_flight = kept;
    return true;
}

static bool follow(struct comm *c, struct comm_request *r, struct error *error)
{
    int kept = 0;
    for (int i = 0; i < c->in_flight; i++)
        if (c->requests[i] != r)
            c->requests[kept++] = c->requests[i];
    c->in_flight = kept;
    r->active = false;
    return r->backend->follow(r->request, error) || error_set(error, "rank %d: %s failed", c->world->all.rank, comm_kind_name(r->kind));
}

bool comm_wait(struct comm *c, struct comm_request *r, struct error *error)
{
    double limit = 0;
    c->counts[r->kind].overlapped += r->unneeded && c->computations > r->computations;
    r->unneeded = false;
    if (r->active && r->backend->follow)
        return follow(c, r, error);
    for (int64_t tests = 0; r->active; tests++) {
        if (!comm_progress(c, false, error))
            return false;
        if (!r->active)
            return true;
        pause_between_tests(tests);
        if (tests == 0)
            limit = comm_seconds() + c->world->deadline_s;
        else if (tests % TESTS_PER_CLOCK == 0 && comm_seconds() > limit)
            return fail(c, r, c->world->deadline_s, error);
    }
    return true;
}

static const struct backend *host_of(const struct comm *c) { return backend_host(c->world->backend); }

bool comm_scalars(struct comm *c, const struct backend_group *g, enum reduce_op op, double *values, int count, struct error *error)
{
    struct comm_request r;
    if (g->size == 1)
        return true;
    return host_of(c)->all_reduce(g, DTYPE_F64, op, values, c->world->scalar_work, count, &r.request, error) &&
           book(c, host_of(c), &r, COMM_ALL_REDUCE, DTYPE_F64, count, error) && comm_wait(c, &r, error);
}

static bool broadcast(struct comm *c, const struct backend *backend, enum dtype type, void *values, int64_t count, struct error *error)
{
    struct comm_request r;
    if (c->world->all.size == 1)
        return true;
    return backend->broadcast(&c->world->all, type, values, count, 0, &r.request, error) &&
           book(c, backend, &r, COMM_BROADCAST, type, count, error) && comm_wait(c, &r, error);
}

bool comm_broadcast(struct comm *c, enum dtype type, void *values, int64_t count, struct error *error)
{
    return broadcast(c, host_of(c), type, values, count, error);
}

bool comm_broadcast_on(struct comm *c, const struct device *device, enum dtype type, void *values, int64_t count, struct error *error)
{
    return broadcast(c, device->host ? host_of(c) : c->world->backend, type, values, count, error);
}

bool comm_gather_hosts(struct comm *c, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts, struct error *error)
{
    const struct backend_group *g = &c->groups->shard;
    struct comm_request r;
    return host_of(c)->all_gather(g, type, send, recv, counts, starts, &r.request, error) &&
           book(c, host_of(c), &r, COMM_ALL_GATHER, type, starts[g->size - 1] + counts[g->size - 1], error) && comm_wait(c, &r, error);
}

bool comm_barrier(struct comm *c, struct error *error)
{
    struct comm_request r;
    if (c->world->all.size == 1)
        return true;
    return host_of(c)->barrier(&c->world->all, &r.request, error) && book(c, host_of(c), &r, COMM_BARRIER, DTYPE_F32, 0, error) &&
           comm_wait(c, &r, error);
}
