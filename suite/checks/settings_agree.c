// Claim: wrapping, prefetch, layout, offload, resharding and checkpointing change no bit: cases that differ in nothing else agree.
// Source: FSDP, section 3: these settings schedule work, they do not change it.
// How: digests of final parameters of the family's cases with the same world size and strategy.
// Catches: Z15 Z16 Z17 Z18 Z30
// Blind to: races that do not show on this machine at this moment
#include "harness/judge/exact.h"
#include "harness/judge/family.h"
#include "suite/checks/check.h"

static bool same_strategy(const struct evidence *e, const struct family_member *m)
{
    return m->world_size == e->world_size && m->strategy == e->c->sharding.strategy;
}

static bool applies(const struct evidence *e) { return exact_case(e) && exact_allowance(e->c) == 0 && family_has(e, same_strategy); }

static void judge(const struct evidence *e, struct finding *f) { family_judge(e, f, same_strategy, "other settings"); }

const struct check check_settings_agree = {
    .name = "settings-agree", .number = 28, .claim = "final parameters do not depend on wrapping, prefetch, layout, offload, bitwise",
    .source = "FSDP section 3", .catches = "Z15 Z16 Z17 Z18 Z30", .blind = "races that do not show", .applies = applies, .judge = judge};
