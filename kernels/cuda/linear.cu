// Linear kernels: matrix product, bias, residual sum, lookup in a table, scale.
#include "kernels/cuda/blas.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/set.h"

// ---- by element ----

template <class S> struct add_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *x;
    S *y;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> a = load<N>(x + i), b = load<N>(y + i);
        EACH(k, N) b[k] += a[k];
        store(y + i, b);
    }
};

// x times a factor, and zeros for a factor of 0 that stands for "not read".
template <class S> struct scale_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    W factor;
    bool clear;
    S *x;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = {};
        if (!clear)
            v = load<N>(x + i);
        EACH(k, N) v[k] *= factor;
        store(x + i, v);
    }
};

// A pack lies within one row where C is a multiple of it.
template <class S> struct bias_add_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    int64_t C;
    const S *bias;
    S *y;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> b = load<N>(bias + i % C), v = load<N>(y + i);
        EACH(k, N) v[k] += b[k];
        store(y + i, v);
    }
};

template <class S> struct lookup_op {
    static const int count = in_pack<S>::value;
    int64_t C;
    const int32_t *tokens;
    const S *table;
    S *out;
    template <int N> __device__ void at(int64_t i) const
    {
        typedef pack<S, N> P;
        int64_t r = i / C, c = i - r * C;
        *reinterpret_cast<P *>(out + i) = *reinterpret_cast<const P *>(table + tokens[r] * C + c);
    }
};

template <class S> void cuda_add(int64_t n, const void *x, void *y)
{
    map(add_op<S>{(const S *)x, (S *)y}, n, aligned(x, y));
}

template <class S> void cuda_scale(int64_t n, double alpha, void *x)
{
    map(scale_op<S>{(wide<S>)alpha, false, (S *)x}, n, aligned(x));
}

template <class S> void cuda_bias_add_forward(int64_t rows, int64_t C, const void *bias, void *y)
{
    map(bias_add_op<S>{C, (const S *)bias, (S *)y}, rows * C, aligned(bias, y) && C % bias_add_op<S>::count == 0);
}

template <class S> void cuda_embedding_forward(int64_t rows, int64_t C, int64_t V, const int32_t *tokens, const void *table, void *out)
{
    (void)V;
    map(lookup_op<S>{C, tokens, (const S *)table, (S *)out}, rows * C, aligned(table, out) && C % lookup_op<S>::count == 0);
}

// ---- the transpose of a bias ----

template <class S> void cuda_bias_backward(int64_t rows, int64_t C, const void *dy, void *dbias)
{
    const int N = in_pack<S>::value;
    if (rows == 0 || C == 0)
        return;
    int64_t each = chunk_rows(rows, 1 + 512 * 256 / (C + 256), 64), chunks = (rows + each - 1) / each, width = WARP * N;
    size_t total = 0;
    cuda_scratch_place(&total, chunks * C, sizeof(wide<S>));
    wide<S> *partial = (wide<S> *)cuda_scratch_take(total);
    if (partial == NULL)
        return;
    LAUNCH((column_sums<S, N>), dim3((unsigned)((C + width - 1) / width), (unsigned)chunks), dim3(WARP, COLUMN_LANES), 0, CUDA_COMPUTE, rows, C, each, (const S *)dy,
           aligned(dy) && C % N == 0, partial);
    finish_columns(C, chunks, C, partial, (S *)dbias);
}

// ---- products ----

template <class S> void cuda_matmul(bool trans_a, bool trans_b, int64_t M, int64_t N, int64_t K, double alpha, const void *a, const void *b, double beta, void *c)
{
    if (K == 0) {
        map(scale_op<S>{(wide<S>)beta, beta == 0, (S *)c}, M * N, aligned(c));
        return;
    }
    struct product p = {trans_a, trans_b, M, N, K, alpha, beta, trans_a ? M : K, trans_b ? K : N, N, 1, 0, 0, 0};
    cuda_product(type_of<S>::value, type_of<S>::value, &p, a, b, c);
}

INSTANTIATE(matmul)
INSTANTIATE(bias_add_forward)
INSTANTIATE(bias_backward)
INSTANTIATE(add)
INSTANTIATE(embedding_forward)
INSTANTIATE(scale)
