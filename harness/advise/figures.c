// See figures.h.
#include "harness/advise/figures.h"

#include <stdlib.h>
#include <time.h>

#include "harness/advise/quantity.h"
#include "harness/protocol/memory.h"

enum { BITS = 61, SIZES = 25, TEXT = 320 };
static const double SIZE_RANGE = 64, CLOSE = 0.02; // from a 64th to 64 times the model; a second strategy within 2 % counts as equal

struct drawn { const struct advice *a; struct workload_model base; double parameters; };

// The model with `scale` times the elements, for a number of rows. Owned: workload_free.
static struct workload_model scaled(const struct workload_model *base, double scale, double rows)
{
    struct workload_model w = *base;
    w.units = memory_copy(base->units, (size_t)base->unit_count, sizeof *w.units);
    w.calls = memory_copy(base->calls, (size_t)base->call_count, sizeof *w.calls);
    for (int u = 0; u < w.unit_count; u++) {
        w.units[u].elements *= scale;
        w.units[u].tensors = memory_copy(base->units[u].tensors, (size_t)base->units[u].tensor_count, sizeof *base->units[u].tensors);
        for (int t = 0; t < w.units[u].tensor_count; t++)
            w.units[u].tensors[t].row_count = (int64_t)ceil((double)w.units[u].tensors[t].row_count * scale);
    }
    for (int c = 0; c < w.call_count; c++) {
        w.calls[c].forward_flop *= scale * rows;
        w.calls[c].backward_flop *= scale * rows;
    }
    w.tokens *= rows;
    return w;
}

// Rows of the scaled model under a strategy: as given where they fit, else as many as fit; 0: none.
static double rows_of(const struct drawn *d, const struct schedule *s, double scale)
{
    const struct advice_question *q = d->a->q;
    struct error ignored = {""};
    double one = advise_memory(q->c, &d->base, s, 1, &ignored), two = advise_memory(q->c, &d->base, s, 2, &ignored), row = two - one, fixed = one - row;
    double free_bytes = q->memory_limit - fixed * scale, fit = q->memory_limit > 0 ? floor(free_bytes / (row * sqrt(scale))) : INFINITY;
    if (q->rows > 0)
        return fit >= (double)q->rows ? (double)q->rows : 0;
    return fit >= 1 ? fit : 0;
}

static void best_of_column(const struct drawn *d, double scale, const double *bits, int *best, unsigned char *close)
{
    const struct advice *a = d->a;
    struct workload_model w[CANDIDATES];
    double rows[CANDIDATES];
    for (int i = 0; i < a->count; i++) {
        rows[i] = rows_of(d, &a->rows[i].candidate.schedule, scale);
        w[i] = scaled(&d->base, scale, fmax(1, rows[i]));
    }
    for (int b = 0; b < BITS; b++) {
        struct machine m = machine_with_bandwidth(&a->q->machine, bits[b] / 8);
        double least = INFINITY, second = INFINITY;
        best[b] = -1;
        for (int i = 0; i < a->count; i++) {
            struct prediction p;
            if (rows[i] < 1)
                continue;
            advise_predict(&m, &w[i], &a->rows[i].candidate.schedule, &p);
            double each = p.step_s / w[i].tokens;
            second = each < least ? least : fmin(second, each);
            best[b] = each < least ? i : best[b];
            least = fmin(least, each);
        }
        close[b] = second < (1 + CLOSE) * least;
    }
    for (int i = 0; i < a->count; i++)
        workload_free(&w[i]);
}

static double bound_of_size(const struct drawn *d, double scale)
{
    const struct advice *a = d->a;
    struct candidate full = advice_find(a, STRATEGY_FULL)->candidate;
    double rows = rows_of(d, &full.schedule, scale);
    struct workload_model w = scaled(&d->base, scale, fmax(1, rows));
    full.w = &w;
    double bandwidth = rows >= 1 ? crossover_bound(&a->q->machine, &full, CROSSOVER_COMPUTE_BOUND, a->low, a->high) : INFINITY;
    workload_free(&w);
    return bandwidth > 0 && isfinite(bandwidth) ? 8 * bandwidth : NAN;
}

static void tell_about(const struct advice *a, struct plot_about *about, char fabric[TEXT], char note[TEXT], char date[32])
{
    char alpha[32];
    time_t now = time(NULL);
    struct tm day;
    const struct machine *m = &a->q->machine;
    strftime(date, 32, "%Y-%m-%d", gmtime_r(&now, &day));
    snprintf(fabric, TEXT, "predicted: %d ranks, %s a step of a collective", a->q->ranks, quantity_write(m->tiers[m->tiers[1].ranks > 0].alpha_s, QUANTITY_SECONDS, alpha, sizeof alpha));
    snprintf(note, TEXT, "Cost model of the schedule of the reference engine (docs/advise.md); nothing in this figure is a measured time");
    about->machine = a->q->facts.source;
    about->fabric = fabric;
    about->date = date;
    about->interval = "";
    about->note = note;
}

static bool draw_map(const struct drawn *d, const struct plot_about *about, const char *folder, char why[PLOT_WHY], struct error *error)
{
    const struct advice *a = d->a;
    double bits[BITS], sizes[SIZES], bound[SIZES], here[SIZES];
    static int best[BITS * SIZES];
    static unsigned char close[BITS * SIZES];
    const char *names[CANDIDATES];
    for (int b = 0; b < BITS; b++)
        bits[b] = 8 * a->low * pow(a->high / a->low, (double)b / (BITS - 1));
    for (int s = 0; s < SIZES; s++) {
        double scale = pow(SIZE_RANGE, 2.0 * s / (SIZES - 1) - 1);
        sizes[s] = d->parameters * scale;
        best_of_column(d, scale, bits, best + s * BITS, close + s * BITS);
        bound[s] = bound_of_size(d, scale);
    }
    for (int i = 0; i < a->count; i++)
        names[i] = a->rows[i].candidate.name;
    for (int s = 0; s < SIZES; s++)
        here[s] = 8 * machine_bandwidth(&a->q->machine);
    const struct plot_map_curve curves[] = {{"full is bound by computing right of it", SIZES, bound, sizes}, {"this machine", SIZES, here, sizes}};
    struct plot_map map = {.about = *about, .name_count = a->count, .names = names, .bits_count = BITS, .parameters_count = SIZES, .bits = bits, .parameters = sizes, .best = best,
                           .close = close, .curve_count = 2, .curves = curves};
    map.about.name = "crossover-map";
    map.about.title = "Fastest sharding strategy by bandwidth and model size";
    return plot_map(&map, folder, why, error);
}

static bool draw_bandwidth(const struct drawn *d, const struct plot_about *about, const char *folder, char why[PLOT_WHY], struct error *error)
{
    const struct advice *a = d->a;
    static struct plot_point points[CANDIDATES][BITS];
    struct plot_series series[CANDIDATES];
    struct plot_crossover marks[CROSSINGS];
    char names[CROSSINGS][64];
    int count = 0;
    for (int i = 0; i < a->count; i++) {
        const struct candidate *c = &a->rows[i].candidate;
        if (!a->rows[i].fits)
            continue;
        for (int b = 0; b < BITS; b++) {
            double bandwidth = a->low * pow(a->high / a->low, (double)b / (BITS - 1));
            struct machine m = machine_with_bandwidth(&a->q->machine, bandwidth);
            struct prediction p;
            advise_predict(&m, c->w, &c->schedule, &p);
            points[i][b] = (struct plot_point){8 * bandwidth, {c->w->tokens * a->q->ranks / p.step_s, NAN, NAN, 0, 0}};
        }
        series[count++] = (struct plot_series){c->name, true, BITS, points[i]};
    }
    for (int i = 0; i < a->crossing_count; i++) {
        snprintf(names[i], sizeof names[i], "%s = %s", a->rows[a->crossings[i].from].candidate.name, a->rows[a->crossings[i].to].candidate.name);
        marks[i] = (struct plot_crossover){8 * a->crossings[i].bandwidth, NAN, NAN, names[i], true};
    }
    struct plot_bandwidth plot = {.about = *about, .count = count, .series = series, .crossover_count = a->crossing_count, .crossovers = marks};
    plot.about.name = "advise-bandwidth";
    plot.about.title = "Predicted throughput against bandwidth";
    return plot_bandwidth(&plot, folder, why, error);
}

bool advise_figures(const struct advice *a, const char *folder, char why[PLOT_WHY], struct error *error)
{
    struct drawn d = {.a = a};
    struct plot_about about = {0};
    char fabric[TEXT], note[TEXT], date[32];
    why[0] = 0;
    if (!workload_create(&d.base, a->q->c, 1, error))
        return false;
    d.parameters = workload_elements(&d.base);
    tell_about(a, &about, fabric, note, date);
    bool ok = draw_map(&d, &about, folder, why, error) && (why[0] != 0 || a->best < 0 || draw_bandwidth(&d, &about, folder, why, error));
    workload_free(&d.base);
    return ok;
}
