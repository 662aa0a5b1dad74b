// Claim: the forward of step k sees the parameters that step k - 1 left, whether or not units are resharded after the forward.
// Source: FSDP, section 3.3 (prefetch and reshard); the definition of a training step.
// How: per tensor, |g - g64(now)| over |g64(now) - g64(before)|, now and before the subject's own parameters of the two last labels: 0 where it
//     is fresh, 1 where it is stale; bound 1/2. A tensor whose two gradients differ by less than 16 times its noise tells nothing. If none does,
//     the truth's own parameters decide: where they change no gradient visibly either the case is vacuous (BROKEN); else it is the subject's
//     parameters that stay put, which parameters-moved judges (SKIP here).
// Catches: Z15
// Blind to: the first step; models whose gradient does not depend on parameters (witness)
#include <math.h>

#include "harness/judge/gradient.h"
#include "harness/judge/noise.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->model.kind != MODEL_WITNESS && e->c->layer != LAYER_MEASURED && program_count(e->c, VERB_STEP) > 1 && e->c->precision.loss_scale == LOSS_SCALE_NONE;
}

static double distance(const struct tensor *a, const struct tensor *b)
{
    struct fit fit;
    return judge_fit(a, b, 0, a->count, &fit) ? fit.distance : NAN;
}

// The label with parameters before instruction `at`, or -1.
static int earlier(const struct fsdp_case *c, int at)
{
    for (int i = at - 1; i >= 0; i--)
        if (c->program[i].verb == VERB_OBSERVE && c->program[i].what & OBSERVE_PARAM)
            return i;
    return -1;
}

// Does the gradient change by more than its noise?
static bool visible(const struct evidence *e, const struct program_label *l, int p, enum dtype stored, double gap)
{
    struct noise noise = {0};
    double floor = e->c->layer == LAYER_EXACT ? 0 : noise_of(e, l->label, p, stored, &noise) ? 16 * noise.l2 : INFINITY;
    return gap > floor;
}

// f: NULL to count what could be judged.
static int judge_label(const struct evidence *e, struct finding *f, const struct program_label *l, const struct observed *o, const struct tensors *now,
                       const struct tensors *before)
{
    int judged = 0;
    for (int p = 0; p < e->c->parameter_count; p++) {
        const char *name = e->c->parameters[p].name;
        const struct tensor *x = tensors_find2(&o->full, "grad", name), *a = tensors_find2(now, "grad", name), *b = tensors_find2(before, "grad", name);
        double gap = a && b ? distance(a, b) : 0;
        if (!x || !a || !b || x->count != a->count || !visible(e, l, p, x->dtype, gap))
            continue;
        judged++;
        if (!f)
            continue;
        double stale = distance(x, a) / gap, old = distance(x, b) / gap;
        bool on_the_way = judge_compare(stale, 0.5) || judge_compare(stale + old, 1.1);
        finding_compare(f, stale, 0.5, "share", judge_compare(fabs(stale - 1), 0.01) && judge_compare(old, 0.1) ? "Z15" : "",
                        on_the_way ? "%s: the gradient of %s lies %.3g of the way from the present parameters' to the previous ones'"
                                   : "%s: the gradient of %s is %.3g of the gap to the previous parameters' gradient away from the present ones', and %.3g from "
                                     "the previous ones': staleness alone does not explain it", l->label, name, stale, old);
    }
    return judged;
}

// Whose parameters: the subject's, or the truth's.
typedef const struct tensors *state_fn(const struct evidence *e, const char *label);

static const struct tensors *of_subject(const struct evidence *e, const char *label)
{
    const struct observed *o = evidence_find(e, label);
    return o ? &o->full : NULL;
}

static const struct tensors *of_truth(const struct evidence *e, const char *label) { return truth_find(e->truth, label); }

// Against the nearest older parameters that lead to another gradient (a load may bring the same back).
static int judge_history(const struct evidence *e, struct finding *f, const struct program_label *l, const struct observed *o, const struct tensors *now, state_fn *state)
{
    int judged = 0;
    for (int at = earlier(e->c, l->parameters_at); at >= 0 && judged == 0; at = earlier(e->c, at)) {
        const struct tensors *old = state(e, e->c->program[at].label);
        struct tensors before = {0};
        if (old && gradient_of(e, l, old, SHARE_ALL, &before, NULL, NULL))
            judged = judge_label(e, f, l, o, now, &before);
        tensors_free(&before);
    }
    return judged;
}

static int judge_all(const struct evidence *e, struct finding *f, state_fn *state)
{
    int judged = 0;
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct observed *o = evidence_find(e, l.label);
        const struct tensors *parameters = l.parameters_at >= 0 ? state(e, e->c->program[l.parameters_at].label) : NULL;
        struct tensors now = {0};
        if (o && parameters && l.what & OBSERVE_GRAD && l.gradient_step >= 0 && gradient_of(e, &l, parameters, SHARE_ALL, &now, NULL, NULL))
            judged += judge_history(e, f, &l, o, &now, state);
        tensors_free(&now);
    }
    return judged;
}

static void judge(const struct evidence *e, struct finding *f)
{
    if (judge_all(e, f, of_subject) > 0)
        return;
    if (judge_all(e, NULL, of_truth) == 0)
        finding_broken(f, "no step changes the gradient by more than its noise, so stale parameters would not show: give the case a larger learning rate, or one step");
    else
        finding_skip(f, "the subject's parameters change no gradient visibly, the truth's do: freshness cannot be told (see parameters-moved)");
}

const struct check check_fresh_parameters = {
    .name = "fresh-parameters", .number = 22, .claim = "|g - g64(p now)| <= |g64(p now) - g64(p before)| / 2", .source = "FSDP section 3.3",
    .catches = "Z15", .blind = "the first step; witness models", .applies = applies, .judge = judge};
