// Shared by the traces: which cases have a timeline that is asked for.
#ifndef HARNESS_REPORT_TIMELINE_H
#define HARNESS_REPORT_TIMELINE_H

#include "harness/report/export.h"
#include "harness/report/probed.h"

struct timelines { struct view view; struct probed probed; int count; const struct probed_source **sources; };
void timelines_make(const struct export *e, struct timelines *out);
void timelines_free(struct timelines *t);
int64_t timeline_us(double seconds); // nearest microsecond, not below 0

#endif
