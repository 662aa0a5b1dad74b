// Activations by element: GELU (tanh), SwiGLU, ReLU, forward and backward.
//
// How: the forms of kernels/cpu/activation.inc: (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), so both GELU and SwiGLU need the logistic function only.
#include "kernels/cuda/map.h"
#include "kernels/cuda/set.h"

template <class W> DEVICE W logistic(W x)
{
    return 1 / (1 + exp_of(-x));
}

template <class W> DEVICE W gelu_logistic(W x)
{
    const W slope = (W)0.79788456080286535588 /* sqrt(2 / pi) */, cubic = (W)0.044715;
    return logistic(2 * slope * (x + cubic * x * x * x));
}

template <class S> struct gelu_forward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *x;
    S *y;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = load<N>(x + i);
        EACH(k, N) v[k] = v[k] * gelu_logistic(v[k]);
        store(y + i, v);
    }
};

template <class S> struct gelu_backward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *x, *dy;
    S *dx;
    static __device__ W derivative(W x)
    {
        const W slope = (W)0.79788456080286535588, cubic = (W)0.044715;
        W s = gelu_logistic(x), du = slope * (1 + 3 * cubic * x * x);
        return s + 2 * x * s * (1 - s) * du;
    }
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = load<N>(x + i), g = load<N>(dy + i);
        EACH(k, N) g[k] = g[k] * derivative(v[k]);
        store(dx + i, g);
    }
};

template <class S> struct swiglu_forward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *a, *b;
    S *y;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> u = load<N>(a + i), v = load<N>(b + i);
        EACH(k, N) u[k] = u[k] * logistic(u[k]) * v[k];
        store(y + i, u);
    }
};

template <class S> struct swiglu_backward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *a, *b, *dy;
    S *da, *db;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> u = load<N>(a + i), v = load<N>(b + i), g = load<N>(dy + i), du, dv;
        EACH(k, N)
        {
            W s = logistic(u[k]), dy_s = g[k] * s;
            dv[k] = u[k] * dy_s;
            du[k] = v[k] * dy_s * (1 + u[k] * (1 - s));
        }
        store(da + i, du);
        store(db + i, dv);
    }
};

// A NaN stays one: it is not below 0.
template <class S> struct relu_forward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *x;
    S *y;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = load<N>(x + i);
        EACH(k, N) v[k] = v[k] <= 0 ? 0 : v[k];
        store(y + i, v);
    }
};

template <class S> struct relu_backward_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    const S *x, *dy;
    S *dx;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = load<N>(x + i), g = load<N>(dy + i);
        EACH(k, N) g[k] = v[k] <= 0 ? 0 : g[k];
        store(dx + i, g);
    }
};

template <class S> void cuda_gelu_forward(int64_t n, const void *x, void *y)
{
    map(gelu_forward_op<S>{(const S *)x, (S *)y}, n, aligned(x, y));
}

template <class S> void cuda_gelu_backward(int64_t n, const void *x, const void *dy, void *dx)
{
    map(gelu_backward_op<S>{(const S *)x, (const S *)dy, (S *)dx}, n, aligned(x, dy, dx));
}

template <class S> void cuda_swiglu_forward(int64_t n, const void *a, const void *b, void *y)
{
    map(swiglu_forward_op<S>{(const S *)a, (const S *)b, (S *)y}, n, aligned(a, b, y));
}

template <class S> void cuda_swiglu_backward(int64_t n, const void *a, const void *b, const void *dy, void *da, void *db)
{
    map(swiglu_backward_op<S>{(const S *)a, (const S *)b, (const S *)dy, (S *)da, (S *)db}, n, aligned(a, b, dy, da, db));
}

template <class S> void cuda_relu_forward(int64_t n, const void *x, void *y)
{
    map(relu_forward_op<S>{(const S *)x, (S *)y}, n, aligned(x, y));
}

template <class S> void cuda_relu_backward(int64_t n, const void *x, const void *dy, void *dx)
{
    map(relu_backward_op<S>{(const S *)x, (const S *)dy, (S *)dx}, n, aligned(x, dy, dx));
}

INSTANTIATE(gelu_forward)
INSTANTIATE(gelu_backward)
INSTANTIATE(swiglu_forward)
INSTANTIATE(swiglu_backward)
INSTANTIATE(relu_forward)
INSTANTIATE(relu_backward)
