// Clipping by the global norm of a gradient that no rank holds whole.
//
// What: norm = (sum |g|^p)^(1/p), p in {1, 2, infinity}, over all parameters; then g *= min(1, limit / (norm + 1e-6)).
// How:  each rank adds up its own part in float64; the parts are summed over the shard group only, because replicas hold
//       the same gradients and would count twice. Padding is not in any piece; frozen and absent gradients are passed over.
// Source: the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
#include <math.h>

#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

// Pieces whose norms are asked for together: a device answers once for all of them.
enum { PIECES = 64 };
struct pieces { int count; const void *at[PIECES]; int64_t lengths[PIECES]; double norm; };

static void add_norms(const struct engine *e, struct pieces *s)
{
    static const enum device_norm norms[] = {[CLIP_L1] = DEVICE_NORM_L1, [CLIP_L2] = DEVICE_NORM_L2_SQUARED, [CLIP_LINF] = DEVICE_NORM_LINF};
    double values[PIECES];
    e->home->norms(norms[e->c->clip], e->gradient, s->count, s->at, s->lengths, values);
    for (int i = 0; i < s->count; i++)
        if (e->c->clip != CLIP_LINF)
            s->norm += values[i];
        else
            s->norm = values[i] > s->norm || values[i] != values[i] ? values[i] : s->norm;
    s->count = 0;
}

static void add_piece(const struct engine *e, const struct unit *u, const struct layout_piece *p, struct pieces *s)
{
    s->at[s->count] = engine_at(u->gradient, e->gradient, p->at);
    s->lengths[s->count++] = p->length;
    if (s->count == PIECES)
        add_norms(e, s);
}

static double own_norm(const struct engine *e)
{
    struct pieces pieces = {0};
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        const struct layout *l = &u->layout;
        if (FAULT(norm_misses_last_unit) && i == e->unit_count - 1 && i > 0)
            continue;
        for (int p = l->first_piece[e->mesh.shard]; p < l->first_piece[e->mesh.shard + 1]; p++)
            if (u->has_gradient && engine_trains(e, u->members[l->pieces[p].tensor]))
                add_piece(e, u, &l->pieces[p], &pieces);
    }
    add_norms(e, &pieces);
    return pieces.norm;
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
            e->home->kernels(e->gradient)->scale(e->units[i].count, factor, e->units[i].gradient);
    return true;
}
