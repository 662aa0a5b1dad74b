/* The kernels for binary16 storage. */
#define HALF kernels_f16
#define HALF_DTYPE DTYPE_F16
#include "kernels/cpu/half.inc"
