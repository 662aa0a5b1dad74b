// The points of each measure. See plan.h.
#include "harness/net/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"

const char *const net_measure_names[] = {"sweep", "directions", "links", "mixed", "forms", "shards", "alignment", "together", "tiers", "compute", "units", NULL};

bool net_measures_parse(const char *text, unsigned *out, struct error *error)
{
    char word[64], names[256];
    *out = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        int i = 0;
        while (net_measure_names[i] != NULL && strcmp(net_measure_names[i], word) != 0)
            i++;
        if (strcmp(word, "all") == 0)
            *out |= (1u << NET_MEASURES) - 1;
        else if (net_measure_names[i] == NULL)
            return error_set(error, "--measure: found '%s', expected all, %s", word, name_list(net_measure_names, names, sizeof names));
        else
            *out |= 1u << i;
        at += n;
        if (*at == 0)
            return true;
    }
}

static const double LARGEST_S = 1.4, FEW_S = 0.05;

struct sizes net_default_sizes(double rate)
{
    int64_t last = 16 << 20;
    while (rate > 0 && last > 1 << 20 && (double)last > LARGEST_S * rate)
        last /= 2;
    return sizes_doubling(8, last);
}

struct sizes net_default_few(const struct sizes *sweep, double rate)
{
    static const int64_t wanted[] = {64 << 10, 1 << 20, 8 << 20};
    struct sizes few = {0};
    int64_t most = sweep->bytes[sweep->count - 1];
    for (int i = 0; i < 3; i++)
        if (wanted[i] <= most && (rate <= 0 || (double)wanted[i] <= fmax(FEW_S * rate, 64 << 10)))
            sizes_add(&few, wanted[i]);
    if (few.count == 0)
        sizes_add(&few, most);
    return few;
}

struct planning { const struct net_request *request; struct net_plan *plan; };

static bool same(const struct net_point *a, const struct net_point *b)
{
    json_t *x = net_point_write(a), *y = net_point_write(b);
    bool equal = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return equal;
}

// Sizes that round to the same counts are one point.
static void add(struct planning *p, struct net_point point)
{
    struct net_plan *plan = p->plan;
    for (int i = 0; i < plan->count; i++)
        if (same(&plan->points[i], &point))
            return;
    plan->points = memory_grow(plan->points, (size_t)plan->count, sizeof *plan->points);
    plan->points[plan->count++] = point;
}

static int ranks_of(const struct net_request *r, enum net_group g)
{
    return g == NET_WITHIN ? r->within : g == NET_BETWEEN ? r->ranks / r->within : r->ranks;
}

// Elements of a buffer of about so many bytes: a whole number for each rank, at least one.
static int64_t elements(const struct net_request *r, enum net_group g, enum dtype type, int64_t bytes)
{
    int64_t n = ranks_of(r, g), part = bytes / (int64_t)dtype_size(type) / n;
    return n * (part > 0 ? part : 1);
}

static struct net_call counted(enum net_op op, enum net_group g, enum dtype type, int64_t count) { return (struct net_call){op, g, type, count, 0}; }

static struct net_call call_of(const struct net_request *r, enum net_op op, enum net_group g, enum dtype type, int64_t bytes)
{
    bool parts = op == NET_ALL_GATHER || op == NET_REDUCE_SCATTER || op == NET_REDUCE_SCATTER_BLOCK;
    int64_t count = bytes / (int64_t)dtype_size(type);
    return counted(op, g, type, parts ? elements(r, g, type, bytes) : count > 0 ? count : 1);
}

static struct net_point single(const char *measure, struct net_call call)
{
    return (struct net_point){.measure = measure, .label = "", .call_count = 1, .calls = {call}};
}

static struct net_point both(const char *measure, struct net_call a, struct net_call b)
{
    return (struct net_point){.measure = measure, .label = "", .call_count = 2, .calls = {a, b}, .how = NET_NONBLOCKING};
}

static const enum net_op collectives[] = {NET_ALL_GATHER, NET_REDUCE_SCATTER, NET_ALL_REDUCE, NET_BROADCAST};

static void add_sweep(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->sizes.count; i++)
        for (int op = 0; op < 4; op++)
            add(p, single(name, call_of(r, collectives[op], NET_WORLD, DTYPE_F32, r->sizes.bytes[i])));
}

static void add_directions(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->few.count; i++) {
        add(p, single(name, call_of(r, NET_ONE_WAY, NET_WORLD, DTYPE_F32, r->few.bytes[i])));
        add(p, single(name, call_of(r, NET_EXCHANGE, NET_WORLD, DTYPE_F32, r->few.bytes[i])));
    }
}

// From each rank to the next, the others looking on: which host or which way is slow.
static void add_links(struct planning *p, const char *name)
{
    enum { MOST = 32 };
    const struct net_request *r = p->request;
    for (int i = 0; r->ranks > 2 && r->ranks <= MOST && i < r->ranks; i++) {
        struct net_point x = single(name, call_of(r, NET_LINK, NET_WORLD, DTYPE_F32, r->few.bytes[r->few.count - 1]));
        x.calls[0].root = i;
        add(p, x);
    }
}

// The gather of the same elements that a reduce-scatter of float32 of the sweep has.
static void add_mixed(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->few.count; i++) {
        add(p, single(name, call_of(r, NET_ALL_GATHER, NET_WORLD, DTYPE_BF16, r->few.bytes[i] / 2)));
        add(p, single(name, call_of(r, NET_REDUCE_SCATTER, NET_WORLD, DTYPE_F32, r->few.bytes[i])));
    }
}

static void add_forms(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->few.count; i++)
        for (int op = 0; op < 5; op++)
            for (int form = 0; form < 3; form++) {
                enum net_op which = op < 4 ? collectives[op] : NET_REDUCE_SCATTER_BLOCK;
                struct net_point x = single(name, call_of(r, which, NET_WORLD, DTYPE_F32, r->few.bytes[i]));
                x.how = form == 1 ? NET_NONBLOCKING : NET_BLOCKING;
                x.in_place = form == 2;
                if (form < 2 || which != NET_BROADCAST) // a broadcast is always in place
                    add(p, x);
            }
}

static void add_shards(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->few.count; i++)
        for (int op = 0; op < 2; op++)
            for (int shape = 0; shape < NET_SHAPES; shape++) {
                struct net_point x = single(name, call_of(r, collectives[op], NET_WORLD, DTYPE_F32, r->few.bytes[i]));
                x.shape = (enum net_shape)shape;
                x.calls[0].count = net_dealt(x.calls[0].count, r->ranks, x.shape);
                if (x.calls[0].count > 0)
                    add(p, x);
            }
}

// A rank's part a few bytes off a multiple of 16, then its address.
static void add_alignment(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    static const int parts[] = {-16, -12, -8, -4, 0, 4, 8, 12, 16}, offsets[] = {4, 8};
    int64_t part = (64 << 10) / (int64_t)sizeof(float);
    while (part > 64 && part * (int64_t)sizeof(float) * r->ranks > 2 * r->few.bytes[r->few.count - 1])
        part /= 2;
    for (int op = 0; op < 2; op++) {
        for (int i = 0; i < 9; i++)
            add(p, single(name, counted(collectives[op], NET_WORLD, DTYPE_F32, r->ranks * (part + parts[i] / 4))));
        for (int i = 0; i < 2; i++) {
            struct net_point x = single(name, counted(collectives[op], NET_WORLD, DTYPE_F32, r->ranks * part));
            x.offset = offsets[i];
            add(p, x);
        }
    }
}

static struct net_point nonblocking(const char *measure, struct net_call call)
{
    struct net_point x = single(measure, call);
    x.how = NET_NONBLOCKING;
    return x;
}

static void add_together(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->few.count; i++) {
        struct net_call gather = call_of(r, NET_ALL_GATHER, NET_WORLD, DTYPE_F32, r->few.bytes[i]);
        struct net_call reduce = call_of(r, NET_REDUCE_SCATTER, NET_WORLD, DTYPE_F32, r->few.bytes[i]);
        add(p, nonblocking(name, gather));
        add(p, nonblocking(name, reduce));
        add(p, both(name, gather, reduce));
        reduce.group = NET_TWIN;
        add(p, both(name, gather, reduce));
        gather.type = DTYPE_BF16; // as many elements
        add(p, nonblocking(name, gather));
        add(p, both(name, gather, reduce));
    }
}

// Hybrid's backward: a unit's gradients are reduced over the shards while those of the one before are, a shard each, over the replicas.
static void add_tiers(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; r->within > 1 && r->within < r->ranks && i < r->few.count; i++) {
        struct net_call gather = call_of(r, NET_ALL_GATHER, NET_WITHIN, DTYPE_F32, r->few.bytes[i]);
        struct net_call reduce = call_of(r, NET_REDUCE_SCATTER, NET_WITHIN, DTYPE_F32, r->few.bytes[i]);
        struct net_call sum = counted(NET_ALL_REDUCE, NET_BETWEEN, DTYPE_F32, reduce.count / r->within);
        add(p, nonblocking(name, gather));
        add(p, nonblocking(name, reduce));
        add(p, nonblocking(name, sum));
        add(p, both(name, reduce, sum));
        add(p, both(name, gather, sum));
    }
}

static void add_compute(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; i < r->few.count; i++)
        for (int op = 0; op < 2; op++)
            for (int form = 0; form < 3; form++) {
                struct net_point x = single(name, call_of(r, collectives[op], NET_WORLD, DTYPE_F32, r->few.bytes[i]));
                x.how = form > 0 ? NET_NONBLOCKING : NET_BLOCKING;
                x.product = form == 2 ? NET_PRODUCT_TESTED : NET_PRODUCT;
                add(p, x);
            }
}

static enum dtype summed(enum dtype type) { return type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32; } // MPI has no sum of 16-bit floats

static void add_units(struct planning *p, const char *name)
{
    const struct net_request *r = p->request;
    for (int i = 0; r->units != NULL && i < r->units->count; i++) {
        const struct net_unit *u = &r->units->units[i];
        int64_t padded = (u->count + r->ranks - 1) / r->ranks * r->ranks;
        struct net_call gather = counted(NET_ALL_GATHER, NET_WORLD, r->units->gather, padded);
        struct net_call reduce = counted(NET_REDUCE_SCATTER, NET_WORLD, summed(r->units->reduce), padded), twin = reduce;
        struct net_call sum = counted(NET_ALL_REDUCE, NET_WORLD, summed(r->units->reduce), u->count);
        twin.group = NET_TWIN;
        struct net_point points[] = {single(name, gather), single(name, reduce), single(name, sum), both(name, gather, twin)};
        for (int k = 0; k < 4; k++) {
            points[k].label = u->label;
            add(p, points[k]);
        }
    }
}

static void (*const makers[NET_MEASURES])(struct planning *, const char *) = {
    [NET_SWEEP] = add_sweep, [NET_DIRECTIONS] = add_directions, [NET_LINKS] = add_links, [NET_MIXED] = add_mixed, [NET_FORMS] = add_forms, [NET_SHARDS] = add_shards,
    [NET_ALIGNMENT] = add_alignment, [NET_TOGETHER] = add_together, [NET_TIERS] = add_tiers, [NET_COMPUTE] = add_compute, [NET_UNIT_SIZES] = add_units,
};

// What those that were asked for lack. The others always have something.
static bool nothing(const struct net_request *r, struct error *error)
{
    char wants[240] = "";
    const struct { enum net_measure m; const char *text; } all[] = {
        {NET_LINKS, "links: 3 to 32 ranks"}, {NET_TIERS, "tiers: --within, more than 1 and less than the ranks"}, {NET_UNIT_SIZES, "units: --case or -k"}};
    for (int i = 0; i < 3; i++)
        if (r->measures >> all[i].m & 1)
            snprintf(wants + strlen(wants), sizeof wants - strlen(wants), "%s%s", wants[0] != 0 ? "; " : "", all[i].text);
    return error_set(error, "--measure: found nothing to measure, expected for %s", wants);
}

bool net_plan_make(const struct net_request *r, struct net_plan *out, struct error *error)
{
    *out = (struct net_plan){0};
    struct planning p = {r, out};
    for (int m = 0; m < NET_MEASURES; m++)
        if (r->measures >> m & 1)
            makers[m](&p, net_measure_names[m]);
    return out->count > 0 || nothing(r, error);
}

void net_plan_free(struct net_plan *p)
{
    free(p->points);
    *p = (struct net_plan){0};
}
