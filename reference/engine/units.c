// Units of a case: who is in them, how they are laid out, which calls read them, whether they stay full.
//
// All of it follows from the case alone, without memory of tensors and without communication.
#include <stdlib.h>

#include "reference/engine/engine.h"

// Full parameters are always there by the strategy's rule, or because the only shard is the whole.
static bool stays_full(const struct engine *e)
{
    enum strategy s = e->c->sharding.strategy;
    bool whole_shard = e->mesh.shards == 1 && e->parameter == e->compute && !e->offload;
    return s == STRATEGY_NONE || s == STRATEGY_OPTIMIZER || s == STRATEGY_GRAD || whole_shard;
}

// The parts of the near group, one after another: each as many whole shards.
static bool lay_out_near(struct engine *e, struct unit *u, struct error *error)
{
    const struct layout *l = &u->layout;
    int k = e->comm.near->size, run = l->shards / k;
    u->near_counts = calloc((size_t)k, sizeof *u->near_counts);
    u->near_starts = calloc((size_t)k, sizeof *u->near_starts);
    if (!u->near_counts || !u->near_starts)
        return error_set(error, "no memory for the unit '%s'", u->name);
    for (int s = 0; s < l->shards; s++)
        u->near_counts[s / run] += l->counts[s];
    for (int i = 0; i < k; i++)
        u->near_starts[i] = l->starts[i * run];
    return true;
}

static bool lay_out(struct engine *e, struct unit *u, struct error *error)
{
    struct layout_tensor *tensors = calloc((size_t)u->member_count + 1, sizeof *tensors);
    if (!tensors)
        return error_set(error, "no memory for the unit '%s'", u->name);
    for (int m = 0; m < u->member_count; m++) {
        const struct case_parameter *p = &e->c->parameters[u->members[m]];
        int64_t rows = p->dims ? p->shape[0] : 1;
        tensors[m] = (struct layout_tensor){rows, rows ? p->count / rows : 0};
    }
    bool ok = layout_create(&u->layout, e->layout, e->mesh.shards, u->member_count, tensors, error);
    free(tensors);
    if (!ok)
        return false;
    u->count = u->layout.counts[e->mesh.shard];
    u->resident = stays_full(e);
    u->aliased = u->resident && e->parameter == e->compute && !e->offload && layout_concatenation_is_full(&u->layout);
    u->parameter_slot = u->gradient_slot = -1;
    return e->comm.near == NULL || lay_out_near(e, u, error);
}

static bool add_call_unit(struct engine *e, int call, int unit, struct error *error)
{
    int *count = &e->call_unit_count[call];
    for (int i = 0; i < *count; i++)
        if (e->call_units[call][i] == unit)
            return true;
    if (*count == ENGINE_CALL_UNITS)
        return error_set(error, "a call reads more than %d units", ENGINE_CALL_UNITS);
    e->call_units[call][(*count)++] = unit;
    struct unit *u = &e->units[unit];
    u->scattered |= u->last_call >= 0 && u->last_call < call - 1;
    u->first_call = u->last_call < 0 ? call : u->first_call;
    u->last_call = call;
    return true;
}

static bool find_calls(struct engine *e, struct error *error)
{
    for (int call = 0; call < e->model.call_count; call++) {
        const struct model_layer *layer = &e->model.layers[e->model.calls[call]];
        for (int i = 0; i < layer->parameter_count; i++) {
            e->used[layer->parameters[i]] = true;
            if (!add_call_unit(e, call, e->wrapping.unit_of[layer->parameters[i]], error))
                return false;
        }
    }
    return true;
}

bool units_create(struct engine *e, struct error *error)
{
    size_t calls = (size_t)e->model.call_count;
    if (!wrapping_create(&e->wrapping, e->c, error))
        return false;
    e->unit_count = e->wrapping.unit_count;
    e->units = calloc((size_t)e->unit_count + 1, sizeof *e->units);
    e->call_unit_count = calloc(calls, sizeof *e->call_unit_count);
    e->call_units = calloc(calls, sizeof *e->call_units);
    if (!e->units || !e->call_unit_count || !e->call_units)
        return error_set(error, "no memory for %d units", e->unit_count);
    for (int i = 0; i < e->unit_count; i++) {
        struct unit *u = &e->units[i];
        int first = e->wrapping.first[i];
        *u = (struct unit){.name = e->wrapping.names[i], .index = i, .root = !e->wrapping.names[i][0], .last_call = -1,
                           .first_call = 0, .members = e->wrapping.members + first,
                           .member_count = e->wrapping.first[i + 1] - first};
        if (!lay_out(e, u, error))
            return false;
    }
    return find_calls(e, error);
}

void units_free(struct engine *e)
{
    for (int i = 0; e->units && i < e->unit_count; i++) {
        layout_free(&e->units[i].layout);
        free(e->units[i].near_counts);
        free(e->units[i].near_starts);
    }
    free(e->units);
    free(e->call_unit_count);
    free(e->call_units);
    wrapping_free(&e->wrapping);
}
