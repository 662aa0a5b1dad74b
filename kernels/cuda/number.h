// The element types on the device: how each is widened, computed with, and rounded once.
//
// What: bf16 and f16 are structs of 16 bits; wide<T> is what T is computed in (float, double for double); widen() and narrow() convert.
//       values<W, N> are N numbers in registers, load<N>() and store() move them between memory and registers, 16 bytes at a time where they can.
// How:  one source for nvcc and the host's compiler: only the binary16 conversions differ, the toolkit's there, kernels/dtype.h here. double goes to 16 bits
//       by way of a float rounded to odd, as in kernels/dtype.c. Files are compiled without contraction, so x * y + z rounds twice, as on the CPU.
// Why:  the kernels are written once, for all four types.
#ifndef KERNELS_CUDA_NUMBER_H
#define KERNELS_CUDA_NUMBER_H

#include <math.h>

#include "kernels/cuda/launch.h"

#ifndef FSDPMARK_EMULATION
#include <cuda_fp16.h>
#endif

#define DEVICE static __device__ __forceinline__

struct bf16 { uint16_t bits; };
struct f16 { uint16_t bits; };

template <class T> struct number { typedef float wide; };
template <> struct number<double> { typedef double wide; };
template <class T> using wide = typename number<T>::wide;

template <class T> struct type_of;
template <> struct type_of<float> { static const enum dtype value = DTYPE_F32; };
template <> struct type_of<double> { static const enum dtype value = DTYPE_F64; };
template <> struct type_of<bf16> { static const enum dtype value = DTYPE_BF16; };
template <> struct type_of<f16> { static const enum dtype value = DTYPE_F16; };
template <> struct type_of<int32_t> { static const enum dtype value = DTYPE_I32; };
template <> struct type_of<int64_t> { static const enum dtype value = DTYPE_I64; };

// Runs the statement with NAME standing for the C type of that dtype; statements nest.
#define CASE_TYPE(TYPE, NAME, C_TYPE, ...) case TYPE: { typedef C_TYPE NAME; __VA_ARGS__; } break;
#define FOR_FLOAT_TYPE(type, NAME, ...)                                                          \
    switch (type) {                                                                              \
        CASE_TYPE(DTYPE_F32, NAME, float, __VA_ARGS__) CASE_TYPE(DTYPE_F64, NAME, double, __VA_ARGS__) \
        CASE_TYPE(DTYPE_BF16, NAME, bf16, __VA_ARGS__) CASE_TYPE(DTYPE_F16, NAME, f16, __VA_ARGS__) \
        default: break;                                                                          \
    }
#define FOR_TYPE(type, NAME, ...)                                                                \
    switch (type) {                                                                              \
        CASE_TYPE(DTYPE_F32, NAME, float, __VA_ARGS__) CASE_TYPE(DTYPE_F64, NAME, double, __VA_ARGS__) \
        CASE_TYPE(DTYPE_BF16, NAME, bf16, __VA_ARGS__) CASE_TYPE(DTYPE_F16, NAME, f16, __VA_ARGS__) \
        CASE_TYPE(DTYPE_I32, NAME, int32_t, __VA_ARGS__) CASE_TYPE(DTYPE_I64, NAME, int64_t, __VA_ARGS__) \
    }

// ---- bits ----

DEVICE uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, sizeof bits); return bits; }
DEVICE uint64_t bits_of(double x) { uint64_t bits; memcpy(&bits, &x, sizeof bits); return bits; }
DEVICE float float_of(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }

// Toward 0, with the last bit set if that was inexact: rounding again to 16 bits then rounds as if once.
DEVICE float to_odd(double x)
{
    float nearest = (float)x;
    if ((double)nearest == x || x != x)
        return nearest;
    uint32_t bits = bits_of(nearest);
    if (fabs((double)nearest) > fabs(x))
        bits--;
    return float_of(bits | 1);
}

// ---- 16 bits ----

DEVICE uint16_t bf16_bits(float x)
{
    uint32_t bits = bits_of(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

#ifdef FSDPMARK_EMULATION
DEVICE uint16_t f16_bits(float x) { return f16_from_f32(x); }
DEVICE float f16_value(uint16_t bits) { return f16_to_f32(bits); }
#else
DEVICE uint16_t f16_bits(float x) { return __half_as_ushort(__float2half_rn(x)); }
DEVICE float f16_value(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
#endif

DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE float widen(bf16 x) { return float_of((uint32_t)x.bits << 16); }
DEVICE float widen(f16 x) { return f16_value(x.bits); }
DEVICE double widen(int32_t x) { return (double)x; }
DEVICE double widen(int64_t x) { return (double)x; }

// The nearest integer, ties to even; saturates, 0 for NaN.
DEVICE int64_t saturated(double x, int64_t low, int64_t high)
{
    if (x != x)
        return 0;
    double integer = rint(x);
    return integer <= (double)low ? low : integer >= (double)high ? high : (int64_t)integer;
}

template <class W> DEVICE void narrow(W x, float *to) { *to = (float)x; }
template <class W> DEVICE void narrow(W x, double *to) { *to = (double)x; }
DEVICE void narrow(float x, bf16 *to) { to->bits = bf16_bits(x); }
DEVICE void narrow(double x, bf16 *to) { to->bits = bf16_bits(to_odd(x)); }
DEVICE void narrow(float x, f16 *to) { to->bits = f16_bits(x); }
DEVICE void narrow(double x, f16 *to) { to->bits = f16_bits(to_odd(x)); }
DEVICE void narrow(double x, int32_t *to) { *to = (int32_t)saturated(x, INT32_MIN, INT32_MAX); }
DEVICE void narrow(double x, int64_t *to) { *to = saturated(x, INT64_MIN, INT64_MAX); }

// ---- the functions of a formula, in its type ----

DEVICE float exp_of(float x) { return expf(x); }
DEVICE double exp_of(double x) { return exp(x); }
DEVICE float log_of(float x) { return logf(x); }
DEVICE double log_of(double x) { return log(x); }
DEVICE float root_of(float x) { return sqrtf(x); }
DEVICE double root_of(double x) { return sqrt(x); }
template <class W> DEVICE W larger(W a, W b) { return a > b ? a : b; }
DEVICE float infinity_of(float) { return float_of(0x7f800000); }
DEVICE double infinity_of(double) { return (double)float_of(0x7f800000); }

// ---- N at a time ----

template <class W, int N> struct values {
    W at[N];
    __device__ __forceinline__ W &operator[](int k) { return at[k]; }
    __device__ __forceinline__ const W &operator[](int k) const { return at[k]; }
};
// So aligned that a compiler moves it by instructions of 16 bytes (or all of it, where it is less).
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) pack {
    T at[N];
};
// Elements of T in 16 bytes.
template <class T> struct in_pack { static const int value = 16 / (int)sizeof(T); };
#ifdef FSDPMARK_EMULATION
#define EACH(k, N) for (int k = 0; k < (N); k++)
#else
#define EACH(k, N) _Pragma("unroll") for (int k = 0; k < (N); k++) // else at[] would be memory
#endif

// from[0 .. N-1], aligned as pack is, widened.
template <int N, class W, class T> DEVICE values<W, N> load_as(const T *from)
{
    pack<T, N> p = *reinterpret_cast<const pack<T, N> *>(from);
    values<W, N> v;
    EACH(k, N) v[k] = (W)widen(p.at[k]);
    return v;
}
template <int N, class T> DEVICE values<wide<T>, N> load(const T *from) { return load_as<N, wide<T>>(from); }

template <class T, class W, int N> DEVICE void store(T *to, const values<W, N> &v)
{
    pack<T, N> p;
    EACH(k, N) narrow(v[k], &p.at[k]);
    *reinterpret_cast<pack<T, N> *>(to) = p;
}

// The same for the first `count` of them, others are 0; packed: from is aligned. Which thread has which element so depends on no alignment.
template <int N, class T> DEVICE values<wide<T>, N> load_part(const T *from, int64_t count, bool packed)
{
    if (packed && count >= N)
        return load<N>(from);
    values<wide<T>, N> v;
    EACH(k, N) v[k] = k < count ? widen(from[k]) : wide<T>(0);
    return v;
}

template <class T, class W, int N> DEVICE void store_part(T *to, const values<W, N> &v, int64_t count, bool packed)
{
    if (packed && count >= N) {
        store(to, v);
        return;
    }
    EACH(k, N) if (k < count) narrow(v[k], &to[k]);
}

// True where all the pointers given are NULL or aligned to 16 bytes.
static inline bool aligned(void) { return true; }
template <class... Rest> static inline bool aligned(const void *first, Rest... rest) { return (uintptr_t)first % 16 == 0 && aligned(rest...); }

#endif
