// A stand-in for CUDA: the calls that the cuda probe wraps, over the host's memory. It computes nothing; it is for tests of the probe alone.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void *any;
struct pitched { void *at; size_t pitch, width, height; };
struct extent { size_t width, height, depth; };
enum { SUCCESS = 0, NO_MEMORY = 2, PITCH = 512 };

static int give(any *p, size_t n)
{
    if (n > (size_t)1 << 40)
        return NO_MEMORY;
    *p = malloc(1);
    return *p != NULL ? SUCCESS : NO_MEMORY;
}
static int take(any p)
{
    free(p);
    return SUCCESS;
}
static size_t pitch_of(size_t width) { return (width + PITCH - 1) / PITCH * PITCH; }

int cudaMalloc(any *p, size_t n) { return give(p, n); }
int cudaMallocAsync(any *p, size_t n, any stream) { return (void)stream, give(p, n); }
int cudaMallocFromPoolAsync(any *p, size_t n, any pool, any stream) { return (void)pool, (void)stream, give(p, n); }
int cudaMallocManaged(any *p, size_t n, unsigned flags) { return (void)flags, give(p, n); }
int cudaMallocPitch(any *p, size_t *pitch, size_t width, size_t height) { return *pitch = pitch_of(width), give(p, *pitch * height); }
int cudaMalloc3D(struct pitched *p, struct extent e)
{
    *p = (struct pitched){.pitch = pitch_of(e.width), .width = e.width, .height = e.height};
    return give(&p->at, p->pitch * e.height * e.depth);
}
int cudaFree(any p) { return take(p); }
int cudaFreeAsync(any p, any stream) { return (void)stream, take(p); }

static int give_number(uint64_t *p, size_t n)
{
    any block;
    int status = give(&block, n);
    if (status == SUCCESS)
        *p = (uint64_t)(uintptr_t)block;
    return status;
}
int cuMemAlloc_v2(uint64_t *p, size_t n) { return give_number(p, n); }
int cuMemAllocManaged(uint64_t *p, size_t n, unsigned flags) { return (void)flags, give_number(p, n); }
int cuMemAllocPitch_v2(uint64_t *p, size_t *pitch, size_t w, size_t h, unsigned e) { return (void)e, *pitch = pitch_of(w), give_number(p, *pitch * h); }
int cuMemAllocAsync(uint64_t *p, size_t n, any stream) { return (void)stream, give_number(p, n); }
int cuMemAllocFromPoolAsync(uint64_t *p, size_t n, any pool, any stream) { return (void)pool, (void)stream, give_number(p, n); }
int cuMemFree_v2(uint64_t p) { return take((any)(uintptr_t)p); }
int cuMemFreeAsync(uint64_t p, any stream) { return (void)stream, take((any)(uintptr_t)p); }
// Handles are small numbers, as close as they can be.
static uint64_t next;
void standin_again(void) { next = 0; } // the first handles come again
int cuMemCreate(uint64_t *handle, size_t n, const void *properties, unsigned long long flags)
{
    (void)properties, (void)flags;
    if (n > (size_t)1 << 40)
        return NO_MEMORY;
    *handle = ++next;
    return SUCCESS;
}
int cuMemRelease(uint64_t handle) { return handle != 0 ? SUCCESS : NO_MEMORY; }
int cuGetProcAddress_v2(const char *symbol, any *f, int version, uint64_t flags, any found)
{
    (void)version, (void)flags, (void)found;
    *f = strcmp(symbol, "cuMemCreate") == 0 ? (any)(uintptr_t)cuMemCreate : NULL;
    return *f != NULL ? SUCCESS : 1;
}
