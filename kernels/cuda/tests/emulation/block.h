// EMULATION, no GPU: runs a launch, block by block, each thread of a block as a fiber. Tests only.
//
// What: threads run until they end or wait: at a barrier for their block, in a warp operation (shuffle, vote, __syncwarp) for the lanes of its mask.
//       A wait that can never end is an error of the device that names kernel, block, who waits where and who does not.
// How:  blocks come in an order of the seed; within a block threads go up or down, by the seed, so that what one thread must not read before another
//       has written it, is read before in some block. Shared memory lies between guard pages and is filled with NaN for each block.
// Blind to: data races between two barriers that both orders survive, memory order, a thread that spins for another (it never ends).
#ifndef EMULATION_BLOCK_H
#define EMULATION_BLOCK_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- what emulation.h gives and asks for ----
struct emulation_launch {
    void (*run)(struct emulation_launch *launch); // the kernel, as one thread
    const void *function;
    const char *kernel, *file;
    int line;
    dim3 grid, block;
    size_t shared_bytes;
};
// Queues it; the memory, of malloc, is then the stream's. An impossible grid or block is what cudaGetLastError() gives.
void emulation_launch(struct emulation_launch *launch, cudaStream_t stream);
// An argument of a launch that is a pointer: cudaErrorInvalidValue and false where it is to memory that a device cannot reach.
bool emulation_argument(struct emulation_launch *launch, int index, const void *pointer);

extern uint3 emulation_thread_index, emulation_block_index;
extern dim3 emulation_block_size, emulation_grid_size;

enum emulation_warp { EMULATION_SYNC, EMULATION_INDEX, EMULATION_UP, EMULATION_DOWN, EMULATION_XOR, EMULATION_BALLOT, EMULATION_ANY, EMULATION_ALL };
void emulation_barrier(const char *file, int line);
uint64_t emulation_warp(enum emulation_warp operation, unsigned mask, uint64_t value, int parameter, int width, const char *file, int line);

// One shared array of a source; static there.
struct emulation_shared {
    const char *name, *file;
    int line;
    size_t bytes;
    uint64_t block; // the block that it was last given to
    unsigned char *at;
};
extern uint64_t emulation_block_serial;
void *emulation_shared_take(struct emulation_shared *array);
static inline void *emulation_shared(struct emulation_shared *array)
{
    return array->block == emulation_block_serial ? array->at : emulation_shared_take(array);
}
void *emulation_shared_dynamic(void);

// ---- within the emulation ----
// Ends the launch that runs, from one of its threads; returns where none runs.
void block_fail(cudaError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool block_running(void);
// A new block begins. Its end: false and a text where bytes beside an array were written.
void shared_begin(size_t dynamic_bytes);
bool shared_end(char *text, size_t size);
// True, with a text, where the address is in or beside a shared array.
bool shared_describe(const void *address, char *text, size_t size);
void fault_watch(void);
// Dynamic shared memory that the function may be launched with.
size_t device_shared_limit(const void *function);

#ifdef __cplusplus
}
#endif
#endif
