// Reduces the figures of a run to the cells of a picture: gather points, sort them so that the points of a cell are
// neighbours, take the last and the middle one, then choose which series and rows have room. See ratios.h.
#include "harness/report/ratios.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

enum { PANEL, SERIES, ROW, AXES };
struct point { int at[AXES]; double ratio; };
struct points { struct point *items; int count; };

// figure / bound; infinity where the figure is not finite; NaN where there is nothing to draw.
static double ratio(double figure, double bound) {
    if (!judge_finite(bound) || bound <= 0) return NAN;
    return judge_finite(figure) ? fabs(figure) / bound : INFINITY;
}

static double number(json_t *value) {
    return json_is_number(value) ? json_number_value(value) : json_is_string(value) ? INFINITY : NAN; // "nan", "inf"
}

static void add(struct ratios *r, struct points *p, const char *panel, const char *series, const char *row, double x) {
    if (isnan(x)) return;
    p->items = memory_grow(p->items, (size_t)p->count, sizeof *p->items);
    p->items[p->count++] = (struct point){
        {names_add(&r->names[PANEL], panel), names_add(&r->names[SERIES], series), names_add(&r->names[ROW], row)}, x};
}

// The parameter that a tensor of state belongs to.
static const char *parameter_of(const char *tensor) {
    static const char *const kinds[] = {"param/", "grad/", "exp_avg/", "exp_avg_sq/", "momentum/"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(tensor, kinds[i], strlen(kinds[i]))) return tensor + strlen(kinds[i]);
    return tensor;
}

static void gather_tensors(const struct stored_case *c, struct ratios *r, struct points *p) {
    size_t at;
    json_t *f;
    json_array_foreach(c->figures, at, f) {
        const char *check = json_string_value(json_object_get(f, "check")), *tensor = json_string_value(json_object_get(f, "tensor"));
        json_t *figure = json_object_get(f, "figure"), *bound = json_object_get(f, "bound");
        if (check && tensor && json_is_number(bound))
            add(r, p, c->implementation, check, parameter_of(tensor), ratio(number(figure), json_number_value(bound)));
    }
}

static void gather_ranks(const struct stored_case *c, struct ratios *r, struct points *p) {
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", c->world_size);
    if (strcmp(c->layer, "calibrated")) return;
    for (int i = 0; i < c->result_count; i++)
        add(r, p, c->implementation, c->strategy, ranks, ratio(c->results[i].figure, c->results[i].bound));
}

// ---- cells ----
static int compare(const void *a, const void *b) {
    const struct point *x = a, *y = b;
    for (int i = 0; i < AXES; i++)
        if (x->at[i] != y->at[i]) return x->at[i] < y->at[i] ? -1 : 1;
    return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

static void reduce(struct points *p, struct ratios *r) {
    if (p->count) qsort(p->items, (size_t)p->count, sizeof *p->items, compare);
    r->cells = memory_zeros((size_t)p->count + 1, sizeof *r->cells);
    for (int i = 0, end; i < p->count; i = end) {
        const struct point *first = &p->items[i];
        for (end = i + 1; end < p->count && !memcmp(first->at, p->items[end].at, sizeof first->at); end++) {}
        double worst = p->items[end - 1].ratio, median = p->items[i + (end - 1 - i) / 2].ratio;
        if (worst < RATIO_LOWEST) r->unplaced++;
        else r->cells[r->cell_count++] = (struct ratio_cell){first->at[PANEL], first->at[SERIES], first->at[ROW], worst, median};
    }
}

// ---- what has room ----
static int *member(struct ratio_cell *c, int axis) { return axis == PANEL ? &c->panel : axis == SERIES ? &c->series : &c->row; }

// The worst ratio of each place of an axis, 0 where it has no cell.
static double *worst_of(struct ratios *r, int axis) {
    double *worst = memory_zeros((size_t)r->names[axis].count + 1, sizeof *worst);
    for (int i = 0; i < r->cell_count; i++) {
        double *w = &worst[*member(&r->cells[i], axis)];
        *w = fmax(*w, r->cells[i].worst);
    }
    return worst;
}

// Places by key, largest first; equal keys keep their order.
static int *order_by(const double *keys, int count) {
    int *order = memory_zeros((size_t)count + 1, sizeof *order);
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at && keys[order[at - 1]] < keys[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

// Renumbers an axis: the places in `order` that are wanted get the next number, the cells of all others are dropped.
static int renumber(struct ratios *r, int axis, const int *order, const bool *wanted, const char ***names) {
    int places = r->names[axis].count, kept = 0, cells = 0;
    int *number_of = memory_zeros((size_t)places + 1, sizeof *number_of);
    *names = memory_zeros((size_t)places + 1, sizeof **names);
    for (int i = 0; i < places; i++) {
        number_of[order[i]] = wanted[order[i]] ? kept : -1;
        if (wanted[order[i]]) (*names)[kept++] = r->names[axis].items[order[i]];
    }
    for (int i = 0; i < r->cell_count; i++) {
        struct ratio_cell c = r->cells[i];
        *member(&c, axis) = number_of[*member(&c, axis)];
        if (*member(&c, axis) >= 0) r->cells[cells++] = c;
    }
    r->cell_count = cells;
    free(number_of);
    return kept;
}

// The worst row of each series first, so that none is left without; then the worst rows of all.
static void want_rows(struct ratios *r, const int *order, const double *worst, int most, bool *wanted) {
    int count = 0;
    for (int s = 0; s < r->series_count && count < most; s++) {
        const struct ratio_cell *best = NULL;
        for (int i = 0; i < r->cell_count; i++)
            if (r->cells[i].series == s && (!best || r->cells[i].worst > best->worst)) best = &r->cells[i];
        if (!best || wanted[best->row]) continue;
        wanted[best->row] = true;
        count++;
    }
    for (int i = 0; i < r->names[ROW].count && count < most; i++) {
        if (wanted[order[i]] || worst[order[i]] <= 0) continue;
        wanted[order[i]] = true;
        count++;
    }
}

// Keeps at most `most` places of an axis; returns how many, and in *left how many had no room.
static int keep(struct ratios *r, int axis, int most, bool numeric, const char ***names, int *left) {
    int places = r->names[axis].count, drawable = 0;
    double *worst = worst_of(r, axis), *keys = memory_zeros((size_t)places + 1, sizeof *keys);
    bool *wanted = memory_zeros((size_t)places + 1, sizeof *wanted);
    for (int i = 0; i < places; i++) {
        keys[i] = axis == PANEL ? -i : numeric ? -atof(r->names[axis].items[i]) : worst[i];
        drawable += worst[i] > 0;
    }
    int *order = order_by(keys, places);
    if (axis == ROW && !numeric) want_rows(r, order, worst, most, wanted);
    else
        for (int i = 0, count = 0; i < places && count < most; i++)
            if (worst[order[i]] > 0) wanted[order[i]] = ++count;
    int kept = renumber(r, axis, order, wanted, names);
    *left = drawable - kept;
    free(worst);
    free(keys);
    free(wanted);
    free(order);
    return kept;
}

static int compare_cells(const void *a, const void *b) {
    const struct ratio_cell *x = a, *y = b;
    if (x->panel != y->panel) return x->panel < y->panel ? -1 : 1;
    if (x->series != y->series) return x->series < y->series ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void find_axis(struct ratios *r) {
    r->low = 0.1;
    r->high = 10;
    for (int i = 0; i < r->cell_count; i++) {
        double w = r->cells[i].worst;
        if (isinf(w)) continue;
        r->low = fmin(r->low, pow(10, floor(log10(w))));
        r->high = fmin(RATIO_HIGHEST, fmax(r->high, pow(10, ceil(log10(w)))));
    }
    for (int i = 0; i < r->cell_count; i++) r->beyond += r->cells[i].worst > r->high;
}

typedef void gather_function(const struct stored_case *c, struct ratios *r, struct points *p);
static void make(const struct view *v, gather_function *gather, bool ranks, struct ratio_limits most, struct ratios *r) {
    struct points p = {0};
    *r = (struct ratios){0};
    for (int i = 0; i < v->case_count; i++) gather(v->cases[i].c, r, &p);
    reduce(&p, r);
    free(p.items);
    r->panel_count = keep(r, PANEL, most.panels, false, &r->panels, &r->panels_left);
    r->series_count = keep(r, SERIES, most.series, false, &r->series, &r->series_left);
    r->row_count = keep(r, ROW, most.rows, ranks, &r->rows, &r->rows_left);
    if (r->cell_count) qsort(r->cells, (size_t)r->cell_count, sizeof *r->cells, compare_cells);
    find_axis(r);
}

void ratios_by_tensor(const struct view *v, struct ratio_limits most, struct ratios *out) { make(v, gather_tensors, false, most, out); }
void ratios_by_ranks(const struct view *v, struct ratio_limits most, struct ratios *out) { make(v, gather_ranks, true, most, out); }

void ratios_free(struct ratios *r) {
    for (int i = 0; i < AXES; i++) names_free(&r->names[i]);
    free(r->panels);
    free(r->series);
    free(r->rows);
    free(r->cells);
}
