// The serial backend: one rank, no library. Every collective of one rank is a copy or nothing, and done at once.
//
// Why: a case of one rank needs no launcher, and the engine runs unchanged under a debugger or sanitizer.
#include "reference/backends/backend.h"

#include <string.h>

struct backend_request { int done; };
static struct backend_request at_once;

static bool serial_open(struct backend_group *world, double deadline_s, struct error *error)
{
    (void)deadline_s;
    (void)error;
    *world = (struct backend_group){.size = 1};
    return true;
}

static void serial_close(struct backend_group *world) { (void)world; }

static bool serial_split(const struct backend_group *parent, int color, int key, struct backend_group *out,
                         struct error *error)
{
    (void)color, (void)key, (void)error;
    *out = *parent;
    return true;
}

static bool serial_all_gather(const struct backend_group *g, enum dtype type, const void *send, void *recv,
                              const int64_t *counts, const int64_t *starts, struct backend_request **request,
                              struct error *error)
{
    (void)g, (void)starts, (void)error;
    memmove(recv, send, (size_t)counts[0] * dtype_size(type));
    *request = &at_once;
    return true;
}

// A sum of one term is that term.
static bool serial_reduce_scatter(const struct backend_group *g, enum dtype type, const void *send, void *work,
                                  const int64_t *counts, const int64_t *starts, struct backend_request **request,
                                  struct error *error)
{
    return serial_all_gather(g, type, send, work, counts, starts, request, error);
}

static bool serial_all_reduce(const struct backend_group *g, enum dtype type, enum reduce_op op, void *values, void *work,
                              int64_t count, struct backend_request **request, struct error *error)
{
    (void)g, (void)type, (void)op, (void)values, (void)work, (void)count, (void)error;
    *request = &at_once;
    return true;
}

static bool serial_broadcast(const struct backend_group *g, enum dtype type, void *values, int64_t count, int root,
                             struct backend_request **request, struct error *error)
{
    (void)g, (void)type, (void)values, (void)count;
    if (root != 0)
        return error_set(error, "serial broadcast from rank %d: there is only rank 0", root);
    *request = &at_once;
    return true;
}

static bool serial_barrier(const struct backend_group *g, struct backend_request **request, struct error *error)
{
    (void)g, (void)error;
    *request = &at_once;
    return true;
}

static bool serial_test(struct backend_request *request, bool *done, struct error *error)
{
    (void)request, (void)error;
    *done = true;
    return true;
}

const struct backend backend_serial = {
    .name = "serial", .device = &device_cpu, .open = serial_open, .close = serial_close, .split = serial_split,
    .all_gather = serial_all_gather, .reduce_scatter = serial_reduce_scatter, .all_reduce = serial_all_reduce,
    .broadcast = serial_broadcast, .barrier = serial_barrier, .test = serial_test,
};
