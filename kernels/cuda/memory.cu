// Memory of the device, copies, scratch. See memory.h.
//
// Of the runtime: cudaMalloc, cudaFree, cudaMemsetAsync, cudaMemcpyAsync (device to device, both ways to the host), events with cudaEventDisableTiming.
// How: an upload goes by way of a ring of host memory that the device can copy from behind the host's back, so that the caller's memory is free at once and
//      the host waits for no kernel. A download waits first, with the deadline of every wait, and copies then: a copy to ordinary memory would wait without one.
#include "kernels/cuda/memory.h"

enum { UPLOAD_SLOTS = 4 };
static const size_t UPLOAD_BYTES = 1 << 20, PLACE = 256;

struct upload_slot {
    char *host;
    cudaEvent_t done;
    bool used;
};

static struct upload_slot slots[UPLOAD_SLOTS];
static int next_slot;
static struct cuda_buffer scratch;

// ---- buffers ----

void *cuda_buffer_reserve(struct cuda_buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->bytes)
        return buffer->at;
    cuda_buffer_free(buffer);
    if (buffer->at == NULL && CUDA_OK(cudaMalloc(&buffer->at, bytes)))
        buffer->bytes = bytes;
    else
        buffer->at = NULL;
    return buffer->at;
}

// Memory that a stuck stream may still write to is never given back.
void cuda_buffer_free(struct cuda_buffer *buffer)
{
    if (buffer->at != NULL && cuda_wait_lane(CUDA_COMPUTE, "memory to be given back"))
        (void)CUDA_OK(cudaFree(buffer->at));
    *buffer = {};
}

size_t cuda_scratch_place(size_t *total, int64_t count, size_t size)
{
    size_t place = *total;
    *total += ((size_t)count * size + PLACE - 1) / PLACE * PLACE;
    return place;
}

char *cuda_scratch_take(size_t total)
{
    return (char *)cuda_buffer_reserve(&scratch, total > 0 ? total : PLACE);
}

// ---- struct device ----

// Other streams may write to it at once, so it has been cleared when this returns.
void *cuda_allocate(size_t bytes)
{
    void *memory = NULL;
    size_t size = bytes > 0 ? bytes : PLACE;
    if (!CUDA_OK(cudaMalloc(&memory, size)))
        return NULL;
    if (CUDA_OK(cudaMemsetAsync(memory, 0, size, cuda_stream(CUDA_COMPUTE))) && cuda_wait_lane(CUDA_COMPUTE, "new memory to be cleared"))
        return memory;
    return NULL;
}

void cuda_release(void *memory)
{
    bool idle = true;
    for (int lane = 0; memory != NULL && lane < CUDA_LANES; lane++)
        idle = cuda_wait_lane((enum cuda_lane)lane, "memory to be given back") && idle;
    if (memory != NULL && idle)
        (void)CUDA_OK(cudaFree(memory));
}

void cuda_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes > 0)
        (void)CUDA_OK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, cuda_stream(CUDA_COMPUTE)));
}

void cuda_clear(void *dst, size_t bytes)
{
    if (bytes > 0)
        (void)CUDA_OK(cudaMemsetAsync(dst, 0, bytes, cuda_stream(CUDA_COMPUTE)));
}

static bool slot_ready(struct upload_slot *slot)
{
    if (slot->used)
        return cuda_wait(slot->done, "an earlier upload");
    if (slot->host == NULL)
        slot->host = (char *)cuda_host_allocate(UPLOAD_BYTES);
    slot->used = slot->host != NULL && CUDA_OK(cudaEventCreateWithFlags(&slot->done, cudaEventDisableTiming));
    return slot->used;
}

void cuda_upload(void *dst, const void *host, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += UPLOAD_BYTES) {
        struct upload_slot *slot = &slots[next_slot++ % UPLOAD_SLOTS];
        size_t count = bytes - done < UPLOAD_BYTES ? bytes - done : UPLOAD_BYTES;
        if (!slot_ready(slot))
            return;
        memcpy(slot->host, (const char *)host + done, count);
        if (!CUDA_OK(cudaMemcpyAsync((char *)dst + done, slot->host, count, cudaMemcpyHostToDevice, cuda_stream(CUDA_COMPUTE))) ||
            !CUDA_OK(cudaEventRecord(slot->done, cuda_stream(CUDA_COMPUTE))))
            return;
    }
}

void cuda_download(void *host, const void *src, size_t bytes)
{
    if (bytes > 0 && cuda_wait_lane(CUDA_COMPUTE, "results") &&
        CUDA_OK(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, cuda_stream(CUDA_COMPUTE))))
        (void)cuda_wait_lane(CUDA_COMPUTE, "a download");
}

// ---- the end ----

void cuda_memory_close(void)
{
    cuda_buffer_free(&scratch);
    for (int i = 0; i < UPLOAD_SLOTS; i++) {
        if (slots[i].used)
            (void)CUDA_OK(cudaEventDestroy(slots[i].done));
        cuda_host_release(slots[i].host);
        slots[i] = {};
    }
}

// Nothing can be given back while a stream is stuck.
void cuda_kernels_close(void)
{
    if (cuda_stream(CUDA_COMPUTE) == NULL || !cuda_wait_lane(CUDA_COMPUTE, "the end"))
        return;
    cuda_memory_close();
    cuda_rope_close();
    cuda_measure_close();
    cuda_blas_close();
}
