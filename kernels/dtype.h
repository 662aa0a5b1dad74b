/*
 * Element types: their sizes, names, unit roundoffs and scalar conversions.
 *
 * What: the six types that tensors are stored in, and conversions to and from the two 16-bit float
 *       formats that C11 lacks.
 * How:  a bfloat16 is the upper half of a float; a binary16 is assembled from integers, so that the
 *       conversions do not depend on the machine. Every narrowing rounds to nearest, ties to even, once.
 * Why:  going from double to 16 bits by way of float rounds twice and is wrong for values that float
 *       rounds onto a tie; f64_to_odd_f32() therefore keeps a sticky last bit on the way.
 * Source: IEEE 754-2019, sections 3.6 and 4.3.1; bfloat16: 8 exponent bits, 7 fraction bits.
 */
#ifndef KERNELS_DTYPE_H
#define KERNELS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum dtype { DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16, DTYPE_I32, DTYPE_I64 };
enum { DTYPE_COUNT = DTYPE_I64 + 1 };

/* Bytes of one element; 0 for a value outside the enumeration. */
size_t dtype_size(enum dtype type);

/* "f32", "f64", "bf16", "f16", "i32", "i64"; "?" for a value outside the enumeration. */
const char *dtype_name(enum dtype type);

/* Finds the type of that name; false, and *type untouched, if there is none. */
bool dtype_parse(const char *name, enum dtype *type);

/* u = 2^-p for a significand of p bits: |fl(x) - x| <= u |x| in the normal range; 0 for integers. */
double dtype_unit_roundoff(enum dtype type);

/* True for the four floating-point types. */
bool dtype_is_float(enum dtype type);

/* Element i of an array of that type as a double (an i64 beyond 2^53 is rounded). */
double dtype_get(enum dtype type, const void *array, int64_t i);

/* array[i] = value, rounded once to nearest even; integers saturate, and take 0 for NaN. */
void dtype_set(enum dtype type, void *array, int64_t i, double value);

static inline uint32_t dtype_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float dtype_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* condition ? yes : no, without a branch, which would keep loops over it from being vectorised. */
static inline uint32_t dtype_select(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0 - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

/* The exact float of a bfloat16. */
static inline float bf16_to_f32(uint16_t half)
{
    return dtype_float_from_bits((uint32_t)half << 16);
}

/* Round to nearest even; a NaN stays one and becomes quiet; too large becomes infinite. */
static inline uint16_t bf16_from_f32(float value)
{
    uint32_t bits = dtype_float_bits(value);
    uint32_t quiet = bits >> 16 | 0x40;
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* The exact float of a binary16: the exponent's bias is mended by one multiplication. */
static inline float f16_to_f32(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t finite = dtype_float_bits(dtype_float_from_bits(magnitude) * 0x1p112f);
    uint32_t special = magnitude | 0x7f800000 | (magnitude > 0x0f800000 ? 0x00400000 : 0);
    return dtype_float_from_bits(sign | dtype_select(magnitude >= 0x0f800000, special, finite));
}

/* Round to nearest even; a NaN stays one and becomes quiet. Below 2^-14 the addition of 1/2, whose last
 * bit is worth 2^-24 as that of a subnormal binary16, does the rounding. */
static inline uint16_t f16_from_f32(float value)
{
    uint32_t bits = dtype_float_bits(value), magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t subnormal = dtype_float_bits(dtype_float_from_bits(magnitude) + 0.5f) - 0x3f000000;
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : 0x7c00;
    uint32_t finite = dtype_select(magnitude < 0x38800000, subnormal, normal);
    return (uint16_t)((bits >> 16 & 0x8000) | dtype_select(magnitude >= 0x47800000, special, finite));
}

/* Directly from double, rounded once. */
uint16_t bf16_from_f64(double value);
uint16_t f16_from_f64(double value);

#endif
