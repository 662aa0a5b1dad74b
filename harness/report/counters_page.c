// The counters of a run for the report: a table in the page, and counters.csv. See counters.h.
//
// In the page a row is a phase and a column an event, with its unit and what a number of it is of: the processes, a thread of each, the machine. What was
// not available has no column, but a row of its own with PAPI's reason, so that nobody takes it for 0.
#include <stdlib.h>
#include <string.h>

#include "harness/report/counters.h"
#include "harness/report/text.h"

#define fill(out, ...) text_fill(out, TEXT_XML, __VA_ARGS__)

bool counters_some(const struct stored_run *r) {
    struct counter_rows rows;
    counters_gather(r, &rows);
    free(rows.items);
    return rows.count > 0;
}

static void put_value(const struct counter_row *r, FILE *out) {
    char text[48] = "\xc2\xb7";
    if (r) snprintf(text, sizeof text, r->value < 1e15 ? "%.0f" : "%.6g", r->value);
    fill(out, "<td class=\"number\">%</td>", text);
}

static void put_table(const struct counter_table *t, FILE *out) {
    char number[32];
    fputs("<div class=\"scroll\"><table><thead><tr><th>phase</th><th>times</th>", out);
    for (int e = 0; e < t->events.count; e++) fill(out, "<th class=\"number\">%</th>", t->events.items[e]);
    fputs("</tr>\n<tr><th>unit</th><th></th>", out);
    for (int e = 0; e < t->events.count; e++) fill(out, "<th class=\"number\">%</th>", counter_table_any(t, t->events.items[e])->unit);
    fputs("</tr>\n<tr><th>of</th><th></th>", out);
    for (int e = 0; e < t->events.count; e++) fill(out, "<th class=\"number\">%</th>", counter_table_any(t, t->events.items[e])->scope);
    fputs("</tr></thead><tbody>\n", out);
    for (int p = 0; p < t->phases.count; p++) {
        const char *phase = t->phases.items[p];
        snprintf(number, sizeof number, "%d", counter_table_find(t, NULL, phase)->times);
        fill(out, "<tr><td>%</td><td class=\"number\">%</td>", phase, number);
        for (int e = 0; e < t->events.count; e++) put_value(counter_table_find(t, t->events.items[e], phase), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

// What the words in the row "of" mean, those that are there.
static void put_scopes(const struct counter_table *t, FILE *out) {
    struct counter_axis scopes = {0};
    for (int e = 0; e < t->events.count; e++) counter_axis_add(&scopes, counter_table_any(t, t->events.items[e])->scope);
    fputs(scopes.count ? "<p class=\"dim\">" : "", out);
    for (int i = 0; i < scopes.count; i++) fill(out, "%%: %", i ? "; " : "", scopes.items[i], counter_scope_words(scopes.items[i]));
    fputs(scopes.count ? "</p>\n" : "", out);
    free(scopes.items);
}

static void put_absent(const struct counter_table *t, FILE *out) {
    int count = 0;
    for (int i = 0; i < t->rows->count; i++) {
        const struct counter_row *r = &t->rows->items[i];
        char cases[32];
        if (!r->reason || strcmp(r->implementation, t->implementation)) continue;
        if (!count++) fputs("<div class=\"scroll\"><table><thead><tr><th>not available</th><th>cases</th><th>PAPI's reason</th></tr></thead><tbody>\n", out);
        snprintf(cases, sizeof cases, "%d", r->cases);
        fill(out, "<tr><td>%</td><td class=\"number\">%</td><td class=\"message\">%</td></tr>\n", r->event, cases, r->reason);
    }
    fputs(count ? "</tbody></table></div>\n" : "", out);
}

static void put_implementation(const struct counter_rows *rows, const char *implementation, FILE *out) {
    struct counter_table t;
    counter_table_make(rows, implementation, &t);
    fill(out, "<h3>%</h3>\n", implementation);
    if (t.events.count) put_table(&t, out);
    else fputs("<p>Nothing could be counted.</p>\n", out);
    put_scopes(&t, out);
    put_absent(&t, out);
    counter_table_free(&t);
}

bool counters_html(const struct stored_run *r, FILE *out) {
    struct counter_rows rows;
    struct counter_axis implementations = {0};
    counters_gather(r, &rows);
    for (int i = 0; i < rows.count; i++) counter_axis_add(&implementations, rows.items[i].implementation);
    if (rows.count) fputs("<h2 id=\"counters\">Counters</h2>\n<p class=\"dim\">PAPI's events by phase, added up over cases and ranks.</p>\n", out);
    for (int i = 0; i < implementations.count; i++) put_implementation(&rows, implementations.items[i], out);
    free(implementations.items);
    free(rows.items);
    return !ferror(out);
}

bool counters_csv(const struct stored_run *run, FILE *out) {
    struct counter_rows rows;
    counters_gather(run, &rows);
    fputs("implementation,event,phase,scope,unit,value,times,cases,reason\r\n", out);
    for (int i = 0; i < rows.count; i++) {
        const struct counter_row *r = &rows.items[i];
        const char *texts[] = {r->implementation, r->event, r->phase, r->scope, r->unit};
        char number[32];
        for (int k = 0; k < 5; k++) {
            fputc('"', out);
            text_put(out, TEXT_CSV, texts[k]);
            fputs("\",", out);
        }
        if (r->reason) fputs(",", out);
        else fprintf(out, "%s,%d", text_number(r->value, number), r->times);
        fprintf(out, ",%d,\"", r->cases);
        text_put(out, TEXT_CSV, r->reason ? r->reason : "");
        fputs("\"\r\n", out);
    }
    free(rows.items);
    return !ferror(out) && !fflush(out);
}
