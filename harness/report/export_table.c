// A run as one table and as one JSON document. See export.h.
#include "harness/report/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/json.h"
#include "harness/report/measured.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

// A run of net, bench or advise judges no case, and none is missing.
static bool judges(const struct export *e) { return stored_run_judges(e->run) || !e->series->count; }

// ---- CSV ----
// A row under way: NULL and NAN are empty, launch and index below 0 too.
struct line { const char *kind, *tool, *fabric, *subject, *name, *point, *quantity, *unit, *verdict, *message; int launch, index; double value, bound; };

static void put_text(FILE *out, const char *s, const char *after) {
    if (s) fputc('"', out), text_put(out, TEXT_CSV, s), fputc('"', out);
    fputs(after, out);
}

static void put_number(FILE *out, double x) {
    char buffer[32];
    fprintf(out, "%s,", isnan(x) ? "" : text_number(x, buffer));
}

static void put_index(FILE *out, int i) {
    if (i >= 0) fprintf(out, "%d", i);
    fputc(',', out);
}

static void put_line(FILE *out, const struct line *l) {
    const char *const texts[] = {l->kind, l->tool, l->fabric, l->subject, l->name, l->point, l->quantity};
    for (int i = 0; i < 7; i++) put_text(out, texts[i], ",");
    put_index(out, l->launch);
    put_index(out, l->index);
    put_number(out, l->value);
    put_number(out, l->bound);
    put_text(out, l->unit, ",");
    put_text(out, l->verdict, ",");
    put_text(out, l->message, "\r\n");
}

static double member(const json_t *object, const char *name) {
    json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void put_figures(const struct stored_case *c, FILE *out) {
    size_t i;
    json_t *f;
    json_array_foreach(c->figures, i, f) {
        const char *label = json_string_value(json_object_get(f, "label")), *tensor = json_string_value(json_object_get(f, "tensor"));
        char *point = NULL;
        if (asprintf(&point, "%s %s", label ? label : "", tensor ? tensor : "") < 0) abort();
        put_line(out, &(struct line){.kind = "figure", .tool = "check", .subject = c->implementation, .name = c->case_id, .point = point, .quantity = json_string_value(json_object_get(f, "check")),
                                     .launch = -1, .index = -1, .value = member(f, "figure"), .bound = member(f, "bound"), .unit = json_string_value(json_object_get(f, "unit"))});
        free(point);
    }
}

static void put_case(const struct view_case *k, FILE *out) {
    double measured[MEASURED_QUANTITIES];
    for (int i = 0; i < k->row_count; i++) {
        const struct stored_result *r = k->rows[i].r;
        put_line(out, &(struct line){.kind = "result", .tool = "check", .subject = k->c->implementation, .name = k->c->case_id, .quantity = r->check, .launch = -1, .index = -1,
                                     .value = r->figure, .bound = r->bound, .unit = r->unit, .verdict = verdict_name(r->verdict), .message = r->message});
    }
    put_figures(k->c, out);
    measured_of(k->c, measured);
    for (int q = 0; q < MEASURED_QUANTITIES; q++)
        if (!isnan(measured[q]))
            put_line(out, &(struct line){.kind = "measured", .tool = "check", .subject = k->c->implementation, .name = k->c->case_id, .quantity = measured_names[q], .launch = -1,
                                         .index = -1, .value = measured[q], .bound = NAN, .unit = q == MEASURED_SECONDS ? "s" : "bytes"});
}

// Of a quantity or a fact, by what its name ends in; "" where that tells none.
static const char *unit_of(const char *name) {
    static const struct { const char *end, *unit; } units[] = {{"bytes", "bytes"}, {"seconds", "s"}, {"_s", "s"}, {"_j", "J"}, {"_bits", "bit/s"}, {"_flop_rate", "flop/s"}, {"memory_limit", "bytes"}};
    for (size_t i = 0, length = strlen(name); i < sizeof units / sizeof *units; i++)
        if (length >= strlen(units[i].end) && !strcmp(name + length - strlen(units[i].end), units[i].end)) return units[i].unit;
    return NULL;
}

static void put_series(const struct stored_series *s, FILE *out) {
    char *point = json_dumps(s->point, JSON_COMPACT | JSON_SORT_KEYS);
    struct line l = {.kind = "sample", .tool = s->tool, .fabric = s->fabric, .subject = s->subject, .name = s->name, .point = point, .quantity = s->quantity, .unit = unit_of(s->quantity), .bound = NAN};
    for (l.launch = 0; l.launch < s->launch_count; l.launch++)
        for (l.index = 0; l.index < s->launches[l.launch].count; l.index++) {
            l.value = s->launches[l.launch].values[l.index];
            put_line(out, &l);
        }
    const char *name;
    json_t *value;
    l.kind = "fact", l.launch = l.index = -1;
    json_object_foreach(s->facts, name, value) {
        char *text = json_is_number(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        l.quantity = name, l.unit = json_is_number(value) ? unit_of(name) : NULL, l.value = json_is_number(value) ? json_number_value(value) : NAN, l.message = text;
        put_line(out, &l);
        free(text);
    }
    free(point);
}

bool export_csv(const struct export *e, FILE *out) {
    struct view v;
    fputs("kind,tool,fabric,subject,name,point,quantity,launch,index,value,bound,unit,verdict,message\r\n", out);
    view_make(e->run, &v);
    for (int i = 0; judges(e) && i < v.case_count; i++) put_case(&v.cases[i], out);
    view_free(&v);
    for (int i = 0; i < e->series->count; i++) put_series(&e->series->items[i], out);
    return !ferror(out) && !fflush(out);
}

// ---- JSON ----
static json_t *case_json(const struct view_case *k) {
    const struct stored_case *c = k->c;
    double measured[MEASURED_QUANTITIES];
    json_t *results = json_array(), *seen = json_object(), *spec = c->case_json ? json_loads(c->case_json, 0, NULL) : NULL;
    for (int i = 0; i < k->row_count; i++) json_array_append_new(results, json_result(&k->rows[i]));
    measured_of(c, measured);
    for (int q = 0; q < MEASURED_QUANTITIES; q++) json_object_set_new(seen, measured_names[q], json_figure(measured[q]));
    return json_pack("{s:o, s:o, s:s, s:b, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:O*, s:O*}", "implementation", json_text(c->implementation), "case", json_text(c->case_id), "verdict",
                     verdict_name(k->verdict), "waived", c->waived, "judge_seconds", json_figure(c->judge_seconds), "start", c->start, "origin", json_text(c->origin), "digest",
                     json_text(c->digest), "truth_digest", json_text(c->truth_digest), "log_tail", json_text(c->log_tail), "spec", spec ? spec : json_null(), "measured", seen, "results",
                     results, "figures", c->figures, "probes", c->probes);
}

static json_t *series_json(const struct stored_series *s) {
    json_t *launches = json_array();
    for (int l = 0; l < s->launch_count; l++) {
        json_t *values = json_array();
        for (int i = 0; i < s->launches[l].count; i++) json_array_append_new(values, json_real(s->launches[l].values[i]));
        json_array_append_new(launches, values);
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:O, s:O*, s:o}", "tool", json_text(s->tool), "fabric", json_text(s->fabric), "subject", json_text(s->subject), "name", json_text(s->name),
                     "quantity", json_text(s->quantity), "point", s->point, "facts", s->facts, "launches", launches);
}

static bool put(FILE *out, const char *before, json_t *value) {
    bool ok = value && fputs(before, out) >= 0 && !json_dumpf(value, out, JSON_COMPACT);
    json_decref(value);
    return ok;
}

bool export_json(const struct export *e, FILE *out) {
    struct view v;
    view_make(e->run, &v);
    bool ok = put(out, "{\"run\": ", json_run(&v)) && put(out, ",\n\"environment\": ", json_incref(e->run->environment)) && fputs(",\n\"cases\": [", out) >= 0;
    for (int i = 0; ok && judges(e) && i < v.case_count; i++) ok = put(out, i ? ",\n" : "\n", case_json(&v.cases[i]));
    view_free(&v);
    ok = ok && fputs("],\n\"series\": [", out) >= 0;
    for (int i = 0; ok && i < e->series->count; i++) ok = put(out, i ? ",\n" : "\n", series_json(&e->series->items[i]));
    return ok && fputs("]}\n", out) >= 0 && !fflush(out);
}
