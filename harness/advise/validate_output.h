// What a validation showed, for machines and as figures.
#ifndef HARNESS_ADVISE_VALIDATE_OUTPUT_H
#define HARNESS_ADVISE_VALIDATE_OUTPUT_H

#include <jansson.h>

#include "harness/advise/validate.h"
#include "harness/report/plots.h"

json_t *validate_json(int count, const struct validate_point *points, const struct validate_verdict *d);
// FOLDER/validate-RANKS.*: throughput against the line rate, a line a strategy, measured with intervals, predicted dashed, changes of the best marked. why: as of the plots.
bool validate_figure(int ranks, int count, const struct validate_point *points, const struct validate_verdict *d, const struct plot_about *about, const char *folder, char why[PLOT_WHY],
                     struct error *error);

#endif
