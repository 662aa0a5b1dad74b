// Gradients of a unit: from the model's additions to the mean over all ranks, sharded.
//
// What: open gives the model a zeroed full gradient. After the last backward call of the unit, close either adds it to what
//       waits for a synchronisation (no_sync), or starts the reduction: cast to the reduce type, reduce-scatter over the
//       shard group, all-reduce over the replicate group, divide by N, add to the gradient at rest.
// How:  at most one reduction is in flight. Without backward prefetch it is waited for at once; with it, it runs while the next
//       unit's backward computes, and what it sends stays untouched until it has ended.
// Why:  accumulation happens on full gradients in the wider of compute and reduce type, so that microbatches without
//       synchronisation lose nothing in a narrow type, or on sharded gradients, already means, where every microbatch synchronises.
// Source: Rajbhandari et al. 2020, arXiv:1910.02054, section 5 (reduce-scatter); Zhao et al. 2023, arXiv:2304.11277, 3.3 and 4.4.
#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

static bool accumulates_in_place(const struct engine *e, const struct unit *u)
{
    return u->accumulated && e->accumulation == e->compute;
}

static bool trains_any(const struct engine *e, const struct unit *u)
{
    for (int m = 0; m < u->member_count; m++)
        if (!e->frozen[u->members[m]])
            return true;
    return FAULT(frozen_still_trains);
}

static bool take_gradient(struct engine *e, struct unit *u, struct error *error)
{
    struct pool *p = &e->gradient_pool;
    u->full_gradient = u->own_full_gradient;
    for (int attempt = 0; attempt < 2 && !u->full_gradient; attempt++) {
        for (int i = 0; i < p->count && !u->full_gradient; i++)
            if (!p->used[i]) {
                p->used[i] = true;
                u->gradient_slot = i;
                u->full_gradient = p->full[i];
            }
        if (!u->full_gradient && !reduce_finish(e, error))
            return false;
    }
    return u->full_gradient || error_set(error, "unit '%s': no buffer for its gradient", u->name);
}

bool reduce_open(struct engine *e, struct unit *u, struct error *error)
{
    if (FAULT(reuse_keeps_last_call) && u->full_gradient && !u->root)
        e->on->clear(u->full_gradient, (size_t)u->layout.full_count * dtype_size(e->compute));
    if (u->full_gradient || !trains_any(e, u))
        return true;
    bool in_place = accumulates_in_place(e, u);
    if (in_place)
        u->full_gradient = u->accumulated;
    else if (!take_gradient(e, u, error))
        return false;
    if (in_place ? !u->has_accumulated || FAULT(accumulation_overwrites) : !FAULT(dirty_gradient_buffer))
        e->on->clear(u->full_gradient, (size_t)u->layout.full_count * dtype_size(e->compute));
    for (int m = 0; m < u->member_count; m++) {
        int i = u->members[m];
        e->gradients[i] = e->frozen[i] && !FAULT(frozen_still_trains) ? NULL : engine_at(u->full_gradient, e->compute, u->layout.tensor_offset[m]);
    }
    return true;
}

static void give_back(struct engine *e, struct unit *u)
{
    if (u->gradient_slot >= 0)
        e->gradient_pool.used[u->gradient_slot] = false;
    u->gradient_slot = -1;
}

static void accumulate(struct engine *e, struct unit *u)
{
    int64_t count = u->layout.full_count;
    bool overwrite = !u->has_accumulated || FAULT(accumulation_overwrites);
    if (accumulates_in_place(e, u))
        ; // the model has added to it already
    else if (overwrite)
        e->on->cast(count, e->compute, u->full_gradient, e->accumulation, u->accumulated);
    else
        e->on->accumulate(count, e->compute, u->full_gradient, e->accumulation, u->accumulated);
    u->has_accumulated = true;
}

// The gradients in the reduce type, in the order of the shards.
static void *in_order(struct engine *e, const struct unit *u, enum dtype type, void *gradient)
{
    const struct layout *l = &u->layout;
    struct reduction *r = &e->reduction;
    if (layout_concatenation_is_full(l)) {
        if (type == e->reduce)
            return gradient;
        e->on->cast(l->full_count, type, gradient, e->reduce, r->packed);
        return r->packed;
    }
    for (int s = 0; s < l->shards; s++)
        for (int i = l->first_piece[s]; i < l->first_piece[s + 1]; i++) {
            const struct layout_piece *p = &l->pieces[i];
            e->on->cast(p->length, type, engine_at(gradient, type, l->tensor_offset[p->tensor] + p->offset), e->reduce,
                        engine_at(r->packed, e->reduce, l->starts[s] + p->at));
        }
    return r->packed;
}

static bool start_replicas(struct engine *e, struct error *error)
{
    struct reduction *r = &e->reduction;
    bool alone = e->mesh.replicas == 1 || (FAULT(size_one_axis_not_reduced) && e->mesh.shards == 1);
    r->stage = alone ? REDUCE_SUMMED : REDUCE_REPLICATING;
    void *values = r->result;
    if (FAULT(replicas_reduce_wrong_buffer) && e->mesh.shards > 1)
        values = engine_at(r->work, e->reduce, r->unit->count);
    return r->stage == REDUCE_SUMMED ||
           comm_all_reduce(&e->comm, e->reduce, values, r->replica_work, r->unit->count, &r->request, error);
}

// A reduction whose result nobody reads; only faults make one.
static bool reduce_in_vain(struct engine *e, struct unit *u, const void *sent, struct error *error)
{
    struct comm_request r = {0};
    return e->mesh.shards == 1 || (comm_reduce_scatter(&e->comm, e->reduce, sent, e->reduction.work, u->layout.counts, u->layout.starts, &r, error) &&
                                   comm_wait(&e->comm, &r, error));
}

static bool start(struct engine *e, struct unit *u, enum dtype type, void *gradient, struct error *error)
{
    struct reduction *r = &e->reduction;
    void *sent = in_order(e, u, type, gradient);
    r->unit = u;
    r->stage = REDUCE_SCATTERING;
    if (e->mesh.shards == 1) {
        r->result = sent;
        if (FAULT(last_unit_not_reduced) && u->index == e->unit_count - 1)
            return r->stage = REDUCE_SUMMED, true;
        return start_replicas(e, error);
    }
    r->result = r->work;
    if (FAULT(last_unit_not_reduced) && u->index == e->unit_count - 1) {
        r->result = engine_at(sent, e->reduce, u->layout.starts[e->mesh.shard]);
        r->stage = REDUCE_SUMMED;
        return true;
    }
    if (FAULT(all_reduced_not_scattered) && e->mesh.replicas == 1) {
        r->result = engine_at(sent, e->reduce, u->layout.starts[e->mesh.shard]);
        return comm_all_reduce(&e->comm, e->reduce, sent, r->work, u->layout.full_count, &r->request, error);
    }
    if (FAULT(reduced_twice) && !reduce_in_vain(e, u, sent, error))
        return false;
    return comm_reduce_scatter(&e->comm, e->reduce, sent, r->work, u->layout.counts, u->layout.starts, &r->request, error);
}

bool reduce_close(struct engine *e, struct unit *u, bool sync, struct error *error)
{
    if (!u->full_gradient)
        return true;
    for (int m = 0; m < u->member_count; m++) {
        int i = u->members[m];
        e->has_gradient[i] |= e->used[i] && (!e->frozen[i] || FAULT(frozen_still_trains));
        e->gradients[i] = NULL;
    }
    e->own_overflow |= FAULT(skip_not_collective) && !e->on->kernels(e->compute)->all_finite(u->layout.full_count, u->full_gradient);
    if (u->accumulated)
        accumulate(e, u);
    if (FAULT(barrier_after_each_unit) && !comm_barrier(&e->comm, error))
        return false;
    if (!sync && FAULT(unsynchronised_reduces) && !reduce_in_vain(e, u, in_order(e, u, e->accumulation, u->accumulated), error))
        return false;
    if (!sync) {
        give_back(e, u);
        u->full_gradient = NULL;
        return true;
    }
    if (!reduce_finish(e, error))
        return false;
    bool ok = u->accumulated ? start(e, u, e->accumulation, u->accumulated, error)
                             : start(e, u, e->compute, u->full_gradient, error);
    return ok && (e->c->sharding.prefetch_backward > 0 || reduce_finish(e, error));
}

bool reduce_progress(struct engine *e, bool computed, struct error *error)
{
    struct reduction *r = &e->reduction;
    if (!comm_progress(&e->comm, computed, error))
        return false;
    if (r->unit && r->stage == REDUCE_SCATTERING && !r->request.active)
        return comm_wait(&e->comm, &r->request, error) && start_replicas(e, error);
    return true;
}

static double divisor(const struct engine *e)
{
    if (FAULT(divisor_left_out))
        return 1;
    if (FAULT(divided_twice))
        return (double)e->ranks * e->ranks;
    if (FAULT(divided_by_shards_only))
        return e->mesh.shards;
    if (FAULT(divided_by_microbatches_too))
        return (double)e->ranks * (double)tensors_find(e->data, e->c->model.kind == MODEL_TRANSFORMER ? "tokens" : "weight")->shape[1];
    return e->ranks;
}

// Only a fault clears the gradient of tied parameters.
static void clear_tied(const struct engine *e, const struct unit *u)
{
    const struct layout *l = &u->layout;
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++)
        for (int p = 0; p < e->c->parameter_count; p++)
            if (e->c->parameters[p].tied_to == u->members[l->pieces[i].tensor])
                e->home->fill(l->pieces[i].length, e->gradient, engine_at(u->gradient, e->gradient, l->pieces[i].at), 0);
}

// The sum becomes a mean and joins the gradient at rest. The division comes after the sum and is a true division, rounded to the reduce type, so that sums that are
// multiples of N give exact means for every N; the loss scale is taken out after the conversion to the gradient's type, where it cannot underflow.
static void join(struct engine *e)
{
    struct reduction *r = &e->reduction;
    struct unit *u = r->unit;
    const void *sum = r->result;
    if (e->offload) {
        if (!FAULT(offload_copies_late))
            e->on->download(r->staging, sum, (size_t)u->count * dtype_size(e->reduce));
        sum = r->staging;
    }
    bool add = u->has_gradient && !FAULT(synchronised_overwrites) && !(FAULT(offload_overwrites) && e->offload);
    if (FAULT(mean_taken_again) && add)
        e->home->kernels(e->gradient)->scale(u->count, 1.0 / e->ranks, u->gradient);
    e->home->mean(u->count, e->reduce, sum, divisor(e), 1 / e->scale.value, e->gradient, u->gradient, add);
    if (FAULT(tied_trains_on_first_shard) && e->mesh.shard > 0)
        clear_tied(e, u);
    if (FAULT(offload_copies_late) && e->offload)
        e->on->download(r->staging, r->result, (size_t)u->count * dtype_size(e->reduce));
    u->has_gradient = true;
    u->has_accumulated = false;
    u->full_gradient = NULL;
    give_back(e, u);
    r->unit = NULL;
}

bool reduce_finish(struct engine *e, struct error *error)
{
    struct reduction *r = &e->reduction;
    if (!r->unit)
        return true;
    if (!comm_wait(&e->comm, &r->request, error))
        return false;
    if (r->stage == REDUCE_SCATTERING && !start_replicas(e, error))
        return false;
    if (!comm_wait(&e->comm, &r->request, error))
        return false;
    join(e);
    return true;
}
