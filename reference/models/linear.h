// A linear layer over the kernels: y = x W^T + b and its gradient. Private to this folder.
#ifndef REFERENCE_MODELS_LINEAR_H
#define REFERENCE_MODELS_LINEAR_H

#include "kernels/kernels.h"

// x (rows, inputs), w (outputs, inputs), y (rows, outputs) in the kernels' storage type; bias (outputs) or NULL.
struct linear {
    const struct kernel_set *kernels;
    int64_t rows, inputs, outputs;
    const void *w, *bias;
    void *dw, *dbias; // accumulated; NULL: not wanted
};
void linear_forward(const struct linear *l, const void *x, void *y);
// dx (rows, inputs) = dy W, added to what is there where add; NULL: not wanted.
void linear_backward(const struct linear *l, const void *x, const void *dy, void *dx, bool add);

#endif
