// Claim: the reduced gradient errs by no more than the theorem allows: |error| <= (n + 1) u sum |terms|, n the number of rows and ranks added.
// Source: Higham, section 4.2: a sum of n terms in any order errs by at most (n - 1) u sum |terms|; two more roundings for weight and division.
// How: for a witness the terms are the data themselves, so bound and exact sum are known for each element; u of the widest error: compute and reduce dtype.
// Catches: Z01 Z03 Z19
// Blind to: errors below the bound; models whose gradient is not a sum of their data
#include <math.h>

#include "harness/judge/gradient.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->model.kind == MODEL_WITNESS && e->c->loss == LOSS_SUM && e->c->precision.loss_scale == LOSS_SCALE_NONE;
}

// Sum over the step of |w x| of element i.
static double magnitude(const struct evidence *e, const char *name, int step, int64_t i)
{
    const struct tensor *x = tensors_find2(&e->truth->data, "x", name), *w = tensors_find(&e->truth->data, "weight");
    int64_t rows = e->c->data.micros * e->c->global_rows, count = x ? x->count / (e->c->data.steps * rows) : 0;
    double sum = 0;
    for (int64_t r = 0; x && w && r < rows; r++)
        sum += fabs(dtype_get(w->dtype, w->data, step * rows + r) * dtype_get(x->dtype, x->data, (step * rows + r) * count + i));
    return sum;
}

static void judge_label(const struct evidence *e, struct finding *f, const struct program_label *l, const struct tensors *x, const struct tensors *ref)
{
    double u = fmax(dtype_unit_roundoff(e->c->precision.reduce), dtype_unit_roundoff(e->c->precision.compute));
    double terms = (double)(e->c->data.micros * e->c->global_rows) + case_data_ranks(e->c);
    for (int p = 0; p < e->c->parameter_count; p++) {
        const char *name = e->c->parameters[p].name;
        const struct tensor *a = tensors_find2(x, "grad", name), *b = tensors_find2(ref, "grad", name);
        double worst = 0;
        for (int64_t i = 0; a && b && i < a->count; i++) {
            double d = fabs(dtype_get(a->dtype, a->data, i) - dtype_get(b->dtype, b->data, i));
            double ratio = d == 0 ? 0 : d / (fmax(u, dtype_unit_roundoff(a->dtype)) * (terms + 1) * magnitude(e, name, l->gradient_step, i));
            worst = judge_worse(worst, ratio);
        }
        if (a && b) {
            judge_figure(e, l->label, name, worst, 1, "bound");
            struct fit fit;
            char scale[32];
            bool named = judge_fit(a, b, 0, a->count, &fit) && fit.residual < 1e-3 && judge_scale_name(fit.scalar, e->c, scale, sizeof scale);
            finding_compare(f, worst, 1, "bound", named ? "Z01" : "", "%s: the gradient of %s errs by %.3g of the bound of a sum of %.0f terms", l->label, name, worst, terms);
        }
    }
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct observed *o = evidence_find(e, l.label);
        const struct tensors *parameters = gradient_parameters(e, &l);
        struct tensors ref = {0};
        if (o && parameters && l.what & OBSERVE_GRAD && l.gradient_step >= 0 && gradient_of(e, &l, parameters, SHARE_ALL, &ref, NULL, NULL))
            judge_label(e, f, &l, &o->full, &ref);
        tensors_free(&ref);
    }
}

const struct check check_reduction_bound = {
    .name = "reduction-bound", .number = 29, .claim = "|g - sum| <= (n + 1) u sum |terms|", .source = "Higham section 4.2",
    .catches = "Z01 Z03", .blind = "errors below the bound", .applies = applies, .judge = judge};
