// A device: where arrays lie, and what computes on them, as one struct of functions.
//
// What: memory, copies, the kernel sets (kernels.h), and the functions that are no row of the table: between types, the mean that ends a
//       reduction, mixed optimizers, the witness's sums over rows. device_cpu (device.c) is the host itself, kernels/cuda/ the other.
// How:  calls of a device are ordered: each sees what all earlier ones have written, and none need have ended when it returns, except where that
//       is said. So a caller may forget that a device runs behind the host, as long as it reads results by download() alone.
//       A failure (memory, a launch) is kept; ask failed() once a step.
// Why:  the engine and the models say what is computed; they never look into an array that is not the host's.
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include "harness/protocol/error.h"
#include "kernels/kernels.h"

enum device_norm { DEVICE_NORM_L1, DEVICE_NORM_L2_SQUARED, DEVICE_NORM_LINF, DEVICE_ALL_FINITE /* 1 or 0 */ };

struct device {
    const char *name;
    bool host; // its arrays can be read and written as they are
    const struct kernel_set *(*kernels)(enum dtype storage); // NULL: none for that type

    void *(*allocate)(size_t bytes); // zeroed, aligned to 64 bytes or more; NULL where there is none
    void (*release)(void *memory);

    void (*copy)(void *dst, const void *src, size_t bytes);      // within the device; no overlap
    void (*clear)(void *dst, size_t bytes);                      // to zeros
    void (*upload)(void *dst, const void *host, size_t bytes);   // `host` may change once it returns
    void (*download)(void *host, const void *src, size_t bytes); // has ended when it returns

    // As kernels_cast, kernels_accumulate and kernels_fill.
    void (*cast)(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst);
    void (*accumulate)(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst);
    void (*fill)(int64_t n, enum dtype type, void *dst, double value);
    // to[i] (+)= round(sum[i] / divisor) factor: a true division, rounded to the sum's type; the product in double, in float where both types are F32.
    void (*mean)(int64_t n, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type, void *to, bool add);
    // As optim_sgd and optim_adamw.
    void (*sgd)(struct optim_types types, int64_t n, double lr, double momentum, double dampening, double weight_decay, bool nesterov, int64_t step, void *p,
                const void *g, void *m);
    void (*adamw)(struct optim_types types, int64_t n, double lr, double beta1, double beta2, double eps, double weight_decay, int64_t step, void *p,
                  const void *g, void *exp_avg, void *exp_avg_sq);
    // out[i]: that of the array at[i] of n[i] elements, in the host's memory and known when it returns.
    void (*norms)(enum device_norm norm, enum dtype type, int count, const void *const *at, const int64_t *n, double *out);

    // Of the witness (reference/models/witness.c); x is rounded to the storage type first, sums are of double, weights (rows).
    // sums[r] += sum_c w[c] x[r,c]; w (C), x (rows, C).
    void (*row_products)(enum dtype storage, int64_t rows, int64_t C, const void *w, const float *x, double *sums);
    // gradient[c] += scale sum_r weights[r] x[r,c], formed in double with the old value and rounded once; rows of weight 0 are passed over.
    void (*add_weighted_rows)(enum dtype storage, int64_t rows, int64_t C, double scale, const float *weights, const float *x, void *gradient);
    // *sum = sum_r weights[r] values[r], in the order of the rows.
    void (*weighted_sum)(int64_t rows, const float *weights, const double *values, double *sum);

    // Waits until everything asked for so far has been done, or failed.
    bool (*finish)(struct error *error);
    // True, with what and where, if something has failed since the last call; what it should have written is then undefined.
    bool (*failed)(struct error *error);
};

extern const struct device device_cpu;

#endif
