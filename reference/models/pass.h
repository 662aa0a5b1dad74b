// One whole forward and backward with everything in memory: what a program without sharding does.
#ifndef REFERENCE_MODELS_PASS_H
#define REFERENCE_MODELS_PASS_H

#include "reference/models/model.h"

struct model_pass {
    const struct model *m;
    int64_t rows;      // of the batch of the latest forward
    void **outs;       // by call; the last NULL
    void **saved;      // by call
    void *flow[2];     // gradients of activations, in turn
    void *scratch;
};
// Allocates for batches of up to that many rows. *p is to be closed in either case.
bool model_pass_open(struct model_pass *p, const struct model *m, int64_t rows, struct error *error);
void model_pass_close(struct model_pass *p);
// *loss = sum(weights * loss).
void model_pass_forward(struct model_pass *p, const struct model_batch *batch, const struct model_arrays *arrays, double *loss);
// gradients += those of scale * sum(weights * loss); after the forward of the same batch and parameters.
void model_pass_backward(struct model_pass *p, const struct model_batch *batch, const struct model_arrays *arrays);
const void *model_pass_prediction(const struct model_pass *p);

// Zeroed memory of at least 1 byte, aligned to MODEL_ALIGNMENT, to be given to free(); NULL where there is none.
void *model_allocate(size_t bytes);

#endif
