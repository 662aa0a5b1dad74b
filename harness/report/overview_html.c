// The verdict matrix as a page: the table, then a section for each deciding case, folded by implementation. Self-contained, no scripts.
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/overview.h"
#include "harness/report/text.h"
#include "results.h"

#define fill(out, ...) text_fill(out, TEXT_XML, __VA_ARGS__)

static const char *decimal(int64_t x, char buffer[32]) { return snprintf(buffer, 32, "%lld", (long long)x), buffer; }

static void put_head(const struct overview *m, FILE *out) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>fsdpmark: who can do what</title>\n<style>\n", out);
    fputs(page_css, out);
    fputs("</style></head>\n<body class=\"wide\"><h1>Which implementation can do what</h1>\n<p>The newest verdict on each case. A cell is the worst verdict over "
          "the cases with that capability, and how many of the judged ones have it; it leads to the smallest case that decides it. "
          "Where all are SKIP, the implementation cannot do it.</p>\n<p>", out);
    static const char *const legend[][2] = {{"pass", "PASS"}, {"fail", "FAIL"}, {"waived", "waived: a FAIL that is known and written up"},
                                            {"skip", "SKIP: not supported"}, {"broken", "BROKEN: not judged"}, {"none", "\xc2\xb7 not asked"}};
    for (int i = 0; i < 6; i++) fill(out, "<span class=\"badge %\">%</span> ", legend[i][0], legend[i][1]);
    fputs("</p>\n", out);
    if (m->unreadable) {
        char number[32];
        fill(out, "<p>% cases are left out: this program cannot read their case.json.</p>\n", decimal(m->unreadable, number));
    }
}

static void put_cell(const struct overview *m, const struct overview_cell *cell, FILE *out) {
    char words[64], place[32];
    fill(out, "<td class=\"%\">", overview_class(cell));
    if (cell->cases) fill(out, "<a href=\"#case%\">%</a></td>", decimal(cell->deciding - m->cases, place), overview_text(cell, words));
    else fputs("\xc2\xb7</td>", out);
}

// Rows of one group from the k-th on.
static int group_size(const struct overview *m, int k) {
    int end = k;
    while (end < m->row_count && !strcmp(capabilities[m->rows[end]].group, capabilities[m->rows[k]].group)) end++;
    return end - k;
}

static void put_table(const struct overview *m, FILE *out) {
    char number[32];
    fputs("<div class=\"scroll\"><table class=\"matrix capabilities\"><thead><tr><th class=\"group\">capability</th><th class=\"row\"></th>", out);
    for (int i = 0; i < m->implementations.count; i++)
        fill(out, "<th><a href=\"#implementation%\">%</a></th>", decimal(i, number), m->implementations.items[i]);
    fputs("</tr></thead><tbody>\n", out);
    for (int k = 0; k < m->row_count; k++) {
        int row = m->rows[k];
        bool first = !k || strcmp(capabilities[row].group, capabilities[m->rows[k - 1]].group);
        fputs(first ? "<tr class=\"first\">" : "<tr>", out);
        if (first) fill(out, "<th class=\"group\" rowspan=\"%\">%</th>", decimal(group_size(m, k), number), capabilities[row].group);
        fill(out, "<th class=\"row\"><span class=\"narrow\">%: </span>%</th>", capabilities[row].group, capabilities[row].title);
        for (int i = 0; i < m->implementations.count; i++) put_cell(m, overview_at(m, row, i), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    char *unasked = overview_unasked(m);
    if (*unasked) fill(out, "<p>None of these cases asks for %.</p>\n", unasked);
    free(unasked);
}

// ---- the deciding cases ----

static void put_capabilities(const struct overview *m, int column, const struct overview_case *k, FILE *out) {
    const char *before = "Decides: ";
    for (int row = 0; row < capability_count(); row++) {
        if (overview_at(m, row, column)->deciding != k) continue;
        fill(out, "%%: %", before, capabilities[row].group, capabilities[row].title);
        before = "; ";
    }
}

static void put_case(const struct overview *m, int column, const struct overview_case *k, FILE *out) {
    static const char *const class_of[VERDICT_COUNT] = {
        [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "fail", [VERDICT_SKIP] = "skip", [VERDICT_BROKEN] = "broken"};
    const struct stored_result *r = overview_result(k);
    struct row row = {k->c, r};
    char place[32], comparison[128], *command = overview_command(m, k);
    fill(out, "<article id=\"case%\"><h3>%</h3>\n<p class=\"dim\">", decimal(k - m->cases, place), k->c->case_id);
    put_capabilities(m, column, k, out);
    fill(out, "</p>\n<p><span class=\"badge %\">%%</span>", k->c->waived ? "waived" : class_of[k->verdict], verdict_name(k->verdict), k->c->waived ? ", waived" : "");
    if (r) {
        fill(out, " <b>%</b>%%</p>\n", r->check, row_has_figure(&row) ? ": " : "", row_comparison(&row, comparison, sizeof comparison));
        fill(out, "<p class=\"message\">%</p>\n", r->message);
        if (r->waived) fill(out, "<p>Waived until %: % <code>%</code></p>\n", r->waiver->expires, r->waiver->reason, r->waiver->page);
    } else {
        fputs("</p>\n", out);
    }
    fill(out, "<pre>%</pre>\n</article>\n", command);
    free(command);
}

static bool decides(const struct overview *m, int column, const struct overview_case *k) {
    for (int row = 0; row < capability_count(); row++)
        if (overview_at(m, row, column)->deciding == k) return true;
    return false;
}

static void put_implementation(const struct overview *m, int column, FILE *out) {
    char place[32], *versions = overview_versions(m, column), *note = overview_note(m, column);
    static const int order[] = {VERDICT_BROKEN, VERDICT_FAIL, VERDICT_PASS, VERDICT_SKIP};
    fill(out, "<h2 id=\"implementation%\">%</h2>\n<p>%</p>\n", decimal(column, place), m->implementations.items[column], versions);
    if (*note) fill(out, "<p>Note: %</p>\n", note);
    for (int i = 0; i < VERDICT_COUNT; i++)
        for (int k = 0; k < m->case_count; k++) {
            const struct overview_case *one = &m->cases[k];
            bool here = !strcmp(one->c->implementation, m->implementations.items[column]) && (int)one->verdict == order[i];
            if (here && decides(m, column, one)) put_case(m, column, one, out);
        }
    for (int k = 0; k < m->run->case_count; k++) { // what was never run has its reason
        const struct stored_case *c = &m->run->cases[k];
        if (!c->case_json && c->result_count && !strcmp(c->implementation, m->implementations.items[column]))
            fill(out, "<p><span class=\"badge skip\">%</span> %</p>\n", verdict_name(c->verdict), c->results[0].message);
    }
    free(versions);
    free(note);
}

bool overview_html(const struct overview *m, FILE *out) {
    put_head(m, out);
    put_table(m, out);
    for (int i = 0; i < m->implementations.count; i++) put_implementation(m, i, out);
    fputs("</body></html>\n", out);
    return !ferror(out) && !fflush(out);
}
