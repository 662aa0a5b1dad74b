// The values of buffers: integers that are exact in the type, different for every rank, iteration and element. See worker.h.
//
// Why a hash: an element that is stale, misplaced, of another rank or summed twice has another value, whatever the size. Integers of 8 bits are exact in
// bfloat16 (8 bits of significand and a sign); those of 24 - log2(n) bits have exact sums in float32, partial ones included.
#include <string.h>

#include "harness/net/worker/worker.h"

static uint32_t mix(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

uint32_t values_key(uint64_t seed, int rank, int64_t iteration, int lane)
{
    uint32_t h = mix((uint32_t)seed ^ mix((uint32_t)(seed >> 32) + (uint32_t)lane));
    h = mix(h + (uint32_t)rank * 0x9e3779b1u);
    return mix(h ^ mix((uint32_t)iteration) ^ (uint32_t)((uint64_t)iteration >> 32));
}

int values_bits(enum dtype type, int ranks)
{
    int spare = 0;
    while (1 << spare < ranks)
        spare++;
    int bits = type == DTYPE_BF16 || type == DTYPE_F16 ? 8 - spare : 24 - spare; // float64 has room for more, and no need
    return bits < 1 ? 1 : bits;
}

static inline int32_t value_of(uint32_t key, uint32_t index, int bits)
{
    uint32_t h = (index + key) * 0x9e3779b1u;
    h ^= h >> 15;
    h *= 0x85ebca6bu;
    return (int32_t)(h >> (32 - bits)) - (1 << (bits - 1));
}

// The bfloat16 of an integer that it holds exactly: the upper half of the float.
static inline uint16_t bf16_of(int32_t value) { return (uint16_t)(dtype_float_bits((float)value) >> 16); }

void values_fill(enum dtype type, void *to, int64_t count, uint32_t key, int64_t first, int bits)
{
    if (type == DTYPE_F32)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = (float)value_of(key, (uint32_t)(first + i), bits);
    else if (type == DTYPE_F64)
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[i] = (double)value_of(key, (uint32_t)(first + i), bits);
    else
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = bf16_of(value_of(key, (uint32_t)(first + i), bits));
}

enum { BLOCK = 1024 };

static void expect(int32_t *out, int count, const uint32_t *keys, int n, uint32_t first, int bits)
{
    memset(out, 0, (size_t)count * sizeof *out);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < count; i++)
            out[i] += value_of(keys[r], first + (uint32_t)i, bits);
}

static int differing(enum dtype type, const void *found, int64_t at, int count, const int32_t *expected)
{
    int wrong = 0;
    if (type == DTYPE_F32)
        for (int i = 0; i < count; i++)
            wrong += ((const float *)found)[at + i] != (float)expected[i];
    else if (type == DTYPE_F64)
        for (int i = 0; i < count; i++)
            wrong += ((const double *)found)[at + i] != (double)expected[i];
    else
        for (int i = 0; i < count; i++)
            wrong += ((const uint16_t *)found)[at + i] != bf16_of(expected[i]);
    return wrong;
}

void values_check(enum dtype type, const void *found, int64_t count, const uint32_t *keys, int n, int64_t first, int bits, struct mismatch *out)
{
    int32_t expected[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        int part = count - at < BLOCK ? (int)(count - at) : BLOCK;
        expect(expected, part, keys, n, (uint32_t)(first + at), bits);
        int wrong = differing(type, found, at, part, expected);
        for (int i = 0; wrong > 0 && out->count == 0 && i < part; i++)
            if (differing(type, found, at + i, 1, expected + i) > 0) {
                *out = (struct mismatch){0, first + at + i, dtype_get(type, found, at + i), expected[i]};
                break;
            }
        out->count += wrong;
    }
}
