// Claim: load restores parameters and optimizer state as they were at save, bitwise.
// Source: docs/protocol.md, save and load.
// How: the label before `save` against the first label after `load`; steps in between must have changed the state. The step after
//     the load is judged by the layer's own checks.
// Catches: Z25 Z26
// Blind to: loading under another world size; a program that observes nothing around the verbs
#include <string.h>

#include "harness/judge/holdings.h"
#include "harness/judge/program.h"
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

static void judge(const struct evidence *e, struct finding *f)
{
    int save, load;
    const struct observed *before = around(e, &save, &load), *after = after_load(e, load);
    if (!before || !after || save > load) {
        finding_broken(f, "the program does not observe the state before save and after load");
        return;
    }
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
