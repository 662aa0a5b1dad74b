// The functions of struct device (kernels/device.h) that compute and are no row of the table. All pointers but `at`, `n` and `out` of the norms are the device's.
#ifndef KERNELS_CUDA_MIXED_H
#define KERNELS_CUDA_MIXED_H

#include "kernels/cuda/cuda.h"

void cuda_cast(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst);
void cuda_accumulate(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst);
void cuda_fill(int64_t n, enum dtype type, void *dst, double value);
void cuda_mean(int64_t n, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type, void *to, bool add);
void cuda_optim_sgd(struct optim_types types, int64_t n, double lr, double momentum, double dampening, double weight_decay, bool nesterov, int64_t step, void *p,
                    const void *g, void *m);
void cuda_optim_adamw(struct optim_types types, int64_t n, double lr, double beta1, double beta2, double eps, double weight_decay, int64_t step, void *p,
                      const void *g, void *exp_avg, void *exp_avg_sq);
void cuda_norms(enum device_norm norm, enum dtype type, int count, const void *const *at, const int64_t *n, double *out);
void cuda_row_products(enum dtype storage, int64_t rows, int64_t C, const void *w, const float *x, double *sums);
void cuda_add_weighted_rows(enum dtype storage, int64_t rows, int64_t C, double scale, const float *weights, const float *x, void *gradient);
void cuda_weighted_sum(int64_t rows, const float *weights, const double *values, double *sum);

#endif
