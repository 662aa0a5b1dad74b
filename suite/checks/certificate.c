// Claim: the data of an exact case are exact: sum |terms| <= 2^24 lowest set bit for every reduction, and gradients are not zero.
// Source: Goldberg, section on exactly rounded operations: integers below 2^p add without error in any order; docs/method.md.
// How: the certificate that was computed when the data were made. A missing one is our own fault: BROKEN.
// Catches: nothing of the subject: it guards the exact layer
// Blind to: reductions that the truth does not perform
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return e->c->layer == LAYER_EXACT; }

static void judge(const struct evidence *e, struct finding *f)
{
    if (!e->truth->exact)
        finding_broken(f, "the data carry no certificate of exactness: bitwise comparison would blame rounding on the subject");
    else if (!judge_compare(0x1p-30, e->truth->smallest_gradient_share))
        finding_broken(f, "a tensor's gradient is zero everywhere: a rank that is left out could pass");
    else
        finding_pass(f, "certified: %.1f bits at most; at least %.0f %% of each gradient is not zero", e->truth->certificate_bits,
                     100 * e->truth->smallest_gradient_share);
}

const struct check check_certificate = {
    .name = "certificate", .number = 0, .claim = "sum |terms| <= 2^p lowest bit for each reduction of an exact case",
    .source = "Goldberg 1991; docs/method.md", .catches = "", .blind = "reductions that the truth does not perform",
    .applies = applies, .judge = judge};
