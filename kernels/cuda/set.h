// The CUDA kernels' prototypes, from the table: cuda_NAME<S> for each row, S the storage type.
//
// How: a .cu file defines template <class S> void cuda_NAME(...) and says INSTANTIATE(NAME), which makes the four; set.cu puts them into sets.
#ifndef KERNELS_CUDA_SET_H
#define KERNELS_CUDA_SET_H

#include "kernels/cuda/number.h"

#define CUDA_PROTOTYPE(returns, name, formula, flop, budget, source) template <class S> returns cuda_##name(KERNEL_PARAMETERS(name));
KERNEL_TABLE(CUDA_PROTOTYPE)
#undef CUDA_PROTOTYPE

#define INSTANTIATE_RETURNING(returns, name)                    \
    template returns cuda_##name<float>(KERNEL_PARAMETERS(name)); \
    template returns cuda_##name<double>(KERNEL_PARAMETERS(name)); \
    template returns cuda_##name<bf16>(KERNEL_PARAMETERS(name)); \
    template returns cuda_##name<f16>(KERNEL_PARAMETERS(name));
#define INSTANTIATE(name) INSTANTIATE_RETURNING(void, name)

#endif
