// Norms of gradients in float64. See norm.h.
#include "harness/judge/norm.h"

#include <math.h>

#include "harness/judge/holdings.h"

static void accumulate(enum clip_norm kind, double x, double *sum)
{
    x = fabs(x);
    *sum = kind == CLIP_LINF ? judge_worse(*sum, x) : *sum + (kind == CLIP_L1 ? x : x * x);
}

struct norm norm_of(const struct evidence *e, const struct tensors *set, const char *prefix, int rank)
{
    struct norm n = {0};
    for (int p = 0; p < e->c->parameter_count; p++) {
        const struct tensor *t = tensors_find2(set, prefix, e->c->parameters[p].name);
        const struct held_part *part = t && rank >= 0 ? &holdings_rank(e, HELD_GRADIENT, rank)->parts[p] : NULL;
        struct range whole = {0, t ? t->count : 0};
        for (int k = 0; t && k < (part ? part->count : 1); k++) {
            const struct range *r = part ? &part->ranges[k] : &whole;
            for (int64_t i = r->offset; i < r->offset + r->length; i++)
                accumulate(e->c->clip, dtype_get(t->dtype, t->data, i), &n.value);
            n.count += r->length;
        }
        n.tensors += t != NULL;
        n.u = t ? fmax(n.u, dtype_unit_roundoff(t->dtype)) : n.u;
    }
    n.value = e->c->clip == CLIP_L2 ? sqrt(n.value) : n.value;
    return n;
}

double norm_bound(const struct evidence *e, const struct norm *n)
{
    return (double)(n->count + 8) * 0x1p-24 + (n->tensors + e->world_size + 4) * n->u;
}
