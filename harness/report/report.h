// Reports of a stored run. Everything that came from a worker or a file is escaped for its format.
#ifndef HARNESS_REPORT_H
#define HARNESS_REPORT_H

#include <stdio.h>

#include "harness/store/store.h"

struct report_options {
    bool color;       // terminal only
    bool verbose;     // every result, else only what is not PASS and a line per implementation and family
    int columns;      // terminal width
};
// Colour is wanted: a terminal that knows it, and NO_COLOR is unset or empty (source: no-color.org).
bool report_wants_color(FILE *out);
// Columns of the terminal, or of $COLUMNS, else 100.
int report_columns(FILE *out);
// The verdict table and the summary line "N PASS, N FAIL (N waived), N SKIP, N BROKEN".
bool report_table(const struct stored_run *r, const struct report_options *o, FILE *out);
// {"run", "environment", "results": [{implementation, case, check, verdict, figure, bound, unit, message, classes, ranks, seed, ..., waived,
// waiver_reason, waiver_page, waiver_expires, note}]}
bool report_json(const struct stored_run *r, FILE *out);
bool report_junit(const struct stored_run *r, FILE *out);
bool report_tap(const struct stored_run *r, FILE *out);
bool report_csv(const struct stored_run *r, FILE *out);
bool report_markdown(const struct stored_run *r, FILE *out);
// Makes a folder and those above it where they are not there.
bool report_folder(const char *path, struct error *error);
// index.html (self-contained, figures inline), report.md, results.csv, results.json, and figures/: *.svg, *.png and *.pdf by
// gnuplot, beside the data and scripts that made them (`gnuplot -d ratio.gp` makes them again). Of a run with probes also their
// figures and numbers: probes.csv, probes.json; of one with counters counters.csv.
// Without gnuplot: a line in the page that says so, and the call still succeeds.
bool report_write(const struct stored_run *r, const char *folder, struct error *error);
// 0 all PASS (SKIPs and waived FAILs beside them allowed), 1 some FAIL that is not waived, or a waiver that expired or covers a PASS, 3 some BROKEN (over FAIL), or nothing judged: no case is PASS or
// FAIL. Planned cases that were never recorded, and a run without any case, are BROKEN.
int report_exit_status(const struct stored_run *r);

// Progress: a bar on a terminal; otherwise a plain line every tenth of the cases, at most one in two seconds. FAIL and
// BROKEN are told at once, the first 20 of them where there is no terminal.
struct progress;
struct progress *progress_open(FILE *out, const char *title, int total, bool terminal);
void progress_step(struct progress *p, const char *what, enum verdict verdict, bool waived, const char *message);
void progress_close(struct progress *p);

#endif
