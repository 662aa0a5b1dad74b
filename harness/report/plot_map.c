// The crossover map: which strategy is fastest over bandwidth and model size. See plots.h.
//
// How: neighbours of a row that agree are one rectangle. Edges lie between the grid's values, by their geometric mean. A strategy's name stands in the cell of its area that is
//      farthest, in cells, from any other area.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/plot_draw.h"
#include "results.h"

enum { MARKS = 64, CURVES = 4, LABEL_WIDTH = 40, MAP_TALL_PX = 420, NARROW = 3 };

static int cell(const struct plot_map *p, int i, int j) {
    int name = p->best[j * p->bits_count + i];
    return name >= 0 && name < p->name_count && name < PLOT_SERIES ? name : -1;
}

// The lower edge of value i of a grid that ascends; i = count: the upper edge of the last.
static double edge(const double *values, int count, int i) {
    if (count == 1) return values[0] * (i ? 1.5 : 1 / 1.5);
    if (i == 0) return values[0] / sqrt(values[1] / values[0]);
    if (i == count) return values[count - 1] * sqrt(values[count - 1] / values[count - 2]);
    return sqrt(values[i - 1] * values[i]);
}

static bool ascends(const double *values, int count) {
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]) || values[i] <= (i ? values[i - 1] : 0)) return false;
    return count > 0;
}

static void put_rectangles(FILE *data, const struct plot_map *p, int name, bool close_ones) {
    fputs("0\t0\t0\t0\t0\t0\n", data); // outside of every logarithmic axis, so that no block is empty
    for (int j = 0; j < p->parameters_count; j++)
        for (int i = 0, end; i < p->bits_count; i = end + (end == i)) {
            bool wanted = false;
            for (end = i; end < p->bits_count; end++) {
                wanted = close_ones ? p->close && p->close[j * p->bits_count + end] && cell(p, end, j) >= 0 : cell(p, end, j) == name;
                if (!wanted) break;
            }
            if (end == i) continue;
            double left = edge(p->bits, p->bits_count, i), right = edge(p->bits, p->bits_count, end);
            double low = edge(p->parameters, p->parameters_count, j), high = edge(p->parameters, p->parameters_count, j + 1);
            fprintf(data, "%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n", p->bits[i], p->parameters[j], left, right, low, high);
        }
    fputs("\n\n", data);
}

// Cells to the nearest cell of another area, or to an edge: a name should not hang over either. Words are wider than tall.
static double depth(const struct plot_map *p, int i, int j) {
    double least = fmin(2 * fmin(i, p->bits_count - 1 - i) + 1, 2.5 * (fmin(j, p->parameters_count - 1 - j) + 1));
    for (int b = 0; b < p->parameters_count; b++)
        for (int a = 0; a < p->bits_count; a++)
            if (cell(p, a, b) != cell(p, i, j)) least = fmin(least, hypot(a - i, 2.5 * (b - j)));
    return least;
}

// The deepest cell of an area; of several of one row that are as deep the middle one. False where none is deep enough for a name.
static bool find_place(const struct plot_map *p, int name, int *x, int *y) {
    int cells = p->bits_count * p->parameters_count, *deepest = memory_zeros((size_t)cells + 1, sizeof *deepest), count = 0;
    double most = NARROW;
    for (int k = 0; k < cells; k++) {
        int i = k % p->bits_count, j = k / p->bits_count;
        double here = cell(p, i, j) == name ? depth(p, i, j) : 0;
        if (here > most) most = here, count = 0;
        if (here == most && (!count || j == deepest[0] / p->bits_count)) deepest[count++] = k;
    }
    *x = deepest[count / 2] % p->bits_count, *y = deepest[count / 2] / p->bits_count;
    free(deepest);
    return count > 0;
}

static void put_names(FILE *data, const struct plot_map *p) {
    fputs("0\t0\t\" \"\n", data);
    for (int name = 0, x, y; name < p->name_count; name++) {
        if (!find_place(p, name, &x, &y)) continue;
        fprintf(data, "%.9g\t%.9g\t", p->bits[x], p->parameters[y]);
        figure_put_quoted(data, p->names[name], LABEL_WIDTH);
        fputc('\n', data);
    }
    fputs("\n\n", data);
}

static void put_marks(struct plot_draft *d, const struct plot_map *p) {
    int used = 0;
    fputs("0\t0\t\" \"\n", d->data);
    for (int i = 0; i < p->mark_count && used < MARKS; i++) {
        const struct plot_map_mark *m = &p->marks[i];
        if (!(m->bits > 0 && m->parameters > 0)) continue;
        fprintf(d->data, "%.9g\t%.9g\t", m->bits, m->parameters);
        figure_put_quoted(d->data, m->name, LABEL_WIDTH);
        fputc('\n', d->data);
        used++;
    }
    figure_note(&d->figure, p->mark_count - used, "measured points are left out");
    fprintf(d->head, "marks = %d\n", used);
}

static int put_curves(struct plot_draft *d, const struct plot_map *p) {
    int used = p->curve_count < CURVES ? p->curve_count : CURVES;
    for (int k = 0; k < used; k++) {
        fputs("\n\n", d->data);
        figure_put_quoted(d->data, p->curves[k].name, 2 * LABEL_WIDTH);
        fputs("\n0\t0\n", d->data);
        for (int i = 0; i < p->curves[k].count; i++) fprintf(d->data, "%.9g\t%.9g\n", p->curves[k].bits[i], p->curves[k].parameters[i]);
    }
    fprintf(d->head, "curves = %d\n", used);
    return used;
}

// Which names have a cell, for the key.
static int put_used(FILE *head, const struct plot_map *p, int names) {
    int used = 0;
    fprintf(head, "names = %d\narray used[%d]\n", names, names + !names);
    for (int name = 0; name < names; name++) {
        bool there = false;
        for (int i = 0; i < p->bits_count * p->parameters_count; i++) there |= p->best[i] == name;
        fprintf(head, "used[%d] = %d\n", name + 1, there);
        used += there;
    }
    return used;
}

static bool any_close(const struct plot_map *p) {
    for (int i = 0; p->close && i < p->bits_count * p->parameters_count; i++)
        if (p->close[i]) return true;
    return false;
}

bool plot_map(const struct plot_map *p, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct plot_draft d;
    struct plot_about about = p->about;
    if (!about.interval) about.interval = ""; // there are no bars
    int names = p->name_count < PLOT_SERIES ? p->name_count : PLOT_SERIES;
    plot_begin(&d);
    bool grid = ascends(p->bits, p->bits_count) && ascends(p->parameters, p->parameters_count);
    struct plot_range x = {1, 10, true}, y = x;
    if (grid) {
        x = (struct plot_range){edge(p->bits, p->bits_count, 0), edge(p->bits, p->bits_count, p->bits_count), true};
        y = (struct plot_range){edge(p->parameters, p->parameters_count, 0), edge(p->parameters, p->parameters_count, p->parameters_count), true};
        for (int name = 0; name < names; name++) {
            figure_put_quoted(d.data, p->names[name], LABEL_WIDTH);
            fputc('\n', d.data);
            put_rectangles(d.data, p, name, false);
        }
        put_rectangles(d.data, p, -1, true);
        put_names(d.data, p);
    } else {
        snprintf(d.why, sizeof d.why, "no data: the grid of bandwidths and model sizes is empty or does not ascend");
    }
    put_marks(&d, p);
    int curves = put_curves(&d, p), used = grid ? put_used(d.head, p, names) : 0, close = any_close(p);
    fprintf(d.head, "close = %d\n", close);
    plot_put_axis(d.head, "x", &x, PLOT_BITS_PER_SECOND);
    plot_put_axis(d.head, "y", &y, PLOT_COUNT);
    plot_layout(&d, &about, PLOT_LEFT_PX, PLOT_WIDE_PX, MAP_TALL_PX, used + curves + (p->mark_count > 0) + close);
    return plot_end(&d, &about, crossover_gp, folder, why, error);
}
