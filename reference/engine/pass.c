// Forward and backward of a microbatch: which unit is gathered when, prefetched, dropped and reduced.
//
// What: before a call of the model its units are gathered, and the gathers of the next `prefetch` units in the direction of the
//       pass are started, so that they are in flight while the call computes. After it, units that the next call does not read are
//       dropped, except the root, which is read at both ends of most models and stays until the pass has no more use for it.
//       With reshard_after_forward false nothing is dropped between forward and backward. After backward everything is.
//       With reshard_ranks what a forward drops stays spread over groups of that many ranks, and the backward gathers it there.
//         gathers of U units for each microbatch: 2U - 1 or 2U - 2 (the last unit, and the root, go straight from forward to
//         backward); U without resharding after forward.
// How:  messages move only inside calls of the communication library, so that each computation is followed by a test of
//       everything in flight (reduce_progress).
// Why:  the first backward call of a unit in model order is its last in time; after it the gradient is whole, and is reduced.
// Source: Zhao et al. 2023, arXiv:2304.11277, sections 3.3 and 4.3.
#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

static bool reads(const struct engine *e, int call, int unit)
{
    for (int i = 0; i < e->call_unit_count[call]; i++)
        if (e->call_units[call][i] == unit)
            return true;
    return false;
}

static bool prefetch(struct engine *e, int call, int direction, int depth, struct error *error)
{
    const struct unit *last = NULL;
    for (int next = call + direction; depth > 0 && next >= 0 && next < e->model.call_count; next += direction)
        for (int i = 0; i < e->call_unit_count[next] && depth > 0; i++) {
            struct unit *u = &e->units[e->call_units[next][i]];
            if (u->resident || u->root || u == last || reads(e, call, u->index))
                continue;
            last = u;
            depth--;
            if (!gather_start(e, u, error))
                return false;
        }
    return true;
}

static bool acquire(struct engine *e, int call, int direction, int depth, struct error *error)
{
    for (int i = 0; i < e->call_unit_count[call]; i++)
        if (!gather_start(e, &e->units[e->call_units[call][i]], error))
            return false;
    for (int i = 0; i < e->call_unit_count[call]; i++)
        if (!gather_finish(e, &e->units[e->call_units[call][i]], error))
            return false;
    return prefetch(e, call, direction, depth, error);
}

// Only faults keep a unit until the backward is over: all are recomputed, or none of its parameters trains.
static bool kept_by_fault(const struct engine *e, const struct unit *u)
{
    bool frozen = u->member_count > 0;
    for (int m = 0; m < u->member_count; m++)
        frozen &= e->frozen[u->members[m]];
    return (FAULT(recomputed_units_kept) && e->c->sharding.activation_checkpointing) || (FAULT(frozen_units_stay_gathered) && frozen);
}

// Drops what a call has read and the rest of the pass, as told in the header, has no use for. near: as gather_drop.
static void drop(struct engine *e, int call, int next, int direction, bool near)
{
    for (int i = 0; i < e->call_unit_count[call]; i++) {
        struct unit *u = &e->units[e->call_units[call][i]];
        int last = direction > 0 ? u->last_call : u->first_call;
        if (reads(e, next, u->index) || (u->root && call != last) || (direction < 0 && kept_by_fault(e, u)))
            continue;
        gather_drop(e, u, near);
    }
}

static void drop_all(struct engine *e, bool near)
{
    for (int i = 0; i < e->unit_count; i++)
        gather_drop(e, &e->units[i], near);
}

static struct model_arrays arrays_of(struct engine *e)
{
    return (struct model_arrays){e->parameters, e->gradients};
}

// use: what comes after, USE_BACKWARD keeps the units that backward begins with.
enum use { USE_BACKWARD_NOW, USE_BACKWARD_LATER, USE_NONE };

static bool forward(struct engine *e, struct activation *a, enum use use, struct error *error)
{
    const struct model *m = &e->model;
    const struct sharding_spec *s = &e->c->sharding;
    struct model_arrays arrays = arrays_of(e);
    bool keep = use != USE_NONE && !s->reshard_after_forward;
    const void *in = NULL;
    for (int call = 0; call < m->call_count; call++) {
        bool last = call == m->call_count - 1;
        void *out = last ? NULL : use != USE_NONE ? a->outs[call] : call % 2 ? e->pong : e->ping;
        void *saved = use == USE_NONE || s->activation_checkpointing ? NULL : a->saved[call];
        if (!acquire(e, call, 1, s->prefetch_forward, error))
            return false;
        model_forward(m, call, &a->batch, &arrays, in, out, saved, e->scratch, &e->loss[0]);
        if (!reduce_progress(e, true, error))
            return false;
        if (!keep && !last)
            drop(e, call, call + 1, 1, use != USE_NONE);
        in = out;
    }
    if (!keep && use != USE_BACKWARD_NOW)
        drop_all(e, use != USE_NONE);
    return true;
}

// What the latest forward has come to; asked for as late as can be, since the host waits for it.
static bool read_loss(struct engine *e, const struct activation *a, double *loss, struct error *error)
{
    double sum = 0;
    e->on->download(&sum, &e->loss[0], sizeof sum);
    *loss = sum * a->share;
    return !e->on->failed(error);
}

// Recomputes what the call saved from its input, which is the output that forward kept.
static void recompute(struct engine *e, const struct activation *a, int call, const struct model_arrays *arrays)
{
    bool last = call == e->model.call_count - 1;
    const void *in = call ? a->outs[call - 1] : NULL;
    model_forward(&e->model, call, &a->batch, arrays, in, last ? NULL : e->recomputed, a->saved[call], e->scratch, &e->loss[1]);
}

static bool open_gradients(struct engine *e, int call, struct error *error)
{
    for (int i = 0; i < e->call_unit_count[call]; i++)
        if (!reduce_open(e, &e->units[e->call_units[call][i]], error))
            return false;
    return true;
}

static bool close_gradients(struct engine *e, int call, bool sync, struct error *error)
{
    for (int i = 0; i < e->call_unit_count[call]; i++) {
        struct unit *u = &e->units[e->call_units[call][i]];
        if (u->first_call == call && !reduce_close(e, u, sync, error))
            return false;
    }
    return true;
}

// The last call's use of a tied parameter goes without its gradient; only a fault does that.
static void forget_tied(struct engine *e, bool forget)
{
    static void *kept;
    for (int i = 0; i < e->c->parameter_count; i++) {
        int storage = e->c->parameters[i].tied_to;
        if (storage < 0)
            continue;
        if (forget)
            kept = e->gradients[storage];
        e->gradients[storage] = forget ? NULL : kept;
    }
}

// Drops the units of a call and gathers them once more; only faults do that.
static bool gather_again(struct engine *e, int call, struct error *error)
{
    for (int i = 0; i < e->call_unit_count[call]; i++) {
        struct unit *u = &e->units[e->call_units[call][i]];
        gather_drop(e, u, false);
        if (!gather_finish(e, u, error))
            return false;
    }
    return true;
}

static bool backward(struct engine *e, struct activation *a, bool sync, struct error *error)
{
    const struct model *m = &e->model;
    const struct sharding_spec *s = &e->c->sharding;
    const void *dout = NULL;
    for (int call = m->call_count - 1; call >= 0; call--) {
        void *din = call == 0 ? NULL : call % 2 ? e->pong : e->ping;
        struct model_arrays arrays = arrays_of(e);
        if (!acquire(e, call, -1, s->prefetch_backward, error) || !open_gradients(e, call, error))
            return false;
        if (((FAULT(recomputation_gathers_again) && s->activation_checkpointing) || FAULT(backward_gathers_twice)) && !gather_again(e, call, error))
            return false;
        if (s->activation_checkpointing && !(FAULT(recomputation_skipped) && call == 0))
            recompute(e, a, call, &arrays);
        if (FAULT(tied_use_dropped) && call == m->call_count - 1)
            forget_tied(e, true);
        model_backward(m, call, &a->batch, &arrays, call ? a->outs[call - 1] : NULL, a->saved[call], dout, din, e->scratch);
        if (FAULT(tied_use_dropped) && call == m->call_count - 1)
            forget_tied(e, false);
        if (!reduce_progress(e, true, error))
            return false;
        if (call > 0)
            drop(e, call, call - 1, -1, false);
        if (!close_gradients(e, call, sync, error))
            return false;
        dout = din;
    }
    drop_all(e, false);
    a->pending = false;
    return reduce_finish(e, error);
}

static struct activation *slot_at(struct engine *e, int slot, struct error *error)
{
    if (slot < 0 || slot >= e->activation_count) {
        error_set(error, "slot %d, expected 0 to %d", slot, e->activation_count - 1);
        return NULL;
    }
    return &e->activations[FAULT(slots_share_activations) ? 0 : slot];
}

bool engine_forward(struct engine *e, int step, int micro, int slot, double *loss, struct error *error)
{
    struct activation *a = slot_at(e, slot, error);
    if (!a || !loss_prepare(e, step, micro, a, error))
        return false;
    a->pending = true;
    return forward(e, a, USE_BACKWARD_LATER, error) && read_loss(e, a, loss, error);
}

bool engine_backward(struct engine *e, int slot, bool sync, struct error *error)
{
    struct activation *a = slot_at(e, slot, error);
    if (a && !a->pending && !FAULT(slots_share_activations))
        return error_set(error, "backward of slot %d without a forward", slot);
    return a && backward(e, a, sync, error);
}

// A microbatch uses the last slot, which no forward verb names.
bool engine_micro(struct engine *e, int step, int micro, bool sync, double *loss, struct error *error)
{
    struct activation *a = &e->activations[e->activation_count - 1];
    if (FAULT(gathered_in_every_microbatch) && !gather_residents(e, error))
        return false;
    if (!loss_prepare(e, step, micro, a, error) || !forward(e, a, USE_BACKWARD_NOW, error))
        return false;
    if (e->at_backward)
        e->at_backward(e->at_backward_context, step);
    return backward(e, a, sync, error) && read_loss(e, a, loss, error);
}

bool engine_eval(struct engine *e, int step, int micro, double *loss, struct error *error)
{
    const struct activation *last = &e->activations[e->activation_count - 1];
    struct activation a = {.x = last->x, .batch_memory = last->batch_memory};
    return loss_prepare(e, step, micro, &a, error) && forward(e, &a, USE_NONE, error) && read_loss(e, &a, loss, error);
}
