// What the probe `papi` counted in a case, as figures of the case (docs/probes.md, Counters).
#ifndef HARNESS_COUNTING_H
#define HARNESS_COUNTING_H

#include <jansson.h>

#include "harness/probes/summary.h"

// Appends {"check": "counters", "label": PHASE, "tensor": EVENT, "figure", "bound": null, "unit", "scope", "times"} for each event of
// `events` and each name of a phase, the phases of that name added up: over all ranks, but of the machine's own counters rank 0's
// alone; of a level the largest. An event that some rank could not count, or any where there are no records (`unread` says
// why), has one entry with label "" and figure null, and "reason".
void counting_figures(const char *events, const struct probe_case *ranks, int rank_count, const char *unread, json_t *figures);
// "process", "thread", "machine", "level".
const char *counting_scope_name(enum probe_scope scope);

#endif
