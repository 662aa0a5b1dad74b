// Distance of a gradient from float64 at the subject's own parameters, over the noise of plain data parallelism.
#ifndef HARNESS_JUDGE_RATIO_H
#define HARNESS_JUDGE_RATIO_H

#include "harness/judge/exact.h"

// For each gradient label and each tensor that the filter wants (NULL: all):
//   ratio  = |x - g64|_2 / noise.l2
//   ratio of the part of rank r = |x - g64|_2 over its ranges / min(noise.l2, noise.element sqrt(count of the part))
// against e->budget. Reports the first label that fails with its worst tensor, the fit, the place and a hint; BROKEN where noise or parameters
// are missing; calls nothing where nothing applies.
void ratio_judge(const struct evidence *e, struct finding *f, exact_filter filter, const char *default_classes);

#endif
