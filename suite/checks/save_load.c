// Claim: load restores parameters and optimizer state as they were at save, bitwise, on whatever number of ranks and in whatever layout
//     they were saved, the forward after it uses them, and save changes nothing.
// Source: docs/protocol.md, save and load.
// How: the label before `save` against the first label after `load`, or after `save` where nothing is loaded. Where another case saved: what
//     that one, which goes on uninterrupted, observed under the same label. There at least 9 in 10 elements of each tensor of
//     parameters must have a value of their own (all layers but exact), or a wrong offset might not show: BROKEN. The first loss
//     without backward and the first gradient after the load must be those at the loaded parameters, bitwise or within noise. The step
//     after the load is judged by the layer's own checks.
// Catches: Z25 Z26
// Blind to: state that no label shows
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/gradient.h"
#include "harness/judge/noise.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return program_count(e->c, VERB_LOAD) > 0 || program_count(e->c, VERB_SAVE) > 0; }

// State as it was saved, and as it is afterwards; NULL where the program does not show it.
struct sides { const struct tensors *before, *after; const char *before_label, *after_label; unsigned what; };

static int first_after(const struct evidence *e, int at)
{
    for (int i = at + 1; i < e->c->program_length && e->c->program[i].verb != VERB_STEP && e->c->program[i].verb != VERB_LOAD; i++)
        if (e->c->program[i].verb == VERB_OBSERVE && e->c->program[i].what & OBSERVE_PARAM)
            return i;
    return -1;
}

static struct sides find_sides(const struct evidence *e, int save, int load)
{
    struct sides s = {0};
    int shown = first_after(e, load >= 0 ? load : save);
    const struct observed *after = shown >= 0 ? evidence_find(e, e->c->program[shown].label) : NULL, *before = NULL;
    if (after)
        s.after = &after->full, s.after_label = after->label, s.what = e->c->program[shown].what;
    if (e->saved) {
        s.before = e->saved_state.count > 0 ? &e->saved_state : NULL;
        s.before_label = e->saved->c->id;
    } else if (save >= 0 && (load < 0 || save < load)) {
        int at = program_state_before(e->c, save, OBSERVE_PARAM);
        before = at >= 0 ? evidence_find(e, e->c->program[at].label) : NULL;
        s.before = before ? &before->full : NULL;
        s.before_label = before ? before->label : NULL;
    }
    return s;
}

static int64_t differing(const struct tensor *a, const struct tensor *b)
{
    int64_t count = 0;
    for (int64_t i = 0; i < a->count; i++)
        count += memcmp((const char *)a->data + (size_t)i * dtype_size(a->dtype), (const char *)b->data + (size_t)i * dtype_size(a->dtype), dtype_size(a->dtype)) != 0;
    return count;
}

// The next gradient, taken at what was loaded.
static void judge_forward(const struct evidence *e, struct finding *f, int load, const struct tensors *loaded)
{
    for (int at = program_next(e->c, VERB_OBSERVE, load); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct observed *o = evidence_find(e, l.label);
        struct tensors ref = {0};
        if (!o || l.gradient_step < 0 || gradient_parameters(e, &l) != loaded || !gradient_of(e, &l, loaded, SHARE_ALL, &ref, NULL, NULL))
            continue;
        for (int p = 0; p < e->c->parameter_count; p++) {
            const char *name = e->c->parameters[p].name;
            const struct tensor *x = tensors_find2(&o->full, "grad", name), *r = tensors_find2(&ref, "grad", name);
            struct fit fit;
            struct noise noise;
            if (!x || !r || !judge_fit(x, r, 0, x->count, &fit))
                continue;
            bool exact = e->c->layer == LAYER_EXACT, known = exact || noise_of(e, l.label, p, x->dtype, &noise);
            double figure = exact ? (double)fit.differing : fit.distance == 0 ? 0 : known ? fit.distance / noise.l2 : NAN;
            finding_compare(f, figure, exact ? 0 : e->budget, exact ? "elements" : "ratio", "Z26 Z15", "%s: the gradient of %s is %sthat at the loaded parameters",
                            l.label, name, judge_compare(figure, exact ? 0 : e->budget) ? "" : "not ");
        }
        tensors_free(&ref);
        return;
    }
}

// Sum of the n-th eval's losses over the data ranks of one tensor coordinate of the last stage.
static double eval_sum(const struct evidence *e, struct finding *f, int nth, int tensor, double *absolute)
{
    double sum = *absolute = 0;
    for (int r = 0; r < e->world_size; r++) {
        const struct event *event = answer_find(&e->answers[r], EVENT_EVAL, nth);
        struct rank_place at = case_place(e->c, r);
        double own = NAN;
        if (!event || !event_number(event, "loss", &own))
            finding_fail(f, "Z29", "rank %d did not report the loss after the load", r);
        if (at.tensor == tensor && at.stage == e->c->sharding.pipeline - 1) {
            sum += own;
            *absolute += fabs(own);
        }
    }
    return sum;
}

// The loss of an `eval` between load and the next step, summed over ranks, against float64 at what was loaded.
static void judge_eval(const struct evidence *e, struct finding *f, int load, const struct tensors *loaded)
{
    int nth = 0, at = program_next(e->c, VERB_EVAL, 0), step = program_next(e->c, VERB_STEP, load);
    for (; at >= 0 && at < load; at = program_next(e->c, VERB_EVAL, at + 1))
        nth++;
    if (at < 0 || (step >= 0 && step < at) || e->c->data.micros != 1)
        return;
    struct program_label l = {.at = at, .label = "eval", .gradient_step = e->c->program[at].step};
    struct tensors ignored = {0};
    struct error error = {{0}};
    double loss = NAN, relative = 0, u = fmax(dtype_unit_roundoff(e->c->precision.compute), 0x1p-24);
    if (!gradient_of(e, &l, loaded, SHARE_ALL, &ignored, &loss, &error))
        finding_broken(f, "no float64 loss at the loaded parameters: %s", error.text);
    tensors_free(&ignored);
    for (int i = load; i < e->c->program_length && relative == 0 && e->c->layer == LAYER_CALIBRATED; i++)
        if (e->c->program[i].verb == VERB_OBSERVE && e->c->program[i].what & OBSERVE_GRAD)
            noise_relative(e, e->c->program[i].label, &relative);
    double bound = fmax(fmax(e->budget * relative, 8 * u), ((double)(case_data_ranks(e->c) * e->c->global_rows) + 8) * u);
    for (int t = 0; t < e->c->sharding.tensor; t++) {
        double absolute, sum = eval_sum(e, f, nth, t, &absolute);
        finding_compare(f, sum == loss ? 0 : fabs(sum - loss) / fmax(fabs(loss), absolute), bound, "relative", "Z26 Z15",
                        "the first forward after the load: the ranks' losses add up to %.9g, float64 gives %.9g at the loaded parameters", sum, loss);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t own_values(const struct tensor *t)
{
    double *v = calloc((size_t)t->count + 1, sizeof *v);
    int64_t alone = 0;
    for (int64_t i = 0; v && i < t->count; i++)
        v[i] = dtype_get(t->dtype, t->data, i);
    if (v)
        qsort(v, (size_t)t->count, sizeof *v, by_value);
    for (int64_t i = 0; v && i < t->count; i++)
        alone += (i == 0 || v[i] != v[i - 1]) && (i + 1 == t->count || v[i] != v[i + 1]);
    free(v);
    return alone;
}

// What another case saved must be what this one should load, and tell its elements apart.
static bool saved_sound(const struct evidence *e, struct finding *f)
{
    if (!e->saved)
        return true;
    if (!e->truth_digest || !e->saved->truth_digest || strcmp(e->truth_digest, e->saved->truth_digest) != 0) {
        finding_broken(f, "the truth of %s, which saved, ends elsewhere than this case's: other data", e->saved->c->id);
        return false;
    }
    if (e->saved_state.count == 0) {
        finding_broken(f, "what %s observed cannot be read: %s", e->saved->c->id, e->saved_error.text);
        return false;
    }
    for (int i = 0; i < e->saved_state.count && e->c->layer != LAYER_EXACT; i++) {
        const struct tensor *t = &e->saved_state.items[i];
        if (strncmp(t->name, "param/", 6) == 0 && 10 * own_values(t) < 9 * t->count)
            finding_broken(f, "%s: %lld of %lld elements of %s have a value of their own, expected 9 in 10: a wrong offset might not show",
                           e->saved->c->id, (long long)own_values(t), (long long)t->count, t->name);
    }
    return true;
}

// Parameters or optimizer state, of a kind that the label after it asks for.
static bool is_state(const char *name, unsigned what)
{
    for (unsigned bit = 1; bit <= OBSERVE_MOMENTUM; bit <<= 1) {
        const char *kind = observe_name((enum observe_bit)bit);
        if (what & bit && !(bit & (OBSERVE_GRAD | OBSERVE_CLIPPED)) && strncmp(name, kind, strlen(kind)) == 0 && name[strlen(kind)] == '/')
            return true;
    }
    return false;
}

static void judge(const struct evidence *e, struct finding *f)
{
    int save = program_next(e->c, VERB_SAVE, 0), load = program_next(e->c, VERB_LOAD, 0);
    struct sides s = find_sides(e, save, load);
    if (!saved_sound(e, f))
        return;
    if (!s.before || !s.after) {
        finding_broken(f, "the program does not observe the state before save and after %s", load >= 0 ? "load" : "save");
        return;
    }
    if (load >= 0) {
        judge_eval(e, f, load, s.after);
        judge_forward(e, f, load, s.after);
    }
    for (int i = 0; i < s.before->count; i++) {
        const struct tensor *a = &s.before->items[i], *b = tensors_find(s.after, a->name);
        if (!is_state(a->name, s.what))
            continue;
        if (!b || b->count != a->count || b->dtype != a->dtype) {
            finding_fail(f, "Z26", "%s: %s was there at %s and is missing or of another kind", s.after_label, a->name, s.before_label);
            continue;
        }
        int64_t off = differing(a, b);
        finding_compare(f, (double)off, 0, "elements", off == a->count ? "Z26 Z25" : "Z25 Z26", "%s: %s differs from %s, where it was saved, in %lld of %lld elements",
                        s.after_label, a->name, s.before_label, (long long)off, (long long)a->count);
    }
}

const struct check check_save_load = {
    .name = "save-load", .number = 26, .claim = "state(after load) = state(at save) = state(after save), bitwise, on any number of ranks",
    .source = "docs/protocol.md, save and load", .catches = "Z25 Z26", .blind = "state that no label shows", .applies = applies, .judge = judge};
