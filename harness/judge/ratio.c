// The calibrated layer's judgement of gradients, whole tensors and shards. See ratio.h.
#include "harness/judge/ratio.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/gradient.h"
#include "harness/judge/hint.h"
#include "harness/judge/holdings.h"
#include "harness/judge/noise.h"

enum { MAX_LABELS = 256 };

struct walk {
    const struct evidence *e;
    const struct program_label *l;
    const struct tensors *x, *ref;
    bool *differs;                 // by parameter, cleared per label
    int judged, differing, worst_parameter, worst_rank; // rank -1: the whole tensor
    double worst;                  // ratio at this label
    double relative;               // largest noise.l2 / noise.norm of tensors that differ: the hint's tolerance
};

static double distance(const struct tensor *x, const struct tensor *ref, int64_t first, int64_t length)
{
    double sum = 0;
    for (int64_t i = first; i < first + length; i++) {
        double d = dtype_get(x->dtype, x->data, i) - dtype_get(ref->dtype, ref->data, i);
        sum += d * d;
    }
    return sum;
}

// The worst shard's ratio; *rank says whose.
static double shard_ratio(const struct evidence *e, int p, const struct tensor *x, const struct tensor *ref, const struct noise *noise, int *rank)
{
    double worst = 0;
    for (int r = 0; r < e->world_size && holdings_complete(e, HELD_GRADIENT); r++) {
        const struct held_part *part = &holdings_rank(e, HELD_GRADIENT, r)->parts[p];
        if (part->total == 0 || part->total == x->count)
            continue;
        double sum = 0;
        for (int k = 0; k < part->count; k++)
            sum += distance(x, ref, part->ranges[k].offset, part->ranges[k].length);
        double ratio = sum == 0 ? 0 : sqrt(sum) / fmin(noise->l2, noise->element * sqrt((double)part->total));
        if (judge_worse(worst, ratio) != worst) {
            worst = ratio;
            *rank = r;
        }
        if (!judge_finite(worst))
            break;
    }
    return worst;
}

static void judge_tensor(struct walk *w, struct finding *f, int p)
{
    const struct evidence *e = w->e;
    const char *name = e->c->parameters[p].name;
    const struct tensor *x = tensors_find2(w->x, "grad", name), *ref = tensors_find2(w->ref, "grad", name);
    struct noise noise;
    if (!x || !ref || x->count != ref->count)
        return;
    if (!noise_of(e, w->l->label, p, x->dtype, &noise)) {
        finding_broken(f, "%s: the truth holds no noise of grad/%s", w->l->label, name);
        return;
    }
    int rank = -1;
    double whole = distance(x, ref, 0, x->count), ratio = whole == 0 ? 0 : sqrt(whole) / noise.l2;
    double part = shard_ratio(e, p, x, ref, &noise, &rank);
    bool ok = judge_compare(ratio, e->budget) && judge_compare(part, e->budget);
    char tensor[300];
    snprintf(tensor, sizeof tensor, "grad/%s", name);
    judge_figure(e, w->l->label, tensor, ratio, e->budget, "ratio");
    w->judged++;
    w->differs[p] = !ok;
    w->differing += !ok;
    if (!ok)
        w->relative = fmax(w->relative, noise.norm > 0 ? noise.l2 / noise.norm : 0);
    double larger = judge_worse(ratio, part);
    if (judge_finite(w->worst) && judge_worse(w->worst, larger) != w->worst) {
        w->worst = larger;
        w->worst_parameter = p;
        w->worst_rank = !judge_finite(ratio) || larger == ratio ? -1 : rank;
    }
}

// Elements off by more than the budget's share of one element's noise: the place of a structural fault.
static void place_of(const struct walk *w, int p, const struct tensor *x, const struct tensor *ref, struct place *place)
{
    struct noise noise;
    bool *marks = calloc((size_t)x->count + 1, sizeof *marks);
    bool known = noise_of(w->e, w->l->label, p, x->dtype, &noise);
    for (int64_t i = 0; known && i < x->count; i++)
        marks[i] = !judge_compare(fabs(dtype_get(x->dtype, x->data, i) - dtype_get(ref->dtype, ref->data, i)), w->e->budget * noise.element);
    holdings_where(w->e, HELD_GRADIENT, p, marks, place);
    free(marks);
}

static void report(const struct walk *w, struct finding *f, const char *default_classes)
{
    const struct evidence *e = w->e;
    int p = w->worst_parameter;
    const char *name = e->c->parameters[p].name;
    const struct tensor *x = tensors_find2(w->x, "grad", name), *ref = tensors_find2(w->ref, "grad", name);
    struct fit fit;
    struct hint hint;
    struct place place;
    char scale[32], shard[48] = "";
    judge_fit(x, ref, 0, x->count, &fit);
    place_of(w, p, x, ref, &place);
    hint_gradient(e, w->l, w->x, "grad", w->ref, gradient_parameters(e, w->l), w->differs, e->budget * w->relative, &hint);
    const char *named = judge_finite(fit.scalar) ? judge_scale_name(fit.scalar, e->c, scale, sizeof scale) : NULL;
    if (w->worst_rank >= 0)
        snprintf(shard, sizeof shard, " (shard of rank %d)", w->worst_rank);
    bool tied = false; // the only tensor that is wrong is one with two uses
    for (int q = 0; q < e->c->parameter_count && w->differing == 1; q++)
        tied |= e->c->parameters[q].tied_to == p;
    const char *classes = hint.classes[0] ? hint.classes : tied ? "Z10 Z11" : place.only_last ? "Z11" : default_classes;
    finding_compare(f, w->worst, e->budget, "ratio", classes,
                    "%s, step %d: the gradient of %s%s is %.3g times the noise away from float64 at the subject's own parameters%s%s; "
                    "a = %.6g%s%s%s, residual %.3g; %d of %d tensors differ%s%s",
                    w->l->label, w->l->gradient_step, name, shard, w->worst, place.text[0] ? ", " : "", place.text, fit.scalar, named ? " (" : "",
                    named ? named : "", named ? ")" : "", fit.residual, w->differing, w->judged, hint.text[0] ? "; " : "", hint.text);
    snprintf(f->ranks, sizeof f->ranks, "%s", place.ranks);
}

static bool walk_label(struct walk *w, struct finding *f, exact_filter filter, const char *default_classes)
{
    const struct tensors *parameters = gradient_parameters(w->e, w->l);
    struct tensors reference = {0};
    struct error error = {{0}};
    if (!parameters || !gradient_of(w->e, w->l, parameters, SHARE_ALL, &reference, NULL, &error)) {
        finding_broken(f, "%s: no float64 gradient at the subject's parameters: %s", w->l->label, parameters ? error.text : "they are not observed");
        return false;
    }
    w->ref = &reference;
    memset(w->differs, 0, (size_t)w->e->c->parameter_count * sizeof *w->differs);
    for (int p = 0; p < w->e->c->parameter_count; p++)
        if (!filter || filter(w->e->c, p))
            judge_tensor(w, f, p);
    if (w->differing > 0)
        report(w, f, default_classes);
    tensors_free(&reference);
    return w->differing == 0;
}

void ratio_judge(const struct evidence *e, struct finding *f, exact_filter filter, const char *default_classes)
{
    struct program_label labels[MAX_LABELS];
    int count = program_labels(e->c, labels, MAX_LABELS), judged = 0, steps = 0;
    bool ok = true, *differs = calloc((size_t)e->c->parameter_count + 1, sizeof *differs);
    double worst = 0;
    for (int k = 0; ok && k < count && k < MAX_LABELS; k++) {
        const struct observed *o = evidence_find(e, labels[k].label);
        if (!o || !(labels[k].what & OBSERVE_GRAD) || labels[k].gradient_step < 0)
            continue;
        struct walk w = {.e = e, .l = &labels[k], .x = &o->full, .differs = differs, .worst_rank = -1};
        ok = walk_label(&w, f, filter, default_classes);
        judged += w.judged;
        steps++;
        worst = judge_worse(worst, w.worst);
    }
    free(differs);
    if (ok && judged > 0)
        finding_compare(f, worst, e->budget, "ratio", "", "%d gradients at %d labels: at most %.3g times the noise", judged, steps, worst);
}
