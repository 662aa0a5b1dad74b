// EMULATION, no GPU: device memory and pinned host memory, as regions of the host's. Tests only.
//
// What: each allocation stands alone between pages that nobody may touch, is filled with NaN patterns (0xff), and its end lies at the end of a
//       page (but for alignment to 256 bytes), so that running over it is noticed at once.
// How:  outside of emulated work, device memory may not be touched at all: the host that reads it directly dies with a message, as it would
//       with a GPU. FSDPMARK_EMULATION_FENCE=0 leaves it open.
#ifndef EMULATION_MEMORY_H
#define EMULATION_MEMORY_H

#include <cuda_runtime.h>

enum memory_place { MEMORY_HOST, MEMORY_PINNED, MEMORY_DEVICE };

// Where it lies; *left, which may be NULL: bytes from there to the region's end, unlimited for the host's own.
enum memory_place memory_find(const void *pointer, size_t *left);
// True, with a text, where the address is in or beside a region of device memory.
bool memory_describe(const void *address, char *text, size_t size);
// Device memory can be touched from now on; no longer.
void memory_open(void);
void memory_close(void);
void memory_reset(void);

#endif
