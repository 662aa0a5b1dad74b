// Figures over their bounds, reduced to what a picture can show: panels, series and rows, each cell with its worst and
// its median.
//
// A figure over its bound makes different checks comparable: 1 is at the bound. Exact checks have bound 0 and have no
// such ratio. A ratio of 0 has no place on a log axis: it is counted, not drawn.
#ifndef HARNESS_REPORT_RATIOS_H
#define HARNESS_REPORT_RATIOS_H

#include "harness/report/view.h"

struct ratio_limits { int panels, series, rows; };
// worst is infinite where a figure of the cell was not finite.
struct ratio_cell { int panel, series, row; double worst, median; };

struct ratios {
    struct names names[3];               // every panel, series and row that was met; owns the strings
    const char **panels, **series, **rows; // those kept, in the order of drawing
    int panel_count, series_count, row_count;
    int panels_left, series_left, rows_left; // that have something to draw and found no room
    struct ratio_cell *cells;            // of those kept, by panel, series, row; no two of the same place
    int cell_count;
    int unplaced;                        // cells whose worst is 0 or below RATIO_LOWEST
    double low, high;                    // decades that hold the cells and the bound
    int beyond;                          // cells above `high`, the infinite ones too
};
#define RATIO_LOWEST 1e-6
#define RATIO_HIGHEST 1e6

// Panels are implementations. By tensor: series are checks, rows are parameters ("exp_avg/head.weight" counts for
// head.weight); each check kept has its worst row among the rows. By ranks: series are strategies, rows are numbers of
// ranks in order, cases are the calibrated ones. The caller frees with ratios_free.
void ratios_by_tensor(const struct view *v, struct ratio_limits most, struct ratios *out);
void ratios_by_ranks(const struct view *v, struct ratio_limits most, struct ratios *out);
void ratios_free(struct ratios *r);

#endif
