// Plots of lines: busbw against size, throughput against bandwidth. See plots.h.
#include <math.h>
#include <stdlib.h>

#include "harness/protocol/memory.h"
#include "harness/report/plot_draw.h"
#include "results.h"

enum { CROSSOVERS = 8, NAME_WIDTH = 90 };

// Room for an interval, but not so much that one wide interval makes all else small: it then ends at the edge.
static void limit_bars(struct plot_range *y, int count, const struct plot_series *series, double line_rate) {
    const double most = 1.4;
    double top = isfinite(line_rate) ? line_rate : 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < series[i].count; k++)
            if (isfinite(series[i].points[k].y.value)) top = fmax(top, series[i].points[k].y.value);
    if (top > 0) y->high = fmin(y->high, most * top);
}

static const struct plot_range logarithmic = {INFINITY, -INFINITY, true};

bool plot_busbw(const struct plot_busbw *p, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct plot_draft d;
    struct plot_range x = logarithmic, y = plot_range_none;
    bool has_rate = isfinite(p->line_rate) && p->line_rate > 0;
    plot_begin(&d);
    int used = plot_put_series(&d, p->count, p->series, false, &x, &y);
    if (has_rate) plot_range_add(&y, p->line_rate);
    limit_bars(&y, p->count, p->series, p->line_rate);
    plot_range_widen(&x, 0.03, false);
    plot_range_widen(&y, 0.08, true);
    plot_put_axis(d.head, "x", &x, PLOT_BYTES);
    plot_put_axis(d.head, "y", &y, PLOT_BYTES_PER_SECOND);
    char text[32];
    fprintf(d.head, "line_rate = %.9g\nrate_text = 'line rate, %s'\n", has_rate ? p->line_rate : -1, has_rate ? plot_value(p->line_rate, PLOT_BYTES_PER_SECOND, text) : "");
    plot_layout(&d, &p->about, PLOT_LEFT_PX, PLOT_WIDE_PX, PLOT_TALL_PX, used);
    return plot_end(&d, &p->about, busbw_gp, folder, why, error);
}

// "1: full = none, measured: 120 Mbit/s (100 Mbit/s to 140 Mbit/s)"
static void put_crossover_title(FILE *data, const struct plot_crossover *c, int number, bool band) {
    char at[32], low[32], high[32];
    plot_value(c->bits, PLOT_BITS_PER_SECOND, at);
    plot_value(c->low, PLOT_BITS_PER_SECOND, low);
    plot_value(c->high, PLOT_BITS_PER_SECOND, high);
    char *title = band ? memory_format("%d: %s: %s (%s to %s)", number, c->name, at, low, high) : memory_format("%d: %s: %s", number, c->name, at);
    figure_put_quoted(data, title, NAME_WIDTH);
    free(title);
}

// A block a stroke: its title, then x twice, at the ends of the stroke. The band is an object before the script.
static int put_crossovers(struct plot_draft *d, const struct plot_bandwidth *p, struct plot_range *x) {
    int used = 0;
    fprintf(d->head, "array guess[%d] = [0, 0, 0, 0, 0, 0, 0, 0]\n", CROSSOVERS); // gnuplot looks at the first though there be none
    for (int i = 0; i < p->crossover_count; i++) {
        const struct plot_crossover *c = &p->crossovers[i];
        if (!(c->bits > 0) || !isfinite(c->bits) || used >= CROSSOVERS) continue;
        bool band = c->low > 0 && isfinite(c->high);
        fputs("\n\n", d->data);
        put_crossover_title(d->data, c, ++used, band);
        fprintf(d->data, "\n%.12g\t0\n%.12g\t1\n", c->bits, c->bits);
        plot_range_add(x, c->bits);
        fprintf(d->head, "guess[%d] = %d\nset label %d '%d' at first %.12g, graph 1 center offset 0, 0.6 textcolor rgb '#222222'\n", used, c->predicted, 30 + used, used, c->bits);
        if (band)
            fprintf(d->head, "set object %d rectangle from first %.12g, graph 0 to first %.12g, graph 1 fillcolor rgb '#e4e4e4' fillstyle solid noborder behind\n", 20 + used,
                    c->low, c->high);
    }
    fprintf(d->head, "crossovers = %d\n", used);
    figure_note(&d->figure, p->crossover_count - used, "crossovers outside any bandwidth are left out");
    return used;
}

bool plot_bandwidth(const struct plot_bandwidth *p, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct plot_draft d;
    struct plot_range x = logarithmic, y = plot_range_none;
    plot_begin(&d);
    int used = plot_put_series(&d, p->count, p->series, true, &x, &y);
    int crossovers = put_crossovers(&d, p, &x);
    y.logarithmic = y.high / y.low > 20;
    plot_range_widen(&x, 0.04, false);
    plot_range_widen(&y, 0.08, true);
    plot_put_axis(d.head, "x", &x, PLOT_BITS_PER_SECOND);
    plot_put_axis(d.head, "y", &y, PLOT_COUNT);
    fprintf(d.head, "low_y = %.12g\nhigh_y = %.12g\n", y.low, y.high);
    plot_put_text(d.head, "unit", p->unit ? p->unit : "tokens / s");
    plot_layout(&d, &p->about, PLOT_LEFT_PX, PLOT_WIDE_PX, PLOT_TALL_PX, used + crossovers);
    return plot_end(&d, &p->about, bandwidth_gp, folder, why, error);
}
