// JSON: {"run", "environment", "results", "counters", "exposed"}, a line a result, each written before the next is made. Control characters are kept, in JSON's own escapes.
#include "harness/report/json.h"

#include <math.h>
#include <stdlib.h>

#include "harness/report/counters.h"
#include "harness/report/exposed.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

json_t *json_text(const char *s) {
    if (!s) return json_null();
    json_t *exact = json_string(s);
    if (exact) return exact;
    char *valid = text_copy(TEXT_PLAIN, s);
    json_t *value = json_string(valid);
    free(valid);
    return value;
}

json_t *json_figure(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *seed(uint64_t s) {
    return s <= INT64_MAX ? json_integer((json_int_t)s) : json_sprintf("%llu", (unsigned long long)s); // JSON's integers end there
}

static json_t *value(const struct row *row, int i) {
    char buffer[32];
    switch (fields[i].kind) {
    case FIELD_WAIVED: return json_boolean(field_integer(row, i));
    case FIELD_INT: return json_integer(field_integer(row, i));
    case FIELD_SEED: return seed((uint64_t)field_integer(row, i));
    case FIELD_NUMBER: {
        const char *text = field_text(row, i, buffer);
        if (!*text) return json_null();
        return isfinite(field_number(row, i)) ? json_real(field_number(row, i)) : json_string(text);
    }
    default: {
        const char *text = field_text(row, i, buffer);
        return fields[i].owner == OF_WAIVER && !*text ? json_null() : json_text(text);
    }
    }
}

static json_t *implementations(const struct stored_run *r) {
    json_t *out = json_object();
    const char *name;
    json_t *plan;
    json_object_foreach(r->implementations, name, plan) {
        char *valid = text_copy(TEXT_PLAIN, name);
        json_t *copy = json_copy(plan);
        json_object_set_new(copy, "note", json_text(json_string_value(json_object_get(plan, "note"))));
        json_object_set_new(out, valid, copy);
        free(valid);
    }
    return out;
}

// A run that judges no cases (net, bench) and came to its end misses none: its status is the one that it ended with.
json_t *json_run(const struct view *v) {
    const struct stored_run *r = v->run;
    json_t *verdicts = json_object();
    bool measured = r->ended_normally && !stored_run_judges(r);
    int status = measured ? r->exit_status : report_exit_status(r);
    for (int i = 0; i < VERDICT_COUNT; i++)
        json_object_set_new(verdicts, verdict_name((enum verdict)i), json_integer(measured && status != 3 ? 0 : v->tally.of[i]));
    json_object_set_new(verdicts, "waived", json_integer(v->tally.waived));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:i, s:o, s:o}", "id", (json_int_t)r->id, "command", json_text(r->command),
                     "profile", json_text(r->profile), "pattern", json_text(r->pattern), "seed", seed(r->seed), "started", json_text(r->started),
                     "ended", json_text(r->ended), "ended_normally", r->ended_normally, "exit_status", status,
                     "verdicts", verdicts, "implementations", implementations(r));
}

static bool put(FILE *out, const char *before, json_t *value, size_t flags) {
    bool ok = value && fputs(before, out) >= 0 && !json_dumpf(value, out, flags);
    json_decref(value);
    return ok;
}

json_t *json_result(const struct row *row) {
    json_t *object = json_object();
    for (int f = 0; f < FIELD_COUNT; f++) json_object_set_new(object, fields[f].name, value(row, f));
    return object;
}

bool report_json(const struct stored_run *r, FILE *out) {
    struct view v;
    view_make(r, &v);
    bool ok = put(out, "{\n\"run\": ", json_run(&v), JSON_INDENT(1)) && put(out, ",\n\"environment\": ", json_incref(r->environment), JSON_INDENT(1)) &&
              fputs(",\n\"results\": [", out) >= 0;
    for (int i = 0; ok && i < v.row_count; i++) ok = put(out, i ? ",\n" : "\n", json_result(&v.rows[i]), 0);
    view_free(&v);
    return ok && put(out, "\n],\n\"counters\": ", counters_json(r), JSON_INDENT(1)) &&
           put(out, ",\n\"exposed\": ", exposed_json(r), JSON_INDENT(1)) && fputs("\n}\n", out) >= 0 && !fflush(out);
}
