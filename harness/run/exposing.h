// Exposed communication of a case as figures that nothing judges: the waits that the probes saw, and what the worker itself tells.
#ifndef HARNESS_EXPOSING_H
#define HARNESS_EXPOSING_H

#include <jansson.h>

#include "harness/probes/exposed.h"
#include "harness/protocol/answer.h"

// Appends, where the case has several ranks, {"check": "exposed", "label": "waited", "tensor": PROBES, "figure": median, "bound": null, "unit": "s",
// "low", "high", "step": median, "share": [median, low, high], "steps"}; where no wait was seen figure is null and there is "reason" (`unread` says why
// there are no records). And the same with label "differenced" and tensor "worker" where rank 0 tells `exposed` in its event `traffic`.
void exposing_figures(const struct probe_case *ranks, int rank_count, const char *unread, const struct answer *answers, json_t *figures);

#endif
