// The optimizer step on the own part of each parameter.
//
// What: SGD or AdamW on the pieces of the shard, with no weight decay for the no-decay group, each parameter with its own step
//       counter from 1 (a parameter that was frozen for a while has made fewer updates). Frozen parameters and those without a
//       gradient are left alone, weight decay included.
// How:  neighbouring pieces with the same decay and counter are one call of the kernel. Then the full copies of resident
//       units are refreshed by an all-gather, and nobody keeps a gathered parameter of before the step.
// Why:  the state exists only for the own part: that is the 1/N of ZeRO-1.
#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

// Elements of a shard that are updated alike.
struct run { int64_t at, length; double decay; int64_t update; };

static double decay_of(const struct engine *e, int parameter)
{
    const struct optimizer_spec *o = &e->c->optimizer;
    return o->no_decay && !e->c->parameters[parameter].decay && !FAULT(decay_of_no_decay) ? 0 : o->weight_decay;
}

static void update_run(struct engine *e, const struct unit *u, const struct run *r)
{
    const struct optimizer_spec *o = &e->c->optimizer;
    struct optim_types types = {e->parameter, e->gradient, e->state_type};
    void *p = engine_at(u->shard, e->parameter, r->at);
    const void *g = engine_at(u->gradient, e->gradient, r->at);
    void *states[ENGINE_STATES] = {NULL, NULL};
    for (int s = 0; s < e->state_count; s++)
        states[s] = engine_at(u->states[s], e->state_type, r->at);
    if (r->length <= 0)
        return;
    if (o->kind == OPTIMIZER_SGD)
        e->home->sgd(types, r->length, o->lr, o->momentum, 0, r->decay, false, r->update, p, g, states[0]);
    else
        e->home->adamw(types, r->length, o->lr, o->beta1, o->beta2, o->eps, r->decay, FAULT(no_bias_correction) ? 1 << 30 : r->update, p, g, states[0], states[1]);
}

// Rounds an array through a narrower type; only faults do.
static void narrow(const struct engine *e, int64_t count, enum dtype type, enum dtype through, void *array)
{
    struct error ignored = {""};
    void *narrowed = e->home->allocate((size_t)count * dtype_size(through));
    e->home->cast(count, type, array, through, narrowed);
    e->home->cast(count, through, narrowed, type, array);
    e->home->finish(&ignored);
    e->home->release(narrowed);
}

static void update_unit(struct engine *e, const struct unit *u)
{
    const struct layout *l = &u->layout;
    struct run run = {0};
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++) {
        const struct layout_piece *p = &l->pieces[i];
        int parameter = u->members[p->tensor];
        if (!engine_trains(e, parameter))
            continue;
        struct run next = {p->at, p->length, decay_of(e, parameter), e->updates[parameter] + 1 + FAULT(steps_from_two)};
        if (FAULT(short_shard_misses_an_element) && u->count < u->layout.counts[0])
            next.length--;
        if (run.at + run.length == next.at && run.decay == next.decay && run.update == next.update) {
            run.length += next.length;
            continue;
        }
        update_run(e, u, &run);
        run = next;
    }
    update_run(e, u, &run);
    if (FAULT(masters_in_compute_type))
        narrow(e, u->count, e->parameter, e->compute, u->shard);
    for (int s = 0; s < e->state_count && FAULT(states_in_bf16); s++)
        narrow(e, u->count, e->state_type, DTYPE_BF16, u->states[s]);
}

bool update_parameters(struct engine *e, struct error *error)
{
    bool skips = (FAULT(last_shard_not_updated) && e->mesh.shard > 0 && e->mesh.shard == e->mesh.shards - 1) ||
                 FAULT(optimizer_updates_a_copy);
    for (int i = 0; i < e->unit_count; i++)
        if (e->units[i].has_gradient && !skips)
            update_unit(e, &e->units[i]);
    for (int i = 0; i < e->c->parameter_count; i++)
        e->updates[i] += engine_trains(e, i);
    return FAULT(residents_not_refreshed) || gather_residents(e, error);
}
