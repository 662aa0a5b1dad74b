// Claim: parameters and optimizer state after every step are bitwise those of the serial run.
// Source: data parallelism computes the same sum in another order (ZeRO, section 5), and exact data make the order irrelevant (Goldberg).
// How: every label in program order, gradients included so that the first difference is found where it arises; float64 truth rounded
//     to the subject's dtype, 0 ulp allowed (N = 7 and other N above 6 that are no power of two: 2 ulp, first step only).
// Catches: Z01 Z02 Z03 Z04 Z05 Z11 Z15 Z16 Z17 Z18 Z22 Z23
// Blind to: rounding-sized faults of real data, faults that need more steps or other shapes than the case has
#include "harness/judge/exact.h"
#include "suite/checks/check.h"

static void judge(const struct evidence *e, struct finding *f)
{
    exact_judge(e, f, OBSERVE_PARAM | OBSERVE_GRAD | OBSERVE_MOMENTUM, NULL, "");
}

const struct check check_step_bitwise = {
    .name = "step-bitwise", .number = 1, .claim = "param(s) = round(truth param(s)) for every step s, bitwise",
    .source = "ZeRO section 5; Goldberg 1991", .catches = "Z01 Z02 Z03 Z04 Z05 Z11 Z15 Z16 Z17 Z18 Z22 Z23", .blind = "rounding-sized faults of real data",
    .applies = exact_case, .judge = judge};
