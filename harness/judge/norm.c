// Norms of gradients in float64. See norm.h.
#include "harness/judge/norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/holdings.h"

static void accumulate(enum clip_norm kind, double x, double *sum)
{
    x = fabs(x);
    *sum = kind == CLIP_LINF ? judge_worse(*sum, x) : *sum + (kind == CLIP_L1 ? x : x * x);
}

// Marks the elements of a parameter that one of the member ranks holds.
static void mark_held(const struct evidence *e, int p, const bool *members, bool *held)
{
    for (int r = 0; r < e->world_size; r++) {
        const struct held_part *part = members[r] ? &holdings_rank(e, HELD_GRADIENT, r)->parts[p] : NULL;
        for (int k = 0; part && k < part->count; k++)
            memset(held + part->ranges[k].offset, true, (size_t)part->ranges[k].length * sizeof *held);
    }
}

struct norm norm_of_members(const struct evidence *e, const struct tensors *set, const char *prefix, const bool *members)
{
    struct norm n = {0};
    for (int p = 0; p < e->c->parameter_count; p++) {
        const struct tensor *t = tensors_find2(set, prefix, e->c->parameters[p].name);
        if (!t)
            continue;
        bool *held = calloc((size_t)t->count + 1, sizeof *held);
        if (members)
            mark_held(e, p, members, held);
        for (int64_t i = 0; i < t->count; i++)
            if (!members || held[i]) {
                accumulate(e->c->clip, dtype_get(t->dtype, t->data, i), &n.value);
                n.count++;
            }
        free(held);
        n.tensors++;
        n.u = fmax(n.u, dtype_unit_roundoff(t->dtype));
    }
    n.value = e->c->clip == CLIP_L2 ? sqrt(n.value) : n.value;
    return n;
}

struct norm norm_of(const struct evidence *e, const struct tensors *set, const char *prefix, int rank)
{
    bool *members = calloc((size_t)e->world_size + 1, sizeof *members);
    if (rank >= 0)
        members[rank] = true;
    struct norm n = norm_of_members(e, set, prefix, rank >= 0 ? members : NULL);
    free(members);
    return n;
}

double norm_bound(const struct evidence *e, const struct norm *n)
{
    return (double)(n->count + 8) * 0x1p-24 + (n->tensors + e->world_size + 4) * n->u;
}
