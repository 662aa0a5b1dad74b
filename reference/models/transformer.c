// The transformer: embedding, blocks (block.c), and the head with its loss. See docs/protocol.md for the switches.
//
//   x = E[tokens] (+ P), blocks, logits = Wh norm(x), loss of a token = its cross-entropy
//
// One call each: a block is gathered as a whole, embedding and head belong to the root. With tied embeddings the head
// reads E, and both uses add to E's gradient.
#include "reference/models/transformer.h"

#include <stdio.h>

enum layer_kind { EMBEDDING, BLOCK, HEAD };

struct transformer_sizes transformer_sizes(const struct model *m, int64_t rows)
{
    const struct model_spec *s = &m->spec->model;
    return (struct transformer_sizes){.B = rows, .T = s->context, .C = s->dim, .H = s->heads, .G = s->kv_heads,
                                      .D = s->dim / s->heads, .F = s->ffn, .V = s->vocab, .tokens = rows * s->context};
}

// ---- table and calls ----

static bool sizes_agree(const struct model_spec *s, struct error *error)
{
    if (s->layers < 0 || s->dim < 1 || s->heads < 1 || s->kv_heads < 1 || s->ffn < 1 || s->vocab < 1 || s->context < 1)
        return error_set(error, "a transformer with a size below 1, expected layers >= 0 and all other sizes >= 1");
    if (s->dim % s->heads != 0)
        return error_set(error, "dim %lld is no multiple of heads %lld", (long long)s->dim, (long long)s->heads);
    if (s->heads % s->kv_heads != 0)
        return error_set(error, "heads %lld is no multiple of kv_heads %lld", (long long)s->heads, (long long)s->kv_heads);
    if (s->position == POSITION_ROPE && s->dim / s->heads % 2 != 0)
        return error_set(error, "rope with %lld columns a head, expected an even number", (long long)(s->dim / s->heads));
    return true;
}

static bool transformer_list(struct fsdp_case *c, struct error *error)
{
    const struct model_spec *s = &c->model;
    if (!sizes_agree(s, error) ||
        table_add(c, "", "embed.weight", 2, (int64_t[]){s->vocab, s->dim}, -1, true, error) < 0 ||
        (s->position == POSITION_LEARNED &&
         table_add(c, "", "position.weight", 2, (int64_t[]){s->context, s->dim}, -1, true, error) < 0))
        return false;
    for (int i = 0; i < s->layers; i++)
        if (!block_list(c, i, error))
            return false;
    return table_add(c, "", "norm.weight", 1, &s->dim, -1, false, error) >= 0 &&
           (!s->bias || s->norm != NORM_LAYERNORM || table_add(c, "", "norm.bias", 1, &s->dim, -1, false, error) >= 0) &&
           table_add(c, "", "head.weight", 2, (int64_t[]){s->vocab, s->dim}, s->tied ? 0 : -1, true, error) >= 0;
}

static bool add_root_layer(struct model *m, enum layer_kind kind, const char *const *names, struct error *error)
{
    struct model_layer *layer = layer_add(m, NULL, kind, error);
    if (layer == NULL)
        return false;
    for (int i = 0; names[i] != NULL; i++) {
        int p = case_find_parameter(m->spec, names[i]);
        if (p >= 0 && !layer_add_parameter(m, layer, p, error))
            return false;
    }
    return call_add(m, m->layer_count - 1, error);
}

static bool transformer_build(struct model *m, struct error *error)
{
    char unit[32];
    if (!add_root_layer(m, EMBEDDING, (const char *const[]){"embed.weight", "position.weight", NULL}, error))
        return false;
    for (int i = 0; i < m->spec->model.layers; i++) {
        snprintf(unit, sizeof unit, "blocks.%d", i);
        if (layer_add(m, unit, BLOCK, error) == NULL || !call_add(m, m->layer_count - 1, error))
            return false;
    }
    return add_root_layer(m, HEAD, (const char *const[]){"norm.weight", "norm.bias", "head.weight", NULL}, error);
}

// ---- head ----

struct head_saved { void *mean, *rstd, *normed, *logits, *lse; };

static size_t head_saved(const struct model *m, int64_t rows, const void *base, struct head_saved *s)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    const size_t e = dtype_size(m->storage), a = dtype_size(m->kernels->accumulation);
    struct carve c = {(char *)base, 0};
    s->mean = carve_take(&c, z.tokens, a);
    s->rstd = carve_take(&c, z.tokens, a);
    s->lse = carve_take(&c, z.tokens, a);
    s->normed = carve_take(&c, z.tokens * z.C, e);
    s->logits = carve_take(&c, z.tokens * z.V, e);
    return c.used;
}

struct head_scratch { double *weights; void *dlogits, *dnormed; };

static size_t head_scratch(const struct model *m, int64_t rows, void *base, struct head_scratch *s)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    struct carve c = {base, 0};
    s->weights = carve_take(&c, z.tokens, sizeof(double));
    s->dlogits = carve_take(&c, z.tokens * z.V, dtype_size(m->storage));
    s->dnormed = carve_take(&c, z.tokens * z.C, dtype_size(m->storage));
    return c.used;
}

// The head's linear layer and norm, from the layer's list: norm weight, norm bias if there is one, head weight.
static void head_open(const struct model *m, const struct model_layer *layer, int64_t rows,
                      const struct model_arrays *arrays, struct norm *norm, struct linear *linear)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    const int *p = layer->parameters, bias = layer->parameter_count == 3 ? p[1] : -1, head = p[layer->parameter_count - 1];
    *norm = (struct norm){m, z.tokens, z.C, parameter_at(arrays, p[0]), parameter_at(arrays, bias),
                          gradient_at(arrays, p[0]), gradient_at(arrays, bias)};
    *linear = (struct linear){m->kernels, z.tokens, z.C, z.V, parameter_at(arrays, head), NULL, gradient_at(arrays, head),
                              NULL};
}

static void head_forward(const struct model *m, const struct model_layer *layer, const struct model_batch *batch,
                         const struct model_arrays *arrays, const void *x, void *saved, void *scratch, double *loss)
{
    const struct transformer_sizes z = transformer_sizes(m, batch->rows);
    struct head_saved s;
    struct head_scratch t;
    struct norm norm;
    struct linear linear;
    head_saved(m, batch->rows, saved, &s);
    head_scratch(m, batch->rows, scratch, &t);
    head_open(m, layer, batch->rows, arrays, &norm, &linear);
    norm_forward(&norm, x, s.normed, s.mean, s.rstd);
    linear_forward(&linear, s.normed, s.logits);
    m->device->cast(z.tokens, DTYPE_F32, batch->weights, DTYPE_F64, t.weights);
    m->kernels->softmax_xent_forward(z.tokens, z.V, s.logits, batch->targets, t.weights, s.lse, loss);
}

static void head_backward(const struct model *m, const struct model_layer *layer, const struct model_batch *batch,
                          const struct model_arrays *arrays, const void *x, const void *saved, void *dx, void *scratch)
{
    const struct transformer_sizes z = transformer_sizes(m, batch->rows);
    struct head_saved s;
    struct head_scratch t;
    struct norm norm;
    struct linear linear;
    head_saved(m, batch->rows, saved, &s);
    head_scratch(m, batch->rows, scratch, &t);
    head_open(m, layer, batch->rows, arrays, &norm, &linear);
    m->device->cast(z.tokens, DTYPE_F32, batch->weights, DTYPE_F64, t.weights);
    m->kernels->softmax_xent_backward(z.tokens, z.V, s.logits, batch->targets, t.weights, s.lse, batch->scale, t.dlogits);
    linear_backward(&linear, s.normed, t.dlogits, t.dnormed, false);
    norm_backward(&norm, x, s.mean, s.rstd, t.dnormed, dx);
}

// ---- embedding ----

static void embedding_forward(const struct model *m, const struct model_layer *layer, const struct model_batch *batch,
                              const struct model_arrays *arrays, void *x)
{
    const struct transformer_sizes z = transformer_sizes(m, batch->rows);
    const size_t row_bytes = (size_t)(z.T * z.C) * dtype_size(m->storage);
    m->kernels->embedding_forward(z.tokens, z.C, z.V, batch->tokens, arrays->parameters[layer->parameters[0]], x);
    for (int64_t b = 0; layer->parameter_count > 1 && b < z.B; b++)
        m->kernels->add(z.T * z.C, arrays->parameters[layer->parameters[1]], (char *)x + (size_t)b * row_bytes);
}

static void embedding_backward(const struct model *m, const struct model_layer *layer, const struct model_batch *batch,
                               const struct model_arrays *arrays, const void *dx)
{
    const struct transformer_sizes z = transformer_sizes(m, batch->rows);
    const size_t row_bytes = (size_t)(z.T * z.C) * dtype_size(m->storage);
    void *table = gradient_at(arrays, layer->parameters[0]);
    void *position = layer->parameter_count > 1 ? gradient_at(arrays, layer->parameters[1]) : NULL;
    if (table != NULL)
        m->kernels->embedding_backward(z.tokens, z.C, z.V, batch->tokens, dx, table);
    for (int64_t b = 0; position != NULL && b < z.B; b++)
        m->kernels->add(z.T * z.C, (const char *)dx + (size_t)b * row_bytes, position);
}

// ---- by kind of layer ----

static size_t transformer_out_bytes(const struct model *m, int call, int64_t rows)
{
    (void)call;
    return (size_t)(rows * m->spec->model.context * m->spec->model.dim) * dtype_size(m->storage);
}

static size_t transformer_saved_bytes(const struct model *m, int call, int64_t rows)
{
    struct head_saved ignored;
    switch (model_layer_of(m, call)->kind) {
    case BLOCK: return block_saved_bytes(m, rows);
    case HEAD: return head_saved(m, rows, NULL, &ignored);
    default: return 0;
    }
}

static size_t transformer_scratch_bytes(const struct model *m, int call, int64_t rows)
{
    struct head_scratch ignored;
    switch (model_layer_of(m, call)->kind) {
    case BLOCK: return block_scratch_bytes(m, rows);
    case HEAD: return head_scratch(m, rows, NULL, &ignored);
    default: return 0;
    }
}

static double transformer_flops(const struct model *m, int call, int64_t rows)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    switch (model_layer_of(m, call)->kind) {
    case BLOCK: return block_forward_flops(m, rows);
    case HEAD: return 2.0 * (double)z.tokens * (double)z.C * (double)z.V;
    default: return 0;
    }
}

static void transformer_forward(const struct model *m, int call, const struct model_batch *batch,
                                const struct model_arrays *arrays, const void *in, void *out, void *saved,
                                void *scratch, double *loss)
{
    const struct model_layer *layer = model_layer_of(m, call);
    switch (layer->kind) {
    case EMBEDDING: embedding_forward(m, layer, batch, arrays, out); break;
    case BLOCK: block_forward(m, layer, batch->rows, arrays, in, out, saved); break;
    case HEAD: head_forward(m, layer, batch, arrays, in, saved, scratch, loss); break;
    }
}

static void transformer_backward(const struct model *m, int call, const struct model_batch *batch,
                                 const struct model_arrays *arrays, const void *in, const void *saved, const void *dout,
                                 void *din, void *scratch)
{
    const struct model_layer *layer = model_layer_of(m, call);
    switch (layer->kind) {
    case EMBEDDING: embedding_backward(m, layer, batch, arrays, dout); break;
    case BLOCK: block_backward(m, layer, batch->rows, arrays, in, saved, dout, din, scratch); break;
    case HEAD: head_backward(m, layer, batch, arrays, in, saved, din, scratch); break;
    }
}

static const void *transformer_prediction(const struct model *m, int64_t rows, const void *saved)
{
    struct head_saved s;
    head_saved(m, rows, saved, &s);
    return s.logits;
}

const struct model_ops model_transformer = {
    .list = transformer_list,
    .build = transformer_build,
    .out_bytes = transformer_out_bytes,
    .saved_bytes = transformer_saved_bytes,
    .scratch_bytes = transformer_scratch_bytes,
    .forward_flops = transformer_flops,
    .forward = transformer_forward,
    .backward = transformer_backward,
    .prediction = transformer_prediction,
};
