// The noise that a right program may show, per tensor: what distances of the calibrated layer are divided by.
#ifndef HARNESS_JUDGE_NOISE_H
#define HARNESS_JUDGE_NOISE_H

#include "harness/judge/judge.h"

// l2: distance of a tensor's gradient from float64 that plain data parallelism shows; element: the same of one element;
// norm: of the float64 gradient.
struct noise { double l2, element, norm; bool structural_zero; };

// Noise of grad/<parameter p> at a label, in this order:
// 1. measured: the largest over the reduction orders that truth_noise ran;
// 2. at least u |g|_2 (and u rms(g) for an element): no program stores g more exactly, u the roundoff of `stored`;
// 3. where g is zero in theory (its rms below 2^-20 of the largest rms in its unit): at least the largest noise per element of
//    the other tensors of the unit, times sqrt(count). An attention key bias is such a tensor.
// False where the truth holds no noise of it.
bool noise_of(const struct evidence *e, const char *label, int p, enum dtype stored, struct noise *out);
// The whole gradient's relative noise: sqrt(sum l2^2 / sum norm^2); false where nothing is known.
bool noise_relative(const struct evidence *e, const char *label, double *out);

#endif
