// Claim: none, optimizer, grad, full and hybrid reach bitwise the same parameters on the same ranks.
// Source: ZeRO, section 5: partitioning changes where state lives, not what is computed.
// How: digests of final parameters of the family's cases with the same world size and another strategy.
// Catches: Z02 Z03 Z11
// Blind to: a fault that all strategies share
#include "harness/judge/exact.h"
#include "harness/judge/family.h"
#include "suite/checks/check.h"

static bool other_strategy(const struct evidence *e, const struct family_member *m)
{
    return m->world_size == e->world_size && m->strategy != e->c->sharding.strategy;
}

static bool applies(const struct evidence *e) { return exact_case(e) && exact_allowance(e->c) == 0 && family_has(e, other_strategy); }

static void judge(const struct evidence *e, struct finding *f) { family_judge(e, f, other_strategy, "another strategy"); }

const struct check check_strategies_agree = {
    .name = "strategies-agree", .number = 5, .claim = "none = optimizer = grad = full = hybrid, bitwise", .source = "ZeRO section 5",
    .catches = "Z02 Z03 Z11", .blind = "a fault that all strategies share", .applies = applies, .judge = judge};
