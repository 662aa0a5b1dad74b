// The verdict matrix: implementation by capability, from the newest verdict on each case.
#ifndef HARNESS_REPORT_OVERVIEW_H
#define HARNESS_REPORT_OVERVIEW_H

#include "harness/report/capabilities.h"
#include "harness/report/report.h"
#include "harness/report/view.h"

struct overview_case {
    const struct stored_case *c;
    struct fsdp_case spec;
    enum verdict verdict;         // SKIP of a check beside PASSes of others is a PASS
    int number;                   // of its footnote, from 1; 0: it has none
};
struct overview_cell {
    int cases;                    // of the store that have the capability, gates left out
    struct tally tally;
    enum verdict verdict;         // the worst, but SKIP only where all are
    struct overview_case *deciding; // the smallest case with that verdict: fewest ranks, parameters, instructions
};
struct overview {
    const struct stored_run *run;
    struct names implementations; // columns
    int case_count;
    struct overview_case *cases;
    struct overview_cell *cells;  // (capability_count(), implementations.count)
    int row_count, *rows;         // the capabilities that some case asks of some implementation: what is shown
    int unreadable;               // cases whose case.json this program does not know
    int note_count;
    struct overview_case **notes;   // the deciding cases that FAIL or are BROKEN, in the order of their numbers
};

// names: the implementations in their order, NULL at the end; or NULL: all, sorted. False where one has no verdict.
bool overview_make(const struct stored_run *newest, const char *const *names, struct overview *out, struct error *error);
void overview_free(struct overview *m);
struct overview_cell *overview_at(const struct overview *m, int capability, int implementation);
// "PASS 12", "FAIL 2/14", "waived 2/14", "SKIP 3", "" where no case has it.
const char *overview_text(const struct overview_cell *cell, char buffer[64]);
// "pass", "fail", "waived", "skip", "broken" or "none": the class of the page's style.
const char *overview_class(const struct overview_cell *cell);
// The result that tells most of a case: of those with its verdict one that is not waived, then one that names fault classes, then
// one with a figure; the first of equals.
const struct stored_result *overview_result(const struct overview_case *k);
// The command that judges the case again; the caller frees it.
char *overview_command(const struct overview *m, const struct overview_case *k);
// "" or what no case asks: "compute in: f64; ..."; the caller frees it.
char *overview_unasked(const struct overview *m);
// "torch 2.15.0, numpy 2.4.6" of an implementation; the caller frees it.
char *overview_versions(const struct overview *m, int implementation);
// What its verdicts must be read with, of its newest plan and cases; the caller frees it.
char *overview_note(const struct overview *m, int implementation);

bool overview_table(const struct overview *m, const struct report_options *o, FILE *out);
bool overview_json(const struct overview *m, FILE *out);
// Between two comment lines that OVERVIEW_BEGIN and OVERVIEW_END begin.
#define OVERVIEW_BEGIN "<!-- fsdpmark matrix: begin"
#define OVERVIEW_END "<!-- fsdpmark matrix: end"
bool overview_markdown(const struct overview *m, FILE *out);
// Writes a Markdown file, or replaces what stands between the comment lines of one that is there.
bool overview_markdown_into(const struct overview *m, const char *path, struct error *error);
bool overview_html(const struct overview *m, FILE *out);
// The figure, by gnuplot; either path may be NULL.
bool overview_figure(const struct overview *m, const char *svg, const char *png, struct error *error);

#endif
