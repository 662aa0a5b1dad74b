// Claim: the reduction runs in the dtype asked for: in f32 the result is the rounded exact mean; in a narrower dtype it lies in the set
//     of values that some order of additions and some place of the division reaches in that dtype.
// Source: Higham, chapter 4; FSDP, section 3.4 (mixed precision); 256 + 1 = 256 in bf16.
// How: each rank's own gradient is known exactly (witness); all binary trees of additions over the ranks are enumerated, division before
//     or after, and once the sum in float32 with one rounding at the end. The message names the policy found.
// Catches: Z19
// Blind to: N = 2 (one rounding hides the dtype), N > 5 (too many trees), accumulation
#include "harness/judge/exact.h"
#include "harness/judge/gradient.h"
#include "harness/judge/orders.h"
#include "suite/checks/check.h"

enum { MAX_RANKS = ORDERS_MAX_RANKS };

static bool applies(const struct evidence *e)
{
    const struct fsdp_case *c = e->c;
    return c->layer == LAYER_WITNESS && case_data_ranks(c) > 2 && case_data_ranks(c) <= MAX_RANKS && c->data.micros == 1 &&
           c->loss != LOSS_MEAN_OF_RANKS && c->precision.loss_scale == LOSS_SCALE_NONE;
}

// One tensor at one label: elements outside the set, and those that a bf16 reduction would explain.
static int64_t judge_tensor(const struct evidence *e, const struct tensor *x, const struct tensors *own, const char *name, int64_t *narrow, int64_t *first)
{
    int64_t outside = 0;
    int n = case_data_ranks(e->c);
    for (int64_t i = 0; i < x->count; i++) {
        double terms[MAX_RANKS], value = dtype_get(x->dtype, x->data, i);
        for (int r = 0; r < n; r++) {
            const struct tensor *t = tensors_find2(&own[r], "grad", name);
            terms[r] = n * dtype_get(t->dtype, t->data, i);
        }
        if (orders_reach(value, terms, n, e->c->precision.reduce, x->dtype))
            continue;
        *first = outside++ == 0 ? i : *first;
        *narrow += orders_reach(value, terms, n, DTYPE_BF16, x->dtype);
    }
    return outside;
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct tensors own[MAX_RANKS] = {{0}};
    int n = case_data_ranks(e->c);
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct observed *o = evidence_find(e, l.label);
        const struct tensors *parameters = gradient_parameters(e, &l);
        bool ok = o && parameters && l.what & OBSERVE_GRAD && l.gradient_step >= 0;
        for (int r = 0; ok && r < n; r++)
            ok = gradient_of(e, &l, parameters, (struct share){r, -1}, &own[r], NULL, NULL);
        for (int p = 0; ok && p < e->c->parameter_count; p++) {
            const struct tensor *x = tensors_find2(&o->full, "grad", e->c->parameters[p].name);
            int64_t narrow = 0, first = 0, outside = x ? judge_tensor(e, x, own, e->c->parameters[p].name, &narrow, &first) : 0;
            if (x)
                finding_compare(f, (double)outside, 0, "elements", narrow == outside ? "Z19" : "Z01",
                                "%s: %lld of %lld elements of %s's gradient are not what any order of additions gives in %s (element %lld: %.9g)%s", l.label,
                                (long long)outside, (long long)x->count, e->c->parameters[p].name, dtype_name(e->c->precision.reduce), (long long)first,
                                dtype_get(x->dtype, x->data, first), outside && narrow == outside ? "; policy found: a reduction in bf16" : "");
        }
        for (int r = 0; r < n; r++)
            tensors_free(&own[r]);
    }
}

const struct check check_reduce_precision = {
    .name = "reduce-precision", .number = 8, .claim = "grad in {results of the sum in the reduce dtype, over all orders}",
    .source = "Higham chapter 4; FSDP section 3.4", .catches = "Z19", .blind = "N = 2, N > 5, accumulation", .applies = applies, .judge = judge};
