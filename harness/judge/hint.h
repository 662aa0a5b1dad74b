// What a wrong gradient or update reads as: a decision table over predictions of known faults.
//
// Each fault class predicts a gradient that can be computed (the last microbatch's only, N times the reference, the
// gradient at the parameters of the step before, ...). A class is named only where its prediction explains the
// subject's values: the distance to the prediction is within the tolerance, or at most 1/32 of the distance to the truth. Where several
// predictions coincide all are named, likeliest first. Nothing fits: the place alone speaks (last shard: Z11), or nothing.
#ifndef HARNESS_JUDGE_HINT_H
#define HARNESS_JUDGE_HINT_H

#include "harness/judge/judge.h"
#include "harness/judge/program.h"

struct hint { char text[320]; char classes[64]; };

// x: the set that holds PREFIX/<name> of the subject; ref: "grad/<name>" F64 that it should equal; parameters: where both were taken;
// differs[p]: which parameters of the table are wrong; tolerance: relative, of a right program's rounding.
void hint_gradient(const struct evidence *e, const struct program_label *l, const struct tensors *x, const char *prefix,
                   const struct tensors *ref, const struct tensors *parameters, const bool *differs, double tolerance, struct hint *out);
// A wrong parameter after a step whose gradient was right. before: the same tensor before the step.
void hint_update(const struct evidence *e, const struct tensor *x, const struct tensor *ref, const struct tensor *before, struct hint *out);

#endif
