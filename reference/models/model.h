// A model as a list of layer calls: what the truth runs serially and what the FSDP engine runs
// gather by gather. Models know nothing of ranks, shards or communication.
//
// A model has layers (modules); each names the parameters it reads and the unit (block) it belongs to. A forward
// pass runs `calls` in order; a layer may be called several times (a reused module). The caller owns every byte:
// parameters, gradients, activations, saved values and scratch, in sizes that the model tells,
// so that an engine can gather just before a call, free just after it, recompute a call (activation
// checkpointing) and predict its memory.
//
//   call i:  in = out of call i-1 (call 0 has none)   forward(i): params, in -> out, saved
//   backward(i): params, in, saved, dout -> din (overwritten), grads (accumulated)
//   The last call computes the loss: it has no out; its backward starts from the batch's scale.
#ifndef REFERENCE_MODEL_H
#define REFERENCE_MODEL_H

#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"
#include "kernels/kernels.h"

enum { MODEL_LAYER_PARAMETERS = 32 };

struct model_layer {
    const char *unit;                       // name of the block, "" for the root
    int parameter_count;
    int parameters[MODEL_LAYER_PARAMETERS]; // indices into the case's table, in the layer's own order
                                            // (a tied one: the index of the storage it shares)
    int kind;                               // private to the model's file
    int64_t a, b;                           // private (sizes)
};

struct model {
    const struct fsdp_case *spec;           // borrowed
    enum dtype storage;                     // of parameters, gradients, activations
    const struct kernel_set *kernels;
    int layer_count;
    struct model_layer *layers;
    int call_count;
    int *calls;                             // layer index of each call
    const struct model_ops *ops;            // private: per kind functions
};

// The rows that one rank works on in one microbatch. Arrays are the rank's rows of data.safetensors.
struct model_batch {
    int64_t rows;
    const int32_t *tokens, *targets; // transformer: (rows, context)
    const float *input, *target;     // mlp: (rows, sizes[0]), (rows, sizes[last])
    const float *const *x;           // witness: by parameter index: (rows, shape...)
    const float *weights;            // (rows) or (rows, context)
    double scale;                    // the gradient is that of scale * sum(weights * loss)
};

// parameters[i], gradients[i]: by index of the case's table, in the model's storage dtype; tied indices are never
// read (the shared storage is). gradients[i] NULL: not wanted (frozen).
struct model_arrays {
    const void *const *parameters;
    void *const *gradients;
};

// The parameter table of a model: names, shapes, units, ties, decay. Fills c->parameters from c->model.
// Errors: sizes that contradict each other (dim % heads, heads % kv_heads, calls that do not chain ...).
bool model_parameter_table(struct fsdp_case *c, struct error *error);

// Builds the calls for a case whose table is filled. The table must equal model_parameter_table's.
bool model_create(struct model *m, const struct fsdp_case *c, enum dtype storage, struct error *error);
void model_free(struct model *m);

// Bytes, for a batch of that many rows. call in [0, call_count).
size_t model_out_bytes(const struct model *m, int call, int64_t rows);   // 0 for the last
size_t model_saved_bytes(const struct model *m, int call, int64_t rows);
size_t model_scratch_bytes(const struct model *m, int64_t rows);         // largest need of any forward or backward
// Floating point operations of one forward / backward of the call (2 per multiply-add).
double model_call_flops(const struct model *m, int call, int64_t rows, bool backward);

// Runs one call. in NULL for call 0, out NULL for the last. loss: the last call adds
// sum(weights * loss of row or token) (unscaled) to *loss. saved may be NULL where no backward follows.
void model_forward(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                   const void *in, void *out, void *saved, void *scratch, double *loss);
// dout NULL for the last call, din NULL for call 0.
void model_backward(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                    const void *in, const void *saved, const void *dout, void *din, void *scratch);

// Points a batch at rows [first, end) of (step, micro) of data.safetensors. x_storage: caller's array of
// parameter_count pointers (witness). Errors: tensors missing, of wrong dtype or shape.
bool model_batch_at(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int64_t first,
                    int64_t end, const float **x_storage, struct model_batch *out, struct error *error);
// Sum of loss weights of rows [first, end); the W and sum_r(w) of docs/protocol.md.
double model_weight_sum(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int64_t first, int64_t end);

#endif
