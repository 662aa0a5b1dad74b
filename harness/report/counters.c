// The counters of a run. See counters.h.
#include "harness/report/counters.h"

#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

static bool same(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static const char *text_of(json_t *f, const char *name) {
    const char *s = json_string_value(json_object_get(f, name));
    return s ? s : "";
}

static struct counter_row *place_of(struct counter_rows *rows, const struct counter_row *like) {
    for (int i = 0; i < rows->count; i++) {
        struct counter_row *r = &rows->items[i];
        if (same(r->implementation, like->implementation) && same(r->event, like->event) && same(r->phase, like->phase) && same(r->reason, like->reason)) return r;
    }
    rows->items = memory_grow(rows->items, (size_t)rows->count, sizeof *rows->items);
    rows->items[rows->count] = *like;
    return &rows->items[rows->count++];
}

static void gather_case(const struct stored_case *c, struct counter_rows *out) {
    size_t at;
    json_t *f;
    json_array_foreach(c->figures, at, f) {
        if (strcmp(text_of(f, "check"), "counters")) continue;
        json_t *reason = json_object_get(f, "reason");
        struct counter_row like = {.implementation = c->implementation, .event = text_of(f, "tensor"), .unit = text_of(f, "unit"),
                                   .phase = text_of(f, "label"), .scope = text_of(f, "scope"), .reason = json_string_value(reason)};
        struct counter_row *r = place_of(out, &like);
        double value = json_number_value(json_object_get(f, "figure"));
        r->value = strcmp(r->scope, "level") ? r->value + value : value > r->value ? value : r->value;
        r->times += (int)json_integer_value(json_object_get(f, "times"));
        r->cases++;
    }
}

void counters_gather(const struct stored_run *r, struct counter_rows *out) {
    *out = (struct counter_rows){0};
    for (int i = 0; i < r->case_count; i++) gather_case(&r->cases[i], out);
}

json_t *counters_json(const struct stored_run *run) {
    struct counter_rows rows;
    json_t *out = json_array();
    counters_gather(run, &rows);
    for (int i = 0; i < rows.count; i++) {
        const struct counter_row *r = &rows.items[i];
        json_array_append_new(out, r->reason ? json_pack("{ss ss ss si ss}", "implementation", r->implementation, "event", r->event, "unit", r->unit,
                                                         "cases", r->cases, "reason", r->reason)
                                             : json_pack("{ss ss ss ss ss sf si si}", "implementation", r->implementation, "event", r->event, "unit",
                                                         r->unit, "phase", r->phase, "scope", r->scope, "value", r->value, "times", r->times, "cases", r->cases));
    }
    free(rows.items);
    return out;
}

// ---- the table ----

// Distinct texts of an implementation's rows, in order of appearance.
struct axis { int count; const char **items; };

static int axis_place(struct axis *a, const char *item) {
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->items[i], item)) return i;
    a->items = memory_grow(a->items, (size_t)a->count, sizeof *a->items);
    a->items[a->count] = item;
    return a->count++;
}

struct columns { const struct counter_rows *rows; const char *implementation; struct axis events, phases; FILE *out; };

static const struct counter_row *find(const struct columns *t, const char *event, const char *phase) {
    for (int i = 0; i < t->rows->count; i++) {
        const struct counter_row *r = &t->rows->items[i];
        if (!strcmp(r->implementation, t->implementation) && !strcmp(r->phase, phase) && !r->reason && (!event || !strcmp(r->event, event))) return r;
    }
    return NULL;
}

static const char *unit_of(const struct columns *t, const char *event) {
    for (int i = 0; i < t->rows->count; i++)
        if (!t->rows->items[i].reason && !strcmp(t->rows->items[i].event, event)) return t->rows->items[i].unit;
    return "";
}

// Its last part, unless another event has the same.
static const char *short_name(const struct columns *t, const char *event) {
    const char *colon = strrchr(event, ':'), *last = colon && colon[1] ? colon + 1 : event;
    for (int i = 0; i < t->events.count; i++) {
        const char *other = t->events.items[i], *end = strrchr(other, ':');
        if (strcmp(other, event) && !strcmp(end && end[1] ? end + 1 : other, last)) return event;
    }
    return last;
}

static int width_of(const char *title) { return text_width(title) > 12 ? text_width(title) : 12; }

static void put_right(FILE *out, const char *text, int width) {
    char *safe = text_copy(TEXT_TERMINAL, text);
    fprintf(out, "  %*s%s", width > text_width(safe) ? width - text_width(safe) : 0, "", safe);
    free(safe);
}

static void put_value(const struct columns *t, const char *event, const char *phase) {
    char text[48] = "-";
    const struct counter_row *r = find(t, event, phase);
    if (r) snprintf(text, sizeof text, r->value < 1e12 ? "%.0f" : "%.5g", r->value);
    put_right(t->out, text, width_of(short_name(t, event)));
}

static void put_table(const struct columns *t) {
    fprintf(t->out, "%-10s  %8s", "phase", "times");
    for (int e = 0; e < t->events.count; e++) put_right(t->out, short_name(t, t->events.items[e]), width_of(short_name(t, t->events.items[e])));
    fprintf(t->out, "\n%-10s  %8s", "", "");
    for (int e = 0; e < t->events.count; e++) put_right(t->out, unit_of(t, t->events.items[e]), width_of(short_name(t, t->events.items[e])));
    fputc('\n', t->out);
    for (int p = 0; p < t->phases.count; p++) {
        const struct counter_row *any = find(t, NULL, t->phases.items[p]);
        char *phase = text_copy(TEXT_TERMINAL, t->phases.items[p]);
        fprintf(t->out, "%-10s  %8d", phase, any->times);
        free(phase);
        for (int e = 0; e < t->events.count; e++) put_value(t, t->events.items[e], t->phases.items[p]);
        fputc('\n', t->out);
    }
}

static bool same_absence(const struct columns *t, const struct counter_row *a, const struct counter_row *b) {
    return a->reason && b->reason && a->cases == b->cases && !strcmp(a->reason, b->reason) && !strcmp(a->implementation, t->implementation) &&
           !strcmp(b->implementation, t->implementation);
}

// "not available in 3 cases: A, B: REASON": events of one reason together.
static void put_absent(const struct columns *t) {
    const struct counter_row *rows = t->rows->items;
    for (int i = 0, earlier; i < t->rows->count; i++) {
        for (earlier = 0; earlier < i && !same_absence(t, &rows[earlier], &rows[i]); earlier++) {}
        if (earlier < i || !same_absence(t, &rows[i], &rows[i])) continue;
        fprintf(t->out, "not available in %d case%s: ", rows[i].cases, rows[i].cases == 1 ? "" : "s");
        for (int k = i, count = 0; k < t->rows->count; k++) {
            if (!same_absence(t, &rows[i], &rows[k])) continue;
            fputs(count++ ? ", " : "", t->out);
            text_put(t->out, TEXT_TERMINAL, rows[k].event);
        }
        fputs(": ", t->out);
        text_put(t->out, TEXT_TERMINAL, rows[i].reason);
        fputc('\n', t->out);
    }
}

// What a number of that scope is, where it is not simply the sum over all ranks' processes.
static void put_scope(const struct columns *t, const char *scope, const char *meaning) {
    int count = 0;
    for (int e = 0; e < t->events.count; e++)
        for (int p = 0; p < t->phases.count; p++) {
            const struct counter_row *r = find(t, t->events.items[e], t->phases.items[p]);
            if (!r || strcmp(r->scope, scope)) continue;
            fputs(count++ ? ", " : "", t->out);
            text_put(t->out, TEXT_TERMINAL, short_name(t, r->event));
            break;
        }
    if (count) fprintf(t->out, ": %s\n", meaning);
}

static void put_implementation(const struct counter_rows *rows, const char *implementation, FILE *out) {
    struct columns t = {.rows = rows, .implementation = implementation, .out = out};
    for (int i = 0; i < rows->count; i++) {
        const struct counter_row *r = &rows->items[i];
        if (strcmp(r->implementation, implementation) || r->reason) continue;
        axis_place(&t.events, r->event);
        axis_place(&t.phases, r->phase);
    }
    fputs("\ncounters of ", out);
    text_put(out, TEXT_TERMINAL, implementation);
    fputs(t.events.count ? ", added up over cases and ranks\n" : "\n", out);
    if (t.events.count) put_table(&t);
    put_scope(&t, "thread", "of each rank's thread that sets the marks alone: PAPI cannot follow the others here (fsdpmark doctor says why)");
    put_scope(&t, "machine", "of the whole machine, not only of the ranks");
    put_scope(&t, "level", "the largest at the end of a phase");
    put_absent(&t);
    free(t.events.items);
    free(t.phases.items);
}

bool report_counters(const struct stored_run *r, FILE *out) {
    struct counter_rows rows;
    struct axis implementations = {0};
    counters_gather(r, &rows);
    for (int i = 0; i < rows.count; i++) axis_place(&implementations, rows.items[i].implementation);
    for (int i = 0; i < implementations.count; i++) put_implementation(&rows, implementations.items[i], out);
    free(implementations.items);
    free(rows.items);
    return !ferror(out) && !fflush(out);
}
