/* Loops between float32 and the 16-bit types, built for the compiler's default target. */
#include "kernels/cpu/sets.h"

#ifndef CONVERT_SET
#define CONVERT_SET kernels_convert_portable
#endif

#define CONVERT_LOOP(name, from, to)                                        \
    static void loop_##name(int64_t n, const from *restrict src, to *restrict dst) \
    {                                                                       \
        for (int64_t i = 0; i < n; i++)                                     \
            dst[i] = name(src[i]);                                          \
    }

CONVERT_LOOP(bf16_to_f32, uint16_t, float)
CONVERT_LOOP(bf16_from_f32, float, uint16_t)
CONVERT_LOOP(f16_to_f32, uint16_t, float)
CONVERT_LOOP(f16_from_f32, float, uint16_t)

const struct convert_set CONVERT_SET = {loop_bf16_to_f32, loop_bf16_from_f32, loop_f16_to_f32, loop_f16_from_f32};
