// Opening and closing the engine, and the verbs that need no file of their own. See engine.h.
#include "reference/engine/engine.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "reference/engine/buffers.h"
#include "reference/engine/fault.h"

const char *engine_unsupported(const struct fsdp_case *c)
{
    const struct precision_spec *p = &c->precision;
    if (c->sharding.tensor > 1)
        return "the reference has no tensor parallelism";
    if (c->sharding.pipeline > 1)
        return "the reference has no pipeline parallelism";
    const enum dtype types[] = {p->parameter, p->compute, p->reduce, p->optimizer_state};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!dtype_is_float(types[i]))
            return "precision: a type that is not floating point";
    if (p->loss_scale != LOSS_SCALE_NONE && p->scale_initial <= 0)
        return "loss_scale: an initial scale that is not positive";
    return NULL;
}

static void choose_types(struct engine *e)
{
    const struct precision_spec *p = &e->c->precision;
    const struct optimizer_spec *o = &e->c->optimizer;
    e->parameter = p->parameter;
    e->compute = p->compute;
    e->reduce = FAULT(reduce_in_compute_type) ? p->compute : p->reduce;
    e->gradient = precision_wider(p->parameter, p->reduce);
    e->accumulation = precision_wider(p->compute, p->reduce);
    e->state_type = p->optimizer_state;
    e->state_count = o->kind == OPTIMIZER_ADAMW ? 2 : o->momentum != 0;
    e->scale.value = p->loss_scale == LOSS_SCALE_NONE ? 1 : p->scale_initial;
}

// Slots that the program's forwards name, and one for its microbatches.
static int count_activations(const struct fsdp_case *c)
{
    int slots = 0;
    for (int i = 0; i < c->program_length; i++)
        if (c->program[i].verb == VERB_FORWARD && c->program[i].slot >= slots)
            slots = c->program[i].slot + 1;
    return slots + 1;
}

static bool allocate_tables(struct engine *e, struct error *error)
{
    size_t n = (size_t)e->c->parameter_count + 1;
    e->activation_count = count_activations(e->c);
    e->activations = calloc((size_t)e->activation_count, sizeof *e->activations);
    e->parameters = calloc(n, sizeof *e->parameters);
    e->gradients = calloc(n, sizeof *e->gradients);
    e->frozen = calloc(n, sizeof *e->frozen);
    e->used = calloc(n, sizeof *e->used);
    e->has_gradient = calloc(n, sizeof *e->has_gradient);
    e->updates = calloc(n, sizeof *e->updates);
    return (e->activations && e->parameters && e->gradients && e->frozen && e->used && e->has_gradient && e->updates) ||
           error_set(error, "no memory for the tables of %d parameters", e->c->parameter_count);
}

// The rank's part of full F32 parameters, which rank 0 tells everybody: ranks may have been initialised differently.
static bool shard_initial(struct engine *e, struct unit *u, const struct tensors *init, float *full, void *part, struct error *error)
{
    const struct layout *l = &u->layout;
    memset(full, 0, (size_t)l->full_count * sizeof *full);
    for (int m = 0; m < u->member_count; m++) {
        const struct case_parameter *p = &e->c->parameters[u->members[m]];
        const struct tensor *t = tensors_find(init, p->name);
        if (!t || t->dtype != DTYPE_F32 || t->count != p->count)
            return error_set(error, "initial parameters: '%s' is missing or not F32 of %lld elements", p->name,
                             (long long)p->count);
        memcpy(full + l->tensor_offset[m], t->data, (size_t)p->count * sizeof *full);
    }
    if (!FAULT(no_initial_broadcast) && !comm_broadcast(&e->comm, DTYPE_F32, full, l->full_count, error))
        return false;
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++) {
        const struct layout_piece *p = &l->pieces[i];
        kernels_cast(p->length, DTYPE_F32, full + l->tensor_offset[p->tensor] + p->offset, e->parameter,
                     engine_at(part, e->parameter, p->at));
    }
    kernels_fill(layout_padding(l, e->mesh.shard), e->parameter, engine_at(part, e->parameter, u->count - layout_padding(l, e->mesh.shard)), FAULT(padding_dirty));
    e->home->upload(u->shard, part, (size_t)u->count * dtype_size(e->parameter));
    return true;
}

static bool initialise(struct engine *e, const struct tensors *init, struct error *error)
{
    int64_t most = 0;
    for (int i = 0; i < e->unit_count; i++)
        most = e->units[i].layout.full_count > most ? e->units[i].layout.full_count : most;
    float *full = malloc((size_t)(most ? most : 1) * sizeof *full);
    void *part = malloc((size_t)(most ? most : 1) * dtype_size(e->parameter));
    bool ok = (full && part) || error_set(error, "no memory for %lld parameters", (long long)most);
    for (int i = 0; ok && i < e->unit_count; i++)
        ok = shard_initial(e, &e->units[i], init, full, part, error);
    free(full);
    free(part);
    return ok && gather_residents(e, error);
}

bool engine_open(struct engine *e, const struct fsdp_case *c, struct comm_world *world, const struct tensors *data,
                 const struct tensors *init, struct error *error)
{
    const char *reason = engine_unsupported(c);
    *e = (struct engine){.c = c, .data = data, .on = world->backend->device, .rank = world->all.rank, .ranks = world->all.size,
                         .tokens_step = -1, .offload = c->sharding.offload == OFFLOAD_CPU,
                         .layout = c->sharding.layout == SHARD_ANY ? SHARD_PER_PARAMETER : c->sharding.layout};
    e->home = e->offload ? &device_cpu : e->on;
    if (reason)
        return error_set(error, "%s", reason);
    choose_types(e);
    case_rows(c, e->rank, e->ranks, &e->rows_first, &e->rows_end);
    bool ok = comm_open(&e->comm, world, c->sharding.replicas, c->sharding.shards, error);
    if (ok)
        e->mesh = e->comm.groups->mesh;
    ok = ok && (!c->sharding.reshard_ranks || comm_open_near(&e->comm, c->sharding.reshard_ranks, error));
    ok = ok && allocate_tables(e, error) && model_create_on(&e->model, c, e->on, e->compute, error) && units_create(e, error) &&
         buffers_create(e, error) && initialise(e, init, error);
    if (!ok)
        engine_close(e);
    return ok;
}

void engine_close(struct engine *e)
{
    buffers_free(e);
    units_free(e);
    model_free(&e->model);
    free(e->activations);
    free(e->parameters);
    free(e->gradients);
    free(e->frozen);
    free(e->used);
    free(e->has_gradient);
    free(e->updates);
    *e = (struct engine){0};
}

// Only a fault tells everybody again, before each step, what all have already.
static bool broadcast_again(struct engine *e, struct error *error)
{
    for (int i = 0; i < e->unit_count && e->mesh.shards == 1; i++)
        if (!comm_broadcast_on(&e->comm, e->home, e->parameter, e->units[i].shard, e->units[i].count, error))
            return false;
    return true;
}

bool engine_step(struct engine *e, bool *skipped, double *loss_scale, struct error *error)
{
    if (FAULT(broadcast_each_step) && !broadcast_again(e, error))
        return false;
    *loss_scale = e->scale.value;
    if (!loss_scale_overflow(e, skipped, error) || (!*skipped && !update_parameters(e, error)))
        return false;
    loss_scale_update(e, *skipped);
    e->steps++;
    if (FAULT(buffer_lost_each_step) && !calloc((size_t)e->units[e->unit_count - 1].count + 1, dtype_size(e->gradient)))
        return error_set(error, "no memory to lose");
    return true;
}

void engine_zero_grad(struct engine *e)
{
    for (int i = 0; i < e->unit_count; i++)
        e->units[i].has_gradient = e->units[i].has_accumulated = false;
    memset(e->has_gradient, 0, (size_t)e->c->parameter_count * sizeof *e->has_gradient);
}

void engine_freeze(struct engine *e, const char *pattern, bool frozen)
{
    for (int i = 0; i < e->c->parameter_count && !(FAULT(unfreeze_ignored) && !frozen); i++)
        if (!fnmatch(pattern, e->c->parameters[i].name, 0))
            e->frozen[e->c->parameters[i].tied_to < 0 ? i : e->c->parameters[i].tied_to] = frozen;
}
