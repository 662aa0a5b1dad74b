// What the figures show. Each gathers its data from the view, writes them as blocks of a data file, and puts the
// numbers that its script needs in front of it. Names from data go into data files only, never into a script.
//
// A figure over its bound makes different checks comparable: 1 is at the bound. Exact checks have bound 0 and
// cannot be drawn so; they are in the verdict matrix. What is not finite is drawn at the edge, not dropped.
#include "harness/report/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/text.h"
#include "results.h"

enum { MOST_SERIES = 8, MOST_ROWS = 32, MOST_FAMILIES = 64, MOST_COLUMNS = 10, LABEL_WIDTH = 44, TITLE_WIDTH = 50 };

// ---- ratios: worst of each (series, x), both by name ----
struct grid { struct names series, xs; double *worst; int width; int outside; };

static double *grid_at(const struct grid *g, int series, int x) { return &g->worst[(size_t)series * (size_t)g->width + (size_t)x]; }

// figure / bound; infinity where the figure is not finite; NaN where there is nothing to draw.
static double ratio(double figure, double bound) {
    if (!judge_finite(bound) || bound <= 0) return NAN;
    return judge_finite(figure) ? fabs(figure) / bound : INFINITY;
}

static double number(json_t *value) {
    return json_is_number(value) ? json_number_value(value) : json_is_string(value) ? INFINITY : NAN; // "nan", "inf"
}

struct point { const struct stored_case *c; const char *check, *tensor; double ratio; };
// Every ratio of a run: those by tensor, and those of results (tensor NULL).
static int collect(const struct view *v, struct point **out) {
    int count = 0;
    *out = NULL;
    for (int i = 0; i < v->case_count; i++) {
        const struct view_case *k = &v->cases[i];
        size_t at;
        json_t *f;
        struct point p;
        for (int j = 0; j < k->row_count; j++) {
            p = (struct point){k->c, k->rows[j].r->check, NULL, ratio(k->rows[j].r->figure, k->rows[j].r->bound)};
            if (isnan(p.ratio)) continue;
            *out = memory_grow(*out, (size_t)count, sizeof p);
            (*out)[count++] = p;
        }
        json_array_foreach(k->c->figures, at, f) {
            const char *check = json_string_value(json_object_get(f, "check")), *tensor = json_string_value(json_object_get(f, "tensor"));
            json_t *figure = json_object_get(f, "figure"), *bound = json_object_get(f, "bound");
            p = (struct point){k->c, check, tensor, ratio(number(figure), json_is_number(bound) ? json_number_value(bound) : NAN)};
            if (!check || !tensor || isnan(p.ratio)) continue;
            *out = memory_grow(*out, (size_t)count, sizeof p);
            (*out)[count++] = p;
        }
    }
    return count;
}

static const char *series_name(const struct view *v, const struct stored_case *c, const char *what, char *buffer, size_t size) {
    if (v->implementations.count > 1) snprintf(buffer, size, "%s: %s", c->implementation, what);
    else snprintf(buffer, size, "%s", what);
    return buffer;
}

static void by_tensor(const struct view *v, const struct point *p, char *series, char *x, size_t size) {
    series_name(v, p->c, p->check, series, size);
    snprintf(x, size, "%s", p->tensor);
}
static void by_ranks(const struct view *v, const struct point *p, char *series, char *x, size_t size) {
    series_name(v, p->c, p->c->strategy, series, size);
    snprintf(x, size, "%d", p->c->world_size);
}

typedef void place_function(const struct view *v, const struct point *p, char *series, char *x, size_t size);
static void grid_make(const struct view *v, bool tensors, place_function *place, struct grid *g) {
    struct point *points;
    char series[512], x[512];
    int count = collect(v, &points);
    *g = (struct grid){0};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < count; i++) {
            if (tensors && !points[i].tensor) continue;
            place(v, &points[i], series, x, sizeof x);
            int s = names_add(&g->series, series), column = names_add(&g->xs, x);
            if (!pass) continue;
            double *worst = grid_at(g, s, column);
            if (isnan(*worst) || points[i].ratio > *worst) *worst = points[i].ratio;
        }
        if (pass) break;
        g->width = g->xs.count;
        size_t cells = (size_t)g->series.count * (size_t)g->width;
        g->worst = memory_zeros(cells + 1, sizeof *g->worst);
        for (size_t i = 0; i < cells; i++) g->worst[i] = NAN;
    }
    free(points);
}

static void grid_free(struct grid *g) {
    names_free(&g->series);
    names_free(&g->xs);
    free(g->worst);
}

// Places 0..count-1 ordered by key, largest first; equal keys keep their order.
static int *order_by(const double *keys, int count) {
    int *order = memory_zeros((size_t)count + 1, sizeof *order);
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at && keys[order[at - 1]] < keys[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

static int *order_series(const struct grid *g) {
    double *keys = memory_zeros((size_t)g->series.count + 1, sizeof *keys);
    for (int s = 0; s < g->series.count; s++)
        for (int x = 0; x < g->width; x++) keys[s] = fmax(keys[s], *grid_at(g, s, x));
    int *order = order_by(keys, g->series.count);
    free(keys);
    return order;
}

static int *order_tensors(const struct grid *g) {
    double *keys = memory_zeros((size_t)g->width + 1, sizeof *keys);
    for (int x = 0; x < g->width; x++)
        for (int s = 0; s < g->series.count; s++) keys[x] = fmax(keys[x], *grid_at(g, s, x));
    int *order = order_by(keys, g->width);
    free(keys);
    return order;
}

static int *order_ranks(const struct grid *g) {
    double *keys = memory_zeros((size_t)g->width + 1, sizeof *keys);
    for (int x = 0; x < g->width; x++) keys[x] = -atof(g->xs.items[x]);
    int *order = order_by(keys, g->width);
    free(keys);
    return order;
}

// The decades that hold the data and the bound, at most six either side of it; counts what lies outside.
static void axis(struct grid *g, double *low, double *high) {
    *low = 0.1;
    *high = 10;
    for (int i = 0; i < g->series.count * g->width; i++) {
        double w = g->worst[i];
        if (isnan(w) || isinf(w) || w <= 0) continue;
        *low = fmax(1e-6, fmin(*low, pow(10, floor(log10(w)))));
        *high = fmin(1e6, fmax(*high, pow(10, ceil(log10(w)))));
    }
    for (int i = 0; i < g->series.count * g->width; i++) g->outside += g->worst[i] < *low || g->worst[i] > *high;
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static void put_quoted(FILE *out, const char *s, int width) {
    char *label = text_shorten(TEXT_GNUPLOT, s, width);
    fprintf(out, "\"%s\"", *label ? label : " ");
    free(label);
}

static void note_left_out(char note[256], int count, const char *what, int outside) {
    size_t used = strlen(note);
    if (count > 0) used += (size_t)snprintf(note + used, 256 - used, "%s%d %s left out", used ? ", " : "", count, what);
    if (outside > 0) snprintf(note + used, 256 - used, "%s%d beyond the axis or not finite drawn at its edge", used ? ", " : "", outside);
}

static int least(int a, int b) { return a < b ? a : b; }

static bool is_empty(const struct grid *g, struct figure *f, const char *what) {
    if (g->series.count) return false;
    snprintf(f->why, sizeof f->why, "no data: %s", what);
    return true;
}

static void write_ratio(const struct view *v, FILE *data, FILE *head, struct figure *f) {
    struct grid g;
    double low, high;
    grid_make(v, true, by_tensor, &g);
    if (!is_empty(&g, f, "no check of this run recorded figures by tensor with a bound above 0")) {
        axis(&g, &low, &high);
        int *series = order_series(&g), *tensors = order_tensors(&g);
        int rows = least(g.width, MOST_ROWS), lines = least(g.series.count, MOST_SERIES);
        for (int r = 0; r < rows; r++) {
            fprintf(data, "%d\t", r + 1);
            put_quoted(data, g.xs.items[tensors[r]], LABEL_WIDTH);
            fputc('\n', data);
        }
        for (int s = 0; s < lines; s++) {
            fputs("\n\n", data);
            put_quoted(data, g.series.items[series[s]], TITLE_WIDTH);
            fputc('\n', data);
            for (int r = 0; r < rows; r++) {
                double w = *grid_at(&g, series[s], tensors[r]);
                if (!isnan(w)) fprintf(data, "%.9g\t%d\n", clamp(w, low, high), r + 1);
            }
        }
        note_left_out(f->note, g.width - rows, "tensors with smaller ratios", 0);
        note_left_out(f->note, g.series.count - lines, "series with smaller ratios", g.outside);
        fprintf(head, "width = 860\nheight = %d\nrows = %d\nseries = %d\nlow = %g\nhigh = %g\n", 170 + 19 * rows + 19 * lines, rows,
                lines, low, high);
        free(series);
        free(tensors);
    }
    grid_free(&g);
}

static void write_ranks(const struct view *v, FILE *data, FILE *head, struct figure *f) {
    struct grid g;
    double low, high;
    grid_make(v, false, by_ranks, &g);
    if (!is_empty(&g, f, "no result of this run has a bound above 0 (exact checks compare bits)")) {
        axis(&g, &low, &high);
        int *series = order_series(&g), *ranks = order_ranks(&g);
        int lines = least(g.series.count, MOST_SERIES);
        for (int s = 0; s < lines; s++) {
            if (s) fputs("\n\n", data);
            put_quoted(data, g.series.items[series[s]], TITLE_WIDTH);
            fputc('\n', data);
            for (int x = 0; x < g.width; x++) {
                double w = *grid_at(&g, series[s], ranks[x]);
                if (!isnan(w)) fprintf(data, "%s\t%.9g\n", g.xs.items[ranks[x]], clamp(w, low, high));
            }
        }
        note_left_out(f->note, g.series.count - lines, "series with smaller ratios", g.outside);
        fprintf(head, "width = 860\nheight = %d\nseries = %d\nlow = %g\nhigh = %g\nfirst = %s\nlast = %s\nranks = '", 460 + 19 * lines,
                lines, low, high, g.xs.items[ranks[0]], g.xs.items[ranks[g.width - 1]]);
        for (int x = 0; x < g.width; x++) fprintf(head, "%s ", g.xs.items[ranks[x]]);
        fputs("'\n", head);
        free(series);
        free(ranks);
    }
    grid_free(&g);
}

// ---- verdicts ----
static int *order_families(const struct view *v) {
    double *keys = memory_zeros((size_t)v->families.count + 1, sizeof *keys);
    for (int i = 0; i < v->group_count; i++) {
        int family = names_find(&v->families, v->groups[i].family);
        keys[family] = fmax(keys[family], verdict_severity(v->groups[i].verdict));
    }
    int *order = order_by(keys, v->families.count);
    free(keys);
    return order;
}

static void put_cell(FILE *data, const struct view_group *g, int column, int row) {
    int worst = g->tally.of[g->verdict];
    fprintf(data, "%d\t%d\t\"%s %d", column, row, verdict_name(g->verdict), worst);
    if (worst < g->case_count) fprintf(data, " of %d", g->case_count);
    fputs("\"\n", data);
}

// A block of names with their places; a block is never empty, its first point lies outside the picture.
static void put_names(FILE *data, const struct names *names, const int *order, int count, int width) {
    fputs("-9\t\" \"\n", data);
    for (int i = 0; i < count; i++) {
        fprintf(data, "%d\t", i + 1);
        put_quoted(data, names->items[order ? order[i] : i], width);
        fputc('\n', data);
    }
    fputs("\n\n", data);
}

static void write_verdicts(const struct view *v, FILE *data, FILE *head, struct figure *f) {
    int *families = order_families(v);
    int rows = least(v->families.count, MOST_FAMILIES), columns = least(v->implementations.count, MOST_COLUMNS), slant = 0;
    if (!columns) snprintf(f->why, sizeof f->why, "no data: the run judged no implementation");
    put_names(data, &v->families, families, rows, LABEL_WIDTH);
    put_names(data, &v->implementations, NULL, columns, 30);
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        fputs("-9\t-9\t\" \"\n", data);
        for (int i = 0; i < v->group_count; i++) {
            const struct view_group *g = &v->groups[i];
            int row = 0, column = names_find(&v->implementations, g->implementation);
            while (row < rows && strcmp(v->families.items[families[row]], g->family)) row++;
            if ((int)g->verdict == verdict && row < rows && column >= 0 && column < columns) put_cell(data, g, column + 1, row + 1);
        }
        fputs("\n\n", data);
    }
    for (int i = 0; i < columns; i++) slant |= text_width(v->implementations.items[i]) > 17;
    note_left_out(f->note, v->families.count - rows, "families with no worse verdict", 0);
    note_left_out(f->note, v->implementations.count - columns, "implementations", 0);
    int width = 380 + 135 * columns < 760 ? 760 : 380 + 135 * columns; // the title and the key need room
    fprintf(head, "width = %d\nheight = %d\nrows = %d\ncolumns = %d\nslant = %d\n", width, 150 + 100 * slant + 24 * rows, rows,
            columns, slant);
    free(families);
}

// ---- files ----
static const struct { const char *name, *title, *caption, *script; void (*write)(const struct view *, FILE *, FILE *, struct figure *); }
kinds[FIGURES] = {
    {"verdicts", "Verdicts by family", "The worst verdict of each implementation in each family of cases, and how many of its cases have it.",
     verdicts_gp, write_verdicts},
    {"ratio", "Figure over bound, by tensor and check", "The worst of all cases; right of the line is a FAIL. Exact checks, whose bound is 0, are "
     "not drawn.", ratio_gp, write_ratio},
    {"ranks", "Figure over bound against ranks", "The worst of the cases of each implementation and strategy at each number of ranks.", ranks_gp,
     write_ranks},
};

static bool write_file(const char *folder, const char *name, const char *extension, const char *head, const char *body, struct error *error) {
    char *path = memory_format("%s/%s%s", folder, name, extension);
    FILE *out = fopen(path, "w");
    bool ok = out && fputs(head, out) >= 0 && fputs(body, out) >= 0;
    if (out && fclose(out)) ok = false;
    if (!ok) error_set(error, "%s: cannot write: %s", path, strerror(errno));
    free(path);
    return ok;
}

static void draw(const char *folder, struct figure *f) {
    char *script = memory_format("%s.gp", f->name);
    for (int i = 0; i < 2; i++) {
        static const char *const formats[] = {"svg", "png"};
        char *picture = memory_format("%s/%s.%s", folder, f->name, formats[i]);
        if (*f->why || !gnuplot_run(folder, script, formats[i], f->why)) remove(picture); // of an earlier report, or half drawn
        free(picture);
    }
    free(script);
}

static bool make_one(const struct view *v, const char *folder, int kind, struct figure *f, struct error *error) {
    char *data_text = NULL, *head_text = NULL;
    size_t data_bytes, head_bytes;
    FILE *data = open_memstream(&data_text, &data_bytes), *head = open_memstream(&head_text, &head_bytes);
    if (!data || !head) return error_set(error, "%s: out of memory", folder);
    *f = (struct figure){.name = kinds[kind].name, .title = kinds[kind].title, .caption = kinds[kind].caption};
    fprintf(head, "name = '%s'\n", f->name);
    kinds[kind].write(v, data, head, f);
    fprintf(head, "heading = '%s'\nnote = '%s'\n", f->title, f->note);
    fclose(data);
    fclose(head);
    bool ok = *f->why || (write_file(folder, f->name, ".dat", "", data_text, error) &&
                          write_file(folder, f->name, ".gp", head_text, kinds[kind].script, error));
    if (ok && !*f->why) draw(folder, f);
    free(data_text);
    free(head_text);
    return ok;
}

bool figures_make(const struct view *v, const char *folder, struct figure out[FIGURES], struct error *error) {
    if (!write_file(folder, "style", ".gp", "", style_gp, error)) return false;
    for (int i = 0; i < FIGURES; i++)
        if (!make_one(v, folder, i, &out[i], error)) return false;
    return true;
}
