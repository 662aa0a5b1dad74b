// Claim: the final parameters do not depend on the number of ranks: bitwise the same on every N.
// Source: data parallelism computes one sum whatever its split; exact data make it exact.
// How: digests of final parameters of the family's cases with another world size that this run has judged, where their truths end in the same bits.
// Catches: Z11 Z01
// Blind to: a fault that is the same on every N (step-bitwise sees it)
#include "harness/judge/exact.h"
#include "harness/judge/family.h"
#include "suite/checks/check.h"

static bool other_count(const struct evidence *e, const struct family_member *m) { return m->world_size != e->world_size; }

static bool applies(const struct evidence *e) { return exact_case(e) && exact_allowance(e->c) == 0 && family_has(e, other_count); }

static void judge(const struct evidence *e, struct finding *f) { family_judge(e, f, other_count, "another number of ranks"); }

const struct check check_rank_count = {
    .name = "rank-count", .number = 4, .claim = "final parameters are the same for every N, bitwise", .source = "linearity of the gradient",
    .catches = "Z11 Z01", .blind = "a fault that is the same on every N", .applies = applies, .judge = judge};
