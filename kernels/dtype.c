/*
 * Element types: the table of sizes and names, and access to one element by its type. See dtype.h.
 *
 * How: a double goes to 16 bits by way of a float that is rounded to odd: an inexact float gets its last
 *      bit set, so the second rounding sees on which side of a tie the double was.
 * Source: Boldo, Melquiond 2008, IEEE Trans. Computers 57(4), theorem 3 (a float has the 2 spare bits).
 */
#include "kernels/dtype.h"

#include <limits.h>
#include <math.h>

static const struct {
    const char *name;
    size_t size;
    double unit_roundoff; /* 0: not a floating-point type */
} type_table[DTYPE_COUNT] = {
    [DTYPE_F32] = {"f32", 4, 0x1p-24}, [DTYPE_F64] = {"f64", 8, 0x1p-53}, [DTYPE_BF16] = {"bf16", 2, 0x1p-8},
    [DTYPE_F16] = {"f16", 2, 0x1p-11}, [DTYPE_I32] = {"i32", 4, 0},       [DTYPE_I64] = {"i64", 8, 0},
};

static bool is_known(enum dtype type)
{
    return (unsigned)type < DTYPE_COUNT;
}

size_t dtype_size(enum dtype type)
{
    return is_known(type) ? type_table[type].size : 0;
}

const char *dtype_name(enum dtype type)
{
    return is_known(type) ? type_table[type].name : "?";
}

double dtype_unit_roundoff(enum dtype type)
{
    return is_known(type) ? type_table[type].unit_roundoff : 0;
}

bool dtype_is_float(enum dtype type)
{
    return dtype_unit_roundoff(type) > 0;
}

bool dtype_parse(const char *name, enum dtype *type)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(name, type_table[i].name) == 0) {
            *type = (enum dtype)i;
            return true;
        }
    return false;
}

/* value rounded to odd: toward 0, with the last bit set if that was inexact. */
static float f64_to_odd_f32(double value)
{
    float nearest = (float)value;
    if ((double)nearest == value || isnan(value))
        return nearest;
    uint32_t bits = dtype_float_bits(nearest);
    if (fabs((double)nearest) > fabs(value))
        bits--;
    return dtype_float_from_bits(bits | 1);
}

uint16_t bf16_from_f64(double value)
{
    return bf16_from_f32(f64_to_odd_f32(value));
}

uint16_t f16_from_f64(double value)
{
    return f16_from_f32(f64_to_odd_f32(value));
}

double dtype_get(enum dtype type, const void *array, int64_t i)
{
    switch (type) {
    case DTYPE_F32: return ((const float *)array)[i];
    case DTYPE_F64: return ((const double *)array)[i];
    case DTYPE_BF16: return bf16_to_f32(((const uint16_t *)array)[i]);
    case DTYPE_F16: return f16_to_f32(((const uint16_t *)array)[i]);
    case DTYPE_I32: return ((const int32_t *)array)[i];
    case DTYPE_I64: return (double)((const int64_t *)array)[i];
    }
    return NAN;
}

/* The nearest integer within [low, high], ties to even; both bounds are exact doubles or round up. */
static int64_t saturated(double value, int64_t low, int64_t high)
{
    if (isnan(value))
        return 0;
    double integer = nearbyint(value);
    if (integer <= (double)low)
        return low;
    return integer >= (double)high ? high : (int64_t)integer;
}

void dtype_set(enum dtype type, void *array, int64_t i, double value)
{
    switch (type) {
    case DTYPE_F32: ((float *)array)[i] = (float)value; break;
    case DTYPE_F64: ((double *)array)[i] = value; break;
    case DTYPE_BF16: ((uint16_t *)array)[i] = bf16_from_f64(value); break;
    case DTYPE_F16: ((uint16_t *)array)[i] = f16_from_f64(value); break;
    case DTYPE_I32: ((int32_t *)array)[i] = (int32_t)saturated(value, INT32_MIN, INT32_MAX); break;
    case DTYPE_I64: ((int64_t *)array)[i] = saturated(value, INT64_MIN, INT64_MAX); break;
    }
}
