// The verdict table on a terminal: a row per implementation and family, and under it, in words, all that FAILs or is
// BROKEN; after an implementation's rows the reasons of its SKIPs, each once.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness/protocol/memory.h"
#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/report/view.h"

enum { COLUMNS = 6, CELL_BYTES = 160, NAME_WIDTH = 40, LOG_LINES = 6, DETAIL_INDENT = 10 };

struct table {
    FILE *out;
    struct report_options options;
    int width[COLUMNS];
};

static const char *const colors[VERDICT_COUNT] = {
    [VERDICT_PASS] = "32", [VERDICT_FAIL] = "1;31", [VERDICT_SKIP] = "33", [VERDICT_BROKEN] = "1;35",
};

bool report_wants_color(FILE *out) {
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    return isatty(fileno(out)) && term && strcmp(term, "dumb") && !(no_color && *no_color);
}

int report_columns(FILE *out) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col) return size.ws_col;
    return columns && atoi(columns) > 0 ? atoi(columns) : 100;
}

static void put_colored(const struct table *t, const char *color, const char *s) {
    if (t->options.color) fprintf(t->out, "\x1b[%sm%s\x1b[0m", color, s);
    else fputs(s, t->out);
}

static void put_escaped(FILE *out, const char *s) { text_put(out, TEXT_TERMINAL, s); }

// "1-4,8" from the world sizes of a group.
static void ranks_text(const struct view_group *g, char *out, size_t size) {
    bool seen[1025] = {false};
    for (int i = 0; i < g->case_count; i++) {
        int n = g->cases[i]->c->world_size;
        seen[n < 0 ? 0 : n > 1024 ? 1024 : n] = true;
    }
    size_t used = 0;
    *out = 0;
    for (int n = 1; n <= 1024 && used + 16 < size; n++) {
        if (!seen[n]) continue;
        int last = n;
        while (last < 1024 && seen[last + 1]) last++;
        used += (size_t)snprintf(out + used, size - used, last > n ? "%s%d-%d" : "%s%d", used ? "," : "", n, last);
        n = last;
    }
}

// "PASS", or what is not PASS first: "2 FAIL (1 waived), 1 SKIP, 9 PASS".
static void tally_text(const struct tally *t, int count, char *out, size_t size) {
    static const enum verdict order[] = {VERDICT_BROKEN, VERDICT_FAIL, VERDICT_SKIP, VERDICT_PASS};
    size_t used = 0;
    for (int i = 0; i < VERDICT_COUNT; i++) {
        char words[64];
        int n = t->of[order[i]];
        if (n && n == count && !t->waived) snprintf(out, size, "%s", verdict_name(order[i]));
        else if (n) used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", tally_words(t, order[i], words));
    }
}

static void fill_row(const struct view_group *g, char *cells[COLUMNS]) {
    for (int i = 2; i < COLUMNS; i++) cells[i] = malloc(CELL_BYTES);
    cells[0] = text_shorten(TEXT_TERMINAL, g->implementation, NAME_WIDTH);
    cells[1] = text_shorten(TEXT_TERMINAL, g->family, NAME_WIDTH);
    ranks_text(g, cells[2], CELL_BYTES);
    snprintf(cells[3], CELL_BYTES, "%d", g->case_count);
    snprintf(cells[4], CELL_BYTES, "%d", g->result_count);
    tally_text(&g->tally, g->case_count, cells[5], CELL_BYTES);
}

static const char *const titles[COLUMNS] = {"implementation", "family", "ranks", "cases", "results", "verdict"};
static bool is_number(int column) { return column == 3 || column == 4; }

static void put_row(const struct table *t, const char *const cells[COLUMNS], const char *color) {
    for (int i = 0; i < COLUMNS - 1; i++) {
        int blanks = t->width[i] - text_width(cells[i]);
        fprintf(t->out, "%*s%s%*s  ", is_number(i) ? blanks : 0, "", cells[i], is_number(i) ? 0 : blanks, "");
    }
    put_colored(t, color, cells[COLUMNS - 1]);
    fputc('\n', t->out);
}

static void put_log(const struct table *t, const char *log) {
    const char *start = log + strlen(log);
    while (start > log && start[-1] == '\n') start--;
    for (int lines = 0; start > log; start--)
        if (start[-1] == '\n' && ++lines == LOG_LINES && !t->options.verbose) break;
    for (const char *end; *start; start = *end ? end + 1 : end) {
        end = start + strcspn(start, "\n");
        char *line = strndup(start, (size_t)(end - start));
        fprintf(t->out, "%*s| ", DETAIL_INDENT, "");
        put_escaped(t->out, line);
        fputc('\n', t->out);
        free(line);
    }
}

// "check: 3 > 0 elements; ranks 0-1; fits Z01 Z03", then the message.
static void put_result(const struct table *t, const struct row *row, bool named) {
    char comparison[128];
    const struct stored_result *r = row->r;
    row_comparison(row, comparison, sizeof comparison);
    fprintf(t->out, "%*s", named ? DETAIL_INDENT : DETAIL_INDENT - 8, "");
    if (!named) fprintf(t->out, "%-8s", verdict_name(r->verdict));
    put_escaped(t->out, r->check);
    const char *before = ": ";
    const struct { const char *word, *text; } facts[] = {{"", comparison}, {"ranks ", r->ranks}, {"fits ", r->classes}};
    if (r->waived) fputs(" (waived)", t->out);
    for (int i = 0; i < 3; i++) {
        if (!*facts[i].text) continue;
        fprintf(t->out, "%s%s", before, facts[i].word);
        put_escaped(t->out, facts[i].text);
        before = "; ";
    }
    fputc('\n', t->out);
    if (!*r->message) return;
    char *message = text_copy(TEXT_TERMINAL, r->message);
    fprintf(t->out, "%*s", DETAIL_INDENT + 2, "");
    text_wrap(t->out, message, t->options.columns - DETAIL_INDENT - 2, DETAIL_INDENT + 2);
    free(message);
}

static void put_wrapped(const struct table *t, const char *text, int indent) {
    fprintf(t->out, "%*s", indent, "");
    text_wrap(t->out, text, t->options.columns - indent, indent);
}

// "waived: 3 checks: REASON (PAGE), until DATE": each waiver once.
static void put_waivers(const struct table *t, const struct view_case *k) {
    for (int i = 0; i < k->row_count; i++) {
        const struct stored_waiver *w = k->rows[i].r->waived ? k->rows[i].r->waiver : NULL;
        int count = 0, earlier = 0;
        for (int j = 0; w && j < k->row_count; j++) {
            bool same = k->rows[j].r->waived && k->rows[j].r->waiver == w;
            count += same;
            earlier += same && j < i;
        }
        if (!w || earlier) continue;
        char *reason = text_copy(TEXT_TERMINAL, w->reason), *page = text_copy(TEXT_TERMINAL, w->page), *check = text_copy(TEXT_TERMINAL, k->rows[i].r->check);
        char *line = count == 1 ? memory_format("waived: %s: %s (%s), until %s", check, reason, page, w->expires)
                                : memory_format("waived: %d checks: %s (%s), until %s", count, reason, page, w->expires);
        put_wrapped(t, line, DETAIL_INDENT);
        free(line);
        free(reason);
        free(page);
        free(check);
    }
}

static void put_case(const struct table *t, const struct view_case *k) {
    const struct stored_case *c = k->c;
    const char *name = verdict_name(k->verdict);
    fputs("  ", t->out);
    put_colored(t, colors[k->verdict], name);
    fprintf(t->out, "%*s", DETAIL_INDENT - 2 - (int)strlen(name), "");
    put_escaped(t->out, c->case_id);
    if (*c->origin) {
        fputs("  (", t->out);
        put_escaped(t->out, c->origin);
        fputc(')', t->out);
    }
    fputs(c->waived ? "  waived\n" : "\n", t->out);
    for (int i = 0; i < k->row_count; i++) {
        const struct stored_result *r = k->rows[i].r;
        if (t->options.verbose || (verdict_severity(r->verdict) >= verdict_severity(VERDICT_FAIL) && !r->waived))
            put_result(t, &k->rows[i], !t->options.verbose);
    }
    put_waivers(t, k);
    if (c->log_tail && verdict_severity(k->verdict) >= verdict_severity(VERDICT_FAIL) && (!c->waived || t->options.verbose)) put_log(t, c->log_tail);
}

static void put_skips(const struct table *t, const struct view_group *g) {
    struct reason *reasons;
    int count = view_reasons(g, &reasons);
    for (int i = 0; i < count; i++) {
        fputs("  ", t->out);
        put_colored(t, colors[VERDICT_SKIP], "SKIP");
        char *message = text_copy(TEXT_TERMINAL, reasons[i].message), prefix[64];
        char *line = NULL;
        size_t bytes;
        FILE *joined = open_memstream(&line, &bytes);
        snprintf(prefix, sizeof prefix, reasons[i].cases > 1 ? "%d cases: " : "", reasons[i].cases);
        if (reasons[i].cases == 1) put_escaped(joined, reasons[i].first->c->case_id);
        fprintf(joined, "%s%s%s", reasons[i].cases == 1 ? ": " : "", prefix, message);
        fclose(joined);
        fprintf(t->out, "%*s", DETAIL_INDENT - 6, "");
        text_wrap(t->out, line, t->options.columns - DETAIL_INDENT, DETAIL_INDENT);
        free(line);
        free(message);
    }
    free(reasons);
}

static void put_details(const struct table *t, const struct view_group *g) {
    for (int i = 0; i < g->case_count; i++)
        if (t->options.verbose || verdict_severity(g->cases[i]->verdict) >= verdict_severity(VERDICT_FAIL)) put_case(t, g->cases[i]);
}

// The reasons of all SKIPs of one implementation, whose groups are [first, end): each reason once.
static void put_all_skips(const struct table *t, const struct view *v, int first, int end) {
    struct view_group all = {0};
    for (int g = first; g < end; g++) all.case_count += v->groups[g].case_count;
    all.cases = memory_zeros((size_t)all.case_count, sizeof *all.cases);
    int n = 0;
    for (int g = first; g < end; g++)
        for (int i = 0; i < v->groups[g].case_count; i++) all.cases[n++] = v->groups[g].cases[i];
    put_skips(t, &all);
    free(all.cases);
}

// "  note    12 of 15 cases: TEXT": what the verdicts above must be read with.
static void put_notes(const struct table *t, const struct view *v, const char *implementation) {
    struct remark *notes;
    int cases, count = view_remarks(v, implementation, &notes, &cases);
    for (int i = 0; i < count; i++) {
        char *note = text_copy(TEXT_TERMINAL, notes[i].note);
        char *line = notes[i].cases == cases ? memory_text(note) : memory_format("%d of %d cases: %s", notes[i].cases, cases, note);
        fputs("  note    ", t->out);
        text_wrap(t->out, line, t->options.columns - DETAIL_INDENT, DETAIL_INDENT);
        free(line);
        free(note);
    }
    free(notes);
}

// "seconds: reference 31.2, pytorch-ddp 80.5" where there is more than one implementation.
static void put_seconds(const struct table *t, const struct stored_run *r) {
    char *line = NULL;
    size_t bytes;
    int count = 0;
    const char *name;
    json_t *plan;
    FILE *joined = open_memstream(&line, &bytes);
    json_object_foreach(r->implementations, name, plan) {
        json_t *seconds = json_object_get(plan, "seconds");
        if (!json_is_number(seconds)) continue;
        fputs(count++ ? ", " : "seconds: ", joined);
        put_escaped(joined, name);
        fprintf(joined, " %.1f", json_number_value(seconds));
    }
    fclose(joined);
    if (count > 1) text_wrap(t->out, line, t->options.columns, 2);
    free(line);
}

static void put_summary(const struct table *t, const struct view *v) {
    static const enum verdict order[] = {VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP, VERDICT_BROKEN};
    fputc('\n', t->out);
    for (int i = 0; i < VERDICT_COUNT; i++) {
        char part[64];
        tally_words(&v->tally, order[i], part);
        if (i) fputs(", ", t->out);
        put_colored(t, v->tally.of[order[i]] ? colors[order[i]] : "0", part);
    }
    fprintf(t->out, " (cases; %d results; run %lld)\n", v->row_count, (long long)v->run->id);
    put_seconds(t, v->run);
    if (!view_judged(v)) fputs("no case is PASS or FAIL: nothing was judged\n", t->out);
}

bool report_table(const struct stored_run *r, const struct report_options *o, FILE *out) {
    struct table t = {.out = out, .options = *o};
    struct view v;
    view_make(r, &v);
    char *(*cells)[COLUMNS] = calloc((size_t)v.group_count + 1, sizeof *cells);
    for (int c = 0; c < COLUMNS; c++) t.width[c] = (int)strlen(titles[c]);
    for (int g = 0; cells && g < v.group_count; g++) {
        fill_row(&v.groups[g], cells[g]);
        for (int c = 0; c < COLUMNS; c++)
            if (text_width(cells[g][c]) > t.width[c]) t.width[c] = text_width(cells[g][c]);
    }
    put_row(&t, titles, "1");
    int first = 0;
    for (int g = 0; cells && g < v.group_count; g++) {
        put_row(&t, (const char *const *)cells[g], colors[v.groups[g].verdict]);
        put_details(&t, &v.groups[g]);
        for (int c = 0; c < COLUMNS; c++) free(cells[g][c]);
        bool last = g + 1 == v.group_count || strcmp(v.groups[g].implementation, v.groups[g + 1].implementation);
        if (!last) continue;
        if (!t.options.verbose) put_all_skips(&t, &v, first, g + 1);
        put_notes(&t, &v, v.groups[g].implementation);
        first = g + 1;
    }
    put_summary(&t, &v);
    free(cells);
    view_free(&v);
    return !ferror(out) && !fflush(out);
}
