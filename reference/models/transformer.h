// The parts of the transformer: its block (block.c) between the embedding and the head (transformer.c). Private.
#ifndef REFERENCE_MODELS_TRANSFORMER_H
#define REFERENCE_MODELS_TRANSFORMER_H

#include "reference/models/linear.h"
#include "reference/models/ops.h"

// Sizes of a batch: B rows of T tokens, C columns, H query heads and G key/value heads of D columns, F hidden columns.
struct transformer_sizes { int64_t B, T, C, H, G, D, F, V, tokens; };
struct transformer_sizes transformer_sizes(const struct model *m, int64_t rows);

// The parameters of a block by what they are for; names and shapes in block.c.
enum block_role {
    NORM1_WEIGHT, NORM1_BIAS, QUERY_WEIGHT, QUERY_BIAS, KEY_WEIGHT, KEY_BIAS, VALUE_WEIGHT, VALUE_BIAS, OUTPUT_WEIGHT,
    OUTPUT_BIAS, NORM2_WEIGHT, NORM2_BIAS, GATE_WEIGHT, GATE_BIAS, UP_WEIGHT, UP_BIAS, DOWN_WEIGHT, DOWN_BIAS, ROLE_COUNT
};
bool block_list(struct fsdp_case *c, int block, struct error *error);
size_t block_saved_bytes(const struct model *m, int64_t rows);
size_t block_scratch_bytes(const struct model *m, int64_t rows);
double block_forward_flops(const struct model *m, int64_t rows);
void block_forward(const struct model *m, const struct model_layer *layer, int64_t rows,
                   const struct model_arrays *arrays, const void *x, void *y, void *saved);
void block_backward(const struct model *m, const struct model_layer *layer, int64_t rows,
                    const struct model_arrays *arrays, const void *x, const void *saved, const void *dy, void *dx,
                    void *scratch);

// The norm of the spec over (tokens, C): LayerNorm with or without bias, or RMSNorm (mean unused, bias NULL).
struct norm { const struct model *m; int64_t rows, columns; const void *weight, *bias; void *dweight, *dbias; };
void norm_forward(const struct norm *n, const void *x, void *y, void *mean, void *rstd);
void norm_backward(const struct norm *n, const void *x, const void *mean, const void *rstd, const void *dy, void *dx);

// Arrays of parameter p of the table; NULL where p is -1 or no gradient is wanted.
static inline const void *parameter_at(const struct model_arrays *a, int p)
{
    return p < 0 ? NULL : a->parameters[p];
}
static inline void *gradient_at(const struct model_arrays *a, int p)
{
    return p < 0 || a->gradients == NULL ? NULL : a->gradients[p];
}

#endif
