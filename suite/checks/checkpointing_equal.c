// Claim: activation checkpointing changes no gradient bit.
// Source: Chen: the recomputed forward is the same computation.
// How: gradients of exact cases with checkpointing on, bitwise against the truth, which knows nothing of it.
// Catches: Z30 Z15
// Blind to: units left gathered after the backward (memory); randomness in the forward
#include "harness/judge/exact.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return exact_case(e) && e->c->sharding.activation_checkpointing; }

static void judge(const struct evidence *e, struct finding *f) { exact_judge(e, f, OBSERVE_GRAD, NULL, "Z30"); }

const struct check check_checkpointing_equal = {
    .name = "checkpointing-equal", .number = 21, .claim = "grad with recomputation = grad without, bitwise", .source = "Chen 2016",
    .catches = "Z30 Z15", .blind = "memory left gathered", .applies = applies, .judge = judge};
