// EMULATION, no GPU: copies and fills, queued in their stream, with the toolkit's rules about the host's memory. Tests only.
//
// What: from pinned memory a copy reads when it runs, so that a host which overwrites it too early is seen; from pageable memory it takes
//       the bytes at the call. To pageable memory it has ended when the call returns. Both ends are checked: direction, and bounds of device memory.
// Source: CUDA Runtime API reference manual, "API synchronization behavior".
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/tests/emulation/memory.h"
#include "kernels/cuda/tests/emulation/queue.h"

struct copy {
    void *dst;
    const void *src; // NULL: the bytes follow
    int value;       // fill
    size_t bytes;
    unsigned char staged[];
};

static enum emulation_step run_copy(void *context)
{
    struct copy *c = context;
    memmove(c->dst, c->src ? c->src : c->staged, c->bytes);
    return EMULATION_DONE;
}

static enum emulation_step run_fill(void *context)
{
    struct copy *c = context;
    memset(c->dst, c->value, c->bytes);
    return EMULATION_DONE;
}

static bool fits(const void *pointer, size_t bytes, bool device, enum memory_place *place)
{
    size_t left;
    *place = memory_find(pointer, &left);
    return left >= bytes && (*place == MEMORY_DEVICE) == device;
}

static cudaError_t check(const void *dst, const void *src, size_t bytes, enum cudaMemcpyKind *kind, enum memory_place *to, enum memory_place *from)
{
    if (*kind == cudaMemcpyDefault)
        *kind = (enum cudaMemcpyKind)(2 * (memory_find(src, NULL) == MEMORY_DEVICE) + (memory_find(dst, NULL) == MEMORY_DEVICE));
    if ((unsigned)*kind > cudaMemcpyDeviceToDevice)
        return cudaErrorInvalidMemcpyDirection;
    bool to_device = *kind == cudaMemcpyHostToDevice || *kind == cudaMemcpyDeviceToDevice, from_device = *kind >= cudaMemcpyDeviceToHost;
    return fits(dst, bytes, to_device, to) && fits(src, bytes, from_device, from) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    enum memory_place to = MEMORY_DEVICE, from = MEMORY_DEVICE;
    if (emulation_error() != cudaSuccess || bytes == 0)
        return emulation_result(emulation_error());
    cudaError_t code = check(dst, src, bytes, &kind, &to, &from);
    bool staged = from == MEMORY_HOST;
    struct copy *c = code == cudaSuccess ? malloc(sizeof *c + (staged ? bytes : 0)) : NULL;
    if (c == NULL)
        return emulation_result(code != cudaSuccess ? code : cudaErrorMemoryAllocation);
    *c = (struct copy){.dst = dst, .src = staged ? NULL : src, .bytes = bytes};
    if (staged)
        memcpy(c->staged, src, bytes);
    code = queue_give(stream, "cudaMemcpyAsync", run_copy, c);
    if (code == cudaSuccess && to == MEMORY_HOST)
        code = cudaStreamSynchronize(stream);
    return code;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    cudaError_t code = cudaMemcpyAsync(dst, src, bytes, kind, NULL);
    bool within = memory_find(dst, NULL) == MEMORY_DEVICE && memory_find(src, NULL) == MEMORY_DEVICE;
    return code != cudaSuccess || within ? code : cudaStreamSynchronize(NULL);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    enum memory_place place;
    if (emulation_error() != cudaSuccess || bytes == 0)
        return emulation_result(emulation_error());
    struct copy *c = fits(dst, bytes, true, &place) ? malloc(sizeof *c) : NULL;
    if (c == NULL)
        return emulation_result(cudaErrorInvalidValue);
    *c = (struct copy){.dst = dst, .value = value, .bytes = bytes};
    return queue_give(stream, "cudaMemsetAsync", run_fill, c);
}

cudaError_t cudaMemset(void *dst, int value, size_t bytes) { return cudaMemsetAsync(dst, value, bytes, NULL); }
