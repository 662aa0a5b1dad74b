// Losses: weighted softmax cross-entropy and weighted squared error.
//
// How: cross-entropy reads a row of logits once: each thread keeps the largest value so far and the sum of exponentials about it, and mends the sum where a
//      larger one comes (Milakov, Gimelshein 2018, arXiv:1805.02867, algorithm 3). A row's loss is formed as on the CPU, the sum over rows in double, in a tree.
//      A row need not begin at a multiple of 16 bytes: its elements before the first one and after the last are taken one by one.
#include "kernels/cuda/block.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/set.h"

enum { LOSS_THREADS = 256, TOTAL_THREADS = 1024 };

// max and sum of exp(x - max); an empty one is (-infinity, 0).
template <class W> struct exp_sum {
    W max, sum;
    __device__ static W scaled(W sum, W from, W to) { return sum == 0 ? 0 : sum * exp_of(from - to); }
    template <int N> __device__ void take(const values<W, N> &x)
    {
        W largest = max;
        EACH(k, N) largest = larger(x[k], largest);
        W about = largest == -infinity_of(W()) ? 0 : largest;
        sum = scaled(sum, max, about);
        EACH(k, N) sum += exp_of(x[k] - about);
        max = largest;
    }
};

template <class S> __global__ void xent_rows(int64_t rows, int64_t V, const S *logits, const int32_t *targets, const double *weights, wide<S> *lse, double *losses,
                                               bool packed)
{
    typedef wide<S> W;
    const int N = in_pack<S>::value;
    SHARED_ARRAY(W, room, LOSS_THREADS / WARP);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const S *x = logits + r * V;
        int64_t head = (N - r * V % N) % N, thread = threadIdx.x, threads = blockDim.x;
        head = head < V ? head : V;
        int64_t packs = (V - head) / N, tail = head + packs * N;
        exp_sum<W> own = {-infinity_of(W()), 0};
        for (int64_t p = thread; p < packs; p += threads)
            own.take(load_part<N>(x + head + p * N, N, packed));
        for (int64_t v = thread; v < head; v += threads)
            own.take(load<1>(x + v));
        for (int64_t v = tail + thread; v < V; v += threads)
            own.take(load<1>(x + v));
        W max = row_reduce<largest_of>(own.max, -infinity_of(W()), room), about = max == -infinity_of(W()) ? 0 : max;
        W sum = row_sum(exp_sum<W>::scaled(own.sum, own.max, about), room);
        if (thread == 0) {
            W log_sum = max + log_of(sum);
            lse[r] = log_sum;
            losses[r] = weights[r] * (double)(log_sum - widen(x[targets[r]]));
        }
    }
}

// *total = the sum of n numbers, by one block.
static __global__ void total_of(int64_t n, const double *x, double *total)
{
    SHARED_ARRAY(double, room, TOTAL_THREADS / WARP);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i];
    sum = row_sum(sum, room);
    if (threadIdx.x == 0)
        *total = sum;
}

static double *row_losses(int64_t rows)
{
    size_t total = 0;
    cuda_scratch_place(&total, rows, sizeof(double));
    return (double *)cuda_scratch_take(total);
}

static void add_up(int64_t rows, const double *losses, double *loss)
{
    LAUNCH(total_of, dim3(1), dim3(TOTAL_THREADS), 0, CUDA_COMPUTE, rows, losses, loss);
}

template <class S>
void cuda_softmax_xent_forward(int64_t rows, int64_t V, const void *logits, const int32_t *targets, const double *weights, void *lse, double *loss)
{
    int64_t count = V > 0 ? rows : 0;
    double *losses = row_losses(count);
    if (losses == NULL)
        return;
    if (count > 0)
        LAUNCH(xent_rows<S>, dim3(launch_grid(count, 1)), dim3(LOSS_THREADS), 0, CUDA_COMPUTE, count, V, (const S *)logits, targets, weights, (wide<S> *)lse, losses,
               aligned(logits));
    add_up(count, losses, loss);
}

template <class S> struct xent_backward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    int64_t V;
    const S *logits;
    const int32_t *targets;
    const double *weights;
    const W *lse;
    double scale;
    S *dlogits;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> x = load<N>(logits + i);
        int64_t r = i / V, v = i - r * V;
        W log_sum = lse[r], factor = (W)(scale * weights[r]);
        int32_t target = targets[r];
        EACH(k, N)
        {
            W p = exp_of(x[k] - log_sum);
            x[k] = factor * (v == target ? p - 1 : p);
            if (++v == V && k + 1 < N && i + k + 1 < end()) { // a pack may reach into the next row
                v = 0;
                r++;
                log_sum = lse[r], factor = (W)(scale * weights[r]), target = targets[r];
            }
        }
        store(dlogits + i, x);
    }
    int64_t rows;
    __device__ int64_t end() const { return rows * V; }
};

template <class S>
void cuda_softmax_xent_backward(int64_t rows, int64_t V, const void *logits, const int32_t *targets, const double *weights, const void *lse, double scale,
                                void *dlogits)
{
    map(xent_backward_op<S>{V, (const S *)logits, targets, weights, (const wide<S> *)lse, scale, (S *)dlogits, rows}, rows * V, aligned(logits, dlogits));
}

// ---- squared error ----

template <class S> __global__ void squares_of_rows(int64_t rows, int64_t C, const S *y, const float *targets, const double *weights, double *losses)
{
    typedef wide<S> W;
    SHARED_ARRAY(double, room, LOSS_THREADS / WARP);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        double sum = 0;
        for (int64_t c = r * C + threadIdx.x; c < (r + 1) * C; c += blockDim.x) {
            double difference = widen(y[c]) - (W)targets[c];
            sum += difference * difference;
        }
        sum = row_sum(sum, room);
        if (threadIdx.x == 0)
            losses[r] = weights[r] * sum;
    }
}

template <class S> struct squared_error_backward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    int64_t C;
    const S *y;
    const float *targets;
    const double *weights;
    double scale;
    S *dy;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = load<N>(y + i), t = load_as<N, W>(targets + i);
        W factor = (W)(2 * scale * weights[i / C]);
        EACH(k, N) v[k] = factor * (v[k] - t[k]);
        store(dy + i, v);
    }
};

template <class S> void cuda_squared_error_forward(int64_t rows, int64_t C, const void *y, const float *targets, const double *weights, double *loss)
{
    double *losses = row_losses(rows);
    if (losses == NULL)
        return;
    if (rows > 0)
        LAUNCH(squares_of_rows<S>, dim3(launch_grid(rows, 1)), dim3(C < 2 * WARP ? WARP : LOSS_THREADS), 0, CUDA_COMPUTE, rows, C, (const S *)y, targets, weights, losses);
    add_up(rows, losses, loss);
}

template <class S>
void cuda_squared_error_backward(int64_t rows, int64_t C, const void *y, const float *targets, const double *weights, double scale, void *dy)
{
    map(squared_error_backward_op<S>{C, (const S *)y, targets, weights, scale, (S *)dy}, rows * C,
        aligned(y, targets, dy) && C % squared_error_backward_op<S>::count == 0);
}

INSTANTIATE(softmax_xent_forward)
INSTANTIATE(softmax_xent_backward)
INSTANTIATE(squared_error_forward)
INSTANTIATE(squared_error_backward)
