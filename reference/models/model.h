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
//
// out, dout and din are opaque between calls (witness: a float64 partial loss per row; mlp: the pre-activation; else
// the residual stream in the storage dtype). saved and scratch are aligned to MODEL_ALIGNMENT bytes, and no
// array overlaps another. Nothing here allocates, model_create and the kernels' own scratch pool excepted.
#ifndef REFERENCE_MODEL_H
#define REFERENCE_MODEL_H

#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"
#include "kernels/device.h"

enum { MODEL_LAYER_PARAMETERS = 32, MODEL_ALIGNMENT = 64 };

struct model_layer {
    const char *unit;                       // name of the block, "" for the root
    int parameter_count;
    int parameters[MODEL_LAYER_PARAMETERS]; // indices into the case's table, in the layer's own order
                                            // (a tied one: the index of the storage it shares)
    int kind;                               // private to the model's file
    int64_t inputs, outputs;                // private: mlp, the layer's sizes
};

struct model {
    const struct fsdp_case *spec;           // borrowed
    enum dtype storage;                     // of parameters, gradients, activations
    const struct device *device;            // whose memory holds every array below
    const struct kernel_set *kernels;       // the device's for that type
    int layer_count;
    struct model_layer *layers;
    int call_count;
    int *calls;                             // layer index of each call
    const struct model_ops *ops;            // private: the functions of the model's kind (ops.h)
};

// The rows that one rank works on in one microbatch. Arrays are the rank's rows of data.safetensors, in the device's memory.
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

// The parameter table of a model: names, shapes, units, ties, decay. Fills c->parameters (empty before) from c->model.
// decay is false for biases and norms; in a witness for the parameters named "bias". An unused layer of an mlp is its
// own unit. Errors: sizes that contradict each other (dim % heads, heads % kv_heads, calls that do not chain ...);
// the table is empty then.
bool model_parameter_table(struct fsdp_case *c, struct error *error);

// Builds layers (also those that no call uses) and calls for a case whose table is filled. Errors: the table differs
// from model_parameter_table's, no kernels for the storage dtype. *m is to be freed in either case.
bool model_create(struct model *m, const struct fsdp_case *c, enum dtype storage, struct error *error); // on the CPU
bool model_create_on(struct model *m, const struct fsdp_case *c, const struct device *device, enum dtype storage, struct error *error);
void model_free(struct model *m);

// Bytes, for a batch of that many rows. call in [0, call_count).
size_t model_out_bytes(const struct model *m, int call, int64_t rows);   // 0 for the last
size_t model_saved_bytes(const struct model *m, int call, int64_t rows);
size_t model_scratch_bytes(const struct model *m, int64_t rows);         // largest need of any forward or backward
// Floating point operations of the products in one forward / backward of the call (2 per multiply-add; causal
// attention counts the pairs it needs; norms, activations and additions are left out, as is usual for MFU).
double model_call_flops(const struct model *m, int call, int64_t rows, bool backward);

// Runs one call. in NULL for call 0, out NULL for the last. loss, in the device's memory: the last call writes
// sum(weights * loss of row or token) (unscaled) to *loss, others leave it. saved may be NULL where no backward follows.
void model_forward(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                   const void *in, void *out, void *saved, void *scratch, double *loss);
// dout NULL for the last call, din NULL for call 0.
void model_backward(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                    const void *in, const void *saved, const void *dout, void *din, void *scratch);

// What the last call predicted, from its saved bytes: mlp y (rows, sizes[last]), transformer logits (rows, context, V),
// in the storage dtype; NULL for a witness.
const void *model_prediction(const struct model *m, int64_t rows, const void *saved);

// Points a batch at rows [first, end) of (step, micro) of data.safetensors. x_storage: caller's array of
// parameter_count pointers (witness; may be NULL for other models). scale is set to 1. Errors: tensors missing, of
// wrong dtype or shape, token or target outside the vocabulary.
bool model_batch_at(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int64_t first,
                    int64_t end, const float **x_storage, struct model_batch *out, struct error *error);
// The same rows in a device's memory: how many bytes (each array rounded up to MODEL_ALIGNMENT), and the copy; the batch, and x_storage, then point there.
size_t model_batch_bytes(const struct fsdp_case *c, int64_t rows);
void model_batch_upload(const struct fsdp_case *c, const struct device *device, void *memory, const float **x_storage, struct model_batch *batch);
// Sum of loss weights of rows [first, end); the W and sum_r(w) of docs/protocol.md.
double model_weight_sum(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int64_t first, int64_t end);

#endif
