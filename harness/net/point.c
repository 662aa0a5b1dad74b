// Points and jobs: names, shapes, JSON. See point.h.
#include "harness/net/point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

const char *const net_op_names[] = {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "one-way", "exchange", "link", "reduce-scatter-block", NULL};
const char *const net_group_names[] = {"world", "twin", "within", "between", NULL};
const char *const net_how_names[] = {"blocking", "nonblocking", NULL};
const char *const net_shape_names[] = {"even", "uneven", "empty", NULL};
const char *const net_series_names[] = {"seconds", "call alone", "product alone", "product beside", "call beside", "bare", "batch", NULL};
const char *const net_product_names[] = {"none", "product", "tested product", NULL};

const char *net_point_name(const struct net_point *p, char buffer[64])
{
    snprintf(buffer, 64, "%s%s%s", net_op_names[p->calls[0].op], p->call_count > 1 ? " + " : "", p->call_count > 1 ? net_op_names[p->calls[1].op] : "");
    return buffer;
}

bool net_op_reduces(enum net_op op) { return op == NET_REDUCE_SCATTER || op == NET_REDUCE_SCATTER_BLOCK || op == NET_ALL_REDUCE; }
bool net_op_runs_ahead(enum net_op op) { return op == NET_BROADCAST || op == NET_ONE_WAY || op == NET_LINK; }

static int64_t rows_of(int n, enum net_shape shape) { return shape == NET_UNEVEN ? 2 * n - 1 : shape == NET_EMPTY && n > 1 ? n - 1 : n; }

void net_shards(int64_t count, int n, enum net_shape shape, int *counts, int *starts)
{
    int64_t rows = rows_of(n, shape), row = count / rows, each = (rows + n - 1) / n, used = 0;
    for (int r = 0; r < n; r++) {
        int64_t mine = rows - used < each ? rows - used : each;
        counts[r] = (int)(mine * row);
        starts[r] = (int)(used * row);
        used += mine;
    }
}

int64_t net_dealt(int64_t count, int n, enum net_shape shape) { return count / rows_of(n, shape) * rows_of(n, shape); }

double net_bus_factor(const struct net_call *c, int n, enum net_shape shape)
{
    double smallest = shape == NET_UNEVEN ? 1.0 / (2 * n - 1) : shape == NET_EMPTY && n > 1 ? 0 : 1.0 / n;
    switch (c->op) {
    case NET_ALL_GATHER:
    case NET_REDUCE_SCATTER:
    case NET_REDUCE_SCATTER_BLOCK: return 1 - smallest;
    case NET_ALL_REDUCE: return 2.0 * (n - 1) / n;
    default: return 1;
    }
}

json_t *net_point_write(const struct net_point *p)
{
    json_t *calls = json_array();
    for (int i = 0; i < p->call_count; i++) {
        const struct net_call *c = &p->calls[i];
        json_array_append_new(calls, json_pack("{s:s, s:s, s:s, s:I, s:I, s:i}", "op", net_op_names[c->op], "group", net_group_names[c->group], "dtype",
                                               dtype_name(c->type), "count", (json_int_t)c->count, "bytes", (json_int_t)(c->count * (int64_t)dtype_size(c->type)), "root", c->root));
    }
    return json_pack("{s:s, s:s, s:o, s:s, s:s, s:b, s:i, s:s, s:b}", "measure", p->measure, "label", p->label, "calls", calls, "how", net_how_names[p->how],
                     "shape", net_shape_names[p->shape], "in_place", p->in_place, "offset", p->offset, "product", net_product_names[p->product], "bare", p->bare);
}

static int place_of(const char *const *names, json_t *value)
{
    for (int i = 0; names[i] != NULL && json_is_string(value); i++)
        if (strcmp(names[i], json_string_value(value)) == 0)
            return i;
    return -1;
}

static bool call_read(json_t *object, struct net_call *out)
{
    int op = place_of(net_op_names, json_object_get(object, "op")), group = place_of(net_group_names, json_object_get(object, "group"));
    const char *type = json_string_value(json_object_get(object, "dtype"));
    *out = (struct net_call){.op = (enum net_op)op, .group = (enum net_group)group, .count = json_integer_value(json_object_get(object, "count")), .root = (int)json_integer_value(json_object_get(object, "root"))};
    return op >= 0 && group >= 0 && type != NULL && dtype_parse(type, &out->type) && out->count > 0;
}

bool net_point_read(json_t *object, struct net_point *out, struct error *error)
{
    json_t *calls = json_object_get(object, "calls");
    int how = place_of(net_how_names, json_object_get(object, "how")), shape = place_of(net_shape_names, json_object_get(object, "shape"));
    int product = place_of(net_product_names, json_object_get(object, "product"));
    *out = (struct net_point){
        .measure = json_string_value(json_object_get(object, "measure")), .label = json_string_value(json_object_get(object, "label")),
        .call_count = (int)json_array_size(calls), .how = (enum net_how)how, .shape = (enum net_shape)shape,
        .in_place = json_is_true(json_object_get(object, "in_place")), .offset = (int)json_integer_value(json_object_get(object, "offset")),
        .product = (enum net_product)product, .bare = json_is_true(json_object_get(object, "bare")),
    };
    bool ok = how >= 0 && shape >= 0 && product >= 0 && out->measure != NULL && out->label != NULL && out->call_count >= 1 && out->call_count <= NET_CALLS;
    for (int i = 0; ok && i < out->call_count; i++)
        ok = call_read(json_array_get(calls, (size_t)i), &out->calls[i]);
    return ok || error_set(error, "a point that is none of fsdpmark net");
}

bool net_job_write(const struct net_job *job, const char *path, struct error *error)
{
    json_t *points = json_array();
    for (int i = 0; i < job->point_count; i++)
        json_array_append_new(points, net_point_write(&job->points[i]));
    json_t *root = json_pack("{s:I, s:i, s:f, s:f, s:i, s:b, s:i, s:I, s:o}", "seed", (json_int_t)job->seed, "launch", job->launch, "seconds", job->seconds,
                             "narrow", job->narrow, "within", job->within, "drain", job->drain, "corrupt_rank", job->corrupt_rank, "corrupt_iteration",
                             (json_int_t)job->corrupt_iteration, "points", points);
    bool ok = json_dump_file(root, path, JSON_INDENT(1)) == 0 || error_set(error, "%s: cannot be written", path);
    json_decref(root);
    return ok;
}

bool net_job_read(const char *path, struct net_job *out, json_t **root, struct error *error)
{
    json_error_t where;
    *root = json_load_file(path, 0, &where);
    if (*root == NULL)
        return error_set(error, "%s:%d: %s", path, where.line, where.text);
    json_t *points = json_object_get(*root, "points");
    *out = (struct net_job){
        .seed = (uint64_t)json_integer_value(json_object_get(*root, "seed")), .launch = (int)json_integer_value(json_object_get(*root, "launch")),
        .seconds = json_number_value(json_object_get(*root, "seconds")), .narrow = json_number_value(json_object_get(*root, "narrow")),
        .within = (int)json_integer_value(json_object_get(*root, "within")), .drain = json_is_true(json_object_get(*root, "drain")),
        .corrupt_rank = (int)json_integer_value(json_object_get(*root, "corrupt_rank")),
        .corrupt_iteration = json_integer_value(json_object_get(*root, "corrupt_iteration")), .point_count = (int)json_array_size(points),
        .points = memory_zeros(json_array_size(points) + 1, sizeof *out->points),
    };
    bool ok = out->point_count > 0 || error_set(error, "%s: found no points", path);
    for (int i = 0; ok && i < out->point_count; i++)
        if (!(ok = net_point_read(json_array_get(points, (size_t)i), &out->points[i], error)))
            snprintf(error->text, sizeof error->text, "%s: point %d: found none of fsdpmark net", path, i);
    if (!ok) {
        free(out->points);
        json_decref(*root);
        *root = NULL;
    }
    return ok;
}
