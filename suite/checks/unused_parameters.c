// Claim: a parameter that no forward uses has no gradient or 0, and does not change (without weight decay).
// Source: the gradient of a function that does not depend on it.
// How: parameters `unused.*` of the mlp at every label.
// Catches: Z14 Z18
// Blind to: a hang that unused parameters cause (the deadline sees that)
#include <string.h>

#include "harness/judge/program.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return e->c->model.kind == MODEL_MLP && e->c->model.unused > 0; }

static void judge_tensor(const struct evidence *e, struct finding *f, const struct observed *o, const char *prefix, const char *name, bool to_init)
{
    const struct tensor *x = tensors_find2(&o->full, prefix, name), *init = to_init ? tensors_find(&e->truth->init, name) : NULL;
    int64_t off = 0;
    for (int64_t i = 0; x && i < x->count; i++) {
        uint64_t cell = 0;
        dtype_set(x->dtype, &cell, 0, init ? dtype_get(init->dtype, init->data, i) : 0);
        off += dtype_get(x->dtype, x->data, i) != dtype_get(x->dtype, &cell, 0);
    }
    if (to_init && (!init || !x || init->count != x->count))
        return;
    finding_compare(f, (double)off, 0, "elements", to_init ? "Z14 Z18" : "Z18 Z14", "%s: %s of %s, which no forward uses, %s", o->label, prefix, name,
                    !x ? "is absent" : off == 0 ? "rests" : to_init ? "changed" : "is not 0");
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        const struct observed *o = evidence_find(e, e->c->program[at].label);
        for (int p = 0; o && p < e->c->parameter_count; p++) {
            const char *name = e->c->parameters[p].name;
            if (strncmp(name, "unused.", 7) != 0)
                continue;
            if (e->c->program[at].what & OBSERVE_GRAD)
                judge_tensor(e, f, o, "grad", name, false);
            if (e->c->program[at].what & OBSERVE_PARAM && e->c->optimizer.weight_decay == 0)
                judge_tensor(e, f, o, "param", name, true);
        }
    }
}

const struct check check_unused_parameters = {
    .name = "unused-parameters", .number = 19, .claim = "unused: grad absent or 0, param = init", .source = "calculus", .catches = "Z14 Z18",
    .blind = "hangs", .applies = applies, .judge = judge};
