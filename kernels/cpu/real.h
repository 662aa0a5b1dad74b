/*
 * The arithmetic type of one build of the CPU kernels, and what C lacks for it: lanes and exp.
 *
 * What: REAL is float or double as KERNELS_REAL_BITS says 32 or 64. lanes is a vector of 32 bytes of them.
 * How:  sums run in LANES partial sums and a fixed tree at the end, so that they need no reassociation by
 *       the compiler: the bits are the same on every vector unit. Loops without sums are plain loops that
 *       the compiler vectorises. The float exp is branch-free for that reason; double takes the C library's.
 * Why:  the float64 build is the truth, the float32 build is what is timed; they share every formula.
 */
#ifndef KERNELS_CPU_REAL_H
#define KERNELS_CPU_REAL_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/dtype.h"

/* Vectors are returned by inlined functions only, so their calling convention is of no matter. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define INLINE static inline __attribute__((always_inline, unused))

#if KERNELS_REAL_BITS == 32
typedef float REAL;
typedef uint32_t BITS;
typedef int32_t SIGNED_BITS;
#define REAL_DTYPE DTYPE_F32
#define REAL_MATH(name) name##f
#define REAL_INFINITY_BITS 0x7f800000u
#define REAL_MAGNITUDE_BITS 0x7fffffffu
#else
typedef double REAL;
typedef uint64_t BITS;
typedef int64_t SIGNED_BITS;
#define REAL_DTYPE DTYPE_F64
#define REAL_MATH(name) name
#define REAL_INFINITY_BITS 0x7ff0000000000000u
#define REAL_MAGNITUDE_BITS 0x7fffffffffffffffu
#endif

typedef REAL lanes __attribute__((vector_size(32)));
typedef SIGNED_BITS lane_bits __attribute__((vector_size(32))); /* what a comparison of lanes yields */
enum { LANES = 32 / sizeof(REAL) };

/* Four elements as doubles: sums over whole tensors are formed in double. */
typedef REAL quad __attribute__((vector_size(4 * sizeof(REAL))));
typedef double quad_double __attribute__((vector_size(32)));

INLINE lanes lanes_load(const REAL *x)
{
    lanes value;
    memcpy(&value, x, sizeof value);
    return value;
}

INLINE quad_double quad_load(const REAL *x)
{
    quad value;
    memcpy(&value, x, sizeof value);
    return __builtin_convertvector(value, quad_double);
}

INLINE REAL lanes_sum(const lanes *partial)
{
    lanes v = *partial;
#if KERNELS_REAL_BITS == 32
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
#else
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

/* sum_i x[i] */
INLINE REAL real_sum(int64_t n, const REAL *x)
{
    lanes partial = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        partial += lanes_load(x + i);
    REAL sum = lanes_sum(&partial);
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* sum_i x[i] y[i] */
INLINE REAL real_dot(int64_t n, const REAL *x, const REAL *y)
{
    lanes partial = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        partial += lanes_load(x + i) * lanes_load(y + i);
    REAL sum = lanes_sum(&partial);
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* max_i x[i], n > 0; a NaN may be passed over: whoever takes exp(x - max) meets it again. */
INLINE REAL real_max(int64_t n, const REAL *x)
{
    lanes largest = x[0] - (lanes){0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes next = lanes_load(x + i);
        lane_bits greater = next > largest;
        largest = (lanes)(((lane_bits)next & greater) | ((lane_bits)largest & ~greater));
    }
    REAL max = largest[0];
    for (int l = 1; l < LANES; l++)
        max = largest[l] > max ? largest[l] : max;
    for (; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

#if KERNELS_REAL_BITS == 32
/*
 * exp(x) within 1.5 u of its value, u = 2^-24 (largest error seen at steps of 1e-5 from -87 to 88).
 * x = k ln 2 + r with |r| <= ln(2)/2, and exp(r) by its series to r^7/7!, whose remainder is below
 * r^8/8! < 0.1 u. ln 2 is split so that k times its upper part is exact. 2^k is applied in two factors,
 * because 2^-150 and 2^128 are no floats. |x| is clamped to 104, where exp is 0 or infinite already; on the
 * bits, because a comparison of floats might trap and keeps a loop from being vectorised.
 */
INLINE float real_exp(float x)
{
    const float round_to_integer = 0x1.8p23f;
    uint32_t bits = dtype_float_bits(x), magnitude = bits & 0x7fffffff;
    uint32_t clamped = magnitude > 0x42d00000 ? 0x42d00000 : magnitude;
    clamped = magnitude > 0x7f800000 ? magnitude : clamped;
    x = dtype_float_from_bits(clamped | (bits & 0x80000000));
    float shifted = x * 0x1.715476p0f + round_to_integer, k = shifted - round_to_integer;
    float r = (x - k * 0x1.63p-1f) + k * 0x1.bd0106p-13f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * (r * r) + r;
    p = p + 1.0f;
    int32_t exponent = (int32_t)(dtype_float_bits(shifted) - 0x4b400000u), half = exponent >> 1;
    float first = dtype_float_from_bits((uint32_t)(half + 127) << 23);
    float second = dtype_float_from_bits((uint32_t)(exponent - half + 127) << 23);
    return p * first * second;
}
#else
INLINE double real_exp(double x)
{
    return exp(x);
}
#endif

/* y[i] = exp(x[i] - shift), and their sum; y may be x. */
INLINE REAL real_exp_sum(int64_t n, const REAL *x, REAL shift, REAL *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = real_exp(x[i] - shift);
    return real_sum(n, y);
}

#endif
