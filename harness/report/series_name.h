// What readers of stored series share: a name for each, the median of its samples, and whether these count.
#ifndef HARNESS_REPORT_SERIES_NAME_H
#define HARNESS_REPORT_SERIES_NAME_H

#include "harness/statistics/statistics.h"
#include "harness/store/series.h"

// Members of the points, with dots ("calls.0.count"), that are not the same in all series: what a name needs. A new reference.
json_t *series_varying(const struct stored_serieses *all);
// "all-gather, bytes 4096 (net, virtual-100m, mpi)"; the caller frees it.
char *series_name(const struct stored_series *s, const json_t *varying);
// statistics_launches of its samples.
struct interval series_interval(double level, const struct stored_series *s);
// That interval covers less than 95 %: fewer samples than it takes, or rounds of bench, whose few steps a start are alike.
bool series_is_thin(const struct stored_series *s);
// "virtual-50m, virtual-100m"; the caller frees it.
char *series_fabrics(const struct stored_serieses *all);
// NULL: its samples count. Else why they do not, in a word: "WRONG" (numbers that were judged, buffers that were checked), "SKIP", "BROKEN", "not measured";
// *why, where it is asked for: the reason, or "".
const char *series_fault(const struct stored_series *s, const char **why);

#endif
