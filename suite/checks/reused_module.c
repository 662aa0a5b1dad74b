// Claim: a module that runs several times before the step has the sum of all its uses as gradient; likewise two forwards before their backwards.
// Source: the chain rule; PyTorch documentation on hooks that fire once per backward of a module.
// How: gradients of cases in which a layer is called twice or the program goes forward, forward, backward, backward; bitwise.
//     A missing call is named.
// Catches: Z12 Z04 Z15
// Blind to: reuse across units
#include "harness/judge/exact.h"
#include "suite/checks/check.h"

static bool reuses(const struct fsdp_case *c)
{
    return (c->model.kind == MODEL_MLP && c->model.call_count > c->model.size_count - 1) || program_count(c, VERB_FORWARD) > 0;
}

static bool applies(const struct evidence *e) { return exact_case(e) && reuses(e->c); }

static void judge(const struct evidence *e, struct finding *f) { exact_judge(e, f, OBSERVE_GRAD, NULL, "Z12"); }

const struct check check_reused_module = {
    .name = "reused-module", .number = 20, .claim = "grad of a module used k times = sum of k uses; FFBB = FBFB, bitwise",
    .source = "the chain rule", .catches = "Z12 Z04", .blind = "reuse across units", .applies = applies, .judge = judge};
