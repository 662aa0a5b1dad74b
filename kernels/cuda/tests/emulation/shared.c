// EMULATION, no GPU: a block's shared memory, each array between guard pages. See block.h.
//
// How: an array ends at the end of its pages, so that the first access behind it faults; up to 15 bytes of alignment, and what is left of its first page,
//      hold a pattern that is looked at when the block ends. Within the page it is filled with 0xff: NaN in every type.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/tests/emulation/block.h"

enum { ARRAYS_MAX = 16, ARRAY_BYTES_MAX = 256 << 10, ALIGNMENT = 16, FRONT_BYTES = 128, PATTERN = 0xa5, POISON = 0xff };

static struct {
    unsigned char *pool; // ARRAYS_MAX times a guard page and ARRAY_BYTES_MAX; a guard page
    size_t page;
    struct emulation_shared *arrays[ARRAYS_MAX];
    int count;
    struct emulation_shared dynamic;
} s = {.dynamic = {.name = "SHARED_DYNAMIC", .file = "launch", .line = 0}};

static size_t stride(void) { return ARRAY_BYTES_MAX + s.page; }
static unsigned char *end_of(int slot) { return s.pool + (size_t)(slot + 1) * stride(); }
static size_t rounded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }
// Bytes before an array that can be written and are watched.
static size_t front_of(size_t bytes)
{
    size_t pages = (rounded(bytes) + s.page - 1) / s.page * s.page, spare = pages - rounded(bytes);
    return spare < FRONT_BYTES ? spare : FRONT_BYTES;
}

static bool reserve(void)
{
    s.page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, ARRAYS_MAX * stride() + s.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    s.pool = memory == MAP_FAILED ? NULL : memory;
    return s.pool != NULL;
}

void shared_begin(size_t dynamic_bytes)
{
    s.count = 0;
    s.dynamic.bytes = dynamic_bytes;
}

// Only the pages that an array needs can be touched, so that its front is guarded too.
static bool guard(int slot, size_t bytes)
{
    size_t pages = (rounded(bytes) + s.page - 1) / s.page * s.page;
    unsigned char *end = end_of(slot);
    return mprotect(end - ARRAY_BYTES_MAX, ARRAY_BYTES_MAX - pages, PROT_NONE) == 0 && mprotect(end - pages, pages, PROT_READ | PROT_WRITE) == 0;
}

void *emulation_shared_take(struct emulation_shared *array)
{
    static size_t guarded[ARRAYS_MAX]; // for that many bytes of array
    int slot = s.count;
    if (slot == ARRAYS_MAX || array->bytes == 0 || array->bytes > ARRAY_BYTES_MAX)
        block_fail(cudaErrorLaunchFailure, "shared memory %s (%s:%d) of %zu bytes: expected 1 to %d bytes, and at most %d arrays", array->name, array->file, array->line,
                   array->bytes, ARRAY_BYTES_MAX, ARRAYS_MAX);
    if ((s.pool == NULL && !reserve()) || (guarded[slot] != array->bytes && !guard(slot, array->bytes)))
        block_fail(cudaErrorMemoryAllocation, "no memory for shared memory");
    guarded[slot] = array->bytes;
    s.arrays[s.count++] = array;
    array->at = end_of(slot) - rounded(array->bytes);
    array->block = emulation_block_serial;
    memset(array->at, POISON, array->bytes);
    memset(array->at + array->bytes, PATTERN, rounded(array->bytes) - array->bytes);
    memset(array->at - front_of(array->bytes), PATTERN, front_of(array->bytes));
    return array->at;
}

void *emulation_shared_dynamic(void) { return emulation_shared(&s.dynamic); }

static bool untouched(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != PATTERN)
            return false;
    return true;
}

bool shared_end(char *text, size_t size)
{
    for (int i = 0; i < s.count; i++) {
        const struct emulation_shared *a = s.arrays[i];
        bool before = untouched(a->at - front_of(a->bytes), front_of(a->bytes)), after = untouched(a->at + a->bytes, rounded(a->bytes) - a->bytes);
        if (!before || !after) {
            snprintf(text, size, "out of bounds: something was written %s shared memory %s (%s:%d) of %zu bytes", before ? "behind" : "before", a->name, a->file, a->line,
                     a->bytes);
            return false;
        }
    }
    return true;
}

bool shared_describe(const void *address, char *text, size_t size)
{
    const unsigned char *at = address;
    if (s.pool == NULL || at < s.pool || at >= s.pool + ARRAYS_MAX * stride() + s.page)
        return false;
    const struct emulation_shared *nearest = NULL;
    ptrdiff_t best = PTRDIFF_MAX;
    for (int i = 0; i < s.count; i++) {
        const struct emulation_shared *a = s.arrays[i];
        ptrdiff_t distance = at < a->at ? a->at - at : at - (a->at + a->bytes);
        if (distance < best) {
            best = distance;
            nearest = a;
        }
    }
    if (nearest == NULL)
        snprintf(text, size, "out of bounds: shared memory, with no array in use");
    else
        snprintf(text, size, "out of bounds: byte %td of shared memory %s (%s:%d) of %zu bytes", at - nearest->at, nearest->name, nearest->file, nearest->line, nearest->bytes);
    return true;
}
