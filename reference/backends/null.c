// The null backend: collectives of the right sizes that move nothing and end at once. What it trains is wrong on purpose.
//
// What: the ranks and groups are MPI's, made by its own calls; an all-gather leaves this rank's part in its place and the others' as they
//       were, a reduce-scatter gives this rank's own terms, an all-reduce and a broadcast leave the values alone.
// Why:  the step of a trainer less the same step with communication made free is the communication that is exposed, whatever was hidden
//       behind computation (reference/worker/overlap.h). It is for that alone: no case is ever judged on it.
#include "reference/backends/backend.h"

#include <string.h>

struct backend_request { int done; };
static struct backend_request at_once;

// It stands on a world that MPI has opened, and is never opened or closed itself.
static bool null_open(struct backend_group *world, double deadline_s, struct error *error)
{
    (void)deadline_s;
    (void)world;
    return error_set(error, "the null backend has no ranks of its own: open MPI's, and put it in its place");
}

static void null_close(struct backend_group *world) { (void)world; }

static bool null_split(const struct backend_group *parent, int color, int key, struct backend_group *out, struct error *error)
{
    return backend_mpi.split(parent, color, key, out, error);
}

static bool null_all_gather(const struct backend_group *g, enum dtype type, const void *send, void *recv, const int64_t *counts,
                            const int64_t *starts, struct backend_request **request, struct error *error)
{
    (void)error;
    memmove((char *)recv + (size_t)starts[g->rank] * dtype_size(type), send, (size_t)counts[g->rank] * dtype_size(type));
    *request = &at_once;
    return true;
}

static bool null_reduce_scatter(const struct backend_group *g, enum dtype type, const void *send, void *work, const int64_t *counts,
                                const int64_t *starts, struct backend_request **request, struct error *error)
{
    (void)error;
    memmove(work, (const char *)send + (size_t)starts[g->rank] * dtype_size(type), (size_t)counts[g->rank] * dtype_size(type));
    *request = &at_once;
    return true;
}

static bool null_all_reduce(const struct backend_group *g, enum dtype type, enum reduce_op op, void *values, void *work, int64_t count,
                            struct backend_request **request, struct error *error)
{
    (void)g, (void)type, (void)op, (void)values, (void)work, (void)count, (void)error;
    *request = &at_once;
    return true;
}

static bool null_broadcast(const struct backend_group *g, enum dtype type, void *values, int64_t count, int root,
                           struct backend_request **request, struct error *error)
{
    (void)g, (void)type, (void)values, (void)count, (void)root, (void)error;
    *request = &at_once;
    return true;
}

static bool null_barrier(const struct backend_group *g, struct backend_request **request, struct error *error)
{
    (void)g, (void)error;
    *request = &at_once;
    return true;
}

static bool null_test(struct backend_request *request, bool *done, struct error *error)
{
    (void)request, (void)error;
    *done = true;
    return true;
}

const struct backend backend_null = {
    .name = "null", .device = &device_cpu, .open = null_open, .close = null_close, .split = null_split, .all_gather = null_all_gather,
    .reduce_scatter = null_reduce_scatter, .all_reduce = null_all_reduce, .broadcast = null_broadcast, .barrier = null_barrier, .test = null_test,
};
