// The device's memory as the kernels use it: scratch, buffers that grow, results that the host waits for.
//
// How:  all kernels run on one stream in order, so one scratch serves them all: what a call leaves there is done with when the next one begins.
//       A buffer that must grow waits for the stream and is allocated anew; after one step of a program nothing grows any more.
#ifndef KERNELS_CUDA_MEMORY_H
#define KERNELS_CUDA_MEMORY_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_buffer {
    void *at;
    size_t bytes;
};

// At least so many bytes, undefined after growing; NULL, kept as a failure, where there is no memory.
void *cuda_buffer_reserve(struct cuda_buffer *buffer, size_t bytes);
void cuda_buffer_free(struct cuda_buffer *buffer);

// Scratch of one call. First each array's place is asked for, then all of it is taken at once.
size_t cuda_scratch_place(size_t *total, int64_t count, size_t size);
char *cuda_scratch_take(size_t total);

// Gives back everything that the kernels hold: scratch, tables, staging memory, the handle of the BLAS. cuda_close() calls it, with nothing running.
void cuda_kernels_close(void);
// Its parts, each by the file that has it.
void cuda_memory_close(void);
void cuda_blas_close(void);
void cuda_rope_close(void);
void cuda_measure_close(void);

// struct device's functions of memory.
void *cuda_allocate(size_t bytes);
void cuda_release(void *memory);
void cuda_copy(void *dst, const void *src, size_t bytes);
void cuda_clear(void *dst, size_t bytes);
void cuda_upload(void *dst, const void *host, size_t bytes);
void cuda_download(void *host, const void *src, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
