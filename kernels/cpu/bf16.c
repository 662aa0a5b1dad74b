/* The kernels for bfloat16 storage. */
#define HALF kernels_bf16
#define HALF_DTYPE DTYPE_BF16
#include "kernels/cpu/half.inc"
