// Matrix products: row-major, on the compute stream.
#ifndef KERNELS_CUDA_BLAS_H
#define KERNELS_CUDA_BLAS_H

#include "kernels/cuda/cuda.h"

// C = alpha op(A) op(B) + beta C, `batch` times. op(A) is (M, K), op(B) (K, N), C (M, N); beta = 0 does not read C.
struct product {
    bool trans_a, trans_b;
    int64_t M, N, K;
    double alpha, beta;
    int64_t row_a, row_b, row_c; // from one row to the next, as they lie
    int64_t batch, next_a, next_b, next_c; // from one product to the next
};

// Sums are of float, of double for F64. in: F32, F64, BF16, F16; out: the same, or F32 for the 16-bit types.
void cuda_product(enum dtype in, enum dtype out, const struct product *product, const void *a, const void *b, void *c);

#endif
