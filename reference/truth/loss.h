// What a rank's loss counts for: the three kinds of loss of docs/protocol.md as one factor.
#ifndef REFERENCE_TRUTH_LOSS_H
#define REFERENCE_TRUTH_LOSS_H

#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"

// The factor s of rank r of n: it differentiates s * sum_r(w l), and the mean over ranks of the gradients is the
// gradient of the global loss. 0 where the weights that it divides by sum to 0.
double loss_rank_factor(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int rank, int n);

#endif
