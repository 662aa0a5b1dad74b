// Elementwise kernels: one loop over n elements for every formula.
//
// What: map(op, n, packed) runs op.at<N>(i) for elements i .. i + N - 1, for N = Op::count in packs and for N = 1 at the ends.
// How:  an op is a struct of pointers and numbers with a method template <int N> at(int64_t i). Packs are used where the caller says that all arrays are
//       aligned to 16 bytes; what is left over, and everything else, goes one element a thread.
// Why:  16 bytes a load and nothing between them is what the memory's bandwidth takes.
#ifndef KERNELS_CUDA_MAP_H
#define KERNELS_CUDA_MAP_H

#include "kernels/cuda/number.h"

enum { MAP_THREADS = 256 };

// whole: elements that are done in packs, a multiple of Op::count.
template <class Op> __global__ void map_kernel(Op op, int64_t n, int64_t whole)
{
    int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = thread * Op::count; i < whole; i += threads * Op::count)
        op.template at<Op::count>(i);
    for (int64_t i = whole + thread; i < n; i += threads)
        op.template at<1>(i);
}

template <class Op> static void map(Op op, int64_t n, bool packed)
{
    if (n <= 0)
        return;
    int64_t whole = packed ? n / Op::count * Op::count : 0;
    LAUNCH(map_kernel<Op>, dim3(launch_grid(n, MAP_THREADS * (whole > 0 ? Op::count : 1))), dim3(MAP_THREADS), 0, CUDA_COMPUTE, op, n, whole);
}

#endif
