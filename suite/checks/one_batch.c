// Claim: m microbatches on N ranks give the gradient of their rows in one batch on one rank, also where token counts differ by rank.
// Source: docs/protocol.md, the loss: weights are normalised by W over all ranks and microbatches of the step.
// How: the step's rows are read as one microbatch of m G rows (the same bytes, another shape) and differentiated in float64; exact
//     cases bitwise, others within the noise budget.
// Catches: Z09 Z04 Z05
// Blind to: mean_of_ranks, which is meant to depend on who holds a row
#include <math.h>
#include <stdlib.h>

#include "harness/judge/exact.h"
#include "harness/judge/gradient.h"
#include "harness/judge/hint.h"
#include "harness/judge/noise.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    const struct fsdp_case *c = e->c;
    bool layer = c->layer == LAYER_CALIBRATED || (exact_case(e) && exact_allowance(c) == 0);
    return layer && (c->data.micros > 1 || c->data.uneven_tokens) && c->loss != LOSS_MEAN_OF_RANKS;
}

static double figure_of(const struct evidence *e, const struct program_label *l, int p, const struct tensor *x, const struct tensor *ref)
{
    struct fit fit;
    struct noise noise;
    judge_fit(x, ref, 0, x->count, &fit);
    if (exact_case(e))
        return (double)fit.differing;
    return fit.distance == 0 ? 0 : noise_of(e, l->label, p, x->dtype, &noise) ? fit.distance / noise.l2 : NAN;
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct tensors *parameters = gradient_parameters(e, &l);
        const struct observed *o = evidence_find(e, l.label);
        struct tensors ref = {0};
        struct error error = {{0}};
        if (!(l.what & OBSERVE_GRAD) || l.gradient_step < 0 || !o || !parameters)
            continue;
        if (!gradient_one_batch(e, &l, parameters, &ref, &error))
            finding_broken(f, "%s: no gradient of one batch: %s", l.label, error.text);
        bool *differs = calloc((size_t)e->c->parameter_count + 1, sizeof *differs);
        double bound = exact_case(e) ? 0 : e->budget;
        for (int p = 0; p < e->c->parameter_count; p++) {
            const struct tensor *x = tensors_find2(&o->full, "grad", e->c->parameters[p].name), *r = tensors_find2(&ref, "grad", e->c->parameters[p].name);
            differs[p] = x && r && !judge_compare(figure_of(e, &l, p, x, r), bound);
        }
        for (int p = 0; p < e->c->parameter_count; p++) {
            const struct tensor *x = tensors_find2(&o->full, "grad", e->c->parameters[p].name), *r = tensors_find2(&ref, "grad", e->c->parameters[p].name);
            struct hint hint = {{0}, {0}};
            if (!x || !r)
                continue;
            if (differs[p])
                hint_gradient(e, &l, &o->full, "grad", &ref, parameters, differs, 1e-6, &hint);
            finding_compare(f, figure_of(e, &l, p, x, r), bound, exact_case(e) ? "elements" : "ratio", hint.classes,
                            "%s: the gradient of %s is %s that of one batch%s%s", l.label, e->c->parameters[p].name, differs[p] ? "not" : "", hint.text[0] ? "; " : "", hint.text);
        }
        free(differs);
        tensors_free(&ref);
    }
}

const struct check check_one_batch = {
    .name = "one-batch", .number = 10, .claim = "grad(m microbatches, N ranks) = grad(m G rows at once)", .source = "docs/protocol.md, the loss",
    .catches = "Z09 Z04 Z05", .blind = "mean_of_ranks", .applies = applies, .judge = judge};
