// Rows and verdicts of two runs. See compare.h.
#include "harness/report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/compare_series.h"
#include "harness/report/view.h"
#include "harness/store/verdicts.h"

const double compare_live_slack = 5e-4;

// ---- words ----
bool compare_tells(const struct compare_row *r) { return r->fault || r->counted || statistics_tells(&r->ratio); }

static const char *word_of_few(const struct compare_row *r) { return !r->ratio.count ? "no ratio" : r->starts == 1 ? "one start: no interval" : r->starts ? "too few starts" : "too few cases"; }

static const char *word_of_counts(const struct interval *ratio, double slack) {
    if (ratio->low >= 1 - slack && ratio->high <= 1 + slack) return "equal";
    return ratio->low >= 1 ? "more" : ratio->high <= 1 ? "less" : "more and less";
}

static const char *word_of_numbers(const struct interval *ratio) {
    if (ratio->low <= 1 && ratio->high >= 1) return "no difference shown";
    return ratio->low > 1 ? "more" : "less";
}

void compare_add_row(struct comparison *c, struct compare_row row) {
    row.word = row.fault ? row.fault : row.counted ? word_of_counts(&row.ratio, row.slack) : !compare_tells(&row) ? word_of_few(&row)
             : row.unit == COMPARE_SECONDS ? statistics_word(&row.ratio) : word_of_numbers(&row.ratio);
    row.worse = row.fault ? row.worse : row.unit != COMPARE_NUMBER && compare_tells(&row) && (row.counted ? row.ratio.high : row.ratio.low) > 1 + c->threshold;
    c->rows = memory_grow(c->rows, (size_t)c->row_count, sizeof *c->rows);
    c->rows[c->row_count++] = row;
}

double compare_ratio(double before, double after) { return after == before ? 1 : after / before; } // 0 of 0 is 1; something of nothing infinite

// ---- cases ----
static const struct stored_case *find_case(const struct stored_run *r, const json_t *places, const struct stored_case *like) {
    char *key = memory_format("%s\n%s", like->implementation, like->case_id);
    json_t *place = json_object_get(places, key);
    free(key);
    return place ? &r->cases[json_integer_value(place)] : NULL;
}

static json_t *places_of(const struct stored_run *r) {
    json_t *out = json_object();
    for (int i = 0; i < r->case_count; i++) {
        char *key = memory_format("%s\n%s", r->cases[i].implementation, r->cases[i].case_id);
        json_object_set_new_nocheck(out, key, json_integer(i));
        free(key);
    }
    return out;
}

// A group of cases under way: the figures of those that both runs measured.
struct group { const char *implementation, *family; int count; struct pair { double before, after; const char *case_id; } *pairs; };

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct interval spread(int count, double *values) {
    qsort(values, (size_t)count, sizeof *values, by_number);
    return (struct interval){(values[(count - 1) / 2] + values[count / 2]) / 2, values[0], values[count - 1], 1, count};
}

static void add_group(struct comparison *c, const struct group *g, enum measured_quantity q) {
    double *columns[3], worst = -INFINITY;
    struct compare_row row = {.unit = q == MEASURED_SECONDS ? COMPARE_SECONDS : COMPARE_BYTES, .counted = q != MEASURED_SECONDS, .slack = q == MEASURED_SENT ? 0 : compare_live_slack, .quantity = memory_text(measured_names[q])};
    for (int k = 0; k < 3; k++) columns[k] = memory_zeros((size_t)g->count, sizeof **columns);
    for (int i = 0; i < g->count; i++) {
        const struct pair *p = &g->pairs[i];
        columns[0][i] = p->before, columns[1][i] = p->after, columns[2][i] = compare_ratio(p->before, p->after);
        if (row.counted && columns[2][i] > worst && columns[2][i] > 1) worst = columns[2][i], row.worst_case = p->case_id;
    }
    row.before = statistics_median(g->count, columns[0]), row.after = statistics_median(g->count, columns[1]);
    row.ratio = row.counted ? spread(g->count, columns[2]) : statistics_median(g->count, columns[2]);
    row.what = memory_format("%s, %s (%d case%s)", g->implementation, g->family, g->count, g->count == 1 ? "" : "s");
    for (int k = 0; k < 3; k++) free(columns[k]);
    compare_add_row(c, row);
}

static void add_measured(struct comparison *c, const struct view *v, const json_t *places) {
    for (int g = 0; g < v->group_count; g++) {
        const struct view_group *group = &v->groups[g];
        struct group of[MEASURED_QUANTITIES];
        for (int q = 0; q < MEASURED_QUANTITIES; q++)
            of[q] = (struct group){group->implementation, group->family, 0, memory_zeros((size_t)group->case_count + 1, sizeof(struct pair))};
        for (int i = 0; i < group->case_count; i++) {
            const struct stored_case *before = group->cases[i]->c, *after = find_case(c->after, places, before);
            double a[MEASURED_QUANTITIES], b[MEASURED_QUANTITIES];
            if (!after) continue;
            measured_of(before, a);
            measured_of(after, b);
            for (int q = 0; q < MEASURED_QUANTITIES; q++)
                if (isfinite(a[q]) && isfinite(b[q])) of[q].pairs[of[q].count++] = (struct pair){a[q], b[q], before->case_id};
        }
        for (int q = 0; q < MEASURED_QUANTITIES; q++) {
            if (of[q].count) add_group(c, &of[q], (enum measured_quantity)q);
            free(of[q].pairs);
        }
    }
}

// ---- verdicts ----
static const struct stored_result *deciding(const struct stored_case *c) {
    for (int i = 0; i < c->result_count; i++)
        if (c->results[i].verdict == c->verdict && !(c->results[i].waived && !c->waived)) return &c->results[i];
    return NULL;
}

static void add_verdict(struct comparison *c, const struct stored_case *before, const struct stored_case *after) {
    if (before->verdict == after->verdict && before->waived == after->waived) return;
    bool worse = verdict_severity(after->verdict) > verdict_severity(before->verdict) || (after->verdict == before->verdict && before->waived);
    const struct stored_result *r = deciding(worse ? after : before);
    c->verdicts = memory_grow(c->verdicts, (size_t)c->verdict_count, sizeof *c->verdicts);
    c->verdicts[c->verdict_count++] = (struct compare_verdict){before->implementation, before->case_id, r ? r->check : NULL, r ? r->message : NULL,
                                                               before->verdict, after->verdict, after->waived, worse && !after->waived};
}

static void add_cases(struct comparison *c) {
    json_t *before = places_of(c->before), *after = places_of(c->after);
    struct view v;
    view_make(c->before, &v);
    add_measured(c, &v, after);
    view_free(&v);
    for (int i = 0; i < c->before->case_count; i++) {
        const struct stored_case *other = find_case(c->after, after, &c->before->cases[i]);
        c->cases_both += other != NULL;
        c->cases_before += other == NULL;
        if (other) add_verdict(c, &c->before->cases[i], other);
    }
    c->cases_after = c->after->case_count - c->cases_both;
    json_decref(before);
    json_decref(after);
}

// ---- the whole ----
static int rank_of(const struct compare_row *r) {
    bool same = !compare_tells(r) || !strcmp(r->word, "equal") || !strcmp(r->word, "no difference shown");
    return r->worse ? 0 : same ? 2 : 1;
}

static double size_of(const struct compare_row *r) { return r->ratio.value > 0 ? fabs(log(r->counted ? fmax(r->ratio.high, 1 / r->ratio.low) : r->ratio.value)) : 0; }

static int by_weight(const void *a, const void *b) {
    const struct compare_row *x = a, *y = b;
    if (rank_of(x) != rank_of(y)) return rank_of(x) - rank_of(y);
    if (rank_of(x) < 2 && size_of(x) != size_of(y)) return size_of(x) < size_of(y) ? 1 : -1;
    int order = strcmp(x->what, y->what);
    return order ? order : strcmp(x->quantity, y->quantity);
}

static int by_worse(const void *a, const void *b) {
    const struct compare_verdict *x = a, *y = b;
    if (x->worse != y->worse) return y->worse - x->worse;
    int order = strcmp(x->implementation, y->implementation);
    return order ? order : strcmp(x->case_id, y->case_id);
}

static json_t *differences(const json_t *before, const json_t *after) {
    static const char *const names[] = {"host", "cpu", "cores", "memory_bytes", "kernel", "compiler", "version", "commit", "libraries", "slurm"};
    json_t *out = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *a = json_object_get(before, names[i]), *b = json_object_get(after, names[i]);
        if ((a || b) && !(a && b && json_equal(a, b))) json_object_set_new(out, names[i], json_pack("[o, o]", a ? json_incref(a) : json_null(), b ? json_incref(b) : json_null()));
    }
    return out;
}

void compare_make(struct compare_side before, struct compare_side after, double threshold, struct comparison *out) {
    *out = (struct comparison){.before = before.run, .after = after.run, .threshold = threshold};
    compare_add_series(out, before.series, after.series);
    add_cases(out);
    out->differences = differences(before.run->environment, after.run->environment);
    if (out->row_count) qsort(out->rows, (size_t)out->row_count, sizeof *out->rows, by_weight);
    if (out->verdict_count) qsort(out->verdicts, (size_t)out->verdict_count, sizeof *out->verdicts, by_worse);
}

void compare_free(struct comparison *c) {
    for (int i = 0; i < c->row_count; i++) {
        free(c->rows[i].what);
        free(c->rows[i].quantity);
    }
    free(c->rows);
    free(c->verdicts);
    json_decref(c->differences);
}

int compare_exit_status(const struct comparison *c) {
    bool worse = false;
    for (int i = 0; i < c->row_count; i++) worse |= c->rows[i].worse;
    for (int i = 0; i < c->verdict_count; i++) worse |= c->verdicts[i].worse;
    return worse ? 1 : c->cases_both + c->series_both == 0 ? 3 : 0;
}
