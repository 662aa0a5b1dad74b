// See rows.h.
#include "harness/net/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/net/plan.h"
#include "harness/protocol/memory.h"

int net_row_ranks(const struct net_row *r, const struct net_call *c)
{
    return c->group == NET_WITHIN ? r->within : c->group == NET_BETWEEN && r->within > 0 ? r->ranks / r->within : r->ranks;
}

// The median's interval, as wide as the medians of the starts lie apart: samples of one start have more in common than the interval of order statistics knows,
// where its ranks run and where their buffers lie.
static struct interval over_starts(const struct stored_series *x)
{
    struct interval all = statistics_median(x->count, x->values);
    for (int i = 0; i < x->launch_count; i++) {
        struct interval one = statistics_median(x->launches[i].count, x->launches[i].values);
        all.low = fmin(all.low, one.value);
        all.high = fmax(all.high, one.value);
    }
    return all;
}

static bool read_row(const struct stored_series *x, struct net_row *row, struct error *error)
{
    *row = (struct net_row){.series = x, .first_error = json_string_value(json_object_get(x->facts, "first_error")), .launches = x->launch_count};
    if (!net_point_read(x->point, &row->point, error))
        return false;
    row->ranks = (int)json_integer_value(json_object_get(x->point, "ranks"));
    row->hosts = (int)json_integer_value(json_object_get(x->point, "hosts"));
    row->within = (int)json_integer_value(json_object_get(x->point, "within"));
    row->line_rate = json_number_value(json_object_get(x->facts, "line_rate"));
    row->burst = json_number_value(json_object_get(x->facts, "burst"));
    row->errors = json_integer_value(json_object_get(x->facts, "errors"));
    row->calls_per_sample = (int)json_integer_value(json_object_get(x->facts, "calls_per_sample"));
    for (int i = 0; i < row->point.call_count; i++) {
        const struct net_call *c = &row->point.calls[i];
        double bytes = (double)c->count * (double)dtype_size(c->type);
        row->bytes += (int64_t)bytes;
        row->bus_bytes += bytes * net_bus_factor(c, net_row_ranks(row, c), row->point.shape);
    }
    row->seconds = over_starts(x);
    row->algbw = (double)row->bytes / row->seconds.value;
    row->busbw = row->bus_bytes / row->seconds.value;
    return row->ranks > 0 || error_set(error, "series %lld: found no ranks in its point", (long long)x->id);
}

// The series of the same point with another quantity, as long as the first; or NULL.
static const struct stored_series *beside(const struct stored_serieses *all, const struct stored_series *x, enum net_series which)
{
    char quantity[64];
    snprintf(quantity, sizeof quantity, "%s seconds", net_series_names[which]);
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->items[i].quantity, quantity) == 0 && json_equal(all->items[i].point, x->point))
            return &all->items[i];
    return NULL;
}

static struct interval overlap(const struct stored_series *call, const struct stored_series *product, const struct stored_series *whole)
{
    double *share = memory_zeros((size_t)whole->count + 1, sizeof *share);
    for (int i = 0; i < whole->count; i++)
        share[i] = (call->values[i] + product->values[i] - whole->values[i]) / fmin(call->values[i], product->values[i]);
    struct interval out = statistics_median(whole->count, share);
    free(share);
    return out;
}

static void add_product(const struct stored_serieses *all, struct net_row *row)
{
    const struct stored_series *x = row->series, *call = beside(all, x, NET_CALL_ALONE), *product = beside(all, x, NET_PRODUCT_ALONE);
    const struct stored_series *call_beside = beside(all, x, NET_CALL_BESIDE), *product_beside = beside(all, x, NET_PRODUCT_BESIDE);
    if (call == NULL || product == NULL || call_beside == NULL || product_beside == NULL || call->count != x->count || product->count != x->count ||
        call_beside->count != x->count || product_beside->count != x->count)
        return;
    row->call_alone = statistics_median(call->count, call->values);
    row->product_alone = statistics_median(product->count, product->values);
    row->overlap = overlap(call, product, x);
    row->call_slowdown = statistics_ratio(x->count, call_beside->values, call->values);
    row->product_slowdown = statistics_ratio(x->count, product_beside->values, product->values);
}

static void add_bare(const struct stored_serieses *all, struct net_row *row)
{
    const struct stored_series *bare = beside(all, row->series, NET_BARE), *batch = beside(all, row->series, NET_BATCH);
    if (bare != NULL && batch != NULL && bare->count == batch->count)
        row->over_bare = statistics_ratio(bare->count, batch->values, bare->values);
}

static int measure_of(const struct net_row *r)
{
    int m = 0;
    while (net_measure_names[m] != NULL && strcmp(net_measure_names[m], r->point.measure) != 0)
        m++;
    return m;
}

// Measure, then call, then form, then size.
static int compare(const void *a, const void *b)
{
    const struct net_row *x = a, *y = b;
    const struct net_point *p = &x->point, *q = &y->point;
    const int64_t keys[][2] = {
        {measure_of(x), measure_of(y)}, {p->call_count, q->call_count}, {p->calls[0].op, q->calls[0].op}, {p->calls[1].op, q->calls[1].op},
        {p->calls[0].group, q->calls[0].group}, {p->calls[1].group, q->calls[1].group}, {p->calls[0].type, q->calls[0].type}, {p->how, q->how},
        {p->in_place, q->in_place}, {p->shape, q->shape}, {p->offset, q->offset}, {p->product, q->product}, {p->calls[0].root, q->calls[0].root},
        {p->calls[0].count, q->calls[0].count},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return strcmp(p->label, q->label);
}

bool net_rows_make(struct stored_serieses *stored, struct net_rows *out, struct error *error)
{
    *out = (struct net_rows){.stored = *stored, .items = memory_zeros((size_t)stored->count + 1, sizeof *out->items),
                             .fabric = stored->count > 0 ? stored->items[0].fabric : ""};
    *stored = (struct stored_serieses){0};
    for (int i = 0; i < out->stored.count; i++) {
        if (strcmp(out->stored.items[i].quantity, "seconds") != 0)
            continue;
        struct net_row *row = &out->items[out->count++];
        if (!read_row(&out->stored.items[i], row, error)) {
            net_rows_free(out);
            return false;
        }
        out->errors += row->errors;
        if (row->point.product != NET_IDLE)
            add_product(&out->stored, row);
        if (row->point.bare)
            add_bare(&out->stored, row);
    }
    qsort(out->items, (size_t)out->count, sizeof *out->items, compare);
    return true;
}

bool net_rows_load(struct store *s, int64_t run, struct net_rows *out, struct error *error)
{
    struct stored_serieses stored;
    return store_load_series(s, run, "net", &stored, error) && net_rows_make(&stored, out, error);
}

void net_rows_free(struct net_rows *r)
{
    free(r->items);
    stored_series_free(&r->stored);
    *r = (struct net_rows){0};
}
