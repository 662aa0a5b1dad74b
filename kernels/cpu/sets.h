/* The builds of the CPU kernels, and the choice among them. */
#ifndef KERNELS_CPU_SETS_H
#define KERNELS_CPU_SETS_H

#include "kernels/kernels.h"

/* A second build for AVX2 exists on x86-64 with GCC; other compilers vectorise for their own target. */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define KERNELS_HAVE_AVX2 1
#else
#define KERNELS_HAVE_AVX2 0
#endif

extern const struct kernel_set kernels_f32_portable, kernels_f64_portable;
extern const struct kernel_set kernels_bf16, kernels_f16;
#if KERNELS_HAVE_AVX2
extern const struct kernel_set kernels_f32_avx2, kernels_f64_avx2;
#endif

/* Between float32 and a 16-bit type, n elements, arrays apart. */
struct convert_set {
    void (*bf16_to_f32)(int64_t n, const uint16_t *src, float *dst);
    void (*bf16_from_f32)(int64_t n, const float *src, uint16_t *dst);
    void (*f16_to_f32)(int64_t n, const uint16_t *src, float *dst);
    void (*f16_from_f32)(int64_t n, const float *src, uint16_t *dst);
};
extern const struct convert_set kernels_convert_portable;
#if KERNELS_HAVE_AVX2
extern const struct convert_set kernels_convert_avx2;
#endif

/* The build that this machine runs. */
const struct convert_set *kernels_convert(void);

#endif
