// A comparison as JSON, CSV and figure. See compare.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/compare.h"
#include "harness/report/plots.h"
#include "harness/report/text.h"

static json_t *number(double x) {
    char buffer[32];
    return isfinite(x) ? json_real(x) : isnan(x) ? json_null() : json_string(text_number(x, buffer)); // "inf": of nothing came something
}

static json_t *string(const char *s) {
    char *valid = s ? text_copy(TEXT_PLAIN, s) : NULL;
    json_t *out = valid ? json_string(valid) : json_null();
    free(valid);
    return out;
}

static json_t *interval(const struct interval *i) {
    return json_pack("{s:o, s:o, s:o, s:o, s:i}", "value", number(i->value), "low", number(i->low), "high", number(i->high), "coverage", number(i->coverage), "count", i->count);
}

static json_t *run_json(const struct stored_run *r) {
    return json_pack("{s:I, s:o, s:o, s:O?}", "id", (json_int_t)r->id, "started", string(r->started), "command", string(r->command), "environment", r->environment);
}

static const char *unit_name(enum compare_unit unit) {
    static const char *const names[] = {"s", "B", ""};
    return names[unit];
}

bool compare_json(const struct comparison *c, FILE *out) {
    json_t *rows = json_array(), *verdicts = json_array();
    for (int i = 0; i < c->row_count; i++) {
        const struct compare_row *r = &c->rows[i];
        json_array_append_new(rows, json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:s, s:b, s:o, s:o}", "what", string(r->what), "quantity", string(r->quantity), "unit",
                                              unit_name(r->unit), "before", interval(&r->before), "after", interval(&r->after), "ratio", interval(&r->ratio), "counted", r->counted,
                                              "word", r->word, "worse", r->worse, "worst_case", string(r->worst_case), "why", string(r->why)));
    }
    for (int i = 0; i < c->verdict_count; i++) {
        const struct compare_verdict *v = &c->verdicts[i];
        json_array_append_new(verdicts, json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:b, s:b}", "implementation", string(v->implementation), "case", string(v->case_id), "check",
                                                  string(v->check), "message", string(v->message), "before", verdict_name(v->before), "after", verdict_name(v->after), "waived",
                                                  v->waived, "worse", v->worse));
    }
    json_t *whole = json_pack("{s:o, s:o, s:f, s:O, s:o, s:o, s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i}, s:i}", "before", run_json(c->before), "after", run_json(c->after), "threshold",
                              c->threshold, "differences", c->differences, "rows", rows, "verdicts", verdicts, "cases", "both", c->cases_both, "before", c->cases_before, "after",
                              c->cases_after, "series", "both", c->series_both, "before", c->series_before, "after", c->series_after, "exit_status", compare_exit_status(c));
    bool ok = whole && !json_dumpf(whole, out, JSON_INDENT(1));
    json_decref(whole);
    return ok && fputc('\n', out) >= 0 && !fflush(out);
}

static void put_text(FILE *out, const char *s) {
    fputc('"', out);
    text_put(out, TEXT_CSV, s ? s : "");
    fputs("\",", out);
}

static void put_number(FILE *out, double x, const char *after) {
    char buffer[32];
    fprintf(out, "%s%s", isnan(x) ? "" : text_number(x, buffer), after);
}

bool compare_csv(const struct comparison *c, FILE *out) {
    fputs("kind,what,quantity,unit,before,after,ratio,low,high,coverage,count,word,worse,case,message\r\n", out);
    for (int i = 0; i < c->row_count; i++) {
        const struct compare_row *r = &c->rows[i];
        fputs(r->counted ? "counted," : "measured,", out);
        put_text(out, r->what);
        put_text(out, r->quantity);
        put_text(out, unit_name(r->unit));
        put_number(out, r->before.value, ",");
        put_number(out, r->after.value, ",");
        put_number(out, r->ratio.value, ",");
        put_number(out, r->ratio.low, ",");
        put_number(out, r->ratio.high, ",");
        put_number(out, r->ratio.coverage, ",");
        fprintf(out, "%d,\"%s\",%d,", r->ratio.count, r->word, r->worse);
        put_text(out, r->worst_case);
        fputc('"', out);
        text_put(out, TEXT_CSV, r->why ? r->why : "");
        fputs("\"\r\n", out);
    }
    for (int i = 0; i < c->verdict_count; i++) {
        const struct compare_verdict *v = &c->verdicts[i];
        fputs("verdict,", out);
        put_text(out, v->implementation);
        put_text(out, v->check);
        fprintf(out, ",%s,%s,,,,,,\"%s\",%d,", verdict_name(v->before), verdict_name(v->after), v->waived ? "waived" : "", v->worse);
        put_text(out, v->case_id);
        fputc('"', out);
        text_put(out, TEXT_CSV, v->message ? v->message : "");
        fputs("\"\r\n", out);
    }
    return !ferror(out) && !fflush(out);
}

bool compare_figure(const struct comparison *c, const char *folder, char why[256], struct error *error) {
    struct plot_ab_row *rows = memory_zeros((size_t)c->row_count + 1, sizeof *rows);
    char **names = memory_zeros((size_t)c->row_count + 1, sizeof *names), a[32], b[32];
    for (int i = 0; i < c->row_count; i++) {
        names[i] = memory_format("%s, %s", c->rows[i].what, c->rows[i].quantity);
        rows[i] = (struct plot_ab_row){names[i], c->rows[i].word, c->rows[i].ratio};
    }
    snprintf(a, sizeof a, "run %lld", (long long)c->before->id);
    snprintf(b, sizeof b, "run %lld", (long long)c->after->id);
    char *title = memory_format("Run %lld against run %lld", (long long)c->after->id, (long long)c->before->id), *machine = plot_machine(c->after->environment),
         *versions = plot_versions(c->after->environment, c->after->implementations), *fabric = plot_fabric(c->after->environment);
    char *note = memory_format("Run %lld is of %.10s; it took no turns with run %lld", (long long)c->before->id, c->before->started, (long long)c->after->id);
    struct plot_ab p = {{.name = "compare", .title = title, .machine = machine, .fabric = fabric, .versions = versions, .date = c->after->started, .note = note,
                         .interval = "Bars: interval of at least 95 % for the ratio of medians, of less where the words say too few; of counts of bytes from the smallest to the largest ratio"}, a, b, c->threshold, c->row_count, rows};
    bool ok = plot_ab(&p, folder, why, error);
    for (int i = 0; i < c->row_count; i++) free(names[i]);
    free(names);
    free(rows);
    free(title);
    free(machine);
    free(versions);
    free(fabric);
    free(note);
    return ok;
}
