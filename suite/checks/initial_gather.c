// Claim: gathering the shards at start gives the initial parameters of rank 0 on every rank, bitwise.
// Source: DDP and FSDP broadcast rank 0's module states; PyTorch documentation, sync_module_states.
// How: the first label with parameters, full and each rank's own part, against init.safetensors rounded to the parameter dtype.
//     Where ranks start from different values rank 0's must win.
// Catches: Z24 Z11 Z25
// Blind to: buffers (the models have none)
#include <stdio.h>
#include <stdlib.h>

#include "harness/judge/exact.h"
#include "harness/judge/holdings.h"
#include "suite/checks/check.h"

// The first label with parameters, if it comes before any step.
static int start_label(const struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length; i++)
        if (c->program[i].verb == VERB_OBSERVE && c->program[i].what & OBSERVE_PARAM)
            return program_label_at(c, i).steps_done == 0 && program_next(c, VERB_LOAD, 0) < 0 ? i : -1;
    return -1;
}

static bool applies(const struct evidence *e) { return start_label(e->c) >= 0; }

// Are the elements that differ those of the other initial values?
static bool equals_other(const struct evidence *e, const char *name, const struct tensor *x, const bool *differs)
{
    char path[4096];
    struct tensors other = {0};
    snprintf(path, sizeof path, "%s/init.other.safetensors", e->truth->folder ? e->truth->folder : ".");
    bool same = e->c->divergent_init && tensors_read(path, &other, NULL);
    const struct tensor *t = same ? tensors_find(&other, name) : NULL;
    same = t && t->count == x->count;
    for (int64_t i = 0; same && i < x->count; i++)
        same = !differs[i] || exact_ulp(dtype_get(x->dtype, x->data, i), dtype_get(t->dtype, t->data, i), x->dtype) == 0;
    tensors_free(&other);
    return same;
}

static void judge_full(const struct evidence *e, struct finding *f, const char *label, const char *name, const struct tensor *x, const struct tensor *ref, int p)
{
    bool *marks = calloc((size_t)x->count + 1, sizeof *marks);
    int64_t differing = 0;
    struct place place;
    for (int64_t i = 0; i < x->count; i++)
        differing += marks[i] = exact_ulp(dtype_get(x->dtype, x->data, i), dtype_get(ref->dtype, ref->data, i), x->dtype) > 0;
    holdings_where(e, HELD_PARAMETER, p, marks, &place);
    bool other = differing > 0 && equals_other(e, name, x, marks);
    free(marks);
    finding_compare(f, (double)differing, 0, "elements", e->c->divergent_init ? "Z24" : place.only_last ? "Z11 Z25" : "Z24 Z25",
                    "%s: %s differs from its initial value in %lld of %lld elements%s%s%s", label, name, (long long)differing, (long long)x->count,
                    place.text[0] ? ", " : "", place.text, other ? "; it is what other ranks than 0 started from" : "");
}

static void judge(const struct evidence *e, struct finding *f)
{
    const char *label = e->c->program[start_label(e->c)].label;
    const struct observed *o = evidence_find(e, label);
    for (int p = 0; o && p < e->c->parameter_count; p++) {
        const char *name = e->c->parameters[p].name;
        const struct tensor *x = tensors_find2(&o->full, "param", name), *ref = tensors_find(&e->truth->init, name);
        if (x && ref && x->count == ref->count)
            judge_full(e, f, label, name, x, ref, p);
    }
}

const struct check check_initial_gather = {
    .name = "initial-gather", .number = 16, .claim = "gather(shards(init)) = round(init of rank 0), bitwise",
    .source = "PyTorch documentation, sync_module_states", .catches = "Z24 Z11 Z25", .blind = "buffers", .applies = applies, .judge = judge};
