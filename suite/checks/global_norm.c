// Claim: every rank clips by the norm of the whole gradient (L1, L2 or L-infinity), counting each element once; a limit above the norm
//     changes no bit.
// Source: PyTorch documentation, clip_grad_norm_: factor = min(1, limit / (norm + 1e-6)); docs/protocol.md allows limit / norm too.
// How: the norm of the subject's own gradient in float64 against what each rank logged, then the clipped gradient itself against
//     gradient times factor. Bound: relative error (n + 8) 2^-24 + (tensors + N + 4) u, n elements summed in float32 or wider and partial norms
//     stored in the gradient's dtype of roundoff u (Higham, chapter 4). Norms of one shard, of one tensor
//     coordinate or stage, and of replicas or of what tensor ranks hold alike counted again are named.
// Catches: Z07 Z08 Z23
// Blind to: an unclipped run; norms of gradients that are themselves wrong (other checks judge those)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/judge/holdings.h"
#include "harness/judge/norm.h"
#include "harness/judge/program.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return e->c->clip != CLIP_OFF && program_count(e->c, VERB_CLIP) > 0; }

// Did every rank log the norm of what the ranks of its own tensor coordinate (of its own stage) hold?
static bool logged_by_axis(const struct evidence *e, const struct tensors *set, int nth, bool by_stage, double bound)
{
    bool all = holdings_complete(e, HELD_GRADIENT), *members = calloc((size_t)e->world_size + 1, sizeof *members);
    for (int r = 0; all && r < e->world_size; r++) {
        const struct event *event = answer_find(&e->answers[r], EVENT_CLIP, nth);
        struct rank_place own = case_place(e->c, r);
        double logged;
        for (int q = 0; q < e->world_size; q++) {
            struct rank_place other = case_place(e->c, q);
            members[q] = by_stage ? other.stage == own.stage : other.tensor == own.tensor;
        }
        all = event && event_number(event, "norm", &logged) && judge_compare(fabs(logged / norm_of_members(e, set, "grad", members).value - 1), bound);
    }
    free(members);
    return all;
}

// The norm that counts an element once for each tensor coordinate that holds it.
static double norm_counted_by_tensor(const struct evidence *e, const struct tensors *set)
{
    bool *members = calloc((size_t)e->world_size + 1, sizeof *members);
    double sum = 0;
    for (int t = 0; t < e->c->sharding.tensor && holdings_complete(e, HELD_GRADIENT); t++) {
        for (int r = 0; r < e->world_size; r++)
            members[r] = case_place(e->c, r).tensor == t;
        double own = norm_of_members(e, set, "grad", members).value;
        sum += e->c->clip == CLIP_L2 ? own * own : own;
    }
    free(members);
    return e->c->clip == CLIP_L2 ? sqrt(sum) : sum;
}

// Names a wrong norm on the tensor or pipeline axis, NULL where it is none of these.
static const char *name_on_axes(const struct evidence *e, const struct tensors *set, int nth, double logged, double bound, char *text, size_t size)
{
    if (e->c->sharding.pipeline > 1 && logged_by_axis(e, set, nth, true, bound)) {
        snprintf(text, size, ": it is the norm of the rank's own pipeline stage");
        return "Z07";
    }
    if (e->c->sharding.tensor > 1 && logged_by_axis(e, set, nth, false, bound)) {
        snprintf(text, size, ": it is the norm of the rank's own tensor-parallel part");
        return "Z07";
    }
    if (e->c->sharding.tensor > 1 && e->c->clip != CLIP_LINF && judge_compare(fabs(logged / norm_counted_by_tensor(e, set) - 1), bound)) {
        snprintf(text, size, ": what all %d tensor-parallel ranks hold alike is counted %d times", e->c->sharding.tensor, e->c->sharding.tensor);
        return "Z08";
    }
    return NULL;
}

// Names a wrong norm; classes by what the figures support.
static const char *name_norm(const struct evidence *e, const struct tensors *set, int nth, double logged, double right, double bound, char *text, size_t size)
{
    bool own = holdings_complete(e, HELD_GRADIENT) && e->world_size > 1;
    for (int r = 0; own && r < e->world_size; r++) { // every rank must show its own, or it is a coincidence
        const struct event *event = answer_find(&e->answers[r], EVENT_CLIP, nth);
        double other;
        own = event && event_number(event, "norm", &other) && judge_compare(fabs(other / norm_of(e, set, "grad", r).value - 1), bound);
    }
    double root = e->c->clip == CLIP_L2 ? sqrt(e->c->sharding.replicas) : e->c->sharding.replicas;
    text[0] = 0;
    if (own) {
        snprintf(text, size, ": it is the norm of the rank's own shard");
        return "Z07";
    }
    if (root > 1 && judge_compare(fabs(logged / right / root - 1), bound)) {
        snprintf(text, size, ": replicas are counted %d times", e->c->sharding.replicas);
        return "Z08";
    }
    const char *on_axes = name_on_axes(e, set, nth, logged, bound, text, size);
    if (on_axes)
        return on_axes;
    snprintf(text, size, ": %.6g times the right one", logged / right);
    return logged < right ? "Z07 Z08" : "Z08 Z07";
}

static void judge_logged(const struct evidence *e, struct finding *f, int nth, const struct tensors *set, const struct norm *n, double bound)
{
    for (int r = 0; r < e->world_size; r++) {
        const struct event *event = answer_find(&e->answers[r], EVENT_CLIP, nth);
        double logged;
        char text[128] = "";
        if (!event || !event_number(event, "norm", &logged)) {
            finding_fail(f, "", "rank %d logged no norm of clip %d", r, nth);
            continue;
        }
        double error = n->value > 0 ? fabs(logged - n->value) / n->value : fabs(logged);
        const char *classes = judge_compare(error, bound) ? "" : name_norm(e, set, nth, logged, n->value, bound, text, sizeof text);
        finding_compare(f, error, bound, "relative", classes, "clip %d: rank %d logged the %s norm %.9g, its gradients have %.9g%s", nth, r,
                        clip_name(e->c->clip), logged, n->value, text);
        if (text[0] && f->verdict == VERDICT_FAIL && !f->ranks[0])
            snprintf(f->ranks, sizeof f->ranks, "%d", r);
    }
}

static void judge_clipped(const struct evidence *e, struct finding *f, const char *label, const struct tensors *set, const struct tensors *clipped,
                          const struct norm *n, double bound)
{
    bool below = n->value < e->c->clip_limit * (1 - bound) - 1e-6;
    double factor = fmin(1, e->c->clip_limit / n->value), slack = 1e-6 / n->value + bound + 4 * n->u;
    for (int p = 0; p < e->c->parameter_count; p++) {
        const struct tensor *g = tensors_find2(set, "grad", e->c->parameters[p].name), *x = tensors_find2(clipped, "clipped", e->c->parameters[p].name);
        struct fit fit;
        if (!g || !x || g->count != x->count)
            continue;
        double worst = 0;
        for (int64_t i = 0; i < g->count; i++) {
            double v = dtype_get(g->dtype, g->data, i), d = fabs(dtype_get(x->dtype, x->data, i) - factor * v), ratio = d == 0 ? 0 : d / fabs(factor * v);
            worst = judge_worse(worst, ratio);
        }
        judge_fit(x, g, 0, g->count, &fit);
        bool larger = fit.scalar > factor; // scaled too little: the norm used was too small
        finding_compare(f, worst, below ? 0 : slack, "relative", larger ? "Z07 Z08" : "Z08 Z07",
                        "%s: the clipped gradient of %s is %.9g times the gradient, expected %.9g: the norm used was %.6g times the right one", label,
                        e->c->parameters[p].name, fit.scalar, factor, factor / fit.scalar);
    }
}

static void judge(const struct evidence *e, struct finding *f)
{
    int nth = 0;
    for (int at = program_next(e->c, VERB_CLIP, 0); at >= 0; at = program_next(e->c, VERB_CLIP, at + 1), nth++) {
        int before = program_state_before(e->c, at, OBSERVE_GRAD), after = program_next(e->c, VERB_OBSERVE, at);
        const struct observed *g = before >= 0 ? evidence_find(e, e->c->program[before].label) : NULL;
        const struct observed *x = after >= 0 && e->c->program[after].what & OBSERVE_CLIPPED ? evidence_find(e, e->c->program[after].label) : NULL;
        if (!g)
            continue;
        struct norm n = norm_of(e, &g->full, "grad", -1);
        double bound = norm_bound(e, &n);
        judge_logged(e, f, nth, &g->full, &n, bound);
        if (x)
            judge_clipped(e, f, x->label, &g->full, &x->full, &n, bound);
    }
}

const struct check check_global_norm = {
    .name = "global-norm", .number = 11, .claim = "norm(rank) = |whole gradient|; clipped = gradient min(1, limit/norm)",
    .source = "PyTorch documentation, clip_grad_norm_", .catches = "Z07 Z08 Z23", .blind = "unclipped runs", .applies = applies, .judge = judge};
