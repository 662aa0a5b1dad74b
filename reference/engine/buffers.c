// Taking the buffers of a case from the arenas, once, before the first step. See buffers.h.
#include "reference/engine/buffers.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "reference/engine/fault.h"

bool buffers_accumulate(const struct engine *e)
{
    bool unsynchronised = e->c->sharding.strategy == STRATEGY_OPTIMIZER;
    for (int i = 0; i < e->c->program_length; i++) {
        const struct instruction *in = &e->c->program[i];
        unsynchronised |= (in->verb == VERB_MICRO || in->verb == VERB_BACKWARD) && !in->sync;
    }
    return unsynchronised;
}

bool buffers_gradient_in_place(const struct engine *e)
{
    bool reduced = false, again = false, cleared = false;
    for (int i = 0; i < e->c->program_length; i++) {
        const struct instruction *in = &e->c->program[i];
        bool backward = in->verb == VERB_MICRO || in->verb == VERB_BACKWARD;
        again |= backward && reduced;
        cleared |= in->verb == VERB_ZERO_GRAD;
        reduced = in->verb == VERB_ZERO_GRAD ? false : reduced || (backward && in->sync);
    }
    bool whole = e->c->sharding.strategy == STRATEGY_OPTIMIZER || e->c->sharding.strategy == STRATEGY_NONE;
    return whole && buffers_accumulate(e) && e->accumulation == e->gradient && !e->offload && cleared && !again;
}

// The program freezes one of the unit's parameters.
static bool freezes(const struct engine *e, const struct unit *u)
{
    bool found = false;
    for (int i = 0; i < e->c->program_length; i++)
        for (int m = 0; e->c->program[i].verb == VERB_FREEZE && m < u->member_count; m++)
            found |= fnmatch(e->c->program[i].pattern, e->c->parameters[u->members[m]].name, 0) == 0;
    return found;
}

// Only faults give a unit a place of its own that is dropped after each use.
static bool own_by_fault(const struct engine *e, const struct unit *u)
{
    return FAULT(a_buffer_for_each_unit) || (FAULT(recomputed_units_kept) && e->c->sharding.activation_checkpointing) ||
           (FAULT(frozen_units_stay_gathered) && freezes(e, u));
}

bool buffers_own_parameters(const struct engine *e, const struct unit *u)
{
    return !u->resident && (u->root || !e->c->sharding.reshard_after_forward || own_by_fault(e, u));
}

bool buffers_pooled_parameters(const struct engine *e, const struct unit *u)
{
    return !u->resident && !buffers_own_parameters(e, u);
}

static bool needs_gradient(const struct engine *e, const struct unit *u)
{
    bool in_place = buffers_accumulate(e) && e->accumulation == e->compute;
    return u->last_call >= 0 && !in_place;
}

bool buffers_own_gradient(const struct engine *e, const struct unit *u)
{
    return needs_gradient(e, u) && (u->root || u->scattered);
}

bool buffers_pooled_gradient(const struct engine *e, const struct unit *u)
{
    return needs_gradient(e, u) && !u->root && !u->scattered;
}

// The most units that satisfy `in` and that one call reads.
static int most_in_a_call(const struct engine *e, bool (*in)(const struct engine *, const struct unit *))
{
    int most = 0;
    for (int call = 0; call < e->model.call_count; call++) {
        int count = 0;
        for (int i = 0; i < e->call_unit_count[call]; i++)
            count += in(e, &e->units[e->call_units[call][i]]);
        most = count > most ? count : most;
    }
    return most;
}

static int at_most_all(const struct engine *e, int turns, bool (*in)(const struct engine *, const struct unit *))
{
    int all = 0;
    for (int i = 0; i < e->unit_count; i++)
        all += in(e, &e->units[i]);
    return turns < all ? turns : all;
}

static bool any_unit(const struct engine *e, const struct unit *u) { return (void)e, (void)u, true; }

bool buffers_share_receive(const struct engine *e)
{
    const struct sharding_spec *s = &e->c->sharding;
    return !s->reshard_after_forward && s->prefetch_forward == 0 && s->prefetch_backward == 0 && most_in_a_call(e, any_unit) == 1;
}

int buffers_parameter_turns(const struct engine *e)
{
    const struct sharding_spec *s = &e->c->sharding;
    int ahead = s->prefetch_forward > s->prefetch_backward ? s->prefetch_forward : s->prefetch_backward;
    return at_most_all(e, most_in_a_call(e, buffers_pooled_parameters) + ahead, buffers_pooled_parameters);
}

int buffers_gradient_turns(const struct engine *e)
{
    int in_flight = e->c->sharding.prefetch_backward > 0;
    return at_most_all(e, most_in_a_call(e, buffers_pooled_gradient) + in_flight, buffers_pooled_gradient);
}

bool buffers_reorder(const struct engine *e) { return e->layout == SHARD_PER_PARAMETER && e->mesh.shards > 1; }

bool buffers_pack(const struct engine *e)
{
    return buffers_reorder(e) || (buffers_accumulate(e) ? e->accumulation : e->compute) != e->reduce;
}

bool buffers_cast_at_home(const struct engine *e) { return e->offload && !e->on->host && e->parameter != e->compute; }

// ---- taking ----

static bool take(struct arena *a, enum arena_tag tag, int64_t count, enum dtype type, void **out, struct error *error)
{
    *out = arena_take(a, tag, count, dtype_size(type), error);
    return *out != NULL;
}

static bool take_at_rest(struct engine *e, struct unit *u, struct arena *home, struct error *error)
{
    int64_t full = u->layout.full_count;
    if (u->resident && !take(&e->device, ARENA_PARAM, full, e->compute, &u->own_full, error))
        return false;
    if (u->aliased)
        u->shard = engine_at(u->own_full, e->compute, u->layout.starts[e->mesh.shard]);
    else if (!take(home, ARENA_PARAM, u->count, e->parameter, &u->shard, error))
        return false;
    for (int s = 0; s < e->state_count; s++)
        if (!take(home, ARENA_OPTIM, FAULT(states_of_all_shards) && full > u->count ? full : u->count, e->state_type, &u->states[s], error))
            return false;
    if (buffers_gradient_in_place(e)) {
        bool fine = take(&e->device, ARENA_GRAD, full, e->accumulation, &u->accumulated, error);
        u->gradient = u->accumulated;
        return fine;
    }
    return take(home, ARENA_GRAD, FAULT(gradients_kept_whole) && full > u->count ? full : u->count, e->gradient, &u->gradient, error) &&
           (!buffers_accumulate(e) || take(&e->device, ARENA_UNSHARDED, full, e->accumulation, &u->accumulated, error));
}

static bool take_in_use(struct engine *e, struct unit *u, struct error *error)
{
    struct arena *a = &e->device;
    int64_t full = u->layout.full_count;
    bool own = buffers_own_parameters(e, u), shares = buffers_share_receive(e);
    if (u->resident || (own && shares))
        u->own_concatenated = e->gather_buffer;
    return (!own || take(a, ARENA_UNSHARDED, full, e->compute, &u->own_full, error)) &&
           (!own || shares || !buffers_reorder(e) || take(a, ARENA_COMM, full, e->compute, &u->own_concatenated, error)) &&
           (!u->near_counts || take(a, ARENA_UNSHARDED, u->near_counts[e->comm.near->rank], e->compute, &u->near, error)) &&
           (!buffers_own_gradient(e, u) || take(a, ARENA_UNSHARDED, full, e->compute, &u->own_full_gradient, error));
}

static int64_t largest(const struct engine *e, bool (*in)(const struct engine *, const struct unit *), bool full)
{
    int64_t most = 0;
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        int64_t count = full ? u->layout.full_count : u->count;
        if (in(e, u) && count > most)
            most = count;
    }
    return most;
}

static bool take_pool(struct engine *e, struct pool *p, int turns, int64_t count, bool reorder, struct error *error)
{
    p->full = calloc((size_t)turns + 1, sizeof *p->full);
    p->concatenated = calloc((size_t)turns + 1, sizeof *p->concatenated);
    p->used = calloc((size_t)turns + 1, sizeof *p->used);
    if (!p->full || !p->concatenated || !p->used)
        return error_set(error, "no memory for %d buffers", turns);
    for (p->count = 0; p->count < turns; p->count++)
        if (!take(&e->device, ARENA_UNSHARDED, count, e->compute, &p->full[p->count], error) ||
            (reorder && !take(&e->device, ARENA_COMM, count, e->compute, &p->concatenated[p->count], error)))
            return false;
    return true;
}

static bool take_communication(struct engine *e, struct error *error)
{
    struct reduction *r = &e->reduction;
    int64_t full = largest(e, any_unit, true), part = largest(e, any_unit, false), replica = 0;
    for (int i = 0; i < e->unit_count; i++) {
        int64_t work = backend_all_reduce_work(e->units[i].count, e->mesh.replicas);
        replica = work > replica ? work : replica;
    }
    bool one = (e->unit_count > 0 && e->units[0].resident) || buffers_share_receive(e);
    return (!one || !buffers_reorder(e) || take(&e->device, ARENA_COMM, full, e->compute, &e->gather_buffer, error)) &&
           (!buffers_pack(e) || take(&e->device, ARENA_COMM, full, e->reduce, &r->packed, error)) &&
           (e->mesh.shards == 1 || take(&e->device, ARENA_COMM, part * e->mesh.shards, e->reduce, &r->work, error)) &&
           (e->mesh.replicas == 1 || take(&e->device, ARENA_COMM, replica, e->reduce, &r->replica_work, error)) &&
           (!e->offload || take(&e->host, ARENA_COMM, part, e->reduce, &r->staging, error)) &&
           (!buffers_cast_at_home(e) || take(&e->host, ARENA_COMM, part, e->compute, &e->cast_staging, error));
}

static bool take_bytes(struct engine *e, size_t bytes, void **out, struct error *error)
{
    *out = arena_take(&e->device, ARENA_ACT, (int64_t)bytes, 1, error);
    return *out != NULL;
}

static bool take_numbers(struct engine *e, struct error *error)
{
    e->loss = arena_take(&e->device, ARENA_ACT, 2, sizeof *e->loss, error);
    return e->loss != NULL;
}

static bool take_activation(struct engine *e, struct activation *a, void *shared_saved, struct error *error)
{
    const struct model *m = &e->model;
    int64_t rows = e->rows_end - e->rows_first;
    a->outs = calloc((size_t)m->call_count, sizeof *a->outs);
    a->saved = calloc((size_t)m->call_count, sizeof *a->saved);
    a->x = calloc((size_t)e->c->parameter_count + 1, sizeof *a->x);
    if (!a->outs || !a->saved || !a->x)
        return error_set(error, "no memory for %d calls", m->call_count);
    for (int call = 0; call < m->call_count; call++) {
        a->saved[call] = shared_saved;
        if (!take_bytes(e, model_out_bytes(m, call, rows), &a->outs[call], error) ||
            (!shared_saved && !take_bytes(e, model_saved_bytes(m, call, rows), &a->saved[call], error)))
            return false;
    }
    return true;
}

static bool take_activations(struct engine *e, struct error *error)
{
    const struct model *m = &e->model;
    int64_t rows = e->rows_end - e->rows_first;
    size_t out = 0, saved = 0;
    void *shared = NULL;
    for (int call = 0; call < m->call_count; call++) {
        size_t o = model_out_bytes(m, call, rows), s = model_saved_bytes(m, call, rows);
        out = o > out ? o : out;
        saved = s > saved ? s : saved;
    }
    if (e->c->sharding.activation_checkpointing &&
        !(take_bytes(e, saved, &shared, error) && take_bytes(e, out, &e->recomputed, error)))
        return false;
    for (int i = 0; i < e->activation_count; i++)
        if (!take_activation(e, &e->activations[i], shared, error) ||
            (!e->on->host && !take_bytes(e, model_batch_bytes(e->c, rows), &e->activations[i].batch_memory, error)))
            return false;
    return take_bytes(e, out, &e->ping, error) && take_bytes(e, out, &e->pong, error) && take_numbers(e, error) &&
           take_bytes(e, model_scratch_bytes(m, rows), &e->scratch, error);
}

bool buffers_create(struct engine *e, struct error *error)
{
    struct arena_plan device = {{0}}, host = {{0}};
    predict_memory(e, &device, &host);
    if (!arena_open(&e->device, e->on, &device, error) || !arena_open(&e->host, &device_cpu, &host, error) ||
        !take_communication(e, error))
        return false;
    for (int i = 0; i < e->unit_count; i++)
        if (!take_at_rest(e, &e->units[i], e->offload ? &e->host : &e->device, error) || !take_in_use(e, &e->units[i], error))
            return false;
    return take_pool(e, &e->parameter_pool, buffers_parameter_turns(e), largest(e, buffers_pooled_parameters, true),
                     buffers_reorder(e), error) &&
           take_pool(e, &e->gradient_pool, buffers_gradient_turns(e), largest(e, buffers_pooled_gradient, true), false, error) &&
           take_activations(e, error) && arena_check(&e->device, error) && arena_check(&e->host, error);
}

static void free_pool(struct pool *p)
{
    free(p->full);
    free(p->concatenated);
    free(p->used);
}

void buffers_free(struct engine *e)
{
    for (int i = 0; e->activations && i < e->activation_count; i++) {
        free(e->activations[i].outs);
        free(e->activations[i].saved);
        free(e->activations[i].x);
    }
    free_pool(&e->parameter_pool);
    free_pool(&e->gradient_pool);
    arena_close(&e->device);
    arena_close(&e->host);
}
