// The witness's sums over rows (reference/models/witness.c): x is rounded to the storage type, sums are of double.
//
// How: sums over a row are a tree over a block; sums over rows run in the order of the rows, as on the CPU, one thread a column.
#include "kernels/cuda/block.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/mixed.h"

enum { WITNESS_THREADS = 256 };

template <class S> DEVICE double rounded_to(float x)
{
    S value;
    narrow(x, &value);
    return (double)widen(value);
}

template <class S> __global__ void row_products(int64_t rows, int64_t C, const S *w, const float *x, double *sums)
{
    SHARED_ARRAY(double, room, WITNESS_THREADS / WARP);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        double sum = 0;
        for (int64_t c = threadIdx.x; c < C; c += blockDim.x)
            sum += (double)widen(w[c]) * rounded_to<S>(x[r * C + c]);
        sum = row_sum(sum, room);
        if (threadIdx.x == 0)
            sums[r] += sum;
    }
}

template <class S> struct weighted_rows_op {
    static const int count = 1;
    int64_t rows, C;
    double scale;
    const float *weights, *x;
    S *gradient;
    template <int N> __device__ void at(int64_t c) const
    {
        double sum = (double)widen(gradient[c]);
        for (int64_t r = 0; r < rows; r++) {
            double factor = scale * weights[r];
            if (factor != 0)
                sum += factor * rounded_to<S>(x[r * C + c]);
        }
        narrow(sum, &gradient[c]);
    }
};

// The products side by side, their sum one by one.
static __global__ void weighted_sum(int64_t rows, const float *weights, const double *terms, double *sum)
{
    SHARED_ARRAY(double, products, WITNESS_THREADS);
    double total = 0;
    for (int64_t first = 0; first < rows; first += blockDim.x) {
        int64_t r = first + threadIdx.x;
        if (r < rows)
            products[threadIdx.x] = (double)weights[r] * terms[r];
        __syncthreads();
        for (int64_t i = 0; threadIdx.x == 0 && i < blockDim.x && first + i < rows; i++)
            total += products[i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *sum = total;
}

template <class S> static void launch_row_products(int64_t rows, int64_t C, const void *w, const float *x, double *sums)
{
    if (rows > 0)
        LAUNCH(row_products<S>, dim3(launch_grid(rows, 1)), dim3(WITNESS_THREADS), 0, CUDA_COMPUTE, rows, C, (const S *)w, x, sums);
}

void cuda_row_products(enum dtype storage, int64_t rows, int64_t C, const void *w, const float *x, double *sums)
{
    FOR_FLOAT_TYPE(storage, S, launch_row_products<S>(rows, C, w, x, sums))
}

void cuda_add_weighted_rows(enum dtype storage, int64_t rows, int64_t C, double scale, const float *weights, const float *x, void *gradient)
{
    FOR_FLOAT_TYPE(storage, S, map(weighted_rows_op<S>{rows, C, scale, weights, x, (S *)gradient}, C, false))
}

void cuda_weighted_sum(int64_t rows, const float *weights, const double *values, double *sum)
{
    LAUNCH(weighted_sum, dim3(1), dim3(WITNESS_THREADS), 0, CUDA_COMPUTE, rows, weights, values, sum);
}
