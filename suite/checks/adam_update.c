// Claim: Adam's step from known gradients: step counter from 1, bias corrections, epsilon outside the root, decoupled decay by group,
//     masters that keep updates below one bf16 ulp.
// Source: Adam, algorithm 1; AdamW, algorithm 2.
// How: witness gradients (eps = 1 and a zero gradient show each term); each step recomputed in float64 from the subject's own state.
//     Bound: the operation count in harness/judge/update.h.
// Catches: Z23 Z20 Z22 Z15
// Blind to: other optimizers
#include "harness/judge/update.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->layer == LAYER_WITNESS && e->c->optimizer.kind == OPTIMIZER_ADAMW && program_count(e->c, VERB_STEP) > 0;
}

static void judge(const struct evidence *e, struct finding *f) { update_judge(e, f, NULL, "Z23"); }

const struct check check_adam_update = {
    .name = "adam-update", .number = 13, .claim = "p' = p - lr wd p - lr m^/(sqrt(v^) + eps), m^ = m/(1 - b1^t), v^ = v/(1 - b2^t)",
    .source = "Adam algorithm 1; AdamW algorithm 2", .catches = "Z23 Z20 Z22", .blind = "other optimizers", .applies = applies, .judge = judge};
