// Claim: the gradient of m microbatches is their sum: each counts once, with and without communication in between.
// Source: linearity of the gradient; PyTorch documentation, no_sync.
// How: the gradient before the step against the truth's, bitwise. Wrong sums are named: the last microbatch only, c^(m-1-i) g_i
//     with c in {N, 1/N, 2, 1/2}, (m-i) g_i.
// Catches: Z04 Z05 Z06 Z16 Z17 Z18
// Blind to: m = 1; what bf16 accumulation drops (reduce-precision sees that)
#include "harness/judge/exact.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->data.micros > 1 && exact_case(e) && program_count(e->c, VERB_FORWARD) == 0;
}

static void judge(const struct evidence *e, struct finding *f) { exact_judge(e, f, OBSERVE_GRAD, NULL, ""); }

const struct check check_accumulation = {
    .name = "accumulation", .number = 3, .claim = "grad = sum over i of g_i, i < m, bitwise", .source = "linearity of the gradient",
    .catches = "Z04 Z05 Z06 Z16 Z17 Z18", .blind = "m = 1; rounding of a narrow accumulator", .applies = applies, .judge = judge};
