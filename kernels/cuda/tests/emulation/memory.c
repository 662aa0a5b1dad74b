// EMULATION, no GPU: device memory and pinned host memory. See memory.h.
#include "kernels/cuda/tests/emulation/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/tests/emulation/block.h"
#include "kernels/cuda/tests/emulation/queue.h"

enum { ALIGNMENT = 256, POISON = 0xff };
#define DEVICE_BYTES ((size_t)64 << 30)

struct region {
    struct region *next;
    unsigned char *at;
    size_t bytes;
    enum memory_place place;
    bool registered;    // pinned, of the caller
    unsigned char *map; // of a device region: guard page, pages, guard page
    size_t map_bytes;
};

static struct { struct region *regions; size_t used; bool open; } m;

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static bool fenced(void)
{
    static int known = -1;
    if (known < 0)
        known = emulation_number("FSDPMARK_EMULATION_FENCE", 1) != 0;
    return known == 1;
}

static void protect(const struct region *r, int how) { mprotect(r->map + page(), r->map_bytes - 2 * page(), how); }

static void set_open(bool open)
{
    if (m.open == open || !fenced())
        return;
    m.open = open;
    for (const struct region *r = m.regions; r; r = r->next)
        if (r->place == MEMORY_DEVICE)
            protect(r, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
void memory_open(void) { set_open(true); }
void memory_close(void) { set_open(false); }

// ---- finding ----

static struct region *find(const void *pointer)
{
    const unsigned char *p = pointer;
    for (struct region *r = m.regions; r; r = r->next)
        if (p >= r->at && (p < r->at + r->bytes || (r->bytes == 0 && p == r->at)))
            return r;
    return NULL;
}

enum memory_place memory_find(const void *pointer, size_t *left)
{
    const struct region *r = find(pointer);
    if (left)
        *left = r ? (size_t)(r->at + r->bytes - (const unsigned char *)pointer) : SIZE_MAX;
    return r ? r->place : MEMORY_HOST;
}

bool memory_describe(const void *address, char *text, size_t size)
{
    const unsigned char *p = address;
    for (const struct region *r = m.regions; r; r = r->next)
        if (r->place == MEMORY_DEVICE && p >= r->map && p < r->map + r->map_bytes) {
            bool inside = p >= r->at && p < r->at + r->bytes;
            snprintf(text, size, "%sbyte %td of a region of %zu bytes of device memory", inside ? "" : "out of bounds: ", p - r->at, r->bytes);
            return true;
        }
    return false;
}

bool emulation_argument(struct emulation_launch *launch, int index, const void *pointer)
{
    if (pointer == NULL || memory_find(pointer, NULL) != MEMORY_HOST)
        return true;
    for (const struct region *r = m.regions; r; r = r->next) // one past the end: of an array of no elements
        if (pointer == r->at + r->bytes)
            return true;
    emulation_fail(cudaErrorIllegalAddress, "kernel %s (launched at %s:%d): argument %d, %p, points to no memory of the device", launch->kernel, launch->file, launch->line,
                   index + 1, pointer);
    return false;
}

// ---- giving and taking ----

static void *keep(struct region r)
{
    struct region *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return NULL;
    r.next = m.regions;
    *kept = r;
    m.regions = kept;
    return r.at;
}

static struct region *unlink_region(const void *at, enum memory_place place)
{
    for (struct region **r = &m.regions; *r; r = &(*r)->next)
        if ((*r)->at == at && (*r)->place == place) {
            struct region *found = *r;
            *r = found->next;
            return found;
        }
    return NULL;
}

static void release(struct region *r)
{
    if (r->place == MEMORY_DEVICE) {
        munmap(r->map, r->map_bytes);
        m.used -= r->bytes;
    } else if (!r->registered) {
        free(r->at);
    }
    free(r);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (emulation_error() != cudaSuccess || memory == NULL)
        return emulation_result(emulation_error() != cudaSuccess ? emulation_error() : cudaErrorInvalidValue);
    *memory = NULL;
    if (bytes == 0)
        return cudaSuccess;
    if (bytes > DEVICE_BYTES - m.used)
        return emulation_result(cudaErrorMemoryAllocation);
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, pages = (rounded + page() - 1) / page() * page();
    unsigned char *map = mmap(NULL, pages + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return emulation_result(cudaErrorMemoryAllocation);
    struct region r = {.at = map + page() + pages - rounded, .bytes = bytes, .place = MEMORY_DEVICE, .map = map, .map_bytes = pages + 2 * page()};
    protect(&r, PROT_READ | PROT_WRITE);
    memset(map + page(), POISON, pages);
    if (fenced() && !m.open)
        protect(&r, PROT_NONE);
    if ((*memory = keep(r)) == NULL) {
        munmap(map, r.map_bytes);
        return emulation_result(cudaErrorMemoryAllocation);
    }
    m.used += bytes;
    fault_watch();
    return cudaSuccess;
}

static bool poisoned(const unsigned char *at, const unsigned char *end)
{
    while (at < end && *at == POISON)
        at++;
    return at == end;
}

// The bytes beside a region that share its first and last page are as they were.
static void check_edges(const struct region *r)
{
    const char *side = NULL;
    protect(r, PROT_READ);
    if (!poisoned(r->map + page(), r->at))
        side = "before";
    else if (!poisoned(r->at + r->bytes, r->map + r->map_bytes - page()))
        side = "behind";
    if (side)
        emulation_fail(cudaErrorIllegalAddress, "out of bounds: something was written %s a region of %zu bytes of device memory", side, r->bytes);
}

cudaError_t cudaFree(void *memory)
{
    queue_finish_all();
    struct region *r = memory ? unlink_region(memory, MEMORY_DEVICE) : NULL;
    if (memory != NULL && r == NULL)
        return emulation_result(cudaErrorInvalidValue);
    if (r) {
        check_edges(r);
        release(r);
    }
    return emulation_result(emulation_error());
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    if (emulation_error() != cudaSuccess || memory == NULL)
        return emulation_result(emulation_error() != cudaSuccess ? emulation_error() : cudaErrorInvalidValue);
    size_t rounded = (bytes + page() - 1) / page() * page();
    void *at = bytes > 0 ? aligned_alloc(page(), rounded) : NULL;
    *memory = at ? keep((struct region){.at = at, .bytes = bytes, .place = MEMORY_PINNED}) : NULL;
    if (at)
        memset(at, POISON, rounded);
    return bytes == 0 || *memory ? cudaSuccess : emulation_result(cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) { return cudaHostAlloc(memory, bytes, cudaHostAllocDefault); }

static cudaError_t let_go(void *memory, bool registered)
{
    queue_finish_all();
    struct region *r = memory ? unlink_region(memory, MEMORY_PINNED) : NULL;
    if (memory == NULL)
        return cudaSuccess;
    if (r == NULL || r->registered != registered)
        return emulation_result(cudaErrorInvalidValue);
    release(r);
    return emulation_result(emulation_error());
}
cudaError_t cudaFreeHost(void *memory) { return let_go(memory, false); }
cudaError_t cudaHostUnregister(void *memory) { return let_go(memory, true); }

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    (void)flags;
    if (memory == NULL || bytes == 0 || find(memory) != NULL)
        return emulation_result(cudaErrorInvalidValue);
    return keep((struct region){.at = memory, .bytes = bytes, .place = MEMORY_PINNED, .registered = true}) ? cudaSuccess
                                                                                                            : emulation_result(cudaErrorMemoryAllocation);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = DEVICE_BYTES - m.used;
    *total_bytes = DEVICE_BYTES;
    return emulation_result(emulation_error());
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    enum memory_place place = memory_find(pointer, NULL);
    void *at = (void *)(uintptr_t)pointer;
    *attributes = (struct cudaPointerAttributes){place == MEMORY_DEVICE ? cudaMemoryTypeDevice : place == MEMORY_PINNED ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered,
                                                 0, place == MEMORY_HOST ? NULL : at, place == MEMORY_DEVICE ? NULL : at};
    return cudaSuccess;
}

void memory_reset(void)
{
    while (m.regions) {
        struct region *r = m.regions;
        m.regions = r->next;
        release(r);
    }
}
