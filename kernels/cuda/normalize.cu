// Normalisation by row: LayerNorm (CENTRED) and RMSNorm, forward and backward.
//
// How: a row is the work of 32 to 256 threads, each of which has the same columns in every row; a block does several rows at once. The row is read from memory
//      once and again from the caches: two passes for mean and variance, as on the CPU.
//      The backward takes the parameters' gradients along: each thread sums its own columns over the rows of its block, in shared memory where they fit, and
//      column_finish (columns.h) adds the blocks up. A block's rows are given by the shape alone, so the order of additions is fixed.
#include "kernels/cuda/block.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/set.h"

enum { NORM_BLOCKS = 512, NORM_SHARED_BYTES = 47 * 1024 /* room of the rest, below 48 KiB */, ROW_WARPS = 256 / WARP };

// A row of the block: this thread's columns are N at c = first, first + step, ...
#define EACH_PACK(c) for (int64_t c = (int64_t)threadIdx.x * N; c < C; c += (int64_t)blockDim.x * N)

template <class S, bool CENTRED>
__global__ void norm_forward(int64_t rows, int64_t C, wide<S> eps, const S *x, const S *gamma, const S *beta, S *y, wide<S> *mean, wide<S> *rstd, bool packed)
{
    typedef wide<S> W;
    const int N = in_pack<S>::value;
    SHARED_ARRAY(W, room, ROW_WARPS);
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < rows; first += (int64_t)gridDim.x * blockDim.y) {
        int64_t r = first + threadIdx.y;
        bool active = r < rows;
        const S *row = x + (active ? r : first) * C;
        W m = 0, squares = 0;
        if (CENTRED) {
            EACH_PACK(c)
            {
                values<W, N> v = load_part<N>(row + c, C - c, packed);
                EACH(k, N) m += v[k];
            }
            m = row_sum(m, room) / (W)C;
        }
        EACH_PACK(c)
        {
            values<W, N> v = load_part<N>(row + c, C - c, packed);
            EACH(k, N) squares += c + k < C ? (v[k] - m) * (v[k] - m) : W(0);
        }
        W s = 1 / root_of(row_sum(squares, room) / (W)C + eps);
        if (!active)
            continue;
        EACH_PACK(c)
        {
            values<W, N> v = load_part<N>(row + c, C - c, packed), g = load_part<N>(gamma + c, C - c, packed), b = {};
            if (beta != NULL)
                b = load_part<N>(beta + c, C - c, packed);
            EACH(k, N) v[k] = (v[k] - m) * s * g[k];
            if (beta != NULL)
                EACH(k, N) v[k] += b[k];
            store_part(y + r * C + c, v, C - c, packed);
        }
        if (threadIdx.x == 0) {
            rstd[r] = s;
            if (CENTRED)
                mean[r] = m;
        }
    }
}

template <class S> struct norm_backward_arrays {
    const S *x, *gamma;
    const wide<S> *mean, *rstd; // mean: NULL where it is 0
    const S *dy;
    S *dx;
    wide<S> *partial; // (blocks, 2, C): sums of dy h and of dy; NULL: not wanted
};

// own: (2, C) of this row of the block, in shared memory or in partial itself.
template <class S, bool CENTRED> __global__ void norm_backward(int64_t rows, int64_t C, int64_t each, norm_backward_arrays<S> a, bool shared, bool packed)
{
    typedef wide<S> W;
    const int N = in_pack<S>::value;
    SHARED_ARRAY(W, room, ROW_WARPS);
    SHARED_DYNAMIC(W, sums);
    W *own = a.partial == NULL ? NULL : shared ? sums + threadIdx.y * 2 * C : a.partial + blockIdx.x * 2 * C;
    if (own != NULL)
        EACH_PACK(c)
            for (int64_t k = c; k < c + N && k < C; k++)
                own[k] = own[C + k] = 0;
    int64_t end = (blockIdx.x + 1) * each < rows ? (blockIdx.x + 1) * each : rows;
    for (int64_t first = blockIdx.x * each; first < end; first += blockDim.y) {
        int64_t r = first + threadIdx.y;
        bool active = r < end;
        int64_t at = (active ? r : first) * C;
        W m = CENTRED ? a.mean[active ? r : first] : W(0), s = a.rstd[active ? r : first], sum_g = 0, sum_gh = 0;
        EACH_PACK(c)
        {
            values<W, N> x = load_part<N>(a.x + at + c, C - c, packed), dy = load_part<N>(a.dy + at + c, C - c, packed);
            values<W, N> gamma = load_part<N>(a.gamma + c, C - c, packed);
            EACH(k, N)
            {
                W g = dy[k] * gamma[k], h = (x[k] - m) * s;
                sum_g += g;
                sum_gh += c + k < C ? g * h : W(0);
            }
        }
        W mean_g = CENTRED ? row_sum(sum_g, room) / (W)C : W(0), mean_gh = row_sum(sum_gh, room) / (W)C;
        if (!active)
            continue;
        EACH_PACK(c)
        {
            values<W, N> x = load_part<N>(a.x + at + c, C - c, packed), dy = load_part<N>(a.dy + at + c, C - c, packed), dx;
            values<W, N> gamma = load_part<N>(a.gamma + c, C - c, packed);
            EACH(k, N) dx[k] = s * (dy[k] * gamma[k] - mean_g - (x[k] - m) * s * mean_gh);
            store_part(a.dx + at + c, dx, C - c, packed);
            if (own == NULL)
                continue;
            values<W, N> sum_dyh = load_part<N>(own + c, C - c, packed); // by packs: one by one, N threads would meet in each bank
            EACH(k, N) sum_dyh[k] += dy[k] * ((x[k] - m) * s);
            store_part(own + c, sum_dyh, C - c, packed);
            if (CENTRED) { // RMSNorm has no shift
                values<W, N> sum_dy = load_part<N>(own + C + c, C - c, packed);
                EACH(k, N) sum_dy[k] += dy[k];
                store_part(own + C + c, sum_dy, C - c, packed);
            }
        }
    }
    if (own == NULL || !shared)
        return;
    __syncthreads();
    for (int64_t c = threadIdx.y * blockDim.x + threadIdx.x; c < 2 * C; c += blockDim.x * blockDim.y) {
        W sum = 0;
        for (unsigned row = 0; row < blockDim.y; row++)
            sum += sums[row * 2 * C + c];
        a.partial[blockIdx.x * 2 * C + c] = sum;
    }
}

template <class S> static bool rows_are_packed(int64_t C, bool pointers) { return pointers && C % in_pack<S>::value == 0; }
template <class S> static unsigned threads_of_row(int64_t C) { return row_threads((C + in_pack<S>::value - 1) / in_pack<S>::value); }

template <class S, bool CENTRED>
static void launch_forward(int64_t rows, int64_t C, double eps, const void *x, const void *gamma, const void *beta, void *y, void *mean, void *rstd)
{
    if (rows == 0)
        return;
    unsigned threads = threads_of_row<S>(C), at_once = rows_at_once(threads);
    LAUNCH((norm_forward<S, CENTRED>), dim3(launch_grid(rows, at_once)), dim3(threads, at_once), 0, CUDA_COMPUTE, rows, C, (wide<S>)eps, (const S *)x, (const S *)gamma,
           (const S *)beta, (S *)y, (wide<S> *)mean, (wide<S> *)rstd, rows_are_packed<S>(C, aligned(x, gamma, beta, y)));
}

template <class S, bool CENTRED>
static void launch_backward(int64_t rows, int64_t C, norm_backward_arrays<S> a, S *dgamma, S *dbeta)
{
    typedef wide<S> W;
    if (rows == 0)
        return;
    unsigned threads = threads_of_row<S>(C), at_once = rows_at_once(threads);
    size_t row_bytes = (size_t)(2 * C) * sizeof(W), total = 0;
    while (at_once > 1 && at_once * row_bytes > NORM_SHARED_BYTES)
        at_once /= 2;
    bool sums = C > 0 && (dgamma != NULL || dbeta != NULL), shared = sums && row_bytes <= NORM_SHARED_BYTES;
    if (sums && !shared)
        at_once = 1;
    int64_t each = chunk_rows(rows, NORM_BLOCKS, at_once), blocks = (rows + each - 1) / each;
    cuda_scratch_place(&total, sums ? blocks * 2 * C : 0, sizeof(W));
    W *partial = (W *)cuda_scratch_take(total);
    if (partial == NULL)
        return;
    a.partial = sums ? partial : NULL;
    LAUNCH((norm_backward<S, CENTRED>), dim3((unsigned)blocks), dim3(threads, at_once), shared ? at_once * row_bytes : sizeof(W), CUDA_COMPUTE, rows, C, each, a, shared,
           rows_are_packed<S>(C, aligned(a.x, a.gamma, a.dy, a.dx)));
    if (sums && dgamma != NULL)
        finish_columns(C, blocks, 2 * C, partial, dgamma);
    if (sums && dbeta != NULL)
        finish_columns(C, blocks, 2 * C, partial + C, dbeta);
}

template <class S>
void cuda_layernorm_forward(int64_t rows, int64_t C, double eps, const void *x, const void *gamma, const void *beta, void *y, void *mean, void *rstd)
{
    launch_forward<S, true>(rows, C, eps, x, gamma, beta, y, mean, rstd);
}

template <class S>
void cuda_layernorm_backward(int64_t rows, int64_t C, const void *x, const void *gamma, const void *mean, const void *rstd, const void *dy, void *dx,
                             void *dgamma, void *dbeta)
{
    norm_backward_arrays<S> a = {(const S *)x, (const S *)gamma, (const wide<S> *)mean, (const wide<S> *)rstd, (const S *)dy, (S *)dx, NULL};
    launch_backward<S, true>(rows, C, a, (S *)dgamma, (S *)dbeta);
}

template <class S> void cuda_rmsnorm_forward(int64_t rows, int64_t C, double eps, const void *x, const void *gamma, void *y, void *rstd)
{
    launch_forward<S, false>(rows, C, eps, x, gamma, NULL, y, NULL, rstd);
}

template <class S>
void cuda_rmsnorm_backward(int64_t rows, int64_t C, const void *x, const void *gamma, const void *rstd, const void *dy, void *dx, void *dgamma)
{
    norm_backward_arrays<S> a = {(const S *)x, (const S *)gamma, NULL, (const wide<S> *)rstd, (const S *)dy, (S *)dx, NULL};
    launch_backward<S, false>(rows, C, a, (S *)dgamma, (S *)NULL);
}

INSTANTIATE(layernorm_forward)
INSTANTIATE(layernorm_backward)
INSTANTIATE(rmsnorm_forward)
INSTANTIATE(rmsnorm_backward)
