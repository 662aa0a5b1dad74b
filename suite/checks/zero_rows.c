// Claim: embedding rows of tokens that no input holds have a gradient of exactly 0.
// Source: the gradient of a function that does not read them.
// How: rows of embed.weight whose token appears in no microbatch of the step (untied only: an output layer touches every row).
// Catches: Z18 Z11
// Blind to: leaks into rows that are used
#include <stdlib.h>
#include <string.h>

#include "harness/judge/program.h"
#include "suite/checks/check.h"

static void mark_used(const struct fsdp_case *c, const struct tensor *tokens, int step, bool *used)
{
    int64_t per_step = tokens->count / c->data.steps;
    for (int64_t i = 0; i < per_step; i++) {
        int32_t token = ((const int32_t *)tokens->data)[step * per_step + i];
        if (token >= 0 && token < c->model.vocab)
            used[token] = true;
    }
}

// Is there a token that no input of a step holds, of whose gradient a label tells?
static bool applies(const struct evidence *e)
{
    const struct tensor *tokens = tensors_find(&e->truth->data, "tokens");
    if (e->c->model.kind != MODEL_TRANSFORMER || e->c->model.tied || e->c->precision.loss_scale != LOSS_SCALE_NONE || !tokens)
        return false;
    bool any = false, *used = calloc((size_t)e->c->model.vocab, sizeof *used);
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        if (!(l.what & OBSERVE_GRAD) || l.gradient_step < 0)
            continue;
        memset(used, 0, (size_t)e->c->model.vocab * sizeof *used);
        mark_used(e->c, tokens, l.gradient_step, used);
        for (int64_t row = 0; row < e->c->model.vocab; row++)
            any |= !used[row];
    }
    free(used);
    return any;
}

static void judge(const struct evidence *e, struct finding *f)
{
    const struct tensor *tokens = tensors_find(&e->truth->data, "tokens");
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0 && tokens; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct observed *o = evidence_find(e, l.label);
        const struct tensor *x = o && l.what & OBSERVE_GRAD && l.gradient_step >= 0 ? tensors_find(&o->full, "grad/embed.weight") : NULL;
        bool *used = calloc((size_t)e->c->model.vocab, sizeof *used);
        if (x)
            mark_used(e->c, tokens, l.gradient_step, used);
        for (int64_t row = 0; x && row < e->c->model.vocab; row++) {
            int64_t width = e->c->model.dim, off = 0;
            for (int64_t i = 0; !used[row] && i < width; i++)
                off += dtype_get(x->dtype, x->data, row * width + i) != 0;
            if (!used[row])
                finding_compare(f, (double)off, 0, "elements", "Z18 Z11", "%s: row %lld of embed.weight, a token that no input holds, has a gradient in %lld elements",
                                l.label, (long long)row, (long long)off);
        }
        free(used);
    }
}

const struct check check_zero_rows = {
    .name = "zero-rows", .number = 29, .claim = "grad(embed)[unused token] = 0 exactly", .source = "calculus", .catches = "Z18 Z11",
    .blind = "leaks into used rows", .applies = applies, .judge = judge};
