// TAP version 14 (source: testanything.org/tap-version-14-specification.html), which readers of 13 understand too.
//
// FAIL and BROKEN are "not ok" with a YAML block; its strings are JSON strings, which YAML reads as they are. A FAIL that is waived
// is a TODO, which harnesses do not count as a failure.
#include <stdlib.h>

#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/report/view.h"

static void put_block(FILE *out, const struct row *row) {
    fputs("  ---\n", out);
    for (int f = 0; f < FIELD_COUNT; f++) {
        char buffer[32];
        char *valid = text_copy(TEXT_PLAIN, field_text(row, f, buffer));
        json_t *value = json_string(valid);
        char *scalar = json_dumps(value, JSON_ENCODE_ANY);
        if (*valid) fprintf(out, "  %s: %s\n", fields[f].name, scalar);
        free(scalar);
        json_decref(value);
        free(valid);
    }
    fputs("  ...\n", out);
}

static void put_notes(FILE *out, const struct view *v) {
    for (int i = 0; i < v->implementations.count; i++) {
        struct remark *notes;
        int cases, count = view_remarks(v, v->implementations.items[i], &notes, &cases);
        for (int k = 0; k < count; k++) {
            fputs("# ", out);
            text_put(out, TEXT_TAP, v->implementations.items[i]);
            fprintf(out, ", %d of %d cases: ", notes[k].cases, cases);
            text_put(out, TEXT_TAP, notes[k].note);
            fputc('\n', out);
        }
        free(notes);
    }
}

bool report_tap(const struct stored_run *r, FILE *out) {
    struct view v;
    view_make(r, &v);
    fprintf(out, "TAP version 14\n1..%d\n", v.row_count);
    put_notes(out, &v);
    for (int i = 0; i < v.row_count; i++) {
        const struct row *row = &v.rows[i];
        bool bad = verdict_severity(row->r->verdict) >= verdict_severity(VERDICT_FAIL);
        fprintf(out, "%s %d - ", bad ? "not ok" : "ok", i + 1);
        text_put(out, TEXT_TAP, row->c->implementation);
        fputc(' ', out);
        text_put(out, TEXT_TAP, row->c->case_id);
        fputc(' ', out);
        text_put(out, TEXT_TAP, row->r->check);
        if (row->r->verdict == VERDICT_SKIP) {
            fputs(" # SKIP ", out);
            text_put(out, TEXT_TAP, row->r->message);
        }
        if (row->r->waived) {
            fputs(" # TODO waived: ", out);
            text_put(out, TEXT_TAP, row->r->waiver->reason);
            fputs(" (", out);
            text_put(out, TEXT_TAP, row->r->waiver->page);
            fputc(')', out);
        }
        fputc('\n', out);
        if (bad) put_block(out, row);
    }
    view_free(&v);
    return !ferror(out) && !fflush(out);
}
