// JUnit XML: a testsuite per implementation, a testcase per result.
//
// SKIP is skipped with its reason, FAIL a failure, BROKEN an error. A FAIL that is waived is skipped too, as pytest writes an
// expected failure, and says so: the format has no word for it, and CI systems turn red on any failure. The seconds of a case stand at its first result, so
// that sums are right. Source of the format: the testmoapp/junitxml description of what CI systems read.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/report/view.h"

static const char *const elements[VERDICT_COUNT] = {
    [VERDICT_FAIL] = "failure", [VERDICT_SKIP] = "skipped", [VERDICT_BROKEN] = "error",
};

static void put_attribute(FILE *out, const char *name, const char *value) {
    fprintf(out, " %s=\"", name);
    text_put(out, TEXT_XML, value);
    fputc('"', out);
}

struct counts { struct tally rows; int total; double seconds; };
static struct counts count(const struct view *v, const char *implementation) {
    struct counts n = {.total = 0};
    for (int i = 0; i < v->case_count; i++) {
        const struct view_case *k = &v->cases[i];
        if (implementation && strcmp(k->c->implementation, implementation)) continue;
        if (!isnan(k->c->seconds)) n.seconds += k->c->seconds;
        for (int j = 0; j < k->row_count; j++) {
            n.rows.of[k->rows[j].r->verdict]++;
            n.rows.waived += k->rows[j].r->waived;
        }
        n.total += k->row_count;
    }
    return n;
}

static void put_counts(FILE *out, struct counts n) {
    fprintf(out, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.6f\"", n.total,
            n.rows.of[VERDICT_FAIL] - n.rows.waived, n.rows.of[VERDICT_BROKEN], n.rows.of[VERDICT_SKIP] + n.rows.waived, n.seconds);
}

static void put_verdict(FILE *out, const struct row *row) {
    const struct stored_result *r = row->r;
    const char *element = elements[r->verdict];
    char comparison[128];
    if (!element) return;
    if (r->waived) element = "skipped";
    fprintf(out, "   <%s", element);
    put_attribute(out, "message", r->waived ? r->waiver->reason : r->message);
    if (r->verdict == VERDICT_SKIP) {
        fputs("/>\n", out);
        return;
    }
    put_attribute(out, "type", r->waived ? "FAIL, waived" : verdict_name(r->verdict));
    fputc('>', out);
    const struct { const char *word, *text; } facts[] = {
        {"", r->message}, {"figure: ", row_comparison(row, comparison, sizeof comparison)}, {"ranks: ", r->ranks},
        {"fault classes that it fits: ", r->classes}, {"case: ", row->c->origin},
        {"waived: ", r->waived ? r->waiver->page : ""}, {"until ", r->waived ? r->waiver->expires : ""}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (!*facts[i].text) continue;
        fputs(facts[i].word, out);
        text_put(out, TEXT_XML, facts[i].text);
        fputc('\n', out);
    }
    fprintf(out, "</%s>\n", element);
}

// The verdict where no element says it, and the note that goes with it.
static void put_properties(FILE *out, const struct row *row) {
    const struct { const char *name, *value; } all[] = {
        {"verdict", row->r->waived ? "FAIL" : ""}, {"waived", row->r->waived ? row->r->waiver->reason : ""}, {"note", row->c->note ? row->c->note : ""}};
    bool any = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!*all[i].value) continue;
        fputs(any ? "" : "   <properties>\n", out);
        any = true;
        fprintf(out, "    <property name=\"%s\"", all[i].name);
        put_attribute(out, "value", all[i].value);
        fputs("/>\n", out);
    }
    fputs(any ? "   </properties>\n" : "", out);
}

static void put_testcase(FILE *out, const struct row *row, bool first) {
    char class[2048];
    snprintf(class, sizeof class, "%s.%s", row->c->implementation, row->c->case_id);
    fputs("  <testcase", out);
    put_attribute(out, "classname", class);
    put_attribute(out, "name", row->r->check);
    fprintf(out, " time=\"%.6f\">\n", first && !isnan(row->c->seconds) ? row->c->seconds : 0);
    put_properties(out, row);
    put_verdict(out, row);
    if (first && row->c->log_tail && verdict_severity(row->c->verdict) >= verdict_severity(VERDICT_FAIL)) {
        fputs("   <system-out>", out);
        text_put(out, TEXT_XML, row->c->log_tail);
        fputs("</system-out>\n", out);
    }
    fputs("  </testcase>\n", out);
}

static void put_suite(FILE *out, const struct view *v, const char *implementation) {
    fputs(" <testsuite", out);
    put_attribute(out, "name", implementation);
    put_counts(out, count(v, implementation));
    put_attribute(out, "timestamp", v->run->started);
    fputs(">\n", out);
    for (int i = 0; i < v->case_count; i++)
        for (int j = 0; !strcmp(v->cases[i].c->implementation, implementation) && j < v->cases[i].row_count; j++)
            put_testcase(out, &v->cases[i].rows[j], !j);
    fputs(" </testsuite>\n", out);
}

bool report_junit(const struct stored_run *r, FILE *out) {
    struct view v;
    view_make(r, &v);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fsdpmark\"", out);
    put_counts(out, count(&v, NULL));
    fputs(">\n", out);
    for (int i = 0; i < v.implementations.count; i++) put_suite(out, &v, v.implementations.items[i]);
    if (!v.implementations.count) put_suite(out, &v, v.cases[0].c->implementation); // the row that says that nothing ran
    fputs("</testsuites>\n", out);
    view_free(&v);
    return !ferror(out) && !fflush(out);
}
