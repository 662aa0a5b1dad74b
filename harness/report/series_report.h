// Runs of measured series (net, bench, validate) as a table and as a report folder.
#ifndef HARNESS_REPORT_SERIES_REPORT_H
#define HARNESS_REPORT_SERIES_REPORT_H

#include "harness/report/report.h"
#include "harness/store/series.h"

// A line a series: median, interval, samples, starts; then what is wrong.
bool series_table(const struct stored_serieses *series, const struct report_options *o, FILE *out);
// FOLDER/NAME (a page with the table and the figures that lie in FOLDER/figures), run.json and series.csv (export.h). `missing`: lines on figures that could not be
// drawn, or "".
bool series_report(const struct stored_run *r, const struct stored_serieses *series, const char *folder, const char *name, const char *missing, struct error *error);
// FOLDER/bandwidth.{svg,png,pdf}: throughput against bandwidth, of steps at several line rates. why: as in plots.h.
bool series_bandwidth_figure(const struct stored_run *r, const struct stored_serieses *series, const char *folder, char why[256], struct error *error);

#endif
