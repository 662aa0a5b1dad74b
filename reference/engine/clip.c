// Clipping by the global norm of a gradient that no rank holds whole.
//
// What: norm = (sum |g|^p)^(1/p), p in {1, 2, infinity}, over all parameters; then g *= min(1, limit / (norm + 1e-6)).
// How:  each rank adds up its own part in float64; the parts are summed over the shard group only, because replicas hold
//       the same gradients and would count twice. Padding is not in any piece; frozen and absent gradients are passed over.
// Source: the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
#include <math.h>

#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

static void add_piece(const struct engine *e, const struct unit *u, const struct layout_piece *p, double *norm)
{
    const struct kernel_set *k = kernels_cpu(e->gradient);
    const void *piece = engine_at(u->gradient, e->gradient, p->at);
    switch (e->c->clip) {
    case CLIP_L1: *norm += k->norm_l1(p->length, piece); break;
    case CLIP_L2: *norm += k->norm_l2_squared(p->length, piece); break;
    default: {
        double largest = k->norm_linf(p->length, piece);
        *norm = largest > *norm || largest != largest ? largest : *norm;
    }
    }
}

static double own_norm(const struct engine *e)
{
    double norm = 0;
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        const struct layout *l = &u->layout;
        if (FAULT(norm_misses_last_unit) && i == e->unit_count - 1 && i > 0)
            continue;
        for (int p = l->first_piece[e->mesh.shard]; p < l->first_piece[e->mesh.shard + 1]; p++)
            if (u->has_gradient && engine_trains(e, u->members[l->pieces[p].tensor]))
                add_piece(e, u, &l->pieces[p], &norm);
    }
    return norm;
}

bool engine_clip(struct engine *e, double *norm, struct error *error)
{
    const struct backend_group *group = &e->comm.groups->shard;
    enum reduce_op op = e->c->clip == CLIP_LINF ? REDUCE_MAX : REDUCE_SUM;
    if (FAULT(norm_counts_replicas))
        group = &e->comm.world->all;
    *norm = own_norm(e);
    if (!FAULT(norm_of_own_shard) && !comm_scalars(&e->comm, group, op, norm, 1, error))
        return false;
    if (e->c->clip == CLIP_L2)
        *norm = sqrt(*norm);
    double factor = e->c->clip_limit / (*norm + 1e-6);
    if (!(factor < 1) || (!isfinite(*norm) && e->c->precision.loss_scale != LOSS_SCALE_NONE))
        return true; // within the limit, or a step that will be skipped
    for (int i = 0; i < e->unit_count; i++)
        if (e->units[i].has_gradient)
            kernels_cpu(e->gradient)->scale(e->units[i].count, factor, e->units[i].gradient);
    return true;
}
