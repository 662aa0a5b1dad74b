// Gathering a unit's parameters, and dropping them.
//
// What: the shards, cast to the compute type, are all-gathered over the shard group. Flat shards arrive in place: what is
//       received is the full buffer. Per-parameter shards arrive one rank after another and are copied to their places.
// How:  start and finish are apart, so that a gather can be in flight while earlier calls compute (prefetch). A unit that is
//       neither resident nor has a buffer of its own takes one from a pool; pass.c makes sure that there is one.
//       With reshard_ranks k a drop after forward keeps this rank's part of k, a run of whole shards (so that it needs no padding of
//       its own), and the next gather of the unit is among the k ranks that have all parts; parameters that change forget them.
//       With offload the shard lies in host memory and is copied to the device first.
#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

static void point_model_at(struct engine *e, const struct unit *u)
{
    for (int m = 0; m < u->member_count; m++)
        e->parameters[u->members[m]] = u->full ? engine_at(u->full, e->compute, u->layout.tensor_offset[m]) : NULL;
}

static bool take_buffers(struct engine *e, struct unit *u, struct error *error)
{
    u->full = u->own_full;
    u->concatenated = u->own_concatenated;
    for (int i = 0; i < e->parameter_pool.count && !u->full; i++) {
        if (e->parameter_pool.used[i])
            continue;
        e->parameter_pool.used[i] = true;
        u->parameter_slot = i;
        u->full = e->parameter_pool.full[i];
        u->concatenated = e->parameter_pool.concatenated[i];
    }
    if (layout_concatenation_is_full(&u->layout))
        u->concatenated = u->full;
    return u->full || error_set(error, "unit '%s': no buffer to gather into", u->name);
}

// What this rank sends: the shard itself where it has the compute type, else its cast at its own place of the receive buffer.
static const void *own_part(struct engine *e, struct unit *u)
{
    void *place = engine_at(u->concatenated, e->compute, u->layout.starts[e->mesh.shard]);
    size_t bytes = (size_t)u->count * dtype_size(e->compute);
    if (e->parameter != e->compute && e->cast_staging) {
        e->home->cast(u->count, e->parameter, u->shard, e->compute, e->cast_staging);
        e->on->upload(place, e->cast_staging, bytes);
    } else if (e->parameter != e->compute) {
        e->on->cast(u->count, e->parameter, u->shard, e->compute, place);
    } else if (e->offload) {
        e->on->upload(place, u->shard, bytes);
    } else if (e->mesh.shards == 1 && place != u->shard) {
        e->on->copy(place, u->shard, bytes);
    } else {
        return u->shard;
    }
    return place;
}

// Only a fault gathers what is stored, twice as wide, and casts it afterwards.
static bool gather_wide(struct engine *e, struct unit *u, struct error *error)
{
    struct comm_request r = {0};
    void *all = e->on->allocate(((size_t)u->layout.full_count + 1) * dtype_size(e->parameter));
    bool ok = comm_all_gather(&e->comm, e->parameter, u->shard, all, u->layout.counts, u->layout.starts, &r, error) && comm_wait(&e->comm, &r, error);
    e->on->cast(u->layout.full_count, e->parameter, all, e->compute, u->concatenated);
    ok = e->on->finish(error) && ok;
    e->on->release(all);
    return ok;
}

bool gather_start(struct engine *e, struct unit *u, struct error *error)
{
    bool near = u->state == UNIT_NEAR;
    if (u->state != UNIT_RESHARDED && !near)
        return true;
    if (!take_buffers(e, u, error))
        return false;
    if (near) {
        u->state = UNIT_GATHERING;
        return comm_near_gather(&e->comm, e->compute, u->near, u->concatenated, u->near_counts, u->near_starts, &u->gather, error);
    }
    if (FAULT(gathered_in_parameter_type) && e->mesh.shards > 1 && e->parameter != e->compute) {
        u->state = UNIT_GATHERING;
        return gather_wide(e, u, error);
    }
    const void *part = own_part(e, u);
    u->state = UNIT_GATHERING;
    return e->mesh.shards == 1 || comm_all_gather(&e->comm, e->compute, part, u->concatenated, u->layout.counts,
                                                  u->layout.starts, &u->gather, error);
}

static void copy_out(struct engine *e, const struct unit *u)
{
    const struct layout *l = &u->layout;
    for (int s = 0; s < l->shards; s++)
        for (int i = l->first_piece[s]; i < l->first_piece[s + 1]; i++) {
            const struct layout_piece *p = &l->pieces[i];
            e->on->copy(engine_at(u->full, e->compute, l->tensor_offset[p->tensor] + p->offset),
                        engine_at(u->concatenated, e->compute, l->starts[s] + p->at), (size_t)p->length * dtype_size(e->compute));
        }
}

bool gather_finish(struct engine *e, struct unit *u, struct error *error)
{
    if (!gather_start(e, u, error) || !comm_wait(&e->comm, &u->gather, error))
        return false;
    if (u->state == UNIT_GATHERED)
        return true;
    if (!layout_concatenation_is_full(&u->layout))
        copy_out(e, u);
    u->state = UNIT_GATHERED;
    point_model_at(e, u);
    return true;
}

static void keep_near(struct engine *e, struct unit *u)
{
    int rank = e->comm.near->rank;
    e->on->copy(u->near, engine_at(u->concatenated, e->compute, u->near_starts[rank]), (size_t)u->near_counts[rank] * dtype_size(e->compute));
}

void gather_drop(struct engine *e, struct unit *u, bool near)
{
    near = near && u->near;
    if (u->state == UNIT_NEAR && !near)
        u->state = UNIT_RESHARDED;
    if (u->resident || u->state != UNIT_GATHERED)
        return;
    if (u->own_full && ((FAULT(kept_parameters_go_stale) && !e->c->sharding.reshard_after_forward) ||
                        (FAULT(checkpointing_keeps_units) && e->c->sharding.activation_checkpointing)))
        return;
    if (near)
        keep_near(e, u);
    u->state = near ? UNIT_NEAR : UNIT_RESHARDED;
    if (u->parameter_slot >= 0)
        e->parameter_pool.used[u->parameter_slot] = false;
    u->parameter_slot = -1;
    u->full = u->concatenated = NULL;
    point_model_at(e, u);
}

// Resident units are full all the time; after an update their other parts are fetched from their owners.
bool gather_residents(struct engine *e, struct error *error)
{
    for (int i = 0; i < e->unit_count; i++) {
        struct unit *u = &e->units[i];
        gather_drop(e, u, false);
        if (!u->resident)
            continue;
        if (u->aliased && e->mesh.shards == 1 && u->state == UNIT_GATHERED)
            continue;
        u->state = UNIT_RESHARDED;
        if (!gather_finish(e, u, error))
            return false;
    }
    return true;
}
