// Claim: after S steps the parameters are as near to the float64 run as gradients within their noise can bring them.
// Source: derived, first order: one step with gradient error d moves a parameter by lr |d| (sgd, over 1 - momentum) or at most lr min(2, 4 |d| / (sqrt(v^) + eps))
//     (adamw: both moments carry d; v^ that of the step, for an element's first gradient may be far smaller than its next); S steps add up, and a
//     factor 2 allows for gradients taken at shifted parameters.
// How: |p - p64|_2 per tensor at the last label over 2 |sum of those bounds|_2 + 2 S u |p|_2, d = budget times the noise of one element. Not measured: the noise runs
//     hold gradients only.
// Catches: Z20 Z22 Z23 Z26
// Blind to: what the bound allows, which grows with S; the checks of single steps are sharper
#include <math.h>

#include "harness/judge/noise.h"
#include "harness/judge/program.h"
#include "suite/checks/check.h"

// Last label with parameters.
static int last_label(const struct fsdp_case *c)
{
    for (int i = c->program_length - 1; i >= 0; i--)
        if (c->program[i].verb == VERB_OBSERVE && c->program[i].what & OBSERVE_PARAM)
            return i;
    return -1;
}

static bool applies(const struct evidence *e)
{
    return e->c->layer == LAYER_CALIBRATED && e->c->clip == CLIP_OFF && e->c->precision.loss_scale == LOSS_SCALE_NONE &&
           program_count(e->c, VERB_STEP) > 1 && program_count(e->c, VERB_LOAD) == 0 && last_label(e->c) >= 0;
}

enum { MAX_STEPS = 64 };
// The truth's exp_avg_sq of one parameter after each step; NULL where no label has it (then adamw's drift is the largest).
struct squares { const struct tensor *after[MAX_STEPS]; };

static struct squares squares_of(const struct evidence *e, const char *name)
{
    struct squares s = {{NULL}};
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct tensors *truth = truth_find(e->truth, l.label);
        if (truth && l.what & OBSERVE_EXP_AVG_SQ && l.steps_done > 0 && l.steps_done <= MAX_STEPS)
            s.after[l.steps_done - 1] = tensors_find2(truth, "exp_avg_sq", name);
    }
    return s;
}

// Bound of one element's drift by all steps.
static double drift(const struct evidence *e, const struct squares *s, int64_t i, double error, int steps)
{
    const struct optimizer_spec *o = &e->c->optimizer;
    double sum = 0;
    if (o->kind == OPTIMIZER_SGD)
        return steps * o->lr * error / (1 - o->momentum);
    for (int k = 1; k <= steps; k++) {
        const struct tensor *square = k <= MAX_STEPS ? s->after[k - 1] : NULL;
        double v = square ? dtype_get(square->dtype, square->data, i) / (1 - pow(o->beta2, k)) : 0;
        sum += o->lr * fmin(2, 4 * error / (sqrt(v) + o->eps));
    }
    return sum;
}

// Largest noise of one element over the gradient labels.
static bool element_noise(const struct evidence *e, int p, enum dtype stored, double *out)
{
    bool known = false;
    *out = 0;
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct noise n;
        if (!(e->c->program[at].what & OBSERVE_GRAD) || !noise_of(e, e->c->program[at].label, p, stored, &n))
            continue;
        *out = fmax(*out, n.element);
        known = true;
    }
    return known;
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct program_label l = program_label_at(e->c, last_label(e->c));
    const struct observed *o = evidence_find(e, l.label);
    const struct tensors *truth = truth_find(e->truth, l.label);
    for (int p = 0; o && truth && p < e->c->parameter_count; p++) {
        const char *name = e->c->parameters[p].name;
        const struct tensor *x = tensors_find2(&o->full, "param", name), *ref = tensors_find2(truth, "param", name);
        struct squares squares = squares_of(e, name);
        double noise, bound = 0;
        struct fit fit;
        if (!x || !ref || !judge_fit(x, ref, 0, x->count, &fit) || !element_noise(e, p, x->dtype, &noise))
            continue;
        for (int64_t i = 0; i < x->count; i++)
            bound += pow(drift(e, &squares, i, e->budget * noise, l.steps_done), 2);
        double allowed = 2 * sqrt(bound) + 2 * l.steps_done * dtype_unit_roundoff(x->dtype) * fit.ref_norm, ratio = fit.distance == 0 ? 0 : fit.distance / allowed;
        judge_figure(e, l.label, name, ratio, 1, "bound");
        finding_compare(f, ratio, 1, "bound", "", "after %d steps %s is %.3g away from the float64 run, %.3g of what noise allows; a = %.6g, residual %.3g",
                        l.steps_done, name, fit.distance, ratio, fit.scalar, fit.residual);
    }
}

const struct check check_after_steps = {
    .name = "after-steps", .number = 32, .claim = "|p(S) - p64(S)| <= drift of S steps with noisy gradients", .source = "first-order bound, stated in the file",
    .catches = "Z20 Z22 Z23 Z26", .blind = "what the bound allows", .applies = applies, .judge = judge};
