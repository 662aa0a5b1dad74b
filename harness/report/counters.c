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

void counter_axis_add(struct counter_axis *a, const char *item) {
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->items[i], item)) return;
    a->items = memory_grow(a->items, (size_t)a->count, sizeof *a->items);
    a->items[a->count++] = item;
}

struct columns { struct counter_table table; FILE *out; };

const struct counter_row *counter_table_find(const struct counter_table *t, const char *event, const char *phase) {
    for (int i = 0; i < t->rows->count; i++) {
        const struct counter_row *r = &t->rows->items[i];
        if (!strcmp(r->implementation, t->implementation) && !strcmp(r->phase, phase) && !r->reason && (!event || !strcmp(r->event, event))) return r;
    }
    return NULL;
}

const struct counter_row *counter_table_any(const struct counter_table *t, const char *event) {
    const struct counter_row *r = NULL;
    for (int p = 0; !r && p < t->phases.count; p++) r = counter_table_find(t, event, t->phases.items[p]);
    return r;
}

void counter_table_make(const struct counter_rows *rows, const char *implementation, struct counter_table *t) {
    *t = (struct counter_table){.rows = rows, .implementation = implementation};
    for (int i = 0; i < rows->count; i++) {
        const struct counter_row *r = &rows->items[i];
        if (strcmp(r->implementation, implementation) || r->reason) continue;
        counter_axis_add(&t->events, r->event);
        counter_axis_add(&t->phases, r->phase);
    }
}

void counter_table_free(struct counter_table *t) {
    free(t->events.items);
    free(t->phases.items);
}

// Its last part, unless another event has the same.
static const char *short_name(const struct columns *t, const char *event) {
    const char *colon = strrchr(event, ':'), *last = colon && colon[1] ? colon + 1 : event;
    for (int i = 0; i < t->table.events.count; i++) {
        const char *other = t->table.events.items[i], *end = strrchr(other, ':');
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
    const struct counter_row *r = counter_table_find(&t->table, event, phase);
    if (r) snprintf(text, sizeof text, r->value < 1e12 ? "%.0f" : "%.5g", r->value);
    put_right(t->out, text, width_of(short_name(t, event)));
}

static void put_table(const struct columns *t) {
    fprintf(t->out, "%-10s  %8s", "phase", "times");
    for (int e = 0; e < t->table.events.count; e++) put_right(t->out, short_name(t, t->table.events.items[e]), width_of(short_name(t, t->table.events.items[e])));
    fprintf(t->out, "\n%-10s  %8s", "", "");
    for (int e = 0; e < t->table.events.count; e++) put_right(t->out, counter_table_any(&t->table, t->table.events.items[e])->unit, width_of(short_name(t, t->table.events.items[e])));
    fputc('\n', t->out);
    for (int p = 0; p < t->table.phases.count; p++) {
        const struct counter_row *any = counter_table_find(&t->table, NULL, t->table.phases.items[p]);
        char *phase = text_copy(TEXT_TERMINAL, t->table.phases.items[p]);
        fprintf(t->out, "%-10s  %8d", phase, any->times);
        free(phase);
        for (int e = 0; e < t->table.events.count; e++) put_value(t, t->table.events.items[e], t->table.phases.items[p]);
        fputc('\n', t->out);
    }
}

static bool same_absence(const struct columns *t, const struct counter_row *a, const struct counter_row *b) {
    return a->reason && b->reason && a->cases == b->cases && !strcmp(a->reason, b->reason) && !strcmp(a->implementation, t->table.implementation) &&
           !strcmp(b->implementation, t->table.implementation);
}

// "not available in 3 cases: A, B: REASON": events of one reason together.
static void put_absent(const struct columns *t) {
    const struct counter_row *rows = t->table.rows->items;
    for (int i = 0, earlier; i < t->table.rows->count; i++) {
        for (earlier = 0; earlier < i && !same_absence(t, &rows[earlier], &rows[i]); earlier++) {}
        if (earlier < i || !same_absence(t, &rows[i], &rows[i])) continue;
        fprintf(t->out, "not available in %d case%s: ", rows[i].cases, rows[i].cases == 1 ? "" : "s");
        for (int k = i, count = 0; k < t->table.rows->count; k++) {
            if (!same_absence(t, &rows[i], &rows[k])) continue;
            fputs(count++ ? ", " : "", t->out);
            text_put(t->out, TEXT_TERMINAL, rows[k].event);
        }
        fputs(": ", t->out);
        text_put(t->out, TEXT_TERMINAL, rows[i].reason);
        fputc('\n', t->out);
    }
}

const char *counter_scope_words(const char *scope) {
    if (!strcmp(scope, "thread")) return "of each rank's thread that sets the marks alone: PAPI cannot follow the others here (fsdpmark doctor says why)";
    if (!strcmp(scope, "machine")) return "of the whole machine, not only of the ranks";
    return strcmp(scope, "level") ? "of all threads of all ranks" : "the largest at the end of a phase";
}

// What a number of that scope is, where it is not simply the sum over all ranks' processes.
static void put_scope(const struct columns *t, const char *scope, const char *meaning) {
    int count = 0;
    for (int e = 0; e < t->table.events.count; e++) {
        const struct counter_row *r = counter_table_any(&t->table, t->table.events.items[e]);
        if (strcmp(r->scope, scope)) continue;
        fputs(count++ ? ", " : "", t->out);
        text_put(t->out, TEXT_TERMINAL, short_name(t, r->event));
    }
    if (count) fprintf(t->out, ": %s\n", meaning);
}

static void put_implementation(const struct counter_rows *rows, const char *implementation, FILE *out) {
    struct columns t = {.out = out};
    counter_table_make(rows, implementation, &t.table);
    fputs("\ncounters of ", out);
    text_put(out, TEXT_TERMINAL, implementation);
    fputs(t.table.events.count ? ", added up over cases and ranks\n" : "\n", out);
    if (t.table.events.count) put_table(&t);
    static const char *const scopes[] = {"thread", "machine", "level"};
    for (int i = 0; i < 3; i++) put_scope(&t, scopes[i], counter_scope_words(scopes[i]));
    put_absent(&t);
    counter_table_free(&t.table);
}

bool report_counters(const struct stored_run *r, FILE *out) {
    struct counter_rows rows;
    struct counter_axis implementations = {0};
    counters_gather(r, &rows);
    for (int i = 0; i < rows.count; i++) counter_axis_add(&implementations, rows.items[i].implementation);
    for (int i = 0; i < implementations.count; i++) put_implementation(&rows, implementations.items[i], out);
    free(implementations.items);
    free(rows.items);
    return !ferror(out) && !fflush(out);
}
