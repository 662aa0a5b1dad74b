// Models as lists of calls: building the lists, and handing each question on to the model's kind. See model.h.
#include "reference/models/model.h"

#include <stdlib.h>
#include <string.h>

#include "reference/models/ops.h"

void *carve_take(struct carve *c, int64_t count, size_t element_bytes)
{
    void *array = c->base == NULL ? NULL : c->base + c->used;
    size_t bytes = (size_t)count * element_bytes;
    c->used += (bytes + MODEL_ALIGNMENT - 1) / MODEL_ALIGNMENT * MODEL_ALIGNMENT;
    return array;
}

bool layer_add_parameter(const struct model *m, struct model_layer *layer, int parameter, struct error *error)
{
    int storage = m->spec->parameters[parameter].tied_to;
    if (layer->parameter_count == MODEL_LAYER_PARAMETERS)
        return error_set(error, "unit %s has more than %d parameters", layer->unit, MODEL_LAYER_PARAMETERS);
    layer->parameters[layer->parameter_count++] = storage < 0 ? parameter : storage;
    return true;
}

struct model_layer *layer_add(struct model *m, const char *unit, int kind, struct error *error)
{
    struct model_layer *grown = realloc(m->layers, (size_t)(m->layer_count + 1) * sizeof *grown);
    if (grown == NULL) {
        error_set(error, "out of memory for the model's layers");
        return NULL;
    }
    m->layers = grown;
    struct model_layer *layer = &grown[m->layer_count++];
    *layer = (struct model_layer){.unit = "", .kind = kind};
    for (int i = 0; unit != NULL && i < m->spec->parameter_count; i++)
        if (strcmp(m->spec->parameters[i].unit, unit) == 0) {
            layer->unit = m->spec->parameters[i].unit;
            if (!layer_add_parameter(m, layer, i, error))
                return NULL;
        }
    return layer;
}

bool call_add(struct model *m, int layer, struct error *error)
{
    int *grown = realloc(m->calls, (size_t)(m->call_count + 1) * sizeof *grown);
    if (grown == NULL)
        return error_set(error, "out of memory for the model's calls");
    m->calls = grown;
    m->calls[m->call_count++] = layer;
    return true;
}

void model_free(struct model *m)
{
    free(m->layers);
    free(m->calls);
    *m = (struct model){0};
}

size_t model_out_bytes(const struct model *m, int call, int64_t rows)
{
    return call == m->call_count - 1 ? 0 : m->ops->out_bytes(m, call, rows);
}

size_t model_saved_bytes(const struct model *m, int call, int64_t rows)
{
    return m->ops->saved_bytes(m, call, rows);
}

// A forward without saved bytes puts them behind its scratch.
size_t model_scratch_bytes(const struct model *m, int64_t rows)
{
    size_t largest = 0;
    for (int call = 0; call < m->call_count; call++) {
        size_t bytes = m->ops->scratch_bytes(m, call, rows) + m->ops->saved_bytes(m, call, rows);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

double model_call_flops(const struct model *m, int call, int64_t rows, bool backward)
{
    return (backward ? 2 : 1) * m->ops->forward_flops(m, call, rows);
}

void model_forward(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                   const void *in, void *out, void *saved, void *scratch, double *loss)
{
    if (saved == NULL)
        saved = (char *)scratch + m->ops->scratch_bytes(m, call, batch->rows);
    m->ops->forward(m, call, batch, arrays, in, out, saved, scratch, loss);
}

void model_backward(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                    const void *in, const void *saved, const void *dout, void *din, void *scratch)
{
    m->ops->backward(m, call, batch, arrays, in, saved, dout, din, scratch);
}

const void *model_prediction(const struct model *m, int64_t rows, const void *saved)
{
    return m->ops->prediction(m, rows, saved);
}
