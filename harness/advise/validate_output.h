// What a validation showed, for machines and as figures.
#ifndef HARNESS_ADVISE_VALIDATE_OUTPUT_H
#define HARNESS_ADVISE_VALIDATE_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "harness/advise/validate.h"
#include "harness/report/plots.h"
#include "harness/store/series.h"

// A line a point: measured and predicted beside each other. What was not predicted has no figure there.
void validate_print(int count, const struct validate_point *points, FILE *out);
void validate_print_times(const struct validate_verdict *d, FILE *out);
json_t *validate_json(int count, const struct validate_point *points, const struct validate_verdict *d);
// Facts of the stored steps of a point, as harness/report/series_bandwidth.c takes them: {"predicted_s", "tokens_per_step" (of a rank)}.
json_t *validate_facts(const struct validate_point *p);
// A stored run, as the command printed it: its points, and how far the predictions are off where it has any.
void validate_print_stored(const struct stored_serieses *series, FILE *out);
// FOLDER/validate-RANKS.*: throughput against the line rate, a line a strategy, measured with intervals, predicted dashed, changes of the best marked. why: as of the plots.
bool validate_figure(int ranks, int count, const struct validate_point *points, const struct validate_verdict *d, const struct plot_about *about, const char *folder, char why[PLOT_WHY],
                     struct error *error);

#endif
