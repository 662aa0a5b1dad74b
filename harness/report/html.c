// The report page: summary, failures in words, skips, verdicts by family, figures, counters, environment, every case folded by family.
//
// A page of thousands of cases must open at once: a family is folded, a case is one row, and what passed has its figure but
// not its message, which results.csv and results.json hold.
// All text goes through `fill`, whose arguments are escaped; the templates are the only markup.
#include "harness/report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/counters.h"
#include "harness/report/exposed.h"
#include "harness/report/svg.h"
#include "harness/report/text.h"
#include "results.h"

#define fill(out, ...) text_fill(out, TEXT_XML, __VA_ARGS__)

static const char *const class_of[VERDICT_COUNT] = {
    [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "fail", [VERDICT_SKIP] = "skip", [VERDICT_BROKEN] = "broken",
};
static const char *class_of_tally(enum verdict worst, const struct tally *t) { return tally_is_waived(t) ? "waived" : class_of[worst]; }
static bool is_bad(enum verdict v) { return verdict_severity(v) >= verdict_severity(VERDICT_FAIL); }

static const char *decimal(int64_t x, char buffer[32]) { return snprintf(buffer, 32, "%lld", (long long)x), buffer; }

static void put_head(FILE *out, const struct view *v) {
    const struct stored_run *r = v->run;
    char id[32], seed[32], number[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->seed);
    fill(out, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>fsdpmark run %</title>\n<style>\n",
         decimal(r->id, id));
    fputs(page_css, out);
    fill(out, "</style></head>\n<body><h1>fsdpmark run %</h1>\n<p><code>%</code></p>\n<p class=\"dim\">started %, ", id, r->command, r->started);
    if (r->ended_normally) fill(out, "ended %", r->ended);
    else fputs("not ended: running still, or interrupted", out);
    if (r->profile) fill(out, "; profile %", r->profile);
    if (r->pattern) fill(out, "; pattern %", r->pattern);
    fill(out, "; seed %</p>\n<ul class=\"tiles\">", seed);
    static const enum verdict order[] = {VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP, VERDICT_BROKEN};
    char words[64];
    const struct tally none = {.waived = 0};
    for (int i = 0; i < VERDICT_COUNT; i++)
        fill(out, "<li class=\"%\"><b>%</b>%</li>", v->tally.of[order[i]] ? class_of_tally(order[i], order[i] == VERDICT_FAIL ? &v->tally : &none) : "none",
             decimal(v->tally.of[order[i]], number), tally_words(&v->tally, order[i], words) + strcspn(words, " ") + 1);
    fill(out, "</ul>\n<p>% cases, ", decimal(v->case_count, number));
    fill(out, "% results. The verdict of a case is the worst of its results.</p>\n", decimal(v->row_count, number));
    if (!view_judged(v)) fputs("<p><b>Nothing was judged: no case is PASS or FAIL.</b></p>\n", out);
    fputs("<nav><a href=\"#failures\">failures</a> <a href=\"#skipped\">skipped</a> <a href=\"#families\">families</a> <a href=\"#figures\">figures</a> ", out);
    fputs(counters_some(v->run) ? "<a href=\"#counters\">counters</a> " : "", out);
    fputs("<a href=\"#environment\">environment</a> <a href=\"#results\">all results</a></nav>\n", out);
}

// ---- families ----
static const struct view_group *group_of(const struct view *v, const char *implementation, const char *family) {
    for (int i = 0; i < v->group_count; i++)
        if (!strcmp(v->groups[i].implementation, implementation) && !strcmp(v->groups[i].family, family)) return &v->groups[i];
    return NULL;
}

static const char *family_title(const struct view *v, int family) {
    return *v->families.items[family] ? v->families.items[family] : "(no family)";
}

// "97 PASS", or the worst first: "1 FAIL, 14 PASS".
static void put_tally(FILE *out, const struct tally *t) {
    static const enum verdict order[] = {VERDICT_BROKEN, VERDICT_FAIL, VERDICT_SKIP, VERDICT_PASS};
    const char *before = "";
    for (int i = 0; i < VERDICT_COUNT; i++) {
        char words[64];
        if (!t->of[order[i]]) continue;
        fill(out, "%%", before, tally_words(t, order[i], words));
        before = ", ";
    }
}

static void put_families(FILE *out, const struct view *v) {
    char place[32];
    fputs("<h2 id=\"families\">Verdicts by family</h2>\n<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>family</th>", out);
    for (int i = 0; i < v->implementations.count; i++) fill(out, "<th>%</th>", v->implementations.items[i]);
    fputs("</tr></thead><tbody>\n", out);
    for (int f = 0; f < v->families.count; f++) {
        fill(out, "<tr><td><a href=\"#family%\">%</a></td>", decimal(f, place), family_title(v, f));
        for (int i = 0; i < v->implementations.count; i++) {
            const struct view_group *g = group_of(v, v->implementations.items[i], v->families.items[f]);
            fill(out, "<td class=\"%\">", g ? class_of_tally(g->verdict, &g->tally) : "none");
            if (g) put_tally(out, &g->tally);
            else fputs("\xc2\xb7", out);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void put_notes(FILE *out, const struct view *v) {
    bool any = false;
    for (int i = 0; i < v->implementations.count; i++) {
        struct remark *notes;
        char part[32], whole[32];
        int cases, count = view_remarks(v, v->implementations.items[i], &notes, &cases);
        for (int k = 0; k < count; k++) {
            fputs(any ? "" : "<ul id=\"notes\">\n", out);
            any = true;
            fill(out, "<li><b>%</b>, % of % cases: %</li>\n", v->implementations.items[i], decimal(notes[k].cases, part), decimal(cases, whole), notes[k].note);
        }
        free(notes);
    }
    fputs(any ? "</ul>\n" : "", out);
}

// ---- failures ----
static void put_failure(FILE *out, const struct row *row) {
    char comparison[128];
    const struct { const char *before, *text; } facts[] = {
        {": ", row_comparison(row, comparison, sizeof comparison)}, {"; ranks ", row->r->ranks}, {"; fits fault classes ", row->r->classes}};
    const struct stored_waiver *w = row->r->waived ? row->r->waiver : NULL;
    fill(out, "<p><span class=\"badge %\">%%</span> <b>%</b>", w ? "waived" : class_of[row->r->verdict], verdict_name(row->r->verdict),
         w ? ", waived" : "", row->r->check);
    for (int i = 0; i < 3; i++)
        if (*facts[i].text) fill(out, "%%", facts[i].before, facts[i].text);
    fill(out, "</p>\n<p class=\"message\">%</p>\n", row->r->message);
    if (w) fill(out, "<p>Waived until %: % <code>%</code></p>\n", w->expires, w->reason, w->page);
}

static void put_failed_case(FILE *out, const struct view *v, const struct view_case *k) {
    char place[32], seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)k->c->seed);
    fill(out, "<article id=\"case%\"><h3>% \xc2\xb7 %</h3>\n<p class=\"dim\">% seed %</p>\n", decimal(k - v->cases, place),
         k->c->implementation, k->c->case_id, k->c->origin, seed);
    if (k->c->note && *k->c->note) fill(out, "<p>Note: %</p>\n", k->c->note);
    for (int i = 0; i < k->row_count; i++)
        if (is_bad(k->rows[i].r->verdict)) put_failure(out, &k->rows[i]);
    if (k->c->log_tail) fill(out, "<details><summary>output of the workers</summary><pre>%</pre></details>\n", k->c->log_tail);
    if (k->c->case_json) fill(out, "<details><summary>case.json</summary><pre>%</pre></details>\n", k->c->case_json);
    fputs("</article>\n", out);
}

static void put_failures(FILE *out, const struct view *v, bool waived) {
    for (int i = 0; i < v->case_count; i++)
        if (is_bad(v->cases[i].verdict) && v->cases[i].c->waived == waived) put_failed_case(out, v, &v->cases[i]);
}

static void put_all_failures(FILE *out, const struct view *v) {
    int bad = v->tally.of[VERDICT_FAIL] + v->tally.of[VERDICT_BROKEN];
    fputs("<h2 id=\"failures\">What is not right</h2>\n", out);
    put_failures(out, v, false);
    if (bad == v->tally.waived) fputs(bad ? "<p>Nothing but known failures.</p>\n" : "<p>Nothing: no FAIL, no BROKEN.</p>\n", out);
    if (!v->tally.waived) return;
    fputs("<h2 id=\"waived\">Known failures, waived</h2>\n", out);
    put_failures(out, v, true);
}

static void put_skips(FILE *out, const struct view *v) {
    fputs("<h2 id=\"skipped\">Skipped</h2>\n", out);
    if (!v->tally.of[VERDICT_SKIP]) {
        fputs("<p>No case.</p>\n", out);
        return;
    }
    fputs("<div class=\"scroll\"><table><thead><tr><th>implementation</th><th>family</th><th>cases</th><th>reason</th></tr></thead><tbody>\n", out);
    for (int i = 0; i < v->group_count; i++) {
        struct reason *reasons;
        char number[32];
        int count = view_reasons(&v->groups[i], &reasons);
        for (int k = 0; k < count; k++)
            fill(out, "<tr><td>%</td><td>%</td><td class=\"number\">%</td><td class=\"message\">%</td></tr>\n", v->groups[i].implementation,
                 v->groups[i].family, decimal(reasons[k].cases, number), reasons[k].message);
        free(reasons);
    }
    fputs("</tbody></table></div>\n", out);
}

// ---- figures and environment ----
static void put_figures(FILE *out, const struct figure figures[FIGURES], const char *folder) {
    fputs("<h2 id=\"figures\">Figures</h2>\n", out);
    for (int i = 0; i < FIGURES; i++) {
        const struct figure *f = &figures[i];
        if (f->absent) continue;
        char *path = memory_format("%s/%s.svg", folder, f->name), *prefix = memory_format("%s-", f->name);
        fill(out, "<h3>%</h3>\n<figure><div class=\"scroll\" role=\"img\" aria-label=\"%\">", f->title, f->caption);
        if (*f->why || !svg_inline(out, path, prefix)) fill(out, "<p class=\"dim\">%</p>", *f->why ? f->why : "no picture was drawn");
        fill(out, "</div><figcaption>%", f->caption);
        if (*f->note) fill(out, " (%)", f->note);
        fputs("</figcaption></figure>\n", out);
        free(path);
        free(prefix);
    }
}

// Objects within objects become names with dots.
static void put_facts(FILE *out, const char *prefix, json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char *name = memory_format("%s%s%s", prefix, *prefix ? "." : "", key);
        char *text = json_is_string(value) || json_is_object(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
        if (json_is_object(value)) put_facts(out, name, value);
        else fill(out, "<tr><th>%</th><td>%</td></tr>\n", name, text ? text : json_string_value(value));
        free(text);
        free(name);
    }
}

static void put_environment(FILE *out, const struct stored_run *r) {
    fputs("<h2 id=\"environment\">Environment</h2>\n<div class=\"scroll\"><table><tbody>\n", out);
    put_facts(out, "", r->environment);
    put_facts(out, "implementation", r->implementations);
    fputs("</tbody></table></div>\n", out);
}

// ---- every result ----
// "step-bitwise 0 <= 0 elements; sharding": the verdict stands where it is not PASS, the message where it is SKIP (a failure's
// is above).
static void put_result(FILE *out, const struct row *row, const char *before) {
    char comparison[128];
    const char *passed = row->r->verdict == VERDICT_PASS ? "" : verdict_name(row->r->verdict);
    row_comparison(row, comparison, sizeof comparison);
    fill(out, "%<b>%</b>%%", before, row->r->check, *comparison ? " " : "", comparison);
    if (*passed) fill(out, " <span class=\"badge %\">%</span>", row->r->waived ? "waived" : class_of[row->r->verdict], row->r->waived ? "FAIL, waived" : passed);
    if (row->r->verdict == VERDICT_SKIP) fill(out, " %", row->r->message);
}

static void put_case(FILE *out, const struct view *v, const struct view_case *k, int implementation) {
    char place[32];
    if (implementation >= 0) fill(out, "<td>%</td>", v->implementations.items[implementation]);
    fill(out, "<td class=\"%\">", k->c->waived ? "waived" : class_of[k->verdict]);
    if (is_bad(k->verdict)) fill(out, "<a href=\"#case%\">%</a>", decimal(k - v->cases, place), k->c->waived ? "FAIL, waived" : verdict_name(k->verdict));
    else fputs(verdict_name(k->verdict), out);
    fputs("</td><td>", out);
    for (int i = 0; i < k->row_count; i++) put_result(out, &k->rows[i], i ? "; " : "");
    fputs("</td></tr>\n", out);
}

// The implementations of a case below each other, so that they can be compared.
static void put_case_rows(FILE *out, const struct view *v, int id) {
    int width = v->implementations.count, count = 0;
    char span[32];
    for (int i = 0; i < width; i++) count += v->matrix[id * width + i] != NULL;
    for (int i = 0, first = 1; i < width; i++) {
        const struct view_case *k = v->matrix[id * width + i];
        if (!k) continue;
        fputs("<tr>", out);
        if (first && count > 1) fill(out, "<td rowspan=\"%\">%</td>", decimal(count, span), v->case_ids.items[id]);
        else if (first) fill(out, "<td>%</td>", v->case_ids.items[id]);
        first = 0;
        put_case(out, v, k, width > 1 ? i : -1);
    }
}

// The family of a case, whichever implementation has it.
static const char *family_of(const struct view *v, int id) {
    const struct view_case *const *k = &v->matrix[id * v->implementations.count];
    while (!*k) k++;
    return (*k)->family;
}

static void put_family(FILE *out, const struct view *v, int family) {
    char place[32];
    struct tally all = {.waived = 0};
    for (int i = 0; i < v->group_count; i++) {
        if (strcmp(v->groups[i].family, v->families.items[family])) continue;
        for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) all.of[verdict] += v->groups[i].tally.of[verdict];
        all.waived += v->groups[i].tally.waived;
    }
    fill(out, "<details id=\"family%\"><summary>% <span class=\"dim\">", decimal(family, place), family_title(v, family));
    put_tally(out, &all);
    fputs("</span></summary>\n<div class=\"scroll\"><table><thead><tr><th>case</th>", out);
    fputs(v->implementations.count > 1 ? "<th>implementation</th>" : "", out);
    fputs("<th>verdict</th><th>results</th></tr></thead><tbody>\n", out);
}

// Cases of a family are neighbours in case_ids, in the order of families.
static void put_results(FILE *out, const struct view *v) {
    fputs("<h2 id=\"results\">All results</h2>\n<p class=\"dim\">A check that passed stands with its figure against its bound; "
          "its message is in results.csv and results.json.</p>\n", out);
    for (int f = 0, id = 0; v->implementations.count && f < v->families.count; f++) { // without one, what was not run is among the failures
        put_family(out, v, f);
        for (; id < v->case_ids.count && !strcmp(family_of(v, id), v->families.items[f]); id++) put_case_rows(out, v, id);
        fputs("</tbody></table></div></details>\n", out);
    }
}

bool report_html(const struct view *v, const struct figure figures[FIGURES], const char *folder, FILE *out) {
    put_head(out, v);
    put_notes(out, v);
    put_all_failures(out, v);
    put_skips(out, v);
    put_families(out, v);
    put_figures(out, figures, folder);
    counters_html(v->run, out);
    exposed_html(v->run, out);
    put_environment(out, v->run);
    put_results(out, v);
    fputs("</body></html>\n", out);
    return !ferror(out) && !fflush(out);
}
