// Claim: what a rank says that it has allocated is there: the bytes of its `memory` event grow over P as the live bytes that the probes see do, and never exceed them.
// Source: an implementation's own figures are claims (docs/probes.md).
// How: the live bytes at rest, of all the rank holds, against the event's; the slope of the first over the second at four sizes or more is 1 within 1 %, its
//     interval within 2 %. Judged where a rank has told of memory that it allocates once for all (docs/protocol.md, `memory`).
// Catches: Z27
// Blind to: how the bytes are divided between tags (memory-peak and memory-rest hold it to the theory)
#include <math.h>

#include "harness/judge/memory_hold.h"
#include "suite/checks/check.h"

#define CLAIM_TOLERANCE 0.01
#define CLAIM_RESOLUTION 0.02

static bool applies(const struct evidence *e)
{
    return memory_applies(e) && memory_claim_of(&e->answers[0]).told;
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct error error = {""};
    struct slope fit;
    if (!memory_usable(e, f))
        return;
    for (int r = 0; r < e->world_size; r++) {
        struct memory_claim claim = memory_claim_of(&e->answers[r]), none = {0};
        double claimed = claim.rest + claim.working, seen;
        if (!claim.told || !memory_live(&e->probes[r], &none, MEMORY_REST, &seen, &error))
            finding_broken(f, "rank %d: %s", r, claim.told ? error.text : "no `memory` event of phase allocated, others have told");
        else
            finding_compare(f, claimed, seen, "bytes", "Z27", "rank %d says that it has allocated %.0f bytes, %.0f are live (%s)", r, claimed, seen,
                            memory_probes(e));
        int sizes = memory_claim_line(e, r, &fit);
        if (sizes >= MEMORY_SIZES && memory_told(fabs(fit.slope - 1), fit.slope_half, CLAIM_TOLERANCE, CLAIM_RESOLUTION) == MEMORY_UNTOLD)
            finding_broken(f, "cannot tell: rank %d: live bytes grow by %.4f +- %.2g of what it claims over %d sizes (%s)", r, fit.slope, fit.slope_half, sizes, memory_probes(e));
        else if (sizes >= MEMORY_SIZES)
            finding_compare(f, fabs(fit.slope - 1), CLAIM_TOLERANCE, "relative", "Z27", "rank %d: live bytes grow by %.4f +- %.2g of what it claims over %d sizes (%s)", r,
                            fit.slope, fit.slope_half, sizes, memory_probes(e));
        else if (memory_size_count(e, e->c) >= MEMORY_SIZES)
            finding_broken(f, "rank %d: at one of its sizes it claims nothing, or its records are not whole", r);
    }
}

const struct check check_memory_claims = {
    .name = "memory-claims", .number = 0, .claim = "d live / d claimed = 1 within 1 %, claimed <= live", .source = "docs/probes.md", .catches = "Z27",
    .blind = "the division between tags", .applies = applies, .judge = judge};
