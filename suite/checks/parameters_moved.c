// Claim: training changes the parameters: each tensor that the truth moves, moves.
// Source: the contract of a verdict (docs/method.md): a run in which nothing happens proves nothing.
// How: first against last label with parameters. If the truth itself stands still although steps were taken the case is vacuous: BROKEN.
// Catches: Z22 (the optimizer holds the wrong tensors), Z13 (unfreeze ignored), Z26 (load undoes what it should not)
// Blind to: a movement in the wrong direction
#include <string.h>

#include "harness/judge/program.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    bool any = false;
    for (int k = 0; k < e->truth->step_count; k++)
        any |= !e->truth->steps[k].skipped;
    return any && program_count(e->c, VERB_STEP) > 0;
}

static bool differs(const struct tensor *a, const struct tensor *b)
{
    for (int64_t i = 0; i < a->count && i < b->count; i++)
        if (dtype_get(a->dtype, a->data, i) != dtype_get(b->dtype, b->data, i))
            return true;
    return false;
}

// First and last observe instruction with parameters; false where there are not two.
static bool ends(const struct fsdp_case *c, int *first, int *last)
{
    *first = *last = -1;
    for (int i = 0; i < c->program_length; i++)
        if (c->program[i].verb == VERB_OBSERVE && c->program[i].what & OBSERVE_PARAM) {
            *first = *first < 0 ? i : *first;
            *last = i;
        }
    return *first >= 0 && *last > *first && program_label_at(c, *last).steps_done > program_label_at(c, *first).steps_done;
}

// Does the truth move it by more than the subject's dtype may swallow?
static bool truth_moves(const struct tensor *start, const struct tensor *end, enum dtype type)
{
    for (int64_t i = 0; i < start->count; i++) {
        double a = dtype_get(start->dtype, start->data, i), b = dtype_get(end->dtype, end->data, i), magnitude = a < 0 ? -a : a;
        if ((a < b ? b - a : a - b) > 4 * dtype_unit_roundoff(type) * magnitude)
            return true;
    }
    return false;
}

static void judge(const struct evidence *e, struct finding *f)
{
    int first, last, moved = 0;
    if (!ends(e->c, &first, &last)) {
        finding_broken(f, "the program does not observe parameters before and after a step");
        return;
    }
    const char *from = e->c->program[first].label, *to = e->c->program[last].label;
    const struct observed *a = evidence_find(e, from), *b = evidence_find(e, to);
    const struct tensors *ta = truth_find(e->truth, from), *tb = truth_find(e->truth, to);
    for (int p = 0; a && b && ta && tb && p < e->c->parameter_count; p++) {
        const char *name = e->c->parameters[p].name;
        const struct tensor *x = tensors_find2(&a->full, "param", name), *y = tensors_find2(&b->full, "param", name);
        const struct tensor *s = tensors_find2(ta, "param", name), *t = tensors_find2(tb, "param", name);
        if (!x || !y || !s || !t || !truth_moves(s, t, y->dtype))
            continue;
        moved++;
        if (!differs(x, y))
            finding_fail(f, program_count(e->c, VERB_UNFREEZE) > 0 ? "Z13 Z22" : e->c->precision.compute == DTYPE_BF16 ? "Z22 Z20" : "Z22", "%s is the same at %s and %s, the truth moves it", name, from, to);
    }
    if (moved == 0)
        finding_broken(f, "the truth moves no parameter between %s and %s: the case is vacuous", from, to);
    else
        finding_pass(f, "%d tensors move from %s to %s", moved, from, to);
}

const struct check check_parameters_moved = {
    .name = "parameters-moved", .number = 0, .claim = "param(last) != param(first) for each tensor that the truth moves",
    .source = "docs/method.md, contract of a verdict", .catches = "Z22 Z13 Z26", .blind = "a movement in the wrong direction",
    .applies = applies, .judge = judge};
