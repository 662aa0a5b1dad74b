// Claim: the gradient of a witness is the mean over ranks of the ranks' own: where rank r holds x_r = r + 1 it is (N + 1)/2.
// Source: docs/protocol.md, the loss; PyTorch documentation: DistributedDataParallel averages gradients.
// How: the model's gradient is its data, so each policy gives another number: the sum N (N + 1)/2, one rank's own, a mean over one mesh
//     axis, a microbatch counted again. 0 ulp for N a power of two, 2 ulp else; the message names the policy.
// Catches: Z01 Z02 Z03 Z04 Z05 Z19
// Blind to: faults that need a real model
#include <stdio.h>

#include "harness/judge/exact.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    const struct fsdp_case *c = e->c;
    // in a narrower type the sum over a rank's own rows may round
    bool sums = c->precision.compute == DTYPE_F32 || c->global_rows == case_data_ranks(c);
    return sums && c->layer == LAYER_WITNESS && c->precision.reduce == DTYPE_F32 && c->precision.parameter == DTYPE_F32 &&
           c->precision.loss_scale == LOSS_SCALE_NONE;
}

static void judge(const struct evidence *e, struct finding *f)
{
    exact_judge(e, f, OBSERVE_GRAD, NULL, "");
    if (f->emitted && f->verdict == VERDICT_PASS)
        snprintf(f->message, sizeof f->message, "policy found: the mean over %d ranks, each of %lld microbatches once", case_data_ranks(e->c), (long long)e->c->data.micros);
}

const struct check check_mean_witness = {
    .name = "mean-witness", .number = 2, .claim = "grad = (1/N) sum over r of g_r", .source = "docs/protocol.md, the loss",
    .catches = "Z01 Z02 Z03 Z04 Z05 Z19", .blind = "faults that need a real model", .applies = applies, .judge = judge};
