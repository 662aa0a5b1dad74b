// Claim: activation checkpointing changes no gradient bit (calibrated layer: no more than noise).
// Source: Chen: the recomputed forward is the same computation.
// How: gradients of cases with checkpointing on against the truth, which knows nothing of it: bitwise in the exact layer, else as
//     gradient-ratio does.
// Catches: Z30 Z15
// Blind to: units left gathered after the backward (memory); randomness in the forward
#include "harness/judge/exact.h"
#include "harness/judge/ratio.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return e->c->layer != LAYER_WITNESS && e->c->layer != LAYER_MEASURED && e->c->sharding.activation_checkpointing; }

static void judge(const struct evidence *e, struct finding *f)
{
    if (exact_case(e))
        exact_judge(e, f, OBSERVE_GRAD, NULL, "Z30");
    else
        ratio_judge(e, f, NULL, "Z30");
}

const struct check check_checkpointing_equal = {
    .name = "checkpointing-equal", .number = 21, .claim = "grad with recomputation = grad without, bitwise", .source = "Chen 2016",
    .catches = "Z30 Z15", .blind = "memory left gathered", .applies = applies, .judge = judge};
