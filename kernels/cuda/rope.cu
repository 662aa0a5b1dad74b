// Rotary position embedding: pairs (i, i + D/2) turn by t theta^(-2i/D).
//
// How: cosines and sines are computed in double and rounded once, as on the CPU, and kept for the next call with the same T, D, theta and type: every layer of
//      a model asks for the same ones. The backward turns by the opposite angle.
#include "kernels/cuda/map.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/set.h"

static struct {
    struct cuda_buffer memory; // (T, 2, D/2): cosines, then sines, of each position
    int64_t T, half;
    double theta;
    enum dtype type;
} table;

template <class W> struct table_op {
    static const int count = 1;
    int64_t half;
    double theta;
    W *to;
    template <int N> __device__ void at(int64_t i) const
    {
        int64_t t = i / half, k = i % half;
        double angle = (double)t * pow(theta, -(double)k / (double)half);
        to[2 * t * half + k] = (W)cos(angle);
        to[(2 * t + 1) * half + k] = (W)sin(angle);
    }
};

template <class W> static const W *turns(int64_t T, int64_t half, double theta)
{
    W *memory = (W *)cuda_buffer_reserve(&table.memory, (size_t)(2 * T * half) * sizeof(W));
    if (memory != NULL && (table.T != T || table.half != half || table.theta != theta || table.type != type_of<W>::value)) {
        map(table_op<W>{half, theta, memory}, T * half, false);
        table.T = T, table.half = half, table.theta = theta, table.type = type_of<W>::value;
    }
    return memory;
}

void cuda_rope_close(void)
{
    cuda_buffer_free(&table.memory);
    table.T = table.half = 0;
}

// i counts pairs: a pack of them lies within one head where D/2 is a multiple of it.
template <class S> struct turn_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    int64_t T, H, half;
    W direction;
    const W *turn;
    S *x;
    template <int N> __device__ void at(int64_t i) const
    {
        int64_t head = i / half, k0 = i - head * half;
        const W *angle = turn + head / H % T * 2 * half + k0;
        S *low = x + head * 2 * half + k0, *high = low + half;
        values<W, N> a = load<N>(low), b = load<N>(high), c = load<N>(angle), s = load<N>(angle + half), u, v;
        EACH(k, N)
        {
            W sine = direction * s[k];
            u[k] = a[k] * c[k] - b[k] * sine;
            v[k] = b[k] * c[k] + a[k] * sine;
        }
        store(low, u);
        store(high, v);
    }
};

template <class S> static void turn_heads(int64_t B, int64_t T, int64_t H, int64_t D, double theta, double direction, void *x)
{
    typedef wide<S> W;
    int64_t half = D / 2, pairs = B * T * H * half;
    const W *turn = pairs > 0 ? turns<W>(T, half, theta) : NULL;
    if (turn != NULL)
        map(turn_op<S>{T, H, half, (W)direction, turn, (S *)x}, pairs, aligned(x) && half % turn_op<S>::count == 0);
}

template <class S> void cuda_rope_forward(int64_t B, int64_t T, int64_t H, int64_t D, double theta, void *x)
{
    turn_heads<S>(B, T, H, D, theta, 1, x);
}

template <class S> void cuda_rope_backward(int64_t B, int64_t T, int64_t H, int64_t D, double theta, void *dx)
{
    turn_heads<S>(B, T, H, D, theta, -1, dx);
}

INSTANTIATE(rope_forward)
INSTANTIATE(rope_backward)
