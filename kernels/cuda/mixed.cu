// Kernels between types: cast, accumulate, fill, and the mean that ends a reduction. See kernels/device.h, kernels/mixed.c and kernels/device.c.
//
// How: float where no float64 and no integer takes part, double otherwise, which is exact for every source but an int64; one rounding at the end.
#include "kernels/cuda/mixed.h"

#include "kernels/cuda/map.h"
#include "kernels/cuda/memory.h"

// The type that a pair is computed in.
template <class A, class B> struct wider { typedef float type; };
template <class B> struct wider<double, B> { typedef double type; };
template <class A> struct wider<A, double> { typedef double type; };
template <> struct wider<double, double> { typedef double type; };

template <class T> struct exact { typedef float type; };
template <> struct exact<double> { typedef double type; };
template <> struct exact<int32_t> { typedef double type; };
template <> struct exact<int64_t> { typedef double type; };

enum { MIXED_COUNT = 8 };

template <class From, class To> struct cast_op {
    typedef typename wider<typename exact<From>::type, typename exact<To>::type>::type W;
    static const int count = MIXED_COUNT;
    const From *src;
    To *dst;
    template <int N> __device__ void at(int64_t i) const { store(dst + i, load_as<N, W>(src + i)); }
};

template <class From, class To> struct accumulate_op {
    typedef typename wider<From, To>::type W;
    static const int count = MIXED_COUNT;
    const From *src;
    To *dst;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> x = load_as<N, W>(src + i), y = load_as<N, W>(dst + i);
        EACH(k, N) y[k] += x[k];
        store(dst + i, y);
    }
};

template <class Bits> struct fill_op {
    static const int count = in_pack<Bits>::value;
    Bits value;
    Bits *dst;
    template <int N> __device__ void at(int64_t i) const
    {
        pack<Bits, N> p;
        EACH(k, N) p.at[k] = value;
        *reinterpret_cast<pack<Bits, N> *>(dst + i) = p;
    }
};

// Q: what the quotient is formed in, P: the product and, with add, the sum.
template <class Sum, class To> struct mean_op {
    typedef wide<Sum> Q;
    typedef double P;
    static const int count = MIXED_COUNT;
    const Sum *sum;
    Q divisor;
    P factor;
    To *to;
    bool add;
    template <int N> __device__ void at(int64_t i) const
    {
        values<Q, N> q = load<N>(sum + i);
        values<P, N> old = {};
        if (add)
            old = load_as<N, P>(to + i);
        EACH(k, N)
        {
            Sum rounded;
            narrow(q[k] / divisor, &rounded);
            P product = (P)widen(rounded) * factor;
            old[k] = add ? old[k] + product : product;
        }
        store(to + i, old);
    }
};

struct mean_f32_op {
    static const int count = MIXED_COUNT;
    const float *sum;
    float divisor, factor;
    float *to;
    bool add;
    template <int N> __device__ void at(int64_t i) const
    {
        values<float, N> q = load<N>(sum + i), old = {};
        if (add)
            old = load<N>(to + i);
        EACH(k, N)
        {
            float product = q[k] / divisor * factor;
            old[k] = add ? old[k] + product : product;
        }
        store(to + i, old);
    }
};

template <class From, class To> static void cast_pair(int64_t n, const void *src, void *dst)
{
    map(cast_op<From, To>{(const From *)src, (To *)dst}, n, aligned(src, dst));
}

void cuda_cast(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst)
{
    if (n <= 0)
        return;
    if (src_type == dst_type) {
        cuda_copy(dst, src, (size_t)n * dtype_size(dst_type));
        return;
    }
    FOR_TYPE(src_type, From, FOR_TYPE(dst_type, To, cast_pair<From, To>(n, src, dst)))
}

template <class From, class To> static void accumulate_pair(int64_t n, const void *src, void *dst)
{
    map(accumulate_op<From, To>{(const From *)src, (To *)dst}, n, aligned(src, dst));
}

void cuda_accumulate(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst)
{
    FOR_FLOAT_TYPE(src_type, From, FOR_FLOAT_TYPE(dst_type, To, accumulate_pair<From, To>(n, src, dst)))
}

template <class Bits> static void fill_bits(int64_t n, const void *value, void *dst)
{
    Bits bits;
    memcpy(&bits, value, sizeof bits);
    map(fill_op<Bits>{bits, (Bits *)dst}, n, aligned(dst));
}

void cuda_fill(int64_t n, enum dtype type, void *dst, double value)
{
    uint64_t one = 0;
    dtype_set(type, &one, 0, value);
    switch (dtype_size(type)) {
    case 2: fill_bits<uint16_t>(n, &one, dst); break;
    case 4: fill_bits<uint32_t>(n, &one, dst); break;
    case 8: fill_bits<uint64_t>(n, &one, dst); break;
    default: break;
    }
}

template <class Sum, class To> static void mean_pair(int64_t n, const void *sum, double divisor, double factor, void *to, bool add)
{
    map(mean_op<Sum, To>{(const Sum *)sum, (wide<Sum>)divisor, factor, (To *)to, add}, n, aligned(sum, to));
}

void cuda_mean(int64_t n, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type, void *to, bool add)
{
    if (sum_type == DTYPE_F32 && to_type == DTYPE_F32)
        map(mean_f32_op{(const float *)sum, (float)divisor, (float)factor, (float *)to, add}, n, aligned(sum, to));
    else
        FOR_FLOAT_TYPE(sum_type, Sum, FOR_FLOAT_TYPE(to_type, To, mean_pair<Sum, To>(n, sum, divisor, factor, to, add)))
}
