// EMULATION, no GPU: what CUDA C++ adds to C++, for a host's compiler, so that the sources of kernels run in tests on any machine. Tests only.
//
// What: the qualifiers, the index variables, barriers, shuffles, votes, atomics, SHARED_ARRAY, SHARED_DYNAMIC and LAUNCH (launch.h), and a few
//       intrinsic functions (emulation_math.h).
// How:  g++ -x c++ -std=c++17 -DFSDPMARK_EMULATION -ffp-contract=off -Ikernels/cuda/tests/include: included by the cuda_runtime.h there. A launch keeps the
//       kernel and its arguments, converted to the parameters' types; a thread is a call of it on a fiber (emulation/block.h).
// Not offered, so that it does not compile: atomics of floating point (their order is not fixed), fast approximations, dynamic parallelism.
#ifndef EMULATION_H
#define EMULATION_H

#ifndef FSDPMARK_EMULATION
#error "this is the emulation: compile with -DFSDPMARK_EMULATION, or use the toolkit's cuda_runtime.h"
#endif

#include <math.h>
#include <new>
#include <stdlib.h>
#include <tuple>
#include <type_traits>

#include "kernels/cuda/tests/emulation/block.h"
#include "kernels/cuda/tests/emulation_math.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

#define threadIdx emulation_thread_index
#define blockIdx emulation_block_index
#define blockDim emulation_block_size
#define gridDim emulation_grid_size
static const int warpSize = 32;

// ---- barriers, shuffles, votes: with the place that they are called from ----
#define __syncthreads() emulation_barrier(__FILE__, __LINE__)
#define __syncwarp(...) emulation_sync_warp(__FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(mask, value, ...) emulation_shuffle(EMULATION_INDEX, (mask), (value), __FILE__, __LINE__, __VA_ARGS__)
#define __shfl_up_sync(mask, value, ...) emulation_shuffle(EMULATION_UP, (mask), (value), __FILE__, __LINE__, __VA_ARGS__)
#define __shfl_down_sync(mask, value, ...) emulation_shuffle(EMULATION_DOWN, (mask), (value), __FILE__, __LINE__, __VA_ARGS__)
#define __shfl_xor_sync(mask, value, ...) emulation_shuffle(EMULATION_XOR, (mask), (value), __FILE__, __LINE__, __VA_ARGS__)
#define __ballot_sync(mask, predicate) static_cast<unsigned>(emulation_warp(EMULATION_BALLOT, (mask), (predicate) != 0, 0, 32, __FILE__, __LINE__))
#define __any_sync(mask, predicate) static_cast<int>(emulation_warp(EMULATION_ANY, (mask), (predicate) != 0, 0, 32, __FILE__, __LINE__))
#define __all_sync(mask, predicate) static_cast<int>(emulation_warp(EMULATION_ALL, (mask), (predicate) != 0, 0, 32, __FILE__, __LINE__))

static inline void emulation_sync_warp(const char *file, int line, unsigned mask = 0xffffffffu)
{
    emulation_warp(EMULATION_SYNC, mask, 0, 0, 32, file, line);
}

template <class T> static inline T emulation_shuffle(enum emulation_warp operation, unsigned mask, T value, const char *file, int line, int parameter, int width = 32)
{
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "a shuffle moves int, unsigned, 64-bit integers, float or double");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulation_warp(operation, mask, bits, parameter, width, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}

// ---- atomics: threads change at barriers only, so plain code is atomic ----
template <class T> static inline void emulation_atomic_type()
{
    static_assert(std::is_integral<T>::value && sizeof(T) >= 4, "atomics are offered for integers only: a sum of floating point needs a fixed order");
}
#define EMULATION_ATOMIC(name, result)                                                       \
    template <class T> static inline T name(T *at, std::common_type_t<T> value)              \
    {                                                                                        \
        emulation_atomic_type<T>();                                                          \
        T old = *at;                                                                         \
        *at = (result);                                                                      \
        return old;                                                                          \
    }
EMULATION_ATOMIC(atomicAdd, old + value)
EMULATION_ATOMIC(atomicSub, old - value)
EMULATION_ATOMIC(atomicMax, old > value ? old : value)
EMULATION_ATOMIC(atomicMin, old < value ? old : value)
EMULATION_ATOMIC(atomicExch, value)
EMULATION_ATOMIC(atomicAnd, old & value)
EMULATION_ATOMIC(atomicOr, old | value)
EMULATION_ATOMIC(atomicXor, old ^ value)
template <class T> static inline T atomicCAS(T *at, std::common_type_t<T> compare, std::common_type_t<T> value)
{
    emulation_atomic_type<T>();
    T old = *at;
    *at = old == compare ? value : old;
    return old;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

// ---- shared memory: a reference to an array, as `__shared__ type name[count]` is one ----
#define SHARED_ARRAY(type, name, count)                                                                        \
    static struct emulation_shared name##_shared = {#name, __FILE__, __LINE__, sizeof(type) * (count), 0, 0};  \
    type(&name)[count] = *reinterpret_cast<type(*)[count]>(emulation_shared(&name##_shared))
#define SHARED_DYNAMIC(type, name) type *name = reinterpret_cast<type *>(emulation_shared_dynamic())

// ---- launches ----
template <class... P> struct emulation_call {
    struct emulation_launch launch; // first: it is found by its address
    void (*kernel)(P...);
    std::tuple<P...> arguments;

    static void run(struct emulation_launch *launch)
    {
        emulation_call *call = reinterpret_cast<emulation_call *>(launch);
        std::apply(call->kernel, call->arguments);
    }
};

template <class T> static inline bool emulation_reachable(struct emulation_launch *launch, int index, const T &argument)
{
    if constexpr (std::is_pointer<T>::value)
        return emulation_argument(launch, index, reinterpret_cast<const void *>(argument));
    return true;
}

template <class... P, class... A>
static inline void emulation_launch_kernel(void (*kernel)(P...), const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                                           const char *file, int line, A &&...arguments)
{
    static_assert((std::is_trivially_copyable<P>::value && ...), "arguments of a kernel are copied byte by byte");
    using call_type = emulation_call<P...>;
    void *memory = malloc(sizeof(call_type));
    if (memory == nullptr)
        abort();
    call_type *call = new (memory) call_type{{call_type::run, reinterpret_cast<const void *>(kernel), name, file, line, grid, block, shared_bytes},
                                             kernel, std::tuple<P...>(static_cast<P>(arguments)...)};
    int index = 0;
    bool reachable = std::apply([&](const P &...a) { return (emulation_reachable(&call->launch, index++, a) && ... && true); }, call->arguments);
    if (reachable)
        emulation_launch(&call->launch, stream);
    else
        free(memory);
}

#define LAUNCH(kernel, grid, block, shared_bytes, lane, ...)                                                                             \
    do {                                                                                                                                 \
        emulation_launch_kernel(kernel, #kernel, (grid), (block), (shared_bytes), cuda_stream(lane), __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__); \
        launch_check(#kernel, (grid), (block), (shared_bytes), (lane), __PRETTY_FUNCTION__, __LINE__);                                   \
    } while (0)

#endif
