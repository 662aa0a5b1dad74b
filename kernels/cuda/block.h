// Sums and maxima over the threads of a warp and of a row of a block, in one fixed order.
//
// How: a butterfly of shuffles leaves the same bits in all lanes, since both partners of a step add the same two numbers. Beyond a warp each warp's sum goes
//      through shared memory, `room` (at least a number per warp of the block), and every warp adds those up alike.
//      A row of a block is the threads of one threadIdx.y; blockDim.x is a multiple of 32, and all threads of the block must take part.
#ifndef KERNELS_CUDA_BLOCK_H
#define KERNELS_CUDA_BLOCK_H

#include "kernels/cuda/number.h"
#include "reference/engine/fault.h"

struct sum_of { template <class W> static __device__ W of(W a, W b) { return a + b; } };
struct largest_of { template <class W> static __device__ W of(W a, W b) { return a > b ? a : b; } };

template <class How, class W> DEVICE W warp_reduce(W x)
{
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        x = How::of(x, __shfl_xor_sync(FULL_MASK, x, offset));
    return x;
}

// neutral: what leaves the other as it is.
template <class How, class W> DEVICE W row_reduce(W x, W neutral, W *room)
{
    x = warp_reduce<How>(x);
    int warps = (int)blockDim.x / WARP, warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    if (warps == 1)
        return x;
    __syncthreads(); // what room had before has been read
    if (lane == 0)
        room[threadIdx.y * warps + warp] = x;
    if (!FAULT(cuda_sum_without_barrier))
        __syncthreads();
    return warp_reduce<How>(lane < warps ? room[threadIdx.y * warps + lane] : neutral);
}

template <class W> DEVICE W row_sum(W x, W *room) { return row_reduce<sum_of>(x, W(0), room); }

// Threads for a row of `packs` packs, about 4 a thread, and rows that a block does at once.
static inline unsigned row_threads(int64_t packs)
{
    int64_t threads = (packs + 4 * WARP - 1) / (4 * WARP) * WARP;
    return (unsigned)(threads < WARP ? WARP : threads > 256 ? 256 : threads);
}
static inline unsigned rows_at_once(unsigned threads) { return 256 / threads; }

#endif
