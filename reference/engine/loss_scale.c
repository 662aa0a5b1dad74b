// Loss scaling for binary16: gradients are scaled up before they can underflow, and a step that overflowed is skipped.
//
// What: the loss is multiplied by a scale; reduce.c takes it out again. If any rank finds an infinity or NaN in its gradients, all
//       skip the step, which takes a collective: the decision must be the same everywhere.
//         static    the scale stays;
//         dynamic   overflow: scale *= backoff; `interval` good steps in a row: scale *= growth.
// Source: Micikevicius et al. 2018, arXiv:1710.03740, section 3.2.
#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

bool loss_scale_overflow(struct engine *e, bool *overflow, struct error *error)
{
    double found = 0;
    *overflow = false;
    if (e->c->precision.loss_scale == LOSS_SCALE_NONE)
        return true;
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        double finite = 1;
        if (u->has_gradient)
            e->home->norms(DEVICE_ALL_FINITE, e->gradient, 1, (const void *[]){u->gradient}, &u->count, &finite);
        found = finite == 1 ? found : 1;
    }
    if (FAULT(skip_not_collective)) {
        *overflow = e->own_overflow;
        e->own_overflow = false;
        return true;
    }
    bool ok = comm_scalars(&e->comm, &e->comm.world->all, REDUCE_MAX, &found, 1, error);
    *overflow = found > 0;
    return ok;
}

void loss_scale_update(struct engine *e, bool overflow)
{
    const struct precision_spec *p = &e->c->precision;
    if (p->loss_scale != LOSS_SCALE_DYNAMIC)
        return;
    if (overflow) {
        e->scale.value *= p->scale_backoff;
        e->scale.good_steps = 0;
    } else if (++e->scale.good_steps == p->scale_interval) {
        e->scale.value *= p->scale_growth;
        e->scale.good_steps = 0;
    }
}
