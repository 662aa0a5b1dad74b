// Claim: between steps a rank holds (whole + shared / S) bytes of a parameter, as its strategy says: none w + g + k; optimizer w + g + k/S; grad w + (g + k)/S;
//     full and hybrid (w + g + k)/S.
// Source: ZeRO, sections 3 and 5; harness/judge/memory_model.h has the table.
// How: the probes' live bytes at the end of the last optimizer step, at three parameter counts or more and fixed ranks: the line's slope over P, of the rank
//     with the largest, within 3 %. What does not grow with P cancels. Strategy grad: by what its `shards` events say of parameters between steps.
// Catches: Z27 Z13 Z30
// Blind to: what does not grow with P; where in the layers the bytes lie
#include <math.h>

#include "harness/judge/memory_seen.h"
#include "suite/checks/check.h"

static void judge(const struct evidence *e, struct finding *f)
{
    struct error error = {""};
    struct memory_line line;
    if (!memory_usable(e, f))
        return;
    if (!memory_line(e, e->c, MEMORY_REST, &line, &error)) {
        finding_broken(f, "%s", error.text);
        return;
    }
    struct memory_model model = memory_model_of(e->c, memory_whole_parameters(e));
    double theory = memory_share_bytes(memory_model_at(&model, MEMORY_REST), e->c->sharding.shards), slope = line.fit.slope;
    theory = fmin(fmax(slope, theory - model.copy.whole - memory_share_bytes(model.idle, e->c->sharding.shards)), theory);
    char excess[MEMORY_WORDS];
    memory_resolved(f, "rest", &line.fit, theory);
    judge_figure(e, "rest", "bytes of a parameter", slope, theory, "bytes");
    finding_compare(f, fabs(slope - theory) / theory, MEMORY_TOLERANCE, "relative", memory_classes(e->c),
                    "rank %d holds %.4g +- %.2g bytes of a parameter at rest over %d sizes (%s), the strategy has %.4g%s", line.rank, slope,
                    line.fit.slope_half, line.fit.count, memory_probes(e), theory, memory_model_excess(e->c, &model, slope - theory, excess));
}

const struct check check_memory_rest = {
    .name = "memory-rest", .number = 42, .claim = "d live(rest) / dP = whole + shared / S, within 3 %", .source = "ZeRO, sections 3 and 5",
    .catches = "Z27 Z13 Z30", .blind = "what does not grow with P", .applies = memory_has_line, .judge = judge};
