// The kernel sets of the CUDA device, from the table, and the struct device over them.
#include "kernels/cuda/set.h"

#include "kernels/cuda/memory.h"
#include "kernels/cuda/mixed.h"

#define SET_ENTRY(returns, name, formula, flop, budget, source) cuda_##name<S>,
template <class S> static const struct kernel_set *set_of(enum dtype accumulation)
{
    static const struct kernel_set set = {type_of<S>::value, accumulation, KERNEL_TABLE(SET_ENTRY)};
    return &set;
}

const struct kernel_set *kernels_cuda(enum dtype storage)
{
    FOR_FLOAT_TYPE(storage, S, return set_of<S>(type_of<wide<S>>::value))
    return NULL;
}

// In the order of kernels/device.h: C++17 has no initialisers by name.
const struct device device_cuda = {
    "cuda", false, kernels_cuda, cuda_allocate, cuda_release, cuda_copy, cuda_clear, cuda_upload, cuda_download, cuda_cast, cuda_accumulate, cuda_fill, cuda_mean,
    cuda_optim_sgd, cuda_optim_adamw, cuda_norms, cuda_row_products, cuda_add_weighted_rows, cuda_weighted_sum, cuda_finish, cuda_failed,
};
