// The rows of series in a comparison: those of one tool, fabric, subject, name, quantity and point. See compare.h.
#include "harness/report/compare_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/series_name.h"

static const double side_level = 0.975; // of each side, so that the quotient covers 95 %

static bool same_place(const struct stored_series *a, const struct stored_series *b) {
    return !strcmp(a->tool, b->tool) && !strcmp(a->fabric, b->fabric) && !strcmp(a->subject, b->subject) && !strcmp(a->name, b->name) &&
           !strcmp(a->quantity, b->quantity) && json_equal(a->point, b->point);
}

static const struct stored_series *find(const struct stored_serieses *in, const struct stored_series *like) {
    for (int i = 0; i < in->count; i++)
        if (same_place(&in->items[i], like)) return &in->items[i];
    return NULL;
}

// ---- facts ----
static bool is_count(const char *name) {
    size_t length = strlen(name);
    return length >= 5 && !strcmp(name + length - 5, "bytes");
}

static void add_facts(struct comparison *c, const struct stored_series *a, const struct stored_series *b, const json_t *varies) {
    const char *name;
    json_t *value;
    json_object_foreach(a->facts, name, value) {
        json_t *other = json_object_get(b->facts, name);
        if (!is_count(name) || !json_is_number(value) || !json_is_number(other)) continue;
        double before = json_number_value(value), after = json_number_value(other), ratio = compare_ratio(before, after);
        compare_add_row(c, (struct compare_row){.what = series_name(a, varies), .quantity = memory_text(name), .unit = COMPARE_BYTES,
                                                .before = {before, before, before, 1, 1}, .after = {after, after, after, 1, 1}, .ratio = {ratio, ratio, ratio, 1, 1}, .counted = true,
                                                .slack = strstr(name, "peak") || strstr(name, "live") ? compare_live_slack : 0});
    }
}

// ---- what does not count ----
// In the order of verdicts; that the time was up says nothing.
static const struct { const char *now, *before; } faults[] = {{"not measured", "was not measured"}, {"SKIP", "was SKIP"}, {"WRONG", "was WRONG"}, {"BROKEN", "was BROKEN"}};

static int severity(const char *fault) {
    int at = 3;
    while (at > 0 && (!fault || strcmp(faults[at].now, fault))) at--;
    return at;
}

static bool is_wrong(const struct stored_series *s) {
    const char *fault = series_fault(s, NULL);
    return fault && !strcmp(fault, "WRONG");
}

// False where the samples of both count. NULL: it is not in that run.
static bool add_fault(struct comparison *c, const struct stored_series *before, const struct stored_series *after, const json_t *varies) {
    static const struct interval none = {NAN, NAN, NAN, 0, 0};
    const char *why[2] = {0}, *old = before ? series_fault(before, &why[0]) : NULL, *new = series_fault(after, &why[1]);
    if (!old && !new) return false;
    const struct stored_series *s = before ? before : after;
    compare_add_row(c, (struct compare_row){.what = series_name(s, varies), .quantity = memory_text(s->quantity), .unit = compare_unit_of(s->quantity), .fault = new ? new : faults[severity(old)].before, .why = why[new != NULL],
                                            .worse = severity(new) > severity(old) || is_wrong(after), .ratio = none,
                                            .before = old || !before ? none : series_interval(side_level, before), .after = new ? none : series_interval(side_level, after)});
    return true;
}

static void add_pair(struct comparison *c, const struct stored_series *a, const struct stored_series *b, const json_t *varies) {
    struct compare_row row = {.what = series_name(a, varies), .quantity = memory_text(a->quantity), .unit = compare_unit_of(a->quantity), .before = series_interval(side_level, a), .after = series_interval(side_level, b)};
    row.ratio = statistics_quotient(&row.after, &row.before);
    row.ratio.coverage = fmin(row.ratio.coverage, statistics_launches_coverage(a->launch_count, b->launch_count));
    row.starts = a->launch_count < b->launch_count ? a->launch_count : b->launch_count;
    // What one start's samples say of each other is no interval of a run.
    if (row.starts == 1) row.ratio.low = row.ratio.high = NAN;
    if (a->launch_count == 1) row.before.coverage = 0;
    if (b->launch_count == 1) row.after.coverage = 0;
    compare_add_row(c, row);
    add_facts(c, a, b, varies);
}

void compare_add_series(struct comparison *c, const struct stored_serieses *before, const struct stored_serieses *after) {
    json_t *varies = series_varying(before);
    for (int i = 0; i < before->count; i++) {
        const struct stored_series *a = &before->items[i], *b = find(after, a);
        c->series_both += b != NULL;
        c->series_before += b == NULL;
        if (b && !add_fault(c, a, b, varies)) add_pair(c, a, b, varies);
    }
    c->series_after = after->count - c->series_both;
    for (int i = 0; i < after->count; i++)
        if (is_wrong(&after->items[i]) && !find(before, &after->items[i])) add_fault(c, NULL, &after->items[i], varies);
    json_decref(varies);
}
