// Claim: the gradient at the subject's own parameters is as near to float64 as plain data parallelism in the same precision.
// Source: LAPACK's testers scale residuals by the noise of the arithmetic; docs/method.md tells how noise and budget are measured.
// How: ratio of distance and noise per tensor and per shard; a fitted scalar and a residual apart. Tensors whose gradient is 0 in theory are
//     judged against their neighbours' noise (harness/judge/noise.h).
// Catches: Z01 Z03 Z04 Z05 Z09 Z11 Z15 Z18 Z19
// Blind to: faults smaller than the noise times the budget
#include "harness/judge/ratio.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->layer == LAYER_CALIBRATED && e->c->precision.loss_scale != LOSS_SCALE_DYNAMIC && program_count(e->c, VERB_STEP) > 0;
}

static void judge(const struct evidence *e, struct finding *f) { ratio_judge(e, f, NULL, ""); }

const struct check check_gradient_ratio = {
    .name = "gradient-ratio", .number = 29, .claim = "|g - g64(own p)| <= budget noise, per tensor and shard", .source = "LAPACK; docs/method.md",
    .catches = "Z01 Z02 Z03 Z04 Z05 Z09 Z11 Z15 Z18 Z19", .blind = "faults below noise times budget", .applies = applies, .judge = judge};
