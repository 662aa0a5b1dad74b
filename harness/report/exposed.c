// See exposed.h.
#include "harness/report/exposed.h"

#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/text.h"

static const char *text_of(const json_t *f, const char *name) {
    const char *s = json_string_value(json_object_get(f, name));
    return s ? s : "";
}
static double number_of(const json_t *f, const char *name) { return json_number_value(json_object_get(f, name)); }

static struct exposed_row *same_reason(const struct exposed_rows *rows, const char *implementation, const char *reason) {
    for (int i = 0; i < rows->count; i++)
        if (rows->items[i].reason && !strcmp(rows->items[i].implementation, implementation) && !strcmp(rows->items[i].reason, reason)) return &rows->items[i];
    return NULL;
}

static void add(struct exposed_rows *rows, const struct stored_case *c, const json_t *f) {
    const char *reason = json_string_value(json_object_get(f, "reason"));
    struct exposed_row *known = reason ? same_reason(rows, c->implementation, reason) : NULL;
    if (known) {
        known->cases++;
        return;
    }
    struct exposed_row r = {.implementation = c->implementation, .case_id = c->case_id, .label = text_of(f, "label"), .by = text_of(f, "tensor"), .reason = reason,
                            .seconds = number_of(f, "figure"), .low = number_of(f, "low"), .high = number_of(f, "high"), .step = number_of(f, "step"),
                            .steps = (int)number_of(f, "steps"), .cases = 1};
    for (size_t k = 0; k < 3; k++) r.share[k] = json_number_value(json_array_get(json_object_get(f, "share"), k));
    rows->items = memory_grow(rows->items, (size_t)rows->count, sizeof r);
    rows->items[rows->count++] = r;
}

// What was measured stands before what was not.
void exposed_gather(const struct stored_run *r, struct exposed_rows *out) {
    *out = (struct exposed_rows){0};
    for (int unseen = 0; unseen < 2; unseen++)
        for (int i = 0; i < r->case_count; i++) {
            size_t at;
            json_t *f;
            json_array_foreach(r->cases[i].figures, at, f) if (!strcmp(text_of(f, "check"), "exposed") && !unseen == !json_object_get(f, "reason")) add(out, &r->cases[i], f);
        }
}

char *exposed_words(const struct exposed_row *r) {
    if (r->reason) return memory_format("not seen in %d case%s: %s", r->cases, r->cases == 1 ? "" : "s", r->reason);
    bool told = !strcmp(r->label, "differenced");
    return memory_format("%.3g ms (%.3g to %.3g) of a step of %.3g ms: %.1f %% (%.1f to %.1f), %d steps; %s%s", 1e3 * r->seconds, 1e3 * r->low, 1e3 * r->high, 1e3 * r->step,
                         100 * r->share[0], 100 * r->share[1], 100 * r->share[2], r->steps,
                         told ? "the step less the same with free collectives, as it tells itself" : "waits seen by ", told ? "" : r->by);
}

bool report_exposed(const struct stored_run *r, FILE *out) {
    struct exposed_rows rows;
    exposed_gather(r, &rows);
    if (rows.count) fputs("\nexposed communication: medians over the steps, with their intervals of 95 %\n", out);
    for (int i = 0; i < rows.count; i++) {
        char *words = exposed_words(&rows.items[i]);
        text_put(out, TEXT_TERMINAL, rows.items[i].implementation);
        if (!rows.items[i].reason) {
            fputs(", ", out);
            text_put(out, TEXT_TERMINAL, rows.items[i].case_id);
        }
        fputs(": ", out);
        text_put(out, TEXT_TERMINAL, words);
        fputc('\n', out);
        free(words);
    }
    free(rows.items);
    return !ferror(out) && !fflush(out);
}

void exposed_html(const struct stored_run *r, FILE *out) {
    struct exposed_rows rows;
    exposed_gather(r, &rows);
    if (rows.count)
        fputs("<h2 id=\"exposed\">Exposed communication</h2>\n<p class=\"dim\">What of the communication of a step computation does not hide: medians over the steps, with "
              "their intervals of 95 %. Waits of the thread that trains are an upper bound.</p>\n<div class=\"scroll\"><table><thead><tr><th>implementation</th><th>case</th>"
              "<th>exposed communication</th></tr></thead><tbody>\n", out);
    for (int i = 0; i < rows.count; i++) {
        char *words = exposed_words(&rows.items[i]);
        text_fill(out, TEXT_XML, "<tr><td>%</td><td>%</td><td>%</td></tr>\n", rows.items[i].implementation, rows.items[i].reason ? "" : rows.items[i].case_id, words);
        free(words);
    }
    if (rows.count) fputs("</tbody></table></div>\n", out);
    free(rows.items);
}

json_t *exposed_json(const struct stored_run *run) {
    struct exposed_rows rows;
    json_t *out = json_array();
    exposed_gather(run, &rows);
    for (int i = 0; i < rows.count; i++) {
        const struct exposed_row *r = &rows.items[i];
        json_array_append_new(out, r->reason ? json_pack("{ss si ss}", "implementation", r->implementation, "cases", r->cases, "reason", r->reason)
                                             : json_pack("{ss ss ss ss sf sf sf sf s[fff] si}", "implementation", r->implementation, "case", r->case_id, "kind", r->label,
                                                         "by", r->by, "seconds", r->seconds, "low", r->low, "high", r->high, "step_seconds", r->step, "share",
                                                         r->share[0], r->share[1], r->share[2], "steps", r->steps));
    }
    free(rows.items);
    return out;
}
