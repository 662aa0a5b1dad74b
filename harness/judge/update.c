// Recomputes each optimizer step from the subject's own inputs and bounds what it may differ by. See update.h.
#include "harness/judge/update.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/hint.h"
#include "harness/judge/holdings.h"

enum { MAX_UPDATES = 512 };
static const unsigned state_bits[] = {OBSERVE_PARAM, OBSERVE_EXP_AVG, OBSERVE_EXP_AVG_SQ, OBSERVE_MOMENTUM};

static const struct observed *label_of(const struct evidence *e, int at)
{
    return at >= 0 ? evidence_find(e, e->c->program[at].label) : NULL;
}

// The label that shows what the step at `at` was given.
static int gradient_before(const struct fsdp_case *c, int at, unsigned bit)
{
    for (int i = at - 1; i >= 0; i--) {
        const struct instruction *n = &c->program[i];
        if (n->verb == VERB_OBSERVE && n->what & bit)
            return i;
        bool changes = n->verb == VERB_MICRO || n->verb == VERB_BACKWARD || n->verb == VERB_ZERO_GRAD || n->verb == VERB_STEP;
        if (changes || (n->verb == VERB_CLIP && bit == OBSERVE_GRAD))
            return -1;
    }
    return -1;
}

static int state_after(const struct fsdp_case *c, int at)
{
    for (int i = at + 1; i < c->program_length; i++) {
        if (c->program[i].verb == VERB_OBSERVE && c->program[i].what & OBSERVE_PARAM)
            return i;
        if (c->program[i].verb == VERB_STEP || c->program[i].verb == VERB_LOAD)
            return -1;
    }
    return -1;
}

static int next_step(const struct fsdp_case *c, int at)
{
    int step = program_next(c, VERB_STEP, at);
    return step >= 0 ? c->program[step].step : 0;
}

int update_list(const struct evidence *e, struct update *updates, int capacity)
{
    const struct fsdp_case *c = e->c;
    unsigned bit = c->clip != CLIP_OFF && program_count(c, VERB_CLIP) > 0 ? OBSERVE_CLIPPED : OBSERVE_GRAD;
    int count = 0, done = 0, saved = -1;
    for (int i = 0; i < c->program_length; i++) {
        saved = c->program[i].verb == VERB_SAVE ? done : saved;
        if (c->program[i].verb == VERB_LOAD) // a load without a save continues another run: at the step that comes next
            done = saved >= 0 ? saved : next_step(c, i);
        if (c->program[i].verb != VERB_STEP)
            continue;
        const struct event *event = answer_find(&e->answers[0], EVENT_STEP, count);
        bool skipped = event && json_is_true(json_object_get(event->fields, "skipped"));
        done += !skipped;
        if (count++ < capacity)
            updates[count - 1] = (struct update){.at = i, .step_count = done, .skipped = skipped, .prefix = observe_name((enum observe_bit)bit),
                                                 .before = label_of(e, program_state_before(c, i, OBSERVE_PARAM)),
                                                 .gradient = label_of(e, gradient_before(c, i, bit)), .after = label_of(e, state_after(c, i))};
    }
    return count;
}

bool update_expected(const struct evidence *e, const struct update *u, struct tensors *state, struct error *error)
{
    const struct fsdp_case *c = e->c;
    bool *frozen = calloc((size_t)c->parameter_count + 1, sizeof *frozen);
    program_frozen(c, u->at, frozen);
    *state = (struct tensors){0};
    for (int p = 0; p < c->parameter_count; p++) {
        const struct case_parameter *parameter = &c->parameters[p];
        if (parameter->tied_to >= 0)
            continue;
        frozen[p] |= !tensors_find2(&u->gradient->full, u->prefix, parameter->name);
        for (size_t k = 0; k < sizeof state_bits / sizeof *state_bits; k++) {
            char name[300];
            const char *prefix = observe_name((enum observe_bit)state_bits[k]);
            const struct tensor *own = tensors_find2(&u->before->full, prefix, parameter->name);
            snprintf(name, sizeof name, "%s/%s", prefix, parameter->name);
            struct tensor *t = tensors_add(state, name, DTYPE_F64, parameter->dims, parameter->shape, NULL, false);
            for (int64_t i = 0; t && own && i < t->count; i++)
                ((double *)t->data)[i] = dtype_get(own->dtype, own->data, i);
        }
    }
    bool ok = truth_update(c, state, &u->gradient->full, u->prefix, u->step_count, frozen, error);
    free(frozen);
    return ok;
}

// What the bound on the elements of one tensor is made of, found once: a search by name for each element costs more than all else.
struct terms {
    const struct optimizer_spec *o;
    const struct tensor *gradient, *before, *momentum, *first, *after, *new_first, *square; // NULL: 0
    double unit, c1, c2;
};

static double value_of(const struct tensor *t, int64_t i) { return t ? fabs(dtype_get(t->dtype, t->data, i)) : 0; }

static struct terms terms_of(const struct evidence *e, const struct update *u, const struct tensors *expected, const char *name)
{
    const struct optimizer_spec *o = &e->c->optimizer;
    const struct tensors *before = &u->before->full;
    const struct tensor *own = tensors_find2(&u->after->full, "param", name);
    return (struct terms){.o = o, .gradient = tensors_find2(&u->gradient->full, u->prefix, name), .before = tensors_find2(before, "param", name),
                          .momentum = tensors_find2(before, "momentum", name), .first = tensors_find2(before, "exp_avg", name),
                          .after = tensors_find2(expected, "param", name), .new_first = tensors_find2(expected, "exp_avg", name),
                          .square = tensors_find2(expected, "exp_avg_sq", name),
                          .unit = fmax(own ? dtype_unit_roundoff(own->dtype) : 0, fmax(dtype_unit_roundoff(e->c->precision.optimizer_state), 0x1p-24)),
                          .c1 = 1 - pow(o->beta1, u->step_count), .c2 = 1 - pow(o->beta2, u->step_count)};
}

// See update.h.
static double bound_of(const struct terms *t, unsigned bit, int64_t i)
{
    const struct optimizer_spec *o = t->o;
    double unit = t->unit, g = value_of(t->gradient, i), before = value_of(t->before, i);
    double kept = 2 * unit * (before + value_of(t->after, i));
    if (o->kind == OPTIMIZER_SGD) {
        double terms = o->momentum * value_of(t->momentum, i) + g + o->weight_decay * before;
        return bit == OBSERVE_MOMENTUM ? 4 * unit * terms : kept + 8 * unit * o->lr * terms;
    }
    double first = o->beta1 * value_of(t->first, i) + (1 - o->beta1) * g, square = value_of(t->square, i);
    if (bit == OBSERVE_EXP_AVG)
        return 4 * unit * first;
    if (bit == OBSERVE_EXP_AVG_SQ)
        return 6 * unit * square + 0x1p-126;
    return kept + unit * o->lr / t->c1 / (sqrt(square / t->c2) + o->eps) * (12 * value_of(t->new_first, i) + 4 * first);
}

// The worst element of one tensor, as a multiple of its bound.
static double worst_ratio(const struct evidence *e, const struct update *u, const struct tensors *expected, int p, unsigned bit,
                          int64_t *at, bool *marks)
{
    const char *prefix = observe_name((enum observe_bit)bit), *name = e->c->parameters[p].name;
    const struct tensor *x = tensors_find2(&u->after->full, prefix, name), *ref = tensors_find2(expected, prefix, name);
    struct terms terms = terms_of(e, u, expected, name);
    double worst = 0;
    *at = 0;
    for (int64_t i = 0; i < x->count; i++) {
        double distance = fabs(dtype_get(x->dtype, x->data, i) - dtype_get(ref->dtype, ref->data, i));
        double bound = bound_of(&terms, bit, i), ratio = distance == 0 ? 0 : distance / bound;
        marks[i] = !judge_compare(ratio, 1);
        if (!judge_compare(ratio, worst)) {
            worst = ratio;
            *at = i;
        }
        if (!judge_finite(ratio))
            return ratio;
    }
    return worst;
}

// Is it a moment that was rounded to bf16: near the right values, but all of them numbers of bf16, which those are not?
static bool kept_in_bf16(const struct tensor *x, const struct tensor *ref)
{
    bool needed = false;
    for (int64_t i = 0; i < x->count; i++) {
        double value = dtype_get(x->dtype, x->data, i), right = dtype_get(ref->dtype, ref->data, i);
        if (bf16_to_f32(bf16_from_f64(value)) != value || fabs(value - right) > 0x1p-7 * fabs(right))
            return false;
        needed |= bf16_to_f32(bf16_from_f64(right)) != (float)right;
    }
    return needed;
}

static void report(const struct evidence *e, struct finding *f, const struct update *u, const struct tensors *expected, int p, unsigned bit,
                   double ratio, int64_t at, const bool *marks, bool filtered, const char *default_classes)
{
    const char *prefix = observe_name((enum observe_bit)bit), *name = e->c->parameters[p].name;
    const struct tensor *x = tensors_find2(&u->after->full, prefix, name), *ref = tensors_find2(expected, prefix, name);
    const struct tensor *before = tensors_find2(&u->before->full, prefix, name);
    struct hint hint = {{0}, {0}};
    struct place place;
    holdings_where(e, HELD_OPTIMIZER, p, marks, &place);
    if (before && bit == OBSERVE_PARAM)
        hint_update(e, x, ref, before, &hint);
    int load = program_next(e->c, VERB_LOAD, 0);
    bool narrow = bit != OBSERVE_PARAM && kept_in_bf16(x, ref);
    bool loaded = load >= 0 && load < u->at; // what was right before a load and is wrong after it was not restored
    const char *classes = filtered ? default_classes : loaded ? "Z26 Z23" : narrow ? "Z20" : hint.classes[0] ? hint.classes : place.text[0] && !place.everywhere ? "Z11" : default_classes;
    finding_compare(f, ratio, 1, "bound", classes,
                    "%s, step count %d: %s of %s is not what its own state and gradient give: element %lld is %.9g, expected %.9g%s%s%s%s",
                    u->after->label, u->step_count, prefix, name, (long long)at, dtype_get(x->dtype, x->data, at),
                    dtype_get(ref->dtype, ref->data, at), place.text[0] ? ", " : "", place.text, hint.text[0] ? "; " : "", hint.text);
    snprintf(f->ranks, sizeof f->ranks, "%s", place.ranks);
}

// Returns the number of tensors judged.
static int judge_one(const struct evidence *e, struct finding *f, const struct update *u, double *worst, bool *failed, exact_filter filter,
                     const char *default_classes)
{
    struct tensors expected = {0};
    struct error error = {{0}};
    int judged = 0;
    if (!update_expected(e, u, &expected, &error)) {
        finding_broken(f, "the update of %s cannot be recomputed: %s", u->after->label, error.text);
        tensors_free(&expected);
        *failed = true;
        return 0;
    }
    // moments first: a wrong moment makes a wrong parameter
    for (int k = (int)(sizeof state_bits / sizeof *state_bits) - 1; k >= 0 && !*failed; k--)
        for (int p = 0; p < e->c->parameter_count && !*failed; p++) {
            const char *prefix = observe_name((enum observe_bit)state_bits[k]), *name = e->c->parameters[p].name;
            const struct tensor *x = tensors_find2(&u->after->full, prefix, name), *ref = tensors_find2(&expected, prefix, name);
            if (!x || !ref || x->count != ref->count || (filter && !filter(e->c, p)))
                continue;
            int64_t at;
            bool *marks = calloc((size_t)x->count + 1, sizeof *marks);
            double ratio = worst_ratio(e, u, &expected, p, state_bits[k], &at, marks);
            char tensor[300];
            snprintf(tensor, sizeof tensor, "%s/%s", prefix, name);
            judge_figure(e, u->after->label, tensor, ratio, 1, "bound");
            judged++;
            *worst = judge_worse(*worst, ratio);
            if ((*failed = !judge_compare(ratio, 1)))
                report(e, f, u, &expected, p, state_bits[k], ratio, at, marks, filter != NULL, default_classes);
            free(marks);
        }
    tensors_free(&expected);
    return judged;
}

void update_judge(const struct evidence *e, struct finding *f, exact_filter filter, const char *default_classes)
{
    static const char missing[] = "no step has its state before, its gradient and its state after observed";
    struct update *updates = calloc(MAX_UPDATES, sizeof *updates);
    int count = update_list(e, updates, MAX_UPDATES), judged = 0, steps = 0;
    double worst = 0;
    bool failed = false;
    for (int k = 0; k < count && k < MAX_UPDATES && !failed; k++) {
        if (updates[k].skipped || !updates[k].before || !updates[k].gradient || !updates[k].after)
            continue;
        judged += judge_one(e, f, &updates[k], &worst, &failed, filter, default_classes);
        steps++;
    }
    if (judged == 0 && !failed)
        finding_broken(f, "%s", missing);
    else if (!failed)
        finding_compare(f, worst, 1, "bound", "", "%d steps, %d tensors are what their own state and gradient give", steps, judged);
    free(updates);
}
