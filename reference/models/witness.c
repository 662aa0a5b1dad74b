// The witness: a model whose gradient is its data.
//
// loss of a row = sum over all parameters of <w, x_row>, so the gradient of w is scale * sum_r weight_r x_r, whatever w
// is. Each unit is one call; between calls goes the partial loss of each row, in float64.
// Numbers: x is rounded to the storage type first (as an input of any framework is), the sum over the rows is formed in
// float64 and rounded once, so that a hand-made gradient arrives as it was meant.
#include <string.h>

#include "reference/models/ops.h"

static bool witness_list(struct fsdp_case *c, struct error *error)
{
    for (int u = 0; u < c->model.unit_count; u++) {
        const struct witness_unit *unit = &c->model.units[u];
        for (int other = 0; other < u; other++)
            if (strcmp(c->model.units[other].name, unit->name) == 0)
                return error_set(error, "unit %.100s is named twice", unit->name);
        for (int i = 0; i < unit->parameter_count; i++) {
            const struct witness_parameter *p = &unit->parameters[i];
            if (table_add(c, unit->name, p->name, p->dims, p->shape, -1, strcmp(p->name, "bias") != 0, error) < 0)
                return false;
        }
    }
    return c->parameter_count > 0 || error_set(error, "a witness without parameters, expected at least one");
}

static bool witness_build(struct model *m, struct error *error)
{
    const struct model_spec *spec = &m->spec->model;
    for (int u = 0; u < spec->unit_count; u++)
        if (spec->units[u].parameter_count > 0 &&
            (layer_add(m, spec->units[u].name, 0, error) == NULL || !call_add(m, m->layer_count - 1, error)))
            return false;
    return true;
}

static size_t witness_out_bytes(const struct model *m, int call, int64_t rows)
{
    (void)m, (void)call;
    return (size_t)rows * sizeof(double);
}

static size_t no_bytes(const struct model *m, int call, int64_t rows)
{
    (void)m, (void)call, (void)rows;
    return 0;
}

static double witness_flops(const struct model *m, int call, int64_t rows)
{
    const struct model_layer *layer = model_layer_of(m, call);
    double count = 0;
    for (int i = 0; i < layer->parameter_count; i++)
        count += (double)m->spec->parameters[layer->parameters[i]].count;
    return 2 * count * (double)rows;
}

static void witness_forward(const struct model *m, int call, const struct model_batch *batch,
                            const struct model_arrays *arrays, const void *in, void *out, void *saved, void *scratch,
                            double *loss)
{
    (void)saved;
    const struct model_layer *layer = model_layer_of(m, call);
    double *sums = out != NULL ? out : scratch;
    if (in != NULL)
        m->device->copy(sums, in, (size_t)batch->rows * sizeof *sums);
    else
        m->device->clear(sums, (size_t)batch->rows * sizeof *sums);
    for (int i = 0; i < layer->parameter_count; i++) {
        int p = layer->parameters[i];
        m->device->row_products(m->storage, batch->rows, m->spec->parameters[p].count, arrays->parameters[p], batch->x[p], sums);
    }
    if (out == NULL)
        m->device->weighted_sum(batch->rows, batch->weights, sums, loss);
}

static void witness_backward(const struct model *m, int call, const struct model_batch *batch,
                             const struct model_arrays *arrays, const void *in, const void *saved, const void *dout,
                             void *din, void *scratch)
{
    (void)in, (void)saved, (void)dout, (void)scratch;
    const struct model_layer *layer = model_layer_of(m, call);
    for (int i = 0; i < layer->parameter_count; i++) {
        int p = layer->parameters[i];
        if (arrays->gradients[p] != NULL)
            m->device->add_weighted_rows(m->storage, batch->rows, m->spec->parameters[p].count, batch->scale, batch->weights, batch->x[p],
                                         arrays->gradients[p]);
    }
    if (din == NULL)
        return;
    m->device->cast(batch->rows, DTYPE_F32, batch->weights, DTYPE_F64, din);
    m->device->kernels(DTYPE_F64)->scale(batch->rows, batch->scale, din);
}

static const void *no_prediction(const struct model *m, int64_t rows, const void *saved)
{
    (void)m, (void)rows, (void)saved;
    return NULL;
}

const struct model_ops model_witness = {
    .list = witness_list,
    .build = witness_build,
    .out_bytes = witness_out_bytes,
    .saved_bytes = no_bytes,
    .scratch_bytes = witness_out_bytes,
    .forward_flops = witness_flops,
    .forward = witness_forward,
    .backward = witness_backward,
    .prediction = no_prediction,
};
