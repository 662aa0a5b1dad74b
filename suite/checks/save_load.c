// Claim: load restores parameters and optimizer state as they were at save, bitwise, and the forward after it uses them.
// Source: docs/protocol.md, save and load.
// How: the label before `save` against the first label after `load`; steps in between must have changed the state. The step after
//     the load is judged by the layer's own checks. The gradient after the load must be that at the loaded parameters, bitwise or within noise.
// Catches: Z25 Z26
// Blind to: loading under another world size; a program that observes nothing around the verbs
#include <math.h>
#include <string.h>

#include "harness/judge/gradient.h"
#include "harness/judge/noise.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return program_count(e->c, VERB_LOAD) > 0 && program_count(e->c, VERB_SAVE) > 0; }

static const struct observed *around(const struct evidence *e, int *save, int *load)
{
    *load = program_next(e->c, VERB_LOAD, 0);
    *save = program_next(e->c, VERB_SAVE, 0);
    int at = program_state_before(e->c, *save, OBSERVE_PARAM);
    return at >= 0 ? evidence_find(e, e->c->program[at].label) : NULL;
}

static const struct observed *after_load(const struct evidence *e, int load)
{
    for (int i = load + 1; i < e->c->program_length && e->c->program[i].verb != VERB_STEP; i++)
        if (e->c->program[i].verb == VERB_OBSERVE && e->c->program[i].what & OBSERVE_PARAM)
            return evidence_find(e, e->c->program[i].label);
    return NULL;
}

static int64_t differing(const struct tensor *a, const struct tensor *b)
{
    int64_t count = 0;
    for (int64_t i = 0; i < a->count; i++)
        count += memcmp((const char *)a->data + (size_t)i * dtype_size(a->dtype), (const char *)b->data + (size_t)i * dtype_size(a->dtype), dtype_size(a->dtype)) != 0;
    return count;
}

// The next gradient, taken at what was loaded.
static void judge_forward(const struct evidence *e, struct finding *f, int load, const struct observed *loaded)
{
    for (int at = program_next(e->c, VERB_OBSERVE, load); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct observed *o = evidence_find(e, l.label);
        struct tensors ref = {0};
        if (!o || l.gradient_step < 0 || gradient_parameters(e, &l) != &loaded->full || !gradient_of(e, &l, &loaded->full, SHARE_ALL, &ref, NULL, NULL))
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

static void judge(const struct evidence *e, struct finding *f)
{
    int save, load;
    const struct observed *before = around(e, &save, &load), *after = after_load(e, load);
    if (!before || !after || save > load) {
        finding_broken(f, "the program does not observe the state before save and after load");
        return;
    }
    judge_forward(e, f, load, after);
    for (int i = 0; i < before->full.count; i++) {
        const struct tensor *a = &before->full.items[i], *b = tensors_find(&after->full, a->name);
        if (strncmp(a->name, "grad/", 5) == 0 || strncmp(a->name, "clipped/", 8) == 0)
            continue;
        if (!b || b->count != a->count || b->dtype != a->dtype) {
            finding_fail(f, "Z26", "%s: %s was there at %s and is missing or of another kind", after->label, a->name, before->label);
            continue;
        }
        int64_t off = differing(a, b);
        finding_compare(f, (double)off, 0, "elements", off == a->count ? "Z26 Z25" : "Z25 Z26", "%s: %s differs from %s, where it was saved, in %lld of %lld elements",
                        after->label, a->name, before->label, (long long)off, (long long)a->count);
    }
}

const struct check check_save_load = {
    .name = "save-load", .number = 26, .claim = "state(after load) = state(at save), bitwise", .source = "docs/protocol.md, save and load",
    .catches = "Z25 Z26", .blind = "another world size", .applies = applies, .judge = judge};
