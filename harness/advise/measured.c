// See measured.h.
#include "harness/advise/measured.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/advise/quantity.h"
#include "harness/net/consistency.h"
#include "harness/net/plan.h"
#include "harness/net/units.h"
#include "harness/protocol/memory.h"

enum { WORD = 48, SLOWDOWNS = 64 };

// ---- the stamp ----
static double number(const json_t *object, const char *name) { return json_number_value(json_object_get(object, name)); }

struct stamped_fabric stamped_fabric_of(const json_t *environment, const char *name)
{
    const json_t *f = json_object_get(environment, "fabric");
    return (struct stamped_fabric){name, json_object_get(f, "mca"), (int)number(f, "hosts"), (int)number(f, "group"), number(f, "rate_bits"), number(f, "between_rate_bits"), number(f, "burst_bytes")};
}

const char *stamped_option(const struct stamped_fabric *f, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < json_array_size(f->mca); i++) {
        const char *pair = json_string_value(json_array_get(f->mca, i));
        if (pair != NULL && strncmp(pair, name, length) == 0 && pair[length] == '=')
            return pair + length + 1;
    }
    return NULL;
}

// ---- notes ----
static void note(struct measured *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct measured *m, const char *format, ...)
{
    va_list list;
    if (m->note_count == MEASURED_NOTES)
        return;
    va_start(list, format);
    vsnprintf(m->notes[m->note_count++], MEASURED_NOTE, format, list);
    va_end(list);
}

static const char *bandwidth(double value, char text[WORD]) { return quantity_write(value, QUANTITY_BANDWIDTH, text, WORD); }
static const char *bytes(double value, char text[WORD]) { return quantity_write(value, QUANTITY_BYTES, text, WORD); }

// ---- lines ----
// A line of a machine: the calls that measured it, of how many halves each is (model.h), and what it may carry.
struct wanted {
    const char *name;          // for notes
    const char *measure;
    enum net_op op;
    enum net_group group;
    enum net_how how;
    int halves;
    double rate;               // bytes/s of a rank, 0: unknown
    double burst;              // bytes of a rank that may pass at once
    bool needed;               // at least two sizes, else none
};

static bool is_one(const struct net_row *r, const struct wanted *w)
{
    const struct net_point *p = &r->point;
    return strcmp(p->measure, w->measure) == 0 && p->call_count == 1 && p->calls[0].op == w->op && p->calls[0].group == w->group && p->how == w->how && p->shape == NET_EVEN &&
           !p->in_place && p->offset == 0 && p->product == NET_IDLE && p->label[0] == 0 && r->seconds.count > 0;
}

// Samples enough for an interval, or several starts, which tell more of a large message than many samples of one.
static bool is_sure(const struct net_row *r) { return r->seconds.count >= STATISTICS_LEAST || r->launches > 1; }

struct chosen { int count; const struct net_row **rows; };

// Those that are sure, where two sizes are; `least`: bytes on a rank's line that must be exceeded.
static void choose(const struct net_rows *all, const struct wanted *w, double least, struct chosen *out)
{
    int sure = 0;
    for (int i = 0; i < all->count; i++)
        sure += is_one(&all->items[i], w) && all->items[i].bus_bytes > least && is_sure(&all->items[i]);
    out->count = 0;
    for (int i = 0; i < all->count; i++)
        if (is_one(&all->items[i], w) && all->items[i].bus_bytes > least && (sure < 2 || is_sure(&all->items[i])))
            out->rows[out->count++] = &all->items[i];
}

static bool fit(const struct chosen *c, struct alpha_beta *out)
{
    int launches = 0, used = 0;
    for (int i = 0; i < c->count; i++)
        launches += c->rows[i]->launches;
    struct fit_point *points = memory_zeros((size_t)c->count + 1, sizeof *points);
    int *counts = memory_zeros((size_t)launches + 1, sizeof *counts);
    for (int i = 0; i < c->count; i++) {
        const struct stored_series *x = c->rows[i]->series;
        points[i] = (struct fit_point){c->rows[i]->bus_bytes, x->count, x->values, x->launch_count, counts + used};
        for (int k = 0; k < x->launch_count; k++)
            counts[used++] = x->launches[k].count;
    }
    bool ok = c->count > 1 && statistics_alpha_beta(c->count, points, out);
    free(points);
    free(counts);
    return ok;
}

// Latency of a line whose bandwidth is given, with the weights of the fit.
static double latency_at(const struct chosen *c, double beta)
{
    double sum = 0, weights = 0;
    for (int i = 0; i < c->count; i++) {
        double s = c->rows[i]->seconds.value;
        sum += (s - beta * c->rows[i]->bus_bytes) / (s * s);
        weights += 1 / (s * s);
    }
    return fmax(0, sum / weights);
}

static void put(const struct wanted *w, const struct alpha_beta *f, struct tier *t, double *alpha_spread, double *beta_spread)
{
    *t = (struct tier){fmax(0, f->alpha_s.value) / w->halves, f->beta_s_per_byte.value, 0, 0};
    *alpha_spread = spread_of(&f->alpha_s);
    *beta_spread = spread_of(&f->beta_s_per_byte);
}

static bool too_fast(const struct wanted *w, const struct alpha_beta *f) { return w->rate > 0 && !(1 / f->beta_s_per_byte.value <= w->rate); }

// A fit that says more than the rate: see measured.h.
static struct alpha_beta within_rate(const struct net_rows *rows, const struct wanted *w, const struct alpha_beta *first, struct chosen *c, struct measured *m)
{
    char said[WORD], rate[WORD], again[WORD], burst[WORD];
    struct alpha_beta second;
    bandwidth(1 / first->beta_s_per_byte.value, said);
    if (first->beta_s_per_byte.value <= 0)
        snprintf(said, sizeof said, "no limit");
    struct chosen all = *c;
    all.rows = memory_copy(c->rows, (size_t)c->count, sizeof *c->rows);
    choose(rows, w, w->burst, c);
    bool refitted = w->burst > 0 && c->count < all.count && fit(c, &second);
    if (refitted && !too_fast(w, &second)) {
        note(m, "%s: all sizes together say %s, more than the line rate of %s to a rank, since small messages ride the burst; taken from the %d sizes beyond the %s of it: %s", w->name, said,
             bandwidth(w->rate, rate), c->count, bytes(w->burst, burst), bandwidth(1 / second.beta_s_per_byte.value, again));
    } else {
        struct chosen *of = refitted ? c : &all;
        double alpha = latency_at(of, 1 / w->rate);
        second = (struct alpha_beta){.alpha_s = {alpha, alpha, alpha, 0, 0}, .beta_s_per_byte = {1 / w->rate, 1 / w->rate, 1 / w->rate, 0, 0}};
        note(m, "%s: the fit says %s%s, more than the line rate of %s to a rank, which is taken in its place", w->name, said, refitted ? ", and so do the sizes beyond the burst" : "",
             bandwidth(w->rate, rate));
    }
    free(all.rows);
    return second;
}

// One size says no latency: all of its time is taken for bytes.
static void put_one_size(const struct wanted *w, const struct net_row *r, struct tier *t, struct measured *m)
{
    char size[WORD];
    double beta = r->seconds.value / r->bus_bytes;
    *t = (struct tier){0, w->rate > 0 ? fmax(beta, 1 / w->rate) : beta, 0, 0};
    note(m, "%s: measured at one size, %s, so that its latency is not known apart: all of the time is taken for bytes", w->name, bytes((double)r->bytes, size));
}

// The line as it is stamped on the calls, in place of the fabric's: the slowest that they pass, whole. ranks: that share it.
static struct wanted stamped(const struct net_rows *rows, struct wanted w, int ranks)
{
    for (int i = 0; i < rows->count; i++)
        if (is_one(&rows->items[i], &w) && rows->items[i].line_rate > 0 && rows->items[i].burst > 0) {
            w.rate = rows->items[i].line_rate / ranks;
            w.burst = rows->items[i].burst / ranks;
            break;
        }
    return w;
}

static bool take_line(const struct net_rows *rows, const struct wanted *given, int ranks, int tier, struct measured *m)
{
    const struct wanted of = stamped(rows, *given, ranks), *w = &of;
    struct chosen c = {0, memory_zeros((size_t)rows->count + 1, sizeof *c.rows)};
    struct alpha_beta line;
    choose(rows, w, -1, &c);
    bool fitted = fit(&c, &line), ok = fitted || (c.count > 0 && !w->needed);
    if (fitted && too_fast(w, &line))
        line = within_rate(rows, w, &line, &c, m);
    if (fitted)
        put(w, &line, &m->tiers[tier], &m->alpha_spread[tier], &m->beta_spread[tier]);
    else if (ok)
        put_one_size(w, c.rows[c.count - 1], &m->tiers[tier], m);
    free(c.rows);
    return ok;
}

// ---- tiers ----
// Ranks of an inner group: of a group of hosts, else of a host that holds several. 0: one tier.
static int near_of(const struct stamped_fabric *f, int ranks, int hosts)
{
    int near = f->group > 0 && hosts > 0 ? f->group * ranks / hosts : hosts > 1 && ranks > hosts ? ranks / hosts : 0;
    return near > 1 && near < ranks && ranks % near == 0 ? near : 0;
}

static bool take_one(const struct net_rows *rows, const struct stamped_fabric *f, double rate, struct measured *m, struct error *error)
{
    // Where each group has one rank, all goes between groups.
    double between = f->group > 0 && f->group * m->ranks <= rows->items[0].hosts ? f->between_rate_bits / 8 : 0;
    const struct wanted w = {"line", "sweep", NET_ALL_GATHER, NET_WORLD, NET_BLOCKING, 1, between > 0 ? fmin(rate, between) : rate, f->burst_bytes, true};
    return take_line(rows, &w, 1, 0, m) || error_set(error, "the run of net has no all-gathers of two sizes: measure `sweep`");
}

// The line between groups is one for all ranks of a group.
static bool take_two(const struct net_rows *rows, const struct stamped_fabric *f, double rate, struct measured *m, struct error *error)
{
    int within = 0;
    for (int i = 0; i < rows->count; i++)
        within = rows->items[i].within > within ? rows->items[i].within : within;
    double outer = (f->group > 0 ? f->between_rate_bits / 8 : rate) / m->near;
    const struct wanted inner = {"line inside a group", "tiers", NET_ALL_GATHER, NET_WITHIN, NET_NONBLOCKING, 1, f->group > 0 ? rate : 0, f->burst_bytes, false};
    const struct wanted between = {"line between groups", "tiers", NET_ALL_REDUCE, NET_BETWEEN, NET_NONBLOCKING, 2, outer, f->burst_bytes / m->near, false};
    if (within != m->near)
        return error_set(error, "the run of net has tiers of %d ranks (--within), expected those of %s: %d", within, f->name, m->near);
    if (!take_line(rows, &inner, 1, 0, m) || !take_line(rows, &between, m->near, 1, m))
        return error_set(error, "%s has groups of %d ranks, and the run of net no collectives within and between them: measure `sweep,tiers`", f->name, m->near);
    note(m, "tiers: groups of %d ranks; the line inside a group from its all-gathers, the one between groups from the all-reduces of all groups at once", m->near);
    return true;
}

// ---- computing beside a collective ----
double measured_unit(const struct fsdp_case *c)
{
    struct net_units u = {0};
    struct error ignored = {""};
    double most = 0, unit = 0;
    if (!net_units_of(c, &u, &ignored))
        return 0;
    for (int i = 0; i < u.count; i++) {
        double size = (double)u.units[i].count * (double)dtype_size(u.gather), all = size * u.units[i].times;
        unit = all > most ? size : unit;
        most = fmax(all, most);
    }
    net_units_free(&u);
    return unit;
}

static bool beside(const struct net_row *r) { return r->point.product != NET_IDLE && r->point.how == NET_NONBLOCKING && r->product_slowdown.count > 0; }

// Unit unknown: the largest size.
static double distance(const struct net_row *r, double unit_bytes) { return unit_bytes > 0 ? fabs(log((double)r->bytes / unit_bytes)) : -(double)r->bytes; }

// Not the worst of all sizes: small messages end within the burst, and a product beside many of them waits for what no training step does.
static void take_contention(const struct net_rows *rows, double unit_bytes, struct measured *m)
{
    double values[SLOWDOWNS], least = INFINITY;
    int64_t size = 0;
    int count = 0;
    char measured[WORD], unit[WORD];
    for (int i = 0; i < rows->count; i++)
        if (beside(&rows->items[i]) && distance(&rows->items[i], unit_bytes) < least) {
            least = distance(&rows->items[i], unit_bytes);
            size = rows->items[i].bytes;
        }
    for (int i = 0; i < rows->count && count < SLOWDOWNS; i++)
        if (beside(&rows->items[i]) && rows->items[i].bytes == size)
            values[count++] = rows->items[i].product_slowdown.value;
    m->contention = count > 0 ? fmax(1, statistics_quantile(count, values, 0.5)) : 1;
    if (count == 0)
        note(m, "computing beside communication: not measured, taken as long as alone (net measures it: `compute`)");
    else
        note(m, "computing beside communication: %.2f times as long, the median of %d kinds of nonblocking calls of %s beside a matrix product, the size nearest to the model's unit of %s", m->contention,
             count, bytes((double)size, measured), bytes(unit_bytes, unit));
}

static void take_findings(const struct net_rows *rows, struct measured *m)
{
    struct net_findings findings;
    net_consistency(rows, &findings);
    for (int i = 0; i < findings.count; i++)
        if (strcmp(findings.items[i].rule, "directions") == 0 || strcmp(findings.items[i].rule, "links") == 0)
            note(m, "net found: %s", findings.items[i].text);
}

bool measured_take(const struct net_rows *rows, const struct stamped_fabric *f, double unit_bytes, struct measured *out, struct error *error)
{
    *out = (struct measured){0};
    if (rows->count == 0)
        return error_set(error, "the run of net has no all-gathers of two sizes: measure `sweep`");
    const struct net_row *first = &rows->items[0];
    snprintf(out->fabric, sizeof out->fabric, "%s", f->name);
    out->ranks = first->ranks;
    out->near = near_of(f, first->ranks, first->hosts);
    // A run that was cut short has no facts.
    if (!(out->near > 0 ? take_two : take_one)(rows, f, first->line_rate > 0 ? first->line_rate : f->rate_bits / 8, out, error))
        return false;
    take_contention(rows, unit_bytes, out);
    take_findings(rows, out);
    return true;
}
