// Memory of the host, for backends whose device is the CPU.
#include "reference/backends/backend.h"

#include <stdlib.h>
#include <string.h>

void *backend_host_allocate(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, rounded ? rounded : 64);
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

void backend_host_release(void *memory) { free(memory); }

void backend_host_copy(void *dst, const void *src, size_t bytes) { memcpy(dst, src, bytes); }
