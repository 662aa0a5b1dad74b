/* The conversion loops once more, built for AVX2. */
#include "kernels/cpu/sets.h"

#if KERNELS_HAVE_AVX2
#pragma GCC target("avx2")
#define CONVERT_SET kernels_convert_avx2
#include "kernels/cpu/convert.c"
#endif
