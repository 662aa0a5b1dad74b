// One optimizer step, recomputed in float64 from the subject's own state and gradient.
//
// Why: AdamW turns a tiny gradient difference into a whole step where a gradient is near 0, and hides a constant
// factor. Judged from its own inputs a step has a tight bound, and errors do not pile up over steps.
#ifndef HARNESS_JUDGE_UPDATE_H
#define HARNESS_JUDGE_UPDATE_H

#include "harness/judge/exact.h"
#include "harness/judge/program.h"

struct update {
    int at;                          // the step instruction
    int step_count;                  // 1-based, skipped steps not counted
    bool skipped;                    // as the subject's rank 0 reported
    const struct observed *before, *gradient, *after; // any of them NULL where the program does not observe it
    const char *prefix;              // "grad", or "clipped" where the case clips
};
// Fills at most `capacity` updates in program order and returns how many steps the program has.
int update_list(const struct evidence *e, struct update *updates, int capacity);

// What the optimizer should have made of the subject's own state: "param/", "exp_avg/", ... F64.
bool update_expected(const struct evidence *e, const struct update *u, struct tensors *state, struct error *error);

// The bound on |x - expected| of an element comes from a count of the rounded operations, u the larger
// unit roundoff of the observed parameter and state:
//   sgd    buffer: 4u (mu |b| + |g| + wd |p|);  param: 2u (|p| + |p'|) + 8u lr (mu |b| + |g| + wd |p|)
//   adamw  m: 4u (b1 |m| + (1-b1) |g|);  v: 6u v' + 2^-126;
//          param: 2u (|p| + |p'|) + u lr/c1/d (12 |m'| + 4 (b1 |m| + (1-b1) |g|)), c1 = 1 - b1^t, d = sqrt(v'/c2) + eps
// Hyperparameters and bias corrections are taken as exact to u. Source: Higham, chapter 3: a product of n rounded factors errs by about n u.

// Judges all updates of the parameters that the filter wants (NULL: all); reports the first tensor of the first step that fails, with a hint
// unless a filter's own classes say enough. See checks 13, 17 and 30.
void update_judge(const struct evidence *e, struct finding *f, exact_filter filter, const char *default_classes);

#endif
