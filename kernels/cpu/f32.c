/* The float32 kernels, built for the compiler's default target. */
#ifndef KERNELS_SET
#define KERNELS_SET kernels_f32_portable
#endif
#define KERNELS_REAL_BITS 32
#include "kernels/cpu/set.inc"
