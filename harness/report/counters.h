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

// Distinct texts in order of appearance.
struct counter_axis { int count; const char **items; };
void counter_axis_add(struct counter_axis *a, const char *item);
// The counted events of an implementation and their phases: a table of both.
struct counter_table { const struct counter_rows *rows; const char *implementation; struct counter_axis events, phases; };
void counter_table_make(const struct counter_rows *rows, const char *implementation, struct counter_table *t);
void counter_table_free(struct counter_table *t);
// NULL where the event (NULL: any) was not counted in that phase.
const struct counter_row *counter_table_find(const struct counter_table *t, const char *event, const char *phase);
const struct counter_row *counter_table_any(const struct counter_table *t, const char *event);
// What a number of that scope is of.
const char *counter_scope_words(const char *scope);

void counters_gather(const struct stored_run *r, struct counter_rows *out);
// A table for each implementation: a row a phase, a column an event; then what was not available, once with its reason. Nothing where
// nothing was counted.
bool report_counters(const struct stored_run *r, FILE *out);
// The same as a part of the page, under its heading; and as CSV: implementation, event, phase, scope, unit, value, times, cases, reason.
bool counters_html(const struct stored_run *r, FILE *out);
bool counters_csv(const struct stored_run *r, FILE *out);
// Whether an event was asked for in this run.
bool counters_some(const struct stored_run *r);
// The rows as an array of objects.
json_t *counters_json(const struct stored_run *r);

#endif
