/* The float64 kernels, built for the compiler's default target. */
#ifndef KERNELS_SET
#define KERNELS_SET kernels_f64_portable
#endif
#define KERNELS_REAL_BITS 64
#include "kernels/cpu/set.inc"
