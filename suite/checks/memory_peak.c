// Claim: at the peak of a phase a rank holds no more bytes of a parameter than its strategy needs there: what it holds at rest, and in forward and backward the
//     gathered parameters that it keeps (nothing dropped after the forward: + c) and the gradients that wait for a synchronisation.
// Source: FSDP, section 4; harness/judge/memory_model.h has the table.
// How: the probes' peak of each phase, in that of the settled steps where it is least (timing only adds to it), as memory-rest: the slope over P with the size of a unit fixed, so that units in use are part of the intercept.
//     An upper bound, 3 % above, by the whole interval (harness/judge/memory_hold.h). A rank that allocates once for all is held to its largest phase in each.
// Catches: Z27 Z30 Z13
// Blind to: units in use at once; what is held longer than needed, but not beyond the phase's need
#include <math.h>

#include "harness/judge/memory_hold.h"
#include "suite/checks/check.h"

static double theory_of(const struct evidence *e, const struct memory_model *m, enum memory_phase phase)
{
    double own = memory_share_bytes(memory_model_at(m, phase), e->c->sharding.shards);
    double most = memory_share_bytes(memory_model_at(m, MEMORY_BACKWARD), e->c->sharding.shards);
    return memory_claim_of(&e->answers[0]).told ? fmax(own, most) : own;
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct memory_model model = memory_model_of(e->c, memory_whole_parameters(e));
    if (!memory_usable(e, f))
        return;
    for (int p = MEMORY_FORWARD; p <= MEMORY_STEP; p++)
        memory_hold(e, f, (enum memory_phase)p, (struct memory_bound){0, theory_of(e, &model, (enum memory_phase)p)}, &model);
}

const struct check check_memory_peak = {
    .name = "memory-peak", .number = 43, .claim = "d peak(phase) / dP <= rest + gathered + waiting, 3 % above", .source = "FSDP, section 4",
    .catches = "Z27 Z30 Z13", .blind = "units in use at once", .applies = memory_has_line, .judge = judge};
