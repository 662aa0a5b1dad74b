// Claim: a tied weight is one tensor whose gradient is the sum of both uses, on every shard, also where the vocabulary is no multiple of N.
// Source: the chain rule; docs/protocol.md (tied parameters once, under the name tied to).
// How: gradient-ratio for the tied tensor alone, whole and per shard; a second tensor under the tied name must be equal to the first.
//     The gradient of one use only is computed and named. The update is judged as in update-from-state: some shards may not train.
// Catches: Z10 Z11
// Blind to: ties across units other than embedding and output layer
#include <stdio.h>

#include "harness/judge/program.h"
#include "harness/judge/ratio.h"
#include "harness/judge/update.h"
#include "suite/checks/check.h"

static bool is_tied(const struct fsdp_case *c, int p)
{
    for (int q = 0; q < c->parameter_count; q++)
        if (c->parameters[q].tied_to == p)
            return true;
    return false;
}

static bool applies(const struct evidence *e)
{
    for (int p = 0; p < e->c->parameter_count; p++)
        if (e->c->parameters[p].tied_to >= 0)
            return e->c->layer == LAYER_CALIBRATED;
    return false;
}

static void judge_copies(const struct evidence *e, struct finding *f, const struct observed *o, int p)
{
    const char *name = e->c->parameters[p].name, *first = e->c->parameters[e->c->parameters[p].tied_to].name;
    const struct tensor *second = tensors_find2(&o->full, "param", name), *x = tensors_find2(&o->full, "param", first);
    if (!second || !x)
        return;
    struct fit fit;
    if (second->count != x->count || !judge_fit(second, x, 0, x->count, &fit) || fit.differing > 0)
        finding_fail(f, "Z10", "%s: %s and %s are tied but differ", o->label, name, first);
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (int k = 0; k < e->observed_count; k++)
        for (int p = 0; p < e->c->parameter_count; p++)
            if (e->c->parameters[p].tied_to >= 0)
                judge_copies(e, f, &e->observed[k], p);
    ratio_judge(e, f, is_tied, "Z10");
    update_judge(e, f, is_tied, "Z10 Z22");
}

const struct check check_tied_weight = {
    .name = "tied-weight", .number = 17, .claim = "grad(embed) = grad as embedding + grad as output layer, per shard", .source = "the chain rule",
    .catches = "Z10 Z11", .blind = "other ties", .applies = applies, .judge = judge};
