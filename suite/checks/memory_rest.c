// Claim: between steps a rank holds (whole + shared / S) bytes of a parameter, as its strategy says: none w + g + k; optimizer w + g + k/S; grad w + (g + k)/S;
//     full and hybrid (w + g + k)/S.
// Source: ZeRO, sections 3 and 5; harness/judge/memory_model.h has the table.
// How: the probes' live bytes at the end of the settled optimizer step where they are least, at four parameter counts or more and fixed ranks: the line's slope
//     over P, of each rank, within 3 % by the whole interval (harness/judge/memory_hold.h). What does not grow with P cancels. Strategy grad: by what its
//     `shards` events say of parameters between steps.
// Catches: Z27 Z13 Z30
// Blind to: what does not grow with P; where in the layers the bytes lie
#include "harness/judge/memory_hold.h"
#include "suite/checks/check.h"

static void judge(const struct evidence *e, struct finding *f)
{
    if (!memory_usable(e, f))
        return;
    struct memory_model model = memory_model_of(e->c, memory_whole_parameters(e));
    memory_hold(e, f, MEMORY_REST, memory_rest_bound(&model, e->c->sharding.shards), &model);
}

const struct check check_memory_rest = {
    .name = "memory-rest", .number = 42, .claim = "d live(rest) / dP = whole + shared / S, within 3 %", .source = "ZeRO, sections 3 and 5",
    .catches = "Z27 Z13 Z30", .blind = "what does not grow with P", .applies = memory_has_line, .judge = judge};
