// Shared by the files that make a comparison.
#ifndef HARNESS_REPORT_COMPARE_SERIES_H
#define HARNESS_REPORT_COMPARE_SERIES_H

#include "harness/report/compare.h"

// Adds the rows of series that both have, and counts those that one has.
void compare_add_series(struct comparison *c, const struct stored_serieses *before, const struct stored_serieses *after);
// Adds a row that has all but its word and whether it is worse. Owns its texts from there on.
void compare_add_row(struct comparison *c, struct compare_row row);
extern const double compare_live_slack; // 5e-4
double compare_ratio(double before, double after);

#endif
