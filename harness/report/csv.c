// CSV as RFC 4180 says: a header line, CRLF, every text quoted, quotes doubled.
#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/report/view.h"

bool report_csv(const struct stored_run *r, FILE *out) {
    struct view v;
    view_make(r, &v);
    for (int f = 0; f < FIELD_COUNT; f++) fprintf(out, "%s%s", f ? "," : "", fields[f].name);
    fputs("\r\n", out);
    for (int i = 0; i < v.row_count; i++) {
        for (int f = 0; f < FIELD_COUNT; f++) {
            char buffer[32];
            bool quoted = fields[f].kind == FIELD_TEXT || fields[f].kind == FIELD_WAIVED;
            fprintf(out, "%s%s", f ? "," : "", quoted ? "\"" : "");
            text_put(out, TEXT_CSV, field_text(&v.rows[i], f, buffer));
            if (quoted) fputc('"', out);
        }
        fputs("\r\n", out);
    }
    view_free(&v);
    return !ferror(out) && !fflush(out);
}
