// Sums over the rows of a matrix, for each column, in two stages and one fixed order: gradients of what all rows share.
//
// How: the rows are cut into chunks by the shape alone, so the order of the additions depends on neither the device nor an alignment. Stage 1 leaves a sum for
//      each chunk and column in scratch, stage 2 adds those up, adds the old value and rounds once.
#ifndef KERNELS_CUDA_COLUMNS_H
#define KERNELS_CUDA_COLUMNS_H

#include "kernels/cuda/number.h"

enum { COLUMN_LANES = 8, COLUMN_FINISH_LANES = 32 };

// The rows of a chunk: enough chunks for some hundreds of blocks, and no fewer than `least` rows in each.
static inline int64_t chunk_rows(int64_t rows, int64_t chunks, int64_t least)
{
    int64_t each = (rows + chunks - 1) / chunks;
    return each > least ? each : least;
}

// partial (chunks, C): sums of x (rows, C). Block (32, COLUMN_LANES): a thread has N columns, a lane every COLUMN_LANES-th row.
template <class S, int N> __global__ void column_sums(int64_t rows, int64_t C, int64_t each, const S *x, bool packed, wide<S> *partial)
{
    typedef wide<S> W;
    typedef values<W, N> V;
    SHARED_ARRAY(V, room, COLUMN_LANES * WARP);
    int64_t c = ((int64_t)blockIdx.x * WARP + threadIdx.x) * N, begin = blockIdx.y * each, end = begin + each < rows ? begin + each : rows;
    V sum = {};
    for (int64_t r = begin + threadIdx.y; r < end && c < C; r += COLUMN_LANES) {
        V v = load_part<N>(x + r * C + c, C - c, packed);
        EACH(k, N) sum[k] += v[k];
    }
    room[threadIdx.y * WARP + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || c >= C)
        return;
    for (int lane = 1; lane < COLUMN_LANES; lane++)
        EACH(k, N) sum[k] += room[lane * WARP + threadIdx.x][k];
    for (int k = 0; k < N && c + k < C; k++)
        partial[blockIdx.y * C + c + k] = sum[k];
}

// to[c] += sum over chunks of partial[chunk stride + c]. Block (32, COLUMN_FINISH_LANES).
template <class S> __global__ void column_finish(int64_t C, int64_t chunks, int64_t stride, const wide<S> *partial, S *to)
{
    typedef wide<S> W;
    SHARED_ARRAY(W, room, COLUMN_FINISH_LANES * WARP);
    int64_t c = (int64_t)blockIdx.x * WARP + threadIdx.x;
    W sum = 0;
    for (int64_t i = threadIdx.y; i < chunks && c < C; i += COLUMN_FINISH_LANES)
        sum += partial[i * stride + c];
    room[threadIdx.y * WARP + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || c >= C)
        return;
    for (int lane = 1; lane < COLUMN_FINISH_LANES; lane++)
        sum += room[lane * WARP + threadIdx.x];
    narrow(widen(to[c]) + sum, &to[c]);
}

template <class S> static void finish_columns(int64_t C, int64_t chunks, int64_t stride, const wide<S> *partial, S *to)
{
    LAUNCH(column_finish<S>, dim3((unsigned)((C + WARP - 1) / WARP)), dim3(WARP, COLUMN_FINISH_LANES), 0, CUDA_COMPUTE, C, chunks, stride, partial, to);
}

#endif
