// The cuda probe: live bytes of device memory, by the runtime's and the driver's calls.
//
// How: a call that gives memory notes its bytes under the pointer or handle that it gave; one that frees it looks them up. Wrappers are made
//      from the tables below; every status here is 0 for success (cudaError_t, CUresult). Types are spelled by their size alone, so that
//      no CUDA header is needed: pointers, streams and pools are pointers, CUdeviceptr and CUmemGenericAllocationHandle 64 bits.
// Blind to: driver calls whose address a program asked for (dlsym of a handle, cuGetProcAddress, cudaGetDriverEntryPoint), which the first of
//      them shows as an unseen call; arrays, textures and host memory; memory of other processes; what a pool keeps after cudaFreeAsync.
// Source: CUDA Runtime API and CUDA Driver API reference manuals, memory management.
#include <stddef.h>
#include <string.h>

#include "harness/probes/preload/regions.h"
#include "harness/probes/recorder.h"

#define EXPORT __attribute__((visibility("default")))

static struct probe_regions held;

static void note(uint64_t key, int64_t bytes)
{
    struct probe_record r = {.kind = PROBE_DEVICE_LIVE, .bytes = bytes, .address = key};
    if (bytes != 0)
        probe_append(&r);
}

static void came(uint64_t key, uint64_t bytes)
{
    if (key == 0 || bytes == 0)
        return;
    note(key, -(int64_t)probe_regions_take(&held, key)); // what had that name went by a call that no wrapper saw
    if (probe_regions_put(&held, key, bytes))
        note(key, (int64_t)bytes);
    else
        probe_unseen(PROBE_MISSED_MEMORY, 0, "device memory (too many blocks)", 0);
}

// ---- the tables: X(name, parameters, arguments, where the pointer or handle is, bytes) and X(name, parameters, arguments, what is freed) ----
typedef void *any;
typedef uint64_t u64;
struct pitched { void *at; size_t pitch, width, height; };  // cudaPitchedPtr
struct extent { size_t width, height, depth; };              // cudaExtent
#define GIVES(X)                                                                                                                         \
    X(cudaMalloc, (any *p, size_t n), (p, n), *p, n)                                                                                     \
    X(cudaMallocAsync, (any *p, size_t n, any stream), (p, n, stream), *p, n)                                                            \
    X(cudaMallocFromPoolAsync, (any *p, size_t n, any pool, any stream), (p, n, pool, stream), *p, n)                                    \
    X(cudaMallocManaged, (any *p, size_t n, unsigned flags), (p, n, flags), *p, n)                                                       \
    X(cudaMallocPitch, (any *p, size_t *pitch, size_t width, size_t height), (p, pitch, width, height), *p, *pitch * height)             \
    X(cudaMalloc3D, (struct pitched *p, struct extent e), (p, e), p->at, p->pitch * e.height * e.depth)                                  \
    X(cuMemAlloc_v2, (u64 *p, size_t n), (p, n), *p, n)                                                                                  \
    X(cuMemAllocPitch_v2, (u64 *p, size_t *pitch, size_t w, size_t h, unsigned e), (p, pitch, w, h, e), *p, *pitch * h)                  \
    X(cuMemAllocManaged, (u64 *p, size_t n, unsigned flags), (p, n, flags), *p, n)                                                       \
    X(cuMemAllocAsync, (u64 *p, size_t n, any stream), (p, n, stream), *p, n)                                                            \
    X(cuMemAllocFromPoolAsync, (u64 *p, size_t n, any pool, any stream), (p, n, pool, stream), *p, n)                                    \
    X(cuMemCreate, (u64 *p, size_t n, const void *properties, unsigned long long flags), (p, n, properties, flags), *p, n)
#define FREES(X)                                                                                                                         \
    X(cudaFree, (any p), (p), p)                                                                                                         \
    X(cudaFreeAsync, (any p, any stream), (p, stream), p)                                                                                \
    X(cuMemFree_v2, (u64 p), (p), p)                                                                                                     \
    X(cuMemFreeAsync, (u64 p, any stream), (p, stream), p)                                                                               \
    X(cuMemRelease, (u64 p), (p), p)
// Their answer is a driver function, which no wrapper will see.
#define ASKS(X)                                                                                                                          \
    X(cudaGetDriverEntryPoint, (const char *s, any *f, unsigned long long flags, any q), (s, f, flags, q), s)                  \
    X(cudaGetDriverEntryPointByVersion, (const char *s, any *f, unsigned v, unsigned long long flags, any q), (s, f, v, flags, q), s) \
    X(cuGetProcAddress, (const char *s, any *f, int v, u64 flags), (s, f, v, flags), s)                                                  \
    X(cuGetProcAddress_v2, (const char *s, any *f, int v, u64 flags, any q), (s, f, v, flags, q), s)

#define CALL(name, parameters, arguments)                                                                                                \
    static int(*real) parameters;                                                                                                        \
    if (real == NULL)                                                                                                                    \
        *(any *)&real = probe_real(#name, (const void *)(uintptr_t)name);                                                         \
    int status = real arguments;
#define WRAP_GIVE(name, parameters, arguments, key, bytes)                                                                               \
    EXPORT int name parameters                                                                                                           \
    {                                                                                                                                    \
        CALL(name, parameters, arguments)                                                                                                \
        if (status == 0)                                                                                                                 \
            came((u64)(uintptr_t)(key), bytes);                                                                                          \
        return status;                                                                                                                   \
    }
#define WRAP_FREE(name, parameters, arguments, key)                                                                                      \
    EXPORT int name parameters                                                                                                           \
    {                                                                                                                                    \
        u64 bytes = probe_regions_take(&held, (u64)(uintptr_t)(key)); /* before another thread can get it */                             \
        note((u64)(uintptr_t)(key), -(int64_t)bytes);                                                                                    \
        CALL(name, parameters, arguments)                                                                                                \
        if (status != 0)                                                                                                                 \
            came((u64)(uintptr_t)(key), bytes);                                                                                          \
        return status;                                                                                                                   \
    }
#define WRAP_ASK(name, parameters, arguments, symbol)                                                                                    \
    EXPORT int name parameters                                                                                                           \
    {                                                                                                                                    \
        CALL(name, parameters, arguments)                                                                                                \
        if (status == 0 && gives_memory(symbol))                                                                                         \
            probe_unseen(PROBE_MISSED_MEMORY, 0, symbol, 0);                                                                             \
        return status;                                                                                                                   \
    }

#define NAME(name, ...) #name,
static bool gives_memory(const char *symbol)
{
    static const char *const names[] = {GIVES(NAME)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(names[i], "cu", 2) == 0 && strncmp(names[i], symbol, strcspn(names[i], "_")) == 0 && symbol[strcspn(names[i], "_")] == 0)
            return true;
    return false;
}

#define DECLARE(name, parameters, ...) EXPORT int name parameters;
GIVES(DECLARE)
FREES(DECLARE)
ASKS(DECLARE)
GIVES(WRAP_GIVE)
FREES(WRAP_FREE)
ASKS(WRAP_ASK)

static void __attribute__((constructor(103))) announce(void) { probe_loaded(PROBE_CUDA); }
