// The one way to write and launch a kernel, for nvcc and for the emulation alike.
//
// What: LAUNCH(kernel, grid, block, shared_bytes, lane, arguments...) launches and checks; SHARED_ARRAY and SHARED_DYNAMIC are a block's shared memory.
//       Sizes of a grid come from launch_grid(): enough blocks to fill the device, each kernel strides over what is left.
// How:  under nvcc it is `<<< >>>`. Elsewhere (FSDPMARK_EMULATION, kernels/cuda/tests/emulation.h) the launch is queued in its stream as a call,
//       and threads are fibers; shared memory then comes from an allocator with guard pages, so it may not be declared in any other way.
// Rules: no other `<<< >>>`, `__shared__` or `extern __shared__`; warps have 32 threads, a block is a multiple of 32 threads and at most 1024; shuffles name
//       the full mask and every thread of the warp takes part; atomics only where the order of additions does not matter for the result's bits (integers,
//       maxima): sums of floating point have one fixed order, so that a run can be repeated to the bit.
#ifndef KERNELS_CUDA_LAUNCH_H
#define KERNELS_CUDA_LAUNCH_H

#include "kernels/cuda/cuda.h"

#define WARP 32
#define FULL_MASK 0xffffffffu

// Keeps the error of the launch that was just made. where: __PRETTY_FUNCTION__, which names the types of a template.
void launch_check(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, enum cuda_lane lane, const char *where, int line);
// Blocks for n elements, `each` of them by a block: at least 1, at most what fills the device a few times over.
unsigned launch_grid(int64_t n, int64_t each);

#ifdef FSDPMARK_EMULATION
#include "kernels/cuda/tests/emulation.h"
#else
#define SHARED_ARRAY(type, name, count) __shared__ __align__(16) type name[count]
#define SHARED_DYNAMIC(type, name)                    \
    extern __shared__ __align__(16) unsigned char dynamic_shared[]; \
    type *name = reinterpret_cast<type *>(dynamic_shared)
#define LAUNCH(kernel, grid, block, shared_bytes, lane, ...)                                     \
    do {                                                                                         \
        kernel<<<(grid), (block), (shared_bytes), cuda_stream(lane)>>>(__VA_ARGS__);             \
        launch_check(#kernel, (grid), (block), (shared_bytes), (lane), __PRETTY_FUNCTION__, __LINE__); \
    } while (0)
#endif
#endif
