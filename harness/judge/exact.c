// Walks labels and tensors, finds the first that differs, and says how. See exact.h.
#include "harness/judge/exact.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/gradient.h"
#include "harness/judge/hint.h"
#include "harness/judge/holdings.h"

enum { MAX_LABELS = 256 };

bool exact_case(const struct evidence *e)
{
    return e->c->layer == LAYER_EXACT;
}

double exact_allowance(const struct fsdp_case *c)
{
    int n = case_data_ranks(c);
    return (n & (n - 1)) == 0 || (n <= 6 && c->layer == LAYER_EXACT) ? 0 : 2;
}

double exact_ulp(double x, double reference, enum dtype type)
{
    uint64_t cell = 0;
    dtype_set(type, &cell, 0, reference);
    double rounded = dtype_get(type, &cell, 0);
    if (x == rounded)
        return 0;
    if (!judge_finite(x) || !judge_finite(rounded))
        return INFINITY;
    // 2u times the power of two at or below the larger of the two (at a reference of 0 its own spacing would say nothing); below the
    // smallest normal of float32 the spacing is that of the subnormals
    int exponent = ilogb(fmax(fabs(rounded), fabs(x)));
    return fabs(x - rounded) / ldexp(2 * dtype_unit_roundoff(type), exponent < -126 ? -126 : exponent);
}

// One label of one kind, all tensors of the table.
struct comparison {
    int compared, differing, first; // first: parameter of the table
    int64_t elements;
    double ulp;                     // largest
    bool *differs;                  // by parameter
};

static void compare_label(const struct evidence *e, const struct tensors *x, const struct tensors *ref, const char *prefix,
                          exact_filter filter, double allowed, struct comparison *out)
{
    memset(out->differs, 0, (size_t)e->c->parameter_count * sizeof *out->differs);
    out->differing = 0, out->first = -1;
    for (int p = 0; p < e->c->parameter_count; p++) {
        const char *name = e->c->parameters[p].name;
        const struct tensor *a = tensors_find2(x, prefix, name), *b = tensors_find2(ref, prefix, name);
        if (!a || !b || a->count != b->count || (filter && !filter(e->c, p)))
            continue;
        double worst = 0;
        for (int64_t i = 0; i < a->count; i++) {
            double ulp = exact_ulp(dtype_get(a->dtype, a->data, i), dtype_get(b->dtype, b->data, i), a->dtype);
            worst = judge_worse(worst, ulp);
        }
        out->compared++;
        out->elements += a->count;
        out->ulp = judge_worse(out->ulp, worst);
        if (!judge_compare(worst, allowed)) {
            out->differs[p] = true;
            out->first = out->differing++ == 0 ? p : out->first;
        }
    }
}

static void mark_differences(const struct tensor *a, const struct tensor *b, double allowed, bool *marks)
{
    for (int64_t i = 0; i < a->count; i++)
        marks[i] = exact_ulp(dtype_get(a->dtype, a->data, i), dtype_get(b->dtype, b->data, i), a->dtype) > allowed;
}

static void hint_for(const struct evidence *e, const struct program_label *l, unsigned bit, const struct observed *o,
                     const struct tensors *ref, const struct comparison *found, struct hint *hint)
{
    *hint = (struct hint){{0}, {0}};
    const char *name = e->c->parameters[found->first].name;
    if (bit == OBSERVE_GRAD)
        hint_gradient(e, l, &o->full, "grad", ref, gradient_parameters(e, l), found->differs, 1e-6, hint);
    if (bit != OBSERVE_PARAM)
        return;
    int before = program_state_before(e->c, l->at, OBSERVE_PARAM); // across the step: look past it
    for (int i = l->at - 1; before < 0 && i >= 0; i--)
        before = e->c->program[i].verb == VERB_OBSERVE && e->c->program[i].what & OBSERVE_PARAM ? i : before;
    const struct observed *previous = before >= 0 ? evidence_find(e, e->c->program[before].label) : NULL;
    const struct tensor *start = previous ? tensors_find2(&previous->full, "param", name) : NULL;
    if (start)
        hint_update(e, tensors_find2(&o->full, "param", name), tensors_find2(ref, "param", name), start, hint);
}

static void report(const struct evidence *e, struct finding *f, const struct program_label *l, unsigned bit, const struct observed *o,
                   const struct tensors *ref, const struct comparison *found, double allowed, const char *default_classes)
{
    const char *prefix = observe_name((enum observe_bit)bit), *name = e->c->parameters[found->first].name;
    const struct tensor *a = tensors_find2(&o->full, prefix, name), *b = tensors_find2(ref, prefix, name);
    bool gradient = bit == OBSERVE_GRAD || bit == OBSERVE_CLIPPED;
    struct fit fit;
    struct hint hint;
    struct place place;
    char scale[32];
    judge_fit(a, b, 0, a->count, &fit);
    bool *marks = calloc((size_t)a->count + 1, sizeof *marks);
    mark_differences(a, b, allowed, marks);
    holdings_where(e, held_of(bit), found->first, marks, &place);
    free(marks);
    hint_for(e, l, bit, o, ref, found, &hint);
    const char *named = judge_finite(fit.scalar) ? judge_scale_name(fit.scalar, e->c, scale, sizeof scale) : NULL;
    bool start = bit == OBSERVE_PARAM && l->steps_done == 0 && e->c->divergent_init;
    bool loaded = program_after_load(e->c, l->at);
    const char *classes = loaded && !gradient ? "Z25 Z26" : start ? "Z24" : hint.classes[0] ? hint.classes : loaded ? "Z26 Z15" : place.only_last ? "Z11" : default_classes;
    finding_compare(f, found->ulp, allowed, "ulp", classes,
                    "%s, %s %d: %s of %s differs from the truth in %lld of %lld elements, first at %lld (%.9g, expected %.9g)%s%s; "
                    "a = %.6g%s%s%s, residual %.3g; %d of %d tensors differ%s%s",
                    l->label, gradient ? "step" : "steps done", gradient ? l->gradient_step : l->steps_done, prefix, name,
                    (long long)fit.differing, (long long)fit.count, (long long)fit.first, dtype_get(a->dtype, a->data, fit.first < 0 ? 0 : fit.first),
                    dtype_get(b->dtype, b->data, fit.first < 0 ? 0 : fit.first), place.text[0] ? ", " : "", place.text, fit.scalar,
                    named ? " (" : "", named ? named : "", named ? ")" : "", fit.residual, found->differing, found->compared,
                    hint.text[0] ? "; " : "", hint.text);
    snprintf(f->ranks, sizeof f->ranks, "%s", place.ranks);
}

void exact_judge(const struct evidence *e, struct finding *f, unsigned what, exact_filter filter, const char *default_classes)
{
    struct program_label labels[MAX_LABELS];
    int count = program_labels(e->c, labels, MAX_LABELS), judged = 0;
    double allowed = exact_allowance(e->c), worst = 0;
    int64_t elements = 0;
    bool failed = false, *differs = calloc((size_t)e->c->parameter_count + 1, sizeof *differs);
    for (int k = 0; k < count && k < MAX_LABELS && !failed; k++) {
        const struct observed *o = evidence_find(e, labels[k].label);
        const struct tensors *ref = truth_find(e->truth, labels[k].label);
        if (!o || !ref || (allowed > 0 && labels[k].steps_done > 0))
            continue;
        for (unsigned bit = 1; bit <= OBSERVE_MOMENTUM && !failed; bit <<= 1) {
            struct comparison found = {.differs = differs};
            if (!(labels[k].what & what & bit))
                continue;
            compare_label(e, &o->full, ref, observe_name((enum observe_bit)bit), filter, allowed, &found);
            judged += found.compared;
            elements += found.elements;
            worst = judge_worse(worst, found.ulp);
            if (found.compared > 0)
                judge_figure(e, labels[k].label, observe_name((enum observe_bit)bit), found.ulp, allowed, "ulp");
            failed = found.differing > 0;
            if (failed)
                report(e, f, &labels[k], bit, o, ref, &found, allowed, default_classes);
        }
    }
    free(differs);
    if (!failed && judged > 0)
        finding_compare(f, worst, allowed, "ulp", "", "%d tensors, %lld elements equal the truth %s", judged, (long long)elements,
                        allowed > 0 ? "within 2 ulp (1/N may be a rounded factor); first step only" : "bitwise");
}
