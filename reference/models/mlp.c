// The mlp: linear layers with ReLU between them, squared error; layers may be called again or never.
//
// What goes between calls is the pre-activation: a call applies the ReLU of the call before it to its own input, so
// that the ReLU's gradient needs nothing but `in`. Saved: the activated input, and the prediction of the last call.
// On small integers every value is an integer, and with sums below 2^24 float32 computes it without rounding.
#include <stdio.h>
#include <string.h>

#include "reference/models/linear.h"
#include "reference/models/ops.h"

// ---- table and calls ----

static bool calls_chain(const struct model_spec *spec, struct error *error)
{
    int layers = spec->size_count - 1;
    if (layers < 1 || spec->call_count < 1)
        return error_set(error, "an mlp of %d sizes and %d calls, expected at least 2 and 1", spec->size_count,
                         spec->call_count);
    int64_t width = spec->sizes[0];
    for (int i = 0; i < spec->call_count; i++) {
        int layer = spec->calls[i];
        if (layer < 0 || layer >= layers)
            return error_set(error, "call %d is of layer %d, expected 0 to %d", i, layer, layers - 1);
        if (spec->sizes[layer] != width)
            return error_set(error, "call %d: layer %d takes %lld columns, but is given %lld", i, layer,
                             (long long)spec->sizes[layer], (long long)width);
        width = spec->sizes[layer + 1];
    }
    return width == spec->sizes[layers] ||
           error_set(error, "the last call gives %lld columns, expected %lld", (long long)width,
                     (long long)spec->sizes[layers]);
}

static bool mlp_list(struct fsdp_case *c, struct error *error)
{
    const struct model_spec *spec = &c->model;
    char unit[32];
    if (!calls_chain(spec, error))
        return false;
    for (int i = 0; i < spec->size_count - 1; i++) {
        snprintf(unit, sizeof unit, "layers.%d", i);
        if (table_add(c, unit, "weight", 2, (int64_t[]){spec->sizes[i + 1], spec->sizes[i]}, -1, true, error) < 0 ||
            (spec->bias && table_add(c, unit, "bias", 1, &spec->sizes[i + 1], -1, false, error) < 0))
            return false;
    }
    for (int i = 0; i < spec->unused; i++) {
        snprintf(unit, sizeof unit, "unused.%d", i);
        if (table_add(c, unit, "weight", 2, (int64_t[]){spec->sizes[0], spec->sizes[0]}, -1, true, error) < 0)
            return false;
    }
    return true;
}

static bool mlp_build(struct model *m, struct error *error)
{
    const struct model_spec *spec = &m->spec->model;
    int used = spec->size_count - 1;
    char unit[32];
    for (int i = 0; i < used + spec->unused; i++) {
        snprintf(unit, sizeof unit, i < used ? "layers.%d" : "unused.%d", i < used ? i : i - used);
        struct model_layer *layer = layer_add(m, unit, 0, error);
        if (layer == NULL)
            return false;
        layer->inputs = spec->sizes[i < used ? i : 0];
        layer->outputs = spec->sizes[i < used ? i + 1 : 0];
    }
    for (int i = 0; i < spec->call_count; i++)
        if (!call_add(m, spec->calls[i], error))
            return false;
    return true;
}

// ---- sizes ----

struct mlp_saved { void *activated, *prediction; };

static size_t mlp_saved(const struct model *m, int call, int64_t rows, const void *base, struct mlp_saved *s)
{
    const struct model_layer *layer = model_layer_of(m, call);
    struct carve carve = {(char *)base, 0};
    size_t size = dtype_size(m->storage);
    s->activated = carve_take(&carve, rows * layer->inputs, size);
    s->prediction = call == m->call_count - 1 ? carve_take(&carve, rows * layer->outputs, size) : NULL;
    return carve.used;
}

static size_t mlp_saved_bytes(const struct model *m, int call, int64_t rows)
{
    struct mlp_saved ignored;
    return mlp_saved(m, call, rows, NULL, &ignored);
}

static size_t mlp_out_bytes(const struct model *m, int call, int64_t rows)
{
    return (size_t)(rows * model_layer_of(m, call)->outputs) * dtype_size(m->storage);
}

struct mlp_scratch { double *weights; void *dy; };

static size_t mlp_scratch(const struct model *m, int call, int64_t rows, void *base, struct mlp_scratch *s)
{
    struct carve carve = {base, 0};
    s->weights = carve_take(&carve, rows, sizeof(double));
    s->dy = carve_take(&carve, rows * model_layer_of(m, call)->outputs, dtype_size(m->storage));
    return carve.used;
}

static size_t mlp_scratch_bytes(const struct model *m, int call, int64_t rows)
{
    struct mlp_scratch ignored;
    return mlp_scratch(m, call, rows, NULL, &ignored);
}

static double mlp_flops(const struct model *m, int call, int64_t rows)
{
    const struct model_layer *layer = model_layer_of(m, call);
    return 2.0 * (double)rows * (double)layer->inputs * (double)layer->outputs;
}

// ---- arithmetic ----

static struct linear mlp_linear(const struct model *m, int call, int64_t rows, const struct model_arrays *arrays)
{
    const struct model_layer *layer = model_layer_of(m, call);
    int weight = layer->parameters[0], bias = layer->parameter_count > 1 ? layer->parameters[1] : -1;
    return (struct linear){
        .kernels = m->kernels, .rows = rows, .inputs = layer->inputs, .outputs = layer->outputs,
        .w = arrays->parameters[weight], .bias = bias < 0 ? NULL : arrays->parameters[bias],
        .dw = arrays->gradients == NULL ? NULL : arrays->gradients[weight],
        .dbias = arrays->gradients == NULL || bias < 0 ? NULL : arrays->gradients[bias]};
}

static void mlp_forward(const struct model *m, int call, const struct model_batch *batch,
                        const struct model_arrays *arrays, const void *in, void *out, void *saved, void *scratch,
                        double *loss)
{
    struct linear linear = mlp_linear(m, call, batch->rows, arrays);
    struct mlp_saved s;
    mlp_saved(m, call, batch->rows, saved, &s);
    if (call == 0)
        m->device->cast(batch->rows * linear.inputs, DTYPE_F32, batch->input, m->storage, s.activated);
    else
        m->kernels->relu_forward(batch->rows * linear.inputs, in, s.activated);
    linear_forward(&linear, s.activated, out == NULL ? s.prediction : out);
    if (out != NULL)
        return;
    struct mlp_scratch t;
    mlp_scratch(m, call, batch->rows, scratch, &t);
    m->device->cast(batch->rows, DTYPE_F32, batch->weights, DTYPE_F64, t.weights);
    m->kernels->squared_error_forward(batch->rows, linear.outputs, s.prediction, batch->target, t.weights, loss);
}

static void mlp_backward(const struct model *m, int call, const struct model_batch *batch,
                         const struct model_arrays *arrays, const void *in, const void *saved, const void *dout,
                         void *din, void *scratch)
{
    struct linear linear = mlp_linear(m, call, batch->rows, arrays);
    struct mlp_saved s;
    struct mlp_scratch t;
    mlp_saved(m, call, batch->rows, saved, &s);
    mlp_scratch(m, call, batch->rows, scratch, &t);
    if (call == m->call_count - 1) {
        m->device->cast(batch->rows, DTYPE_F32, batch->weights, DTYPE_F64, t.weights);
        m->kernels->squared_error_backward(batch->rows, linear.outputs, s.prediction, batch->target, t.weights,
                                           batch->scale, t.dy);
        dout = t.dy;
    }
    linear_backward(&linear, s.activated, dout, call == 0 ? NULL : din, false);
    if (call > 0)
        m->kernels->relu_backward(batch->rows * linear.inputs, in, din, din);
}

static const void *mlp_prediction(const struct model *m, int64_t rows, const void *saved)
{
    struct mlp_saved s;
    mlp_saved(m, m->call_count - 1, rows, saved, &s);
    return s.prediction;
}

const struct model_ops model_mlp = {
    .list = mlp_list,
    .build = mlp_build,
    .out_bytes = mlp_out_bytes,
    .saved_bytes = mlp_saved_bytes,
    .scratch_bytes = mlp_scratch_bytes,
    .forward_flops = mlp_flops,
    .forward = mlp_forward,
    .backward = mlp_backward,
    .prediction = mlp_prediction,
};
