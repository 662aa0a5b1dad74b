// Claim: while frozen a parameter has no gradient and does not change; after unfreeze it has one and trains again.
// Source: PyTorch documentation, requires_grad; docs/protocol.md, freeze and unfreeze.
// How: gradients and parameters of all labels against the freeze verbs in between. A gradient of zeros counts as none.
// Catches: Z13 Z14
// Blind to: memory and traffic of frozen units
#include <stdlib.h>
#include <string.h>

#include "harness/judge/program.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return program_count(e->c, VERB_FREEZE) > 0; }

static int64_t nonzero(const struct tensor *t)
{
    int64_t count = 0;
    for (int64_t i = 0; t && i < t->count; i++)
        count += dtype_get(t->dtype, t->data, i) != 0;
    return count;
}

// Gradient at a label: there must be none if frozen, and one if not (where the truth has one).
static void judge_gradient(const struct evidence *e, struct finding *f, const struct observed *o, int p, bool frozen)
{
    const char *name = e->c->parameters[p].name;
    const struct tensors *truth = truth_find(e->truth, o->label);
    int64_t found = nonzero(tensors_find2(&o->full, "grad", name)), expected = truth ? nonzero(tensors_find2(truth, "grad", name)) : 0;
    if (frozen)
        finding_compare(f, (double)found, 0, "elements", "Z13", "%s: the gradient of %s, which is frozen, has %lld elements that are not 0", o->label, name, (long long)found);
    else if (expected > 0 && found == 0)
        finding_fail(f, "Z13 Z14", "%s: %s requires a gradient but has none", o->label, name);
}

// Steps between two instructions, and how many of them found parameter p frozen.
static int steps_between(const struct fsdp_case *c, int a, int b, int p, int *frozen_steps)
{
    bool *frozen = calloc((size_t)c->parameter_count + 1, sizeof *frozen);
    int steps = 0;
    *frozen_steps = 0;
    for (int at = program_next(c, VERB_STEP, a); at >= 0 && at < b; at = program_next(c, VERB_STEP, at + 1)) {
        program_frozen(c, at, frozen);
        *frozen_steps += frozen[p];
        steps++;
    }
    free(frozen);
    return steps;
}

// Parameters of two consecutive labels a < b.
static void judge_change(const struct evidence *e, struct finding *f, int a, int b, int p)
{
    const char *name = e->c->parameters[p].name;
    int frozen, steps = steps_between(e->c, a, b, p, &frozen);
    const struct observed *x = evidence_find(e, e->c->program[a].label), *y = evidence_find(e, e->c->program[b].label);
    const struct tensor *t = x ? tensors_find2(&x->full, "param", name) : NULL, *u = y ? tensors_find2(&y->full, "param", name) : NULL;
    const struct tensors *truth = y ? truth_find(e->truth, y->label) : NULL;
    if (!t || !u || !truth || t->count != u->count || t->dtype != u->dtype || steps == 0)
        return;
    bool same = memcmp(t->data, u->data, (size_t)t->count * dtype_size(t->dtype)) == 0;
    if (frozen == steps && !same)
        finding_fail(f, "Z13", "%s is frozen but changed between %s and %s", name, x->label, y->label);
    else if (frozen == 0 && same && e->c->layer == LAYER_EXACT)
        finding_fail(f, "Z13 Z22", "%s requires a gradient but did not change between %s and %s", name, x->label, y->label);
    else
        finding_pass(f, "frozen parameters rest, the others train");
}

static void judge(const struct evidence *e, struct finding *f)
{
    bool *frozen = calloc((size_t)e->c->parameter_count + 1, sizeof *frozen);
    int previous = -1;
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        const struct observed *o = evidence_find(e, e->c->program[at].label);
        unsigned what = e->c->program[at].what;
        program_frozen(e->c, at, frozen);
        for (int p = 0; o && p < e->c->parameter_count; p++) {
            if (e->c->parameters[p].tied_to < 0 && what & OBSERVE_GRAD)
                judge_gradient(e, f, o, p, frozen[p]);
            if (e->c->parameters[p].tied_to < 0 && what & OBSERVE_PARAM && previous >= 0)
                judge_change(e, f, previous, at, p);
        }
        previous = what & OBSERVE_PARAM ? at : previous;
    }
    free(frozen);
}

const struct check check_frozen_units = {
    .name = "frozen-units", .number = 18, .claim = "frozen: grad absent or 0, param unchanged; unfrozen: both again", .source = "docs/protocol.md",
    .catches = "Z13 Z14", .blind = "memory and traffic", .applies = applies, .judge = judge};
