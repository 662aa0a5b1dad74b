// The verdict matrix on a terminal and as JSON.
//
// Rows are capabilities, columns implementations; where a terminal is too narrow the columns are broken into blocks, as `ls` does.
// Every FAIL and BROKEN has a number that leads to its smallest case below.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/overview.h"
#include "harness/report/text.h"

enum { GAP = 2, NAME_WIDTH = 24 };

static const char *color_of(const struct overview_cell *cell) {
    static const char *const colors[VERDICT_COUNT] = {
        [VERDICT_PASS] = "32", [VERDICT_FAIL] = "1;31", [VERDICT_SKIP] = "33", [VERDICT_BROKEN] = "1;35"};
    return !cell->cases ? "2" : cell->deciding->c->waived ? "31" : colors[cell->verdict];
}

static char *cell_text(const struct overview_cell *cell) {
    char words[64], number[16] = "";
    if (!cell->cases) return memory_text("-");
    if (cell->deciding->number) snprintf(number, sizeof number, " [%d]", cell->deciding->number);
    return memory_format("%s%s", overview_text(cell, words), number);
}

static char *row_text(int capability) {
    const struct capability *c = &capabilities[capability];
    return memory_format("%s: %s", c->group, c->title);
}

static int column_width(const struct overview *m, int column) {
    char *name = text_shorten(TEXT_TERMINAL, m->implementations.items[column], NAME_WIDTH);
    int width = text_width(name);
    free(name);
    for (int row = 0; row < m->row_count; row++) {
        char *text = cell_text(overview_at(m, m->rows[row], column));
        if ((int)strlen(text) > width) width = (int)strlen(text);
        free(text);
    }
    return width;
}

static void put_padded(FILE *out, const char *text, int width, const char *color) {
    if (color) fprintf(out, "\x1b[%sm", color);
    fputs(text, out);
    fprintf(out, "%s%*s", color ? "\x1b[0m" : "", width > text_width(text) ? width - text_width(text) : 0, "");
}

// Columns [first, end) of the matrix.
static void put_block(const struct overview *m, const struct report_options *o, const int *width, int head, int first, int end, FILE *out) {
    put_padded(out, "capability", head, o->color ? "1" : NULL);
    for (int i = first; i < end; i++) {
        char *name = text_shorten(TEXT_TERMINAL, m->implementations.items[i], NAME_WIDTH);
        fprintf(out, "%*s", GAP, "");
        put_padded(out, name, i + 1 < end ? width[i] : 0, o->color ? "1" : NULL);
        free(name);
    }
    fputc('\n', out);
    for (int row = 0; row < m->row_count; row++) {
        char *name = row_text(m->rows[row]);
        put_padded(out, name, head, NULL);
        free(name);
        for (int i = first; i < end; i++) {
            const struct overview_cell *cell = overview_at(m, m->rows[row], i);
            char *text = cell_text(cell);
            fprintf(out, "%*s", GAP, "");
            put_padded(out, text, i + 1 < end ? width[i] : 0, o->color ? color_of(cell) : NULL);
            free(text);
        }
        fputc('\n', out);
    }
    fputc('\n', out);
}

static void put_footnote(const struct overview *m, const struct overview_case *k, const struct report_options *o, FILE *out) {
    const struct stored_result *r = overview_result(k);
    char comparison[128], *command = overview_command(m, k), *line = NULL;
    size_t bytes;
    struct row row = {k->c, r};
    FILE *joined = open_memstream(&line, &bytes);
    fprintf(joined, "[%d] ", k->number);
    text_put(joined, TEXT_TERMINAL, k->c->implementation);
    fprintf(joined, " %s%s ", verdict_name(k->verdict), k->c->waived ? " (waived)" : "");
    text_put(joined, TEXT_TERMINAL, k->c->case_id);
    if (r) {
        fputs(", ", joined);
        text_put(joined, TEXT_TERMINAL, r->check);
        if (row_has_figure(&row)) fprintf(joined, ": %s", row_comparison(&row, comparison, sizeof comparison));
    }
    if (r && r->waived) {
        fputs("; ", joined);
        text_put(joined, TEXT_TERMINAL, r->waiver->reason);
        fputs(" (", joined);
        text_put(joined, TEXT_TERMINAL, r->waiver->page);
        fputc(')', joined);
    } else if (r) {
        fputs("; ", joined);
        text_put(joined, TEXT_TERMINAL, r->message);
    }
    fclose(joined);
    text_wrap(out, line, o->columns, 4);
    fputs("    ", out);
    text_put(out, TEXT_TERMINAL, command);
    fprintf(out, "   (fsdpmark show %lld)\n", (long long)k->c->run);
    free(line);
    free(command);
}

static void put_notes(const struct overview *m, const struct report_options *o, FILE *out) {
    for (int i = 0; i < m->implementations.count; i++) {
        char *note = overview_note(m, i), *line = memory_format("%s: %s", m->implementations.items[i], note), *safe = text_copy(TEXT_TERMINAL, line);
        if (*note) text_wrap(out, safe, o->columns, 2);
        free(safe);
        free(line);
        free(note);
    }
}

bool overview_table(const struct overview *m, const struct report_options *o, FILE *out) {
    int head = 0, count = m->implementations.count, *width = memory_zeros((size_t)count + 1, sizeof *width);
    for (int row = 0; row < m->row_count; row++) {
        char *name = row_text(m->rows[row]);
        if (text_width(name) > head) head = text_width(name);
        free(name);
    }
    for (int i = 0; i < count; i++) width[i] = column_width(m, i);
    for (int first = 0, end; first < count; first = end) {
        int used = head + GAP + width[first];
        for (end = first + 1; end < count && used + GAP + width[end] <= o->columns; end++) used += GAP + width[end];
        put_block(m, o, width, head, first, end, out);
    }
    fputs("A cell is the worst verdict over the cases with that capability, and how many of the judged ones have it; -: no case was asked.\n", out);
    char *unasked = overview_unasked(m), *line = memory_format("None of these cases asks for %s.", unasked);
    if (*unasked) text_wrap(out, line, o->columns, 2);
    free(line);
    free(unasked);
    put_notes(m, o, out);
    for (int i = 0; i < m->note_count; i++) put_footnote(m, m->notes[i], o, out);
    if (m->unreadable) fprintf(out, "%d cases are left out: this program cannot read their case.json\n", m->unreadable);
    free(width);
    return !ferror(out);
}

// ---- JSON ----

static json_t *string(const char *s) {
    char *valid = text_copy(TEXT_PLAIN, s ? s : "");
    json_t *value = json_string(valid);
    free(valid);
    return value;
}

static json_t *implementations_json(const struct overview *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->implementations.count; i++) {
        char *versions = overview_versions(m, i), *note = overview_note(m, i);
        json_array_append_new(list, json_pack("{so so so}", "name", string(m->implementations.items[i]), "versions", string(versions), "note", string(note)));
        free(versions);
        free(note);
    }
    return list;
}

static json_t *cell_json(const struct overview *m, int row, int column) {
    const struct overview_cell *cell = overview_at(m, row, column);
    const struct overview_case *k = cell->deciding;
    json_t *out = json_pack("{so ss si}", "implementation", string(m->implementations.items[column]), "capability", capabilities[row].name, "cases", cell->cases);
    if (!k) return json_object_set_new(out, "verdict", json_null()), out;
    const struct stored_result *r = overview_result(k);
    struct row of = {k->c, r};
    char *command = overview_command(m, k), comparison[128];
    json_object_set_new(out, "verdict", json_string(verdict_name(cell->verdict)));
    json_object_set_new(out, "waived", json_boolean(k->c->waived));
    for (int v = 0; v < VERDICT_COUNT; v++) json_object_set_new(out, verdict_name((enum verdict)v), json_integer(cell->tally.of[v]));
    json_object_set_new(out, "FAIL_waived", json_integer(cell->tally.waived));
    json_object_set_new(out, "run", json_integer(k->c->run));
    json_object_set_new(out, "case", string(k->c->case_id));
    json_object_set_new(out, "check", string(r ? r->check : ""));
    json_object_set_new(out, "figure", string(r ? row_comparison(&of, comparison, sizeof comparison) : ""));
    json_object_set_new(out, "message", string(r ? r->message : ""));
    json_object_set_new(out, "waiver_reason", r && r->waived ? string(r->waiver->reason) : json_null());
    json_object_set_new(out, "waiver_page", r && r->waived ? string(r->waiver->page) : json_null());
    json_object_set_new(out, "command", string(command));
    free(command);
    return out;
}

bool overview_json(const struct overview *m, FILE *out) {
    json_t *rows = json_array(), *cells = json_array();
    for (int row = 0; row < capability_count(); row++) {
        json_array_append_new(rows, json_pack("{ss ss ss}", "name", capabilities[row].name, "group", capabilities[row].group, "title", capabilities[row].title));
        for (int i = 0; i < m->implementations.count; i++) json_array_append_new(cells, cell_json(m, row, i));
    }
    json_t *whole = json_pack("{so so so si}", "capabilities", rows, "implementations", implementations_json(m), "cells", cells, "unreadable", m->unreadable);
    bool ok = whole && !json_dumpf(whole, out, JSON_INDENT(1)) && fputc('\n', out) != EOF;
    json_decref(whole);
    return ok;
}
