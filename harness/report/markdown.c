// Markdown: the counts, a row per implementation and family, and in words what is not PASS.
#include <stdlib.h>

#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/report/view.h"

static void put(FILE *out, const char *s) { text_put(out, TEXT_MARKDOWN, s); }

static void put_groups(FILE *out, const struct view *v) {
    fputs("\n| implementation | family | cases | PASS | FAIL | SKIP | BROKEN | waived |\n|---|---|--:|--:|--:|--:|--:|--:|\n", out);
    for (int i = 0; i < v->group_count; i++) {
        const struct view_group *g = &v->groups[i];
        fputs("| ", out);
        put(out, g->implementation);
        fputs(" | ", out);
        put(out, g->family);
        fprintf(out, " | %d", g->case_count);
        for (int k = 0; k < VERDICT_COUNT; k++) fprintf(out, " | %d", g->tally.of[k]);
        fprintf(out, " | %d |\n", g->tally.waived);
    }
}

static void put_failure(FILE *out, const struct row *row) {
    char comparison[128];
    const struct stored_waiver *w = row->r->waived ? row->r->waiver : NULL;
    fprintf(out, "- **%s%s** ", verdict_name(row->r->verdict), w ? ", waived" : "");
    const struct { const char *before, *text, *after; } facts[] = {
        {"", row->c->implementation, ""}, {" ", row->c->case_id, ""}, {", check ", row->r->check, ""},
        {": ", row_comparison(row, comparison, sizeof comparison), ""}, {"; ranks ", row->r->ranks, ""},
        {"; fits ", row->r->classes, ""}, {".\n  ", row->r->message, ""}, {" (", row->c->origin, ")"},
        {".\n  Waived: ", w ? w->reason : "", ""}, {" (", w ? w->page : "", ")"}, {", until ", w ? w->expires : "", ""}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (!*facts[i].text) continue;
        fputs(facts[i].before, out);
        put(out, facts[i].text);
        fputs(facts[i].after, out);
    }
    fputc('\n', out);
}

static void put_failures(FILE *out, const struct view *v, bool waived, const char *heading) {
    bool any = false;
    for (int i = 0; i < v->row_count; i++) {
        if (verdict_severity(v->rows[i].r->verdict) < verdict_severity(VERDICT_FAIL) || v->rows[i].r->waived != waived) continue;
        if (!any) fprintf(out, "\n## %s\n\n", heading);
        any = true;
        put_failure(out, &v->rows[i]);
    }
}

static void put_notes(FILE *out, const struct view *v) {
    bool any = false;
    for (int i = 0; i < v->implementations.count; i++) {
        struct remark *notes;
        int cases, count = view_remarks(v, v->implementations.items[i], &notes, &cases);
        for (int k = 0; k < count; k++) {
            fputs(any ? "- " : "\n## Notes on the verdicts\n\n- ", out);
            any = true;
            put(out, v->implementations.items[i]);
            fprintf(out, ", %d of %d cases: ", notes[k].cases, cases);
            put(out, notes[k].note);
            fputc('\n', out);
        }
        free(notes);
    }
}

static void put_skips(FILE *out, const struct view *v) {
    bool any = false;
    for (int i = 0; i < v->group_count; i++) {
        struct reason *reasons;
        int count = view_reasons(&v->groups[i], &reasons);
        for (int k = 0; k < count; k++) {
            if (!any) fputs("\n## Skipped\n\n", out);
            any = true;
            fputs("- ", out);
            put(out, v->groups[i].implementation);
            fputc(' ', out);
            put(out, v->groups[i].family);
            fprintf(out, ", %d %s: ", reasons[k].cases, reasons[k].cases == 1 ? "case" : "cases");
            put(out, reasons[k].message);
            fputc('\n', out);
        }
        free(reasons);
    }
}

static void put_environment(FILE *out, json_t *environment) {
    const char *key;
    json_t *value;
    fputs("\n## Environment\n\n", out);
    json_object_foreach(environment, key, value) {
        char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
        fputs("- ", out);
        put(out, key);
        fputs(": ", out);
        put(out, text ? text : json_string_value(value));
        fputc('\n', out);
        free(text);
    }
}

bool report_markdown(const struct stored_run *r, FILE *out) {
    struct view v;
    view_make(r, &v);
    fprintf(out, "# fsdpmark run %lld\n\n", (long long)r->id);
    put(out, r->command);
    fputs("  \nstarted ", out);
    put(out, r->started);
    fputs(r->ended_normally ? ", ended " : ", not ended: running still, or interrupted", out);
    put(out, r->ended);
    char words[4][64];
    fprintf(out, "\n\n**%s, %s, %s, %s** (cases; %d results)\n", tally_words(&v.tally, VERDICT_PASS, words[0]),
            tally_words(&v.tally, VERDICT_FAIL, words[1]), tally_words(&v.tally, VERDICT_SKIP, words[2]),
            tally_words(&v.tally, VERDICT_BROKEN, words[3]), v.row_count);
    if (!view_judged(&v)) fputs("\n**No case is PASS or FAIL: nothing was judged.**\n", out);
    put_groups(out, &v);
    put_notes(out, &v);
    put_failures(out, &v, false, "What is not right");
    put_failures(out, &v, true, "Known failures, waived");
    put_skips(out, &v);
    put_environment(out, r->environment);
    view_free(&v);
    return !ferror(out) && !fflush(out);
}
