// Plots of marks: memory against throughput, implementations side by side, A against B. See plots.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/plot_draw.h"
#include "harness/report/text.h"
#include "results.h"

enum { LABEL_WIDTH = 44, PLACES = 4, MARK_PX = 7, TEXT_PX = 15 };

static int least(int a, int b) { return a < b ? a : b; }

// ---- memory against throughput ----
// Where the label of a mark may stand: right, left, above, below.
struct box { double x, y, wide, tall; };
static struct box box_at(double x, double y, int place, int letters) {
    double wide = FIGURE_LETTER_PX * letters, half = TEXT_PX / 2.0;
    switch (place) {
    case 0: return (struct box){x + MARK_PX + 2, y - half, wide, TEXT_PX};
    case 1: return (struct box){x - MARK_PX - 2 - wide, y - half, wide, TEXT_PX};
    case 2: return (struct box){x - wide / 2, y - MARK_PX - TEXT_PX, wide, TEXT_PX};
    default: return (struct box){x - wide / 2, y + MARK_PX, wide, TEXT_PX};
    }
}

static double overlap(const struct box *a, const struct box *b) {
    double x = fmin(a->x + a->wide, b->x + b->wide) - fmax(a->x, b->x), y = fmin(a->y + a->tall, b->y + b->tall) - fmax(a->y, b->y);
    return x > 0 && y > 0 ? x * y : 0;
}

struct placing { int count, used; struct box *marks, *bars, *labels; };

// The place that hides (by a square pixel at least) least of the marks, of the labels before it, and of itself beyond the plot's edges.
static int choose_place(struct placing *p, int at, int letters) {
    static const struct box plot = {0, -10, PLOT_WIDE_PX + 30, PLOT_TALL_PX + 10};
    int best = 0;
    double least_hidden = INFINITY;
    for (int place = 0; place < PLACES; place++) {
        double x = p->marks[at].x + MARK_PX / 2.0, y = p->marks[at].y + MARK_PX / 2.0;
        struct box b = box_at(x, y, place, letters);
        double hidden = b.wide * b.tall - overlap(&b, &plot);
        for (int i = 0; i < p->count; i++) hidden += overlap(&b, &p->marks[i]) + 4 * overlap(&b, &p->bars[i]);
        for (int i = 0; i < p->used; i++) hidden += overlap(&b, &p->labels[i]);
        if (hidden < least_hidden - 1) best = place, least_hidden = hidden, p->labels[p->used] = b;
    }
    p->used++;
    return best;
}

static bool is_trade(const struct plot_trade *p, const struct plot_trade_point *q) {
    return q->series >= 0 && q->series < least(p->series_count, PLOT_SERIES) && isfinite(q->peak_bytes) && isfinite(q->tokens.value);
}

static void put_label(FILE *data, const struct plot_trade_point *q, int place) {
    fprintf(data, "%.9g\t%.9g\t%d\t", q->peak_bytes, q->tokens.value, place);
    figure_put_quoted(data, q->label, LABEL_WIDTH);
    fputc('\n', data);
}

static void put_labels(FILE *data, const struct plot_trade *p, const struct plot_range *x, const struct plot_range *y) {
    size_t boxes = (size_t)p->count + 1;
    struct placing placing = {.marks = memory_zeros(boxes, sizeof(struct box)), .bars = memory_zeros(boxes, sizeof(struct box)), .labels = memory_zeros(boxes, sizeof(struct box))};
    for (int i = 0; i < p->count; i++) {
        const struct plot_trade_point *q = &p->points[i];
        if (!is_trade(p, q)) continue;
        double right = (q->peak_bytes - x->low) / (x->high - x->low) * PLOT_WIDE_PX, down = (y->high - q->tokens.value) / (y->high - y->low) * PLOT_TALL_PX;
        double bar = isfinite(q->tokens.high) ? (q->tokens.high - q->tokens.value) / (y->high - y->low) * PLOT_TALL_PX : 0;
        placing.bars[placing.count] = (struct box){right - 1, down - bar, 2, 2 * bar};
        placing.marks[placing.count++] = (struct box){right - MARK_PX / 2.0, down - MARK_PX / 2.0, MARK_PX, MARK_PX};
    }
    for (int i = 0, at = 0; i < p->count; i++)
        if (is_trade(p, &p->points[i])) put_label(data, &p->points[i], choose_place(&placing, at, text_width(p->points[i].label))), at++;
    free(placing.marks);
    free(placing.bars);
    free(placing.labels);
}

bool plot_trade(const struct plot_trade *p, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct plot_draft d;
    struct plot_range x = plot_range_none, y = plot_range_none;
    int series = least(p->series_count, PLOT_SERIES), drawn = 0;
    plot_begin(&d);
    for (int s = 0; s < series; s++) {
        figure_put_quoted(d.data, p->series[s], LABEL_WIDTH);
        fputs("\n-9\t-9\t-9\t-9\n", d.data);
        for (int i = 0; i < p->count; i++) {
            const struct plot_trade_point *q = &p->points[i];
            if (q->series != s || !is_trade(p, q)) continue;
            bool bar = isfinite(q->tokens.low) && isfinite(q->tokens.high);
            fprintf(d.data, "%.9g\t%.9g\t%.9g\t%.9g\n", q->peak_bytes, q->tokens.value, bar ? q->tokens.low : q->tokens.value, bar ? q->tokens.high : q->tokens.value);
            plot_range_add(&x, q->peak_bytes);
            plot_range_add(&y, q->tokens.value);
            plot_range_add(&y, bar ? q->tokens.high : NAN);
            drawn++;
        }
        fputs("\n\n", d.data);
    }
    figure_note(&d.figure, p->count - drawn, "configurations without memory or throughput are left out");
    if (!drawn) snprintf(d.why, sizeof d.why, "no data: no configuration has both its memory and its throughput");
    plot_range_widen(&x, 0.15, true);
    plot_range_widen(&y, 0.1, true);
    put_labels(d.data, p, &x, &y);
    plot_put_axis(d.head, "x", &x, PLOT_BYTES);
    plot_put_axis(d.head, "y", &y, PLOT_COUNT);
    fprintf(d.head, "series = %d\nmark = %d\n", series, MARK_PX);
    plot_layout(&d, &p->about, PLOT_LEFT_PX, PLOT_WIDE_PX, PLOT_TALL_PX, series);
    return plot_end(&d, &p->about, tradeoff_gp, folder, why, error);
}

// ---- rows ----
static void put_rows(FILE *data, int count, const char *const *rows, int *widest) {
    for (int i = 0; i < count; i++) {
        fprintf(data, "%d\t", i + 1);
        figure_put_quoted(data, rows[i], LABEL_WIDTH);
        fputc('\n', data);
        int width = least(text_width(rows[i]), LABEL_WIDTH);
        if (width > *widest) *widest = width;
    }
}

static bool is_cell(const struct interval *i) { return i->count > 0 && isfinite(i->value) && i->value > 0; }

// Twenty times between the smallest and the largest: no length from 0 would show the small ones.
static void choose_axis(struct plot_range *x) {
    x->logarithmic = x->low > 0 && x->high / x->low > 20;
    plot_range_widen(x, 0.06, true);
}

bool plot_implementations(const struct plot_implementations *p, const char *folder, char why[PLOT_WHY], struct error *error) {
    struct plot_draft d;
    struct plot_range x = plot_range_none;
    int rows = least(p->row_count, PLOT_ROWS), series = least(p->series_count, PLOT_SERIES), widest = 8, drawn = 0;
    plot_begin(&d);
    put_rows(d.data, rows, p->rows, &widest);
    for (int s = 0; s < series; s++) {
        fputs("\n\n", d.data);
        figure_put_quoted(d.data, p->series[s], LABEL_WIDTH);
        fputs("\n-9\t-9\t-9\t-9\n", d.data);
        for (int row = 0; row < rows; row++) {
            const struct interval *i = &p->cells[row * p->series_count + s];
            if (!is_cell(i)) continue;
            bool bar = i->low > 0 && isfinite(i->high);
            fprintf(d.data, "%d\t%.9g\t%.9g\t%.9g\n", row + 1, i->value, bar ? i->low : i->value, bar ? i->high : i->value);
            plot_range_add(&x, bar ? i->low : i->value);
            plot_range_add(&x, bar ? i->high : i->value);
            drawn++;
        }
    }
    figure_note(&d.figure, p->row_count - rows, "rows are left out");
    figure_note(&d.figure, p->series_count - series, "implementations are left out");
    figure_note(&d.figure, rows * series - drawn, "cells have no figure: not measured, or not supported");
    if (!drawn) snprintf(d.why, sizeof d.why, "no data: no implementation was measured");
    choose_axis(&x);
    plot_put_axis(d.head, "x", &x, PLOT_COUNT);
    char *label = memory_format("%s (%s is better)", p->unit, p->less ? "less" : "more");
    plot_put_text(d.head, "unit", label);
    free(label);
    fprintf(d.head, "series = %d\nrows = %d\nlow_x = %.12g\n", series, rows, x.low);
    plot_layout(&d, &p->about, FIGURE_LETTER_PX * widest + 40, PLOT_WIDE_PX, FIGURE_ROW_PX * (rows > 3 ? rows : 3) * (series > 4 ? 2 : 1), series);
    return plot_end(&d, &p->about, implementations_gp, folder, why, error);
}

// ---- A against B ----
enum kind { BETTER, WORSE, UNDECIDED, KINDS };
static enum kind kind_of(const char *word) {
    if (!strcmp(word, "faster") || !strcmp(word, "less")) return BETTER;
    return !strcmp(word, "slower") || !strcmp(word, "more") ? WORSE : UNDECIDED;
}

static void put_ab_rows(struct plot_draft *d, const struct plot_ab *p, int rows, int kind, struct plot_range *x, int *drawn) {
    fputs("\n\n-9\t-9\t-9\t-9\t\" \"\n", d->data);
    for (int i = 0; i < rows; i++) {
        const struct plot_ab_row *r = &p->rows[i];
        if (!is_cell(&r->ratio) || (int)kind_of(r->word) != kind) continue;
        bool bar = r->ratio.low > 0 && isfinite(r->ratio.high);
        fprintf(d->data, "%d\t%.9g\t%.9g\t%.9g\t", i + 1, r->ratio.value, bar ? r->ratio.low : r->ratio.value, bar ? r->ratio.high : r->ratio.value);
        char *words = memory_format("%.3f %s", r->ratio.value, r->word);
        figure_put_quoted(d->data, words, LABEL_WIDTH);
        fputc('\n', d->data);
        free(words);
        plot_range_add(x, bar ? r->ratio.low : r->ratio.value);
        plot_range_add(x, bar ? r->ratio.high : r->ratio.value);
        ++*drawn;
    }
}

bool plot_ab(const struct plot_ab *p, const char *folder, char why[PLOT_WHY], struct error *error) {
    enum { WORDS_PX = 220 };
    struct plot_draft d;
    struct plot_range x = {1, 1, true};
    int rows = least(p->count, PLOT_ROWS), widest = 8, drawn = 0;
    const char **names = memory_zeros((size_t)rows + 1, sizeof *names);
    plot_begin(&d);
    for (int i = 0; i < rows; i++) names[i] = p->rows[i].name;
    put_rows(d.data, rows, names, &widest);
    for (int kind = 0; kind < KINDS; kind++) put_ab_rows(&d, p, rows, kind, &x, &drawn);
    free(names);
    figure_note(&d.figure, p->count - rows, "rows are left out");
    figure_note(&d.figure, rows - drawn, "rows have no ratio");
    if (!drawn) snprintf(d.why, sizeof d.why, "no data: the runs have nothing in common that was measured");
    if (p->threshold > 0) plot_range_add(&x, 1 + p->threshold);
    plot_range_widen(&x, 0.08, false);
    plot_put_axis(d.head, "x", &x, PLOT_RATIO);
    char *label = memory_format("ratio: %s / %s", p->b, p->a);
    plot_put_text(d.head, "unit", label);
    free(label);
    fprintf(d.head, "low_x = %.12g\nhigh_x = %.12g\nrows = %d\nthreshold = %.9g\nwords = %d\n", x.low, x.high, rows, p->threshold > 0 ? 1 + p->threshold : 0, WORDS_PX);
    plot_layout(&d, &p->about, FIGURE_LETTER_PX * widest + 40, PLOT_WIDE_PX + WORDS_PX, FIGURE_ROW_PX * (rows > 3 ? rows : 3), 3);
    return plot_end(&d, &p->about, ab_gp, folder, why, error);
}
