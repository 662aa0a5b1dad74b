// A case's model as units and calls: elements, flop, which call reads which unit. See model.h.
//
// The flop of a call are those that the model itself declares (reference/models/model.h: 2 per multiply-add of the matrix products, causal attention counts
// the pairs it needs, backward twice the forward). Units come from the wrap policy (reference/sharding/wrapping.h).
#include <stdlib.h>
#include <string.h>

#include "harness/advise/model.h"
#include "harness/protocol/memory.h"
#include "reference/models/model.h"
#include "reference/sharding/wrapping.h"

static void take_units(struct workload_model *w, const struct fsdp_case *c, const struct wrapping *wrapping)
{
    w->unit_count = wrapping->unit_count;
    w->units = memory_zeros((size_t)w->unit_count + 1, sizeof *w->units);
    for (int u = 0; u < w->unit_count; u++) {
        struct workload_unit *unit = &w->units[u];
        unit->root = wrapping->names[u][0] == 0;
        unit->first_call = unit->last_call = -1;
        unit->tensor_count = wrapping->first[u + 1] - wrapping->first[u];
        unit->tensors = memory_zeros((size_t)unit->tensor_count + 1, sizeof *unit->tensors);
        for (int t = 0; t < unit->tensor_count; t++) {
            const struct case_parameter *p = &c->parameters[wrapping->members[wrapping->first[u] + t]];
            int64_t rows = p->dims > 0 ? p->shape[0] : 1;
            unit->tensors[t] = (struct unit_tensor){rows, rows > 0 ? p->count / rows : 0};
            unit->elements += (double)p->count;
        }
    }
}

static bool add_unit(struct workload_model *w, int call, int unit)
{
    struct workload_call *c = &w->calls[call];
    for (int i = 0; i < c->unit_count; i++)
        if (c->units[i] == unit)
            return true;
    if (c->unit_count == CALL_UNITS)
        return false;
    c->units[c->unit_count++] = unit;
    w->units[unit].first_call = w->units[unit].first_call < 0 ? call : w->units[unit].first_call;
    w->units[unit].last_call = call;
    return true;
}

static bool take_calls(struct workload_model *w, const struct model *m, const struct wrapping *wrapping, int64_t rows, struct error *error)
{
    w->call_count = m->call_count;
    w->calls = memory_zeros((size_t)m->call_count + 1, sizeof *w->calls);
    for (int call = 0; call < m->call_count; call++) {
        const struct model_layer *layer = &m->layers[m->calls[call]];
        w->calls[call].forward_flop = model_call_flops(m, call, rows, false);
        w->calls[call].backward_flop = model_call_flops(m, call, rows, true);
        w->flop += w->micros * (w->calls[call].forward_flop + w->calls[call].backward_flop);
        for (int i = 0; i < layer->parameter_count; i++)
            if (!add_unit(w, call, wrapping->unit_of[layer->parameters[i]]))
                return error_set(error, "a call reads more than %d units", CALL_UNITS);
    }
    return true;
}

static bool synchronises_always(const struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length; i++)
        if ((c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_BACKWARD) && !c->program[i].sync)
            return false;
    return true;
}

static void take_numbers(struct workload_model *w, const struct fsdp_case *c, int64_t rows)
{
    const struct precision_spec *p = &c->precision;
    *w = (struct workload_model){.parameter = p->parameter, .compute = p->compute, .reduce = p->reduce, .state = p->optimizer_state,
                                 .micros = c->data.micros > 0 ? (int)c->data.micros : 1, .flat = c->sharding.layout == SHARD_FLAT,
                                 .sync_all = synchronises_always(c), .recompute = c->sharding.activation_checkpointing, .clips = c->clip != CLIP_OFF};
    w->gradient = dtype_size(p->parameter) >= dtype_size(p->reduce) ? p->parameter : p->reduce;
    w->states = c->optimizer.kind == OPTIMIZER_ADAMW ? 2 : c->optimizer.momentum != 0;
    w->tokens = (double)(rows * w->micros) * (c->model.kind == MODEL_TRANSFORMER ? (double)c->model.context : 1);
}

bool workload_create(struct workload_model *w, const struct fsdp_case *c, int64_t rows, struct error *error)
{
    struct model m = {0};
    struct wrapping wrapping = {0};
    take_numbers(w, c, rows);
    bool ok = model_create(&m, c, c->precision.compute, error) && wrapping_create(&wrapping, c, error);
    if (ok)
        take_units(w, c, &wrapping);
    ok = ok && take_calls(w, &m, &wrapping, rows, error);
    wrapping_free(&wrapping);
    model_free(&m);
    if (!ok)
        workload_free(w);
    return ok;
}

void workload_free(struct workload_model *w)
{
    for (int u = 0; w->units != NULL && u < w->unit_count; u++)
        free(w->units[u].tensors);
    free(w->units);
    free(w->calls);
    *w = (struct workload_model){0};
}

double workload_elements(const struct workload_model *w)
{
    double all = 0;
    for (int u = 0; u < w->unit_count; u++)
        all += w->units[u].elements;
    return all;
}

double workload_part(const struct workload_model *w, int unit, int shards)
{
    const struct workload_unit *u = &w->units[unit];
    double part = 0;
    if (w->flat || shards == 1)
        return ceil(u->elements / shards);
    for (int t = 0; t < u->tensor_count; t++)
        part += (double)((u->tensors[t].rows + shards - 1) / shards) * (double)u->tensors[t].row_count;
    return part;
}
