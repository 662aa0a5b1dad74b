// The figure of throughput against bandwidth, of the steps that bench or advise --validate measured at several line rates. See series_report.h.
//
// What: a line for each strategy of each implementation, workload and number of ranks, dashed where a series has the fact "predicted_s" too. A crossover is where the fastest
//       strategy changes between two neighbouring rates: where the line through the logarithms of the quotient of both steps at these rates passes 0.
// How:  its band is where the lines through the lower and the upper ends of the quotients' intervals do so; none where an interval holds 1, and then the name says so.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/plots.h"
#include "harness/report/series_name.h"
#include "harness/report/series_report.h"
#include "harness/report/view.h"

enum { LINES = 64, CROSSOVERS = 16 };

struct at { const struct stored_series *s; double bits, predicted_s; };
// Lines of one group are what may take each other's place: strategies.
struct line { char *name, *group; const char *strategy; int count; struct at *points; };
struct drawing {
    int count, crossover_count;
    struct line lines[LINES];
    struct plot_crossover crossovers[CROSSOVERS];
    bool tokens; // known of all
};

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double bits_of(const struct stored_series *s) { return fmax(number(s->point, "rate_bits"), number(s->facts, "rate_bits")); } // fmax passes NAN over
static const char *strategy_of(const struct stored_series *s) { return json_string_value(json_object_get(s->point, "strategy")); }
static bool is_step(const struct stored_series *s) { return !strcmp(s->quantity, "seconds") && strategy_of(s) && bits_of(s) > 0 && !series_fault(s, NULL); }

// ---- lines ----
struct kinds { struct names subjects, names, ranks; };

static char *ranks_text(const struct stored_series *s) { return memory_format("%d ranks", (int)number(s->point, "ranks")); }

static char *group_of(const struct stored_series *s, const struct kinds *k) {
    char *ranks = ranks_text(s), *out = memory_format("%s%s%s%s%s%s", k->subjects.count > 1 ? ", " : "", k->subjects.count > 1 ? s->subject : "", k->names.count > 1 ? ", " : "",
                                                      k->names.count > 1 ? s->name : "", k->ranks.count > 1 ? ", " : "", k->ranks.count > 1 ? ranks : "");
    free(ranks);
    return out;
}

static struct line *line_of(struct drawing *d, const struct stored_series *s, const struct kinds *k) {
    char *group = group_of(s, k), *name = memory_format("%s%s", strategy_of(s), group);
    int i = 0;
    while (i < d->count && strcmp(d->lines[i].name, name)) i++;
    if (i == d->count && i < LINES) {
        d->lines[d->count++] = (struct line){name, group, strategy_of(s), 0, NULL};
        return &d->lines[i];
    }
    free(group);
    free(name);
    return i < LINES ? &d->lines[i] : NULL;
}

static int by_bits(const void *a, const void *b) {
    const struct at *x = a, *y = b;
    return (x->bits > y->bits) - (x->bits < y->bits);
}

static void collect(struct drawing *d, const struct stored_serieses *series) {
    struct kinds k = {0};
    d->tokens = true;
    for (int i = 0; i < series->count; i++) {
        if (!is_step(&series->items[i])) continue;
        char *ranks = ranks_text(&series->items[i]);
        names_add(&k.subjects, series->items[i].subject), names_add(&k.names, series->items[i].name), names_add(&k.ranks, ranks);
        d->tokens &= number(series->items[i].facts, "tokens_per_step") > 0;
        free(ranks);
    }
    for (int i = 0; i < series->count; i++) {
        const struct stored_series *s = &series->items[i];
        struct line *l = is_step(s) ? line_of(d, s, &k) : NULL;
        if (!l) continue;
        l->points = memory_grow(l->points, (size_t)l->count, sizeof *l->points);
        l->points[l->count++] = (struct at){s, bits_of(s), number(s->facts, "predicted_s")};
    }
    for (int i = 0; i < d->count; i++) qsort(d->lines[i].points, (size_t)d->lines[i].count, sizeof *d->lines[i].points, by_bits);
    names_free(&k.subjects), names_free(&k.names), names_free(&k.ranks);
}

static const struct at *at(const struct line *l, double bits) {
    for (int i = 0; i < l->count; i++)
        if (l->points[i].bits == bits) return &l->points[i];
    return NULL;
}

static double tokens(const struct drawing *d, const struct stored_series *s) { return d->tokens ? number(s->facts, "tokens_per_step") : 1; }

// ---- crossovers ----
static double median(const struct stored_series *s, int launch) { return statistics_median(s->launches[launch].count, s->launches[launch].values).value; }

static bool is_bench(const struct stored_series *s) { return !strcmp(s->tool, "bench"); }

// Of b's step over a's: of neighbours where they took turns, start by start; in one start those of validate, whose steps take turns within it.
static struct interval steps_quotient(const struct stored_series *a, const struct stored_series *b) {
    if (a->launch_count == 1 && b->launch_count == 1 && a->count == b->count && !is_bench(a)) return statistics_ratio(a->count, b->values, a->values);
    if (a->launch_count != b->launch_count) {
        struct interval x = series_interval(0.975, a), y = series_interval(0.975, b), out = statistics_quotient(&y, &x);
        out.coverage = fmin(out.coverage, statistics_launches_coverage(a->launch_count, b->launch_count));
        return out;
    }
    double *x = memory_zeros((size_t)a->launch_count, sizeof *x), *y = memory_zeros((size_t)a->launch_count, sizeof *y);
    for (int i = 0; i < a->launch_count; i++) x[i] = median(a, i), y[i] = median(b, i);
    struct interval out = statistics_ratio(a->launch_count, y, x);
    free(x);
    free(y);
    return out;
}

// The same of what a token takes, where each has its own batch.
static struct interval quotient(const struct drawing *d, const struct stored_series *a, const struct stored_series *b) {
    struct interval q = steps_quotient(a, b);
    double scale = tokens(d, a) / tokens(d, b);
    return (struct interval){scale * q.value, scale * q.low, scale * q.high, q.coverage, q.count};
}

static double crossing(double low_bits, double high_bits, double at_low, double at_high) {
    return exp(log(low_bits) + log(high_bits / low_bits) * log(at_low) / log(at_low / at_high));
}

static void add_crossing(struct drawing *d, struct plot_crossover c, const char *format, const struct line *a, const struct line *b) {
    if (d->crossover_count == CROSSOVERS) return;
    c.name = memory_format(format, a->strategy, b->strategy, a->group);
    d->crossovers[d->crossover_count++] = c;
}

// a is the fastest at the lower rate, b at the next.
static void cross(struct drawing *d, const struct line *a, const struct line *b, double low, double high) {
    const struct at *a0 = at(a, low), *a1 = at(a, high), *b0 = at(b, low), *b1 = at(b, high);
    if (!a0 || !a1 || !b0 || !b1) return;
    struct interval q0 = quotient(d, a0->s, b0->s), q1 = quotient(d, a1->s, b1->s);
    bool told = statistics_tells(&q0) && statistics_tells(&q1), shown = told && q0.low > 1 && q1.high < 1;
    if (q0.value > 1 && q1.value < 1)
        add_crossing(d, (struct plot_crossover){crossing(low, high, q0.value, q1.value), shown ? crossing(low, high, q0.low, q1.low) : NAN, shown ? crossing(low, high, q0.high, q1.high) : NAN, NULL, false},
                     shown ? "%s = %s%s, measured" : told ? "%s = %s%s, measured, within the intervals" : "%s = %s%s, measured, too few rounds to tell", a, b);
}

static void cross_predicted(struct drawing *d, const struct line *a, const struct line *b, double low, double high) {
    const struct at *a0 = at(a, low), *a1 = at(a, high), *b0 = at(b, low), *b1 = at(b, high);
    if (!a0 || !a1 || !b0 || !b1) return;
    double scale = tokens(d, a0->s) / tokens(d, b0->s), q0 = scale * b0->predicted_s / a0->predicted_s, q1 = scale * b1->predicted_s / a1->predicted_s;
    if (q0 > 1 && q1 < 1) add_crossing(d, (struct plot_crossover){crossing(low, high, q0, q1), NAN, NAN, NULL, true}, "%s = %s%s, predicted", a, b);
}

// The fastest line of a group at a rate; NULL: none was measured, or predicted.
static const struct line *best(const struct drawing *d, const char *group, double bits, bool predicted) {
    const struct line *out = NULL;
    double least = INFINITY;
    for (int i = 0; i < d->count; i++) {
        const struct at *p = strcmp(d->lines[i].group, group) ? NULL : at(&d->lines[i], bits);
        double seconds = p ? predicted ? p->predicted_s : series_interval(0.95, p->s).value : NAN;
        if (p && seconds / tokens(d, p->s) < least) out = &d->lines[i], least = seconds / tokens(d, p->s);
    }
    return out;
}

static double next_rate(const struct drawing *d, const char *group, double bits) {
    double next = INFINITY;
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < d->lines[i].count; k++)
            if (!strcmp(d->lines[i].group, group) && d->lines[i].points[k].bits > bits) next = fmin(next, d->lines[i].points[k].bits);
    return next;
}

static void find_crossovers(struct drawing *d) {
    for (int i = 0; i < d->count; i++) {
        const char *group = d->lines[i].group;
        bool first = true;
        for (int k = 0; k < i; k++) first &= strcmp(d->lines[k].group, group) != 0;
        for (double low = next_rate(d, group, 0), high; first && isfinite(high = next_rate(d, group, low)); low = high) {
            const struct line *a = best(d, group, low, false), *b = best(d, group, high, false), *x = best(d, group, low, true), *y = best(d, group, high, true);
            if (a && b && a != b) cross(d, a, b, low, high);
            if (x && y && x != y) cross_predicted(d, x, y, low, high);
        }
    }
}

// ---- the figure ----
// Tokens of all ranks, or steps, a second.
static double work(const struct drawing *d, const struct stored_series *s) { return d->tokens ? tokens(d, s) * number(s->point, "ranks") : 1; }

static struct plot_series plotted(const struct drawing *d, const struct line *l, bool predicted) {
    struct plot_point *points = memory_zeros((size_t)l->count + 1, sizeof *points);
    int count = 0;
    for (int i = 0; i < l->count; i++) {
        const struct at *p = &l->points[i];
        struct interval s = series_interval(0.95, p->s);
        double w = work(d, p->s);
        if (!predicted) points[count++] = (struct plot_point){p->bits, {w / s.value, w / s.high, w / s.low, s.coverage, s.count}};
        else if (p->predicted_s > 0) points[count++] = (struct plot_point){p->bits, {w / p->predicted_s, NAN, NAN, 0, 0}};
    }
    return (struct plot_series){l->name, predicted, count, points};
}

// Of bench, the fewest that a point is of.
static int rounds_of(const struct drawing *d) {
    int least = STATISTICS_LEAST;
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < d->lines[i].count; k++) {
            const struct stored_series *s = d->lines[i].points[k].s;
            if (is_bench(s) && s->launch_count < least) least = s->launch_count;
        }
    return least;
}

static bool has_rates(const struct drawing *d) {
    for (int i = 0; i < d->count; i++)
        if (isfinite(next_rate(d, d->lines[i].group, next_rate(d, d->lines[i].group, 0)))) return true;
    return false;
}

static bool draw(const struct drawing *d, const struct stored_run *r, const struct stored_serieses *series, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct plot_series lines[2 * LINES];
    int count = 0;
    bool ok = true;
    for (int i = 0; i < d->count; i++)
        for (int predicted = 0; predicted < 2; predicted++) {
            lines[count] = plotted(d, &d->lines[i], predicted);
            if (lines[count].count) count++;
            else free((void *)lines[count].points);
        }
    char *machine = plot_machine(r->environment), *versions = plot_versions(r->environment, r->implementations), *fabrics = series_fabrics(series), *bars = plot_bars(rounds_of(d));
    struct plot_bandwidth p = {{.name = "bandwidth", .title = "Throughput against bandwidth", .machine = machine, .fabric = fabrics, .versions = versions, .date = r->started, .interval = bars,
                                .note = "Steps: of the slowest rank. Strokes: where the fastest strategy changes; the band holds it where intervals of the quotients of steps show the change"},
                               d->tokens ? "tokens / s of all ranks" : "steps / s", count, lines, d->crossover_count, d->crossovers};
    ok = plot_bandwidth(&p, folder, why, error);
    for (int i = 0; i < count; i++) free((void *)lines[i].points);
    free(machine);
    free(versions);
    free(fabrics);
    free(bars);
    return ok;
}

bool series_bandwidth_figure(const struct stored_run *r, const struct stored_serieses *series, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct drawing d = {0};
    collect(&d, series);
    find_crossovers(&d);
    snprintf(why, PLOT_WHY, "no data: nothing was measured at two line rates");
    bool ok = !has_rates(&d) || draw(&d, r, series, folder, why, error);
    for (int i = 0; i < d.count; i++) free(d.lines[i].name), free(d.lines[i].group), free(d.lines[i].points);
    for (int i = 0; i < d.crossover_count; i++) free((void *)d.crossovers[i].name);
    return ok;
}
