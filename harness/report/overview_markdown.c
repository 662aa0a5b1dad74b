// The verdict matrix as Markdown, alone or inside a document that is there.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"
#include "harness/report/overview.h"
#include "harness/report/text.h"

static void put(FILE *out, const char *s) { text_put(out, TEXT_MARKDOWN, s); }

// Between backquotes; a backquote inside, or a line's end, would end it.
static void put_code(FILE *out, const char *s) {
    fputc('`', out);
    for (; *s; s++) fputc(*s == '`' || (unsigned char)*s < ' ' ? '?' : *s, out);
    fputc('`', out);
}

static void put_cell(FILE *out, const struct overview_cell *cell) {
    char words[64];
    bool bad = cell->cases && verdict_severity(cell->verdict) >= verdict_severity(VERDICT_FAIL);
    const char *mark = bad && !cell->deciding->c->waived ? "**" : "";
    fprintf(out, " | %s%s%s", mark, cell->cases ? overview_text(cell, words) : "\xc2\xb7", mark);
    if (bad) fprintf(out, " [%d]", cell->deciding->number);
}

static void put_table(const struct overview *m, FILE *out) {
    fputs("| capability", out);
    for (int i = 0; i < m->implementations.count; i++) {
        fputs(" | ", out);
        put(out, m->implementations.items[i]);
    }
    fputs(" |\n|---", out);
    for (int i = 0; i < m->implementations.count; i++) fputs("|---", out);
    fputs("|\n", out);
    for (int k = 0; k < m->row_count; k++) {
        int row = m->rows[k];
        fputs("| ", out);
        put(out, capabilities[row].group);
        fputs(": ", out);
        put(out, capabilities[row].title);
        for (int i = 0; i < m->implementations.count; i++) put_cell(out, overview_at(m, row, i));
        fputs(" |\n", out);
    }
}

// "[3]: NAME, `CASE`: CHECK ...": a list whose numbers are those of the cells.
static void put_footnote(const struct overview *m, const struct overview_case *k, FILE *out) {
    const struct stored_result *r = overview_result(k);
    struct row row = {k->c, r};
    char comparison[128], *command = overview_command(m, k);
    fprintf(out, "- [%d] ", k->number);
    put(out, k->c->implementation);
    fprintf(out, ", **%s**%s, ", verdict_name(k->verdict), k->c->waived ? " (waived)" : "");
    put_code(out, k->c->case_id);
    if (r) {
        fputs(", check ", out);
        put(out, r->check);
        if (row_has_figure(&row)) fputs(": ", out), put(out, row_comparison(&row, comparison, sizeof comparison));
        fputs(". ", out);
        put(out, r->waived ? r->waiver->reason : r->message);
    }
    if (r && r->waived) {
        fputs(" ([page](", out);
        for (const char *p = r->waiver->page; *p; p++) // what would end the link, or is no part of an address
            strchr(" ()<>\\\"", *p) ? fprintf(out, "%%%02X", (unsigned char)*p) : fputc(*p, out);
        fprintf(out, "), until %s)", r->waiver->expires);
    }
    fputs(".\n  ", out);
    put_code(out, command);
    fputc('\n', out);
    free(command);
}

static void put_subjects(const struct overview *m, FILE *out) {
    fputs("\nJudged:", out);
    for (int i = 0; i < m->implementations.count; i++) {
        char *versions = overview_versions(m, i), *note = overview_note(m, i);
        fputs(i ? "; " : " ", out);
        put(out, m->implementations.items[i]);
        fputs(*versions || *note ? " (" : "", out);
        put(out, versions);
        fputs(*versions && *note ? "; " : "", out);
        put(out, note);
        fputs(*versions || *note ? ")" : "", out);
        free(versions);
        free(note);
    }
    fputs(".\n\n", out);
}

bool overview_markdown(const struct overview *m, FILE *out) {
    fputs(OVERVIEW_BEGIN " (made by `fsdpmark matrix --markdown FILE`) -->\n\n", out);
    put_table(m, out);
    fputs("\nA cell is the worst verdict over the cases with that capability, and how many of the judged ones have it; waived: a known failure, "
          "written up; \xc2\xb7: no case was asked.\n", out);
    char *unasked = overview_unasked(m);
    fputs(*unasked ? "None of these cases asks for " : "", out);
    put(out, unasked);
    fputs(*unasked ? ".\n" : "", out);
    free(unasked);
    put_subjects(m, out);
    for (int i = 0; i < m->note_count; i++) put_footnote(m, m->notes[i], out);
    fputs("\n" OVERVIEW_END " -->\n", out);
    return !ferror(out);
}

// ---- into a file ----

// The line that begins so, or NULL.
static char *find_line(char *text, const char *start) {
    for (char *at = text; (at = strstr(at, start)) != NULL; at++)
        if (at == text || at[-1] == '\n') return at;
    return NULL;
}

static bool write_parts(const char *path, const char *head, size_t head_bytes, const struct overview *m, const char *tail, struct error *error) {
    char *part = memory_format("%s.part", path);
    FILE *out = fopen(part, "w");
    bool ok = out && fwrite(head, 1, head_bytes, out) == head_bytes && overview_markdown(m, out) && fputs(tail, out) >= 0;
    if (out && fclose(out)) ok = false;
    ok = ok && !rename(part, path);
    if (!ok) {
        error_set(error, "%s: cannot be written: %s", path, strerror(errno));
        remove(part);
    }
    free(part);
    return ok;
}

bool overview_markdown_into(const struct overview *m, const char *path, struct error *error) {
    struct error own = {0};
    size_t size;
    FILE *there = fopen(path, "r");
    if (!there) return errno == ENOENT ? write_parts(path, "", 0, m, "", error) : error_set(error, "%s: %s", path, strerror(errno));
    fclose(there);
    char *text = file_read(path, DOCUMENT_MAX_BYTES, &size, &own);
    if (!text) return error_set(error, "%s", own.text);
    char *begin = find_line(text, OVERVIEW_BEGIN), *end = begin ? find_line(begin, OVERVIEW_END) : NULL;
    bool ok = end || error_set(error, "%s: found no lines %s ... and %s ..., expected both in a file that is there", path, OVERVIEW_BEGIN, OVERVIEW_END);
    if (ok) {
        end += strcspn(end, "\n");
        end += *end == '\n';
        ok = write_parts(path, text, (size_t)(begin - text), m, end, error);
    }
    free(text);
    return ok;
}
