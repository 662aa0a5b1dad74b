// Claim: the parameters after a step are what the optimizer makes of the subject's own parameters, moments and gradient.
// Source: docs/protocol.md, optimizer; Adam; AdamW.
// How: each step by itself in float64, so a gradient's rounding cannot hide in or blow up an update. Bound: operation count in
//     ulp of the parameter dtype, harness/judge/update.h.
// Catches: Z22 Z23 Z20 Z26
// Blind to: wrong gradients (gradient-ratio judges those)
#include "harness/judge/exact.h"
#include "harness/judge/update.h"
#include "suite/checks/check.h"

// Exact cases are judged bitwise by step-bitwise, except where a rounded 1/N leaves only this.
static bool applies(const struct evidence *e)
{
    bool exact = exact_case(e) && exact_allowance(e->c) == 0;
    bool adam_witness = e->c->layer == LAYER_WITNESS && e->c->optimizer.kind == OPTIMIZER_ADAMW;
    bool any_taken = false;
    for (int k = 0; k < e->truth->step_count; k++)
        any_taken |= !e->truth->steps[k].skipped;
    return !exact && !adam_witness && e->c->layer != LAYER_MEASURED && any_taken && program_count(e->c, VERB_STEP) > 0;
}

static void judge(const struct evidence *e, struct finding *f) { update_judge(e, f, NULL, "Z23"); }

const struct check check_update_from_state = {
    .name = "update-from-state", .number = 30, .claim = "state(s) = optimizer(state(s-1), gradient(s)), all of them the subject's",
    .source = "docs/protocol.md, optimizer", .catches = "Z22 Z23 Z20 Z26", .blind = "wrong gradients", .applies = applies, .judge = judge};
