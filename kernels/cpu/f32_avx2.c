/* The float32 kernels once more, built for AVX2; without fused multiply-add, so that the bits stay the same. */
#include "kernels/cpu/sets.h"

#if KERNELS_HAVE_AVX2
#pragma GCC target("avx2")
#define KERNELS_SET kernels_f32_avx2
#include "kernels/cpu/f32.c"
#endif
