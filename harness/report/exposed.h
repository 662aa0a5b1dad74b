// Exposed communication of a run (docs/probes.md): a line for each case that it was measured in, and why it was not in others.
#ifndef HARNESS_REPORT_EXPOSED_H
#define HARNESS_REPORT_EXPOSED_H

#include "harness/store/store.h"

// A measured case; or, with a reason, the cases of an implementation that have it. Texts are the run's.
struct exposed_row {
    const char *implementation, *case_id, *label, *by, *reason; // label: "waited" or "differenced"; by: the probes that saw it, or "worker"
    double seconds, low, high, step, share[3];                  // medians, with the ends of the interval of 95 %; share of the step
    int steps, cases;
};
struct exposed_rows { int count; struct exposed_row *items; };

void exposed_gather(const struct stored_run *r, struct exposed_rows *out);
// "1.23 ms (1.2 to 1.4) of a step of 5.6 ms: 22 % (21 to 24), 18 steps; waits seen by mpi, wait"; or the reason. The caller frees it.
char *exposed_words(const struct exposed_row *row);
// Nothing where nothing was looked for.
bool report_exposed(const struct stored_run *r, FILE *out);
// The same as a section of the page.
void exposed_html(const struct stored_run *r, FILE *out);
json_t *exposed_json(const struct stored_run *r);

#endif
