// The norm of a gradient as clipping means it, over all of it or over what one rank holds.
#ifndef HARNESS_JUDGE_NORM_H
#define HARNESS_JUDGE_NORM_H

#include "harness/judge/judge.h"

// value: L1, L2 or L-infinity norm in float64; count: elements; tensors: with a gradient; u: the largest roundoff of their dtypes.
struct norm { double value; int64_t count; int tensors; double u; };

// Of the tensors PREFIX/<name> of a set; rank >= 0: only the elements that this rank holds of gradients (`shards` must be complete).
struct norm norm_of(const struct evidence *e, const struct tensors *set, const char *prefix, int rank);
// Only the elements that a member rank holds, each once; members: by rank, NULL: all.
struct norm norm_of_members(const struct evidence *e, const struct tensors *set, const char *prefix, const bool *members);
// Relative error that a right norm may have: (n + 8) 2^-24 for n elements summed in float32, and (tensors + N + 4) u for partial norms
// stored in the gradient's dtype. Source: Higham, chapter 4.
double norm_bound(const struct evidence *e, const struct norm *n);

#endif
