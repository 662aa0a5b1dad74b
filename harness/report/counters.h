// The counters of a run (docs/probes.md), added up over the cases of each implementation.
#ifndef HARNESS_REPORT_COUNTERS_H
#define HARNESS_REPORT_COUNTERS_H

#include "harness/store/store.h"

// One implementation, event and phase; or, with a reason, an event that was not available in some cases. Texts are the run's.
struct counter_row {
    const char *implementation, *event, *unit, *phase, *scope, *reason; // phase "" with a reason, reason NULL without
    double value;     // sum; of a level the largest
    int times, cases; // phases of that name on rank 0, and cases that have them
};
struct counter_rows { int count; struct counter_row *items; };

void counters_gather(const struct stored_run *r, struct counter_rows *out);
// A table for each implementation: a row a phase, a column an event; then what was not available, once with its reason. Nothing where
// nothing was counted.
bool report_counters(const struct stored_run *r, FILE *out);
// The rows as an array of objects.
json_t *counters_json(const struct stored_run *r);

#endif
