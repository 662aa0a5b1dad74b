/* Which build of the CPU kernels this machine runs, and how many threads the BLAS may use. */
#include <cblas.h>
#include <stddef.h>

#include "kernels/cpu/sets.h"


#if KERNELS_HAVE_AVX2
#define CHOOSE(name) (__builtin_cpu_supports("avx2") ? &name##_avx2 : &name##_portable)
#else
#define CHOOSE(name) (&name##_portable)
#endif

const struct kernel_set *kernels_cpu(enum dtype storage)
{
    switch (storage) {
    case DTYPE_F32: return CHOOSE(kernels_f32);
    case DTYPE_F64: return CHOOSE(kernels_f64);
    case DTYPE_BF16: return &kernels_bf16;
    case DTYPE_F16: return &kernels_f16;
    default: return NULL;
    }
}

const struct convert_set *kernels_convert(void)
{
    return CHOOSE(kernels_convert);
}

enum dtype kernels_acc_dtype(enum dtype storage)
{
    return storage == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

void kernels_set_threads(int count)
{
    openblas_set_num_threads(count < 1 ? 1 : count);
}
