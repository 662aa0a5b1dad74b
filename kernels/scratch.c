/* The scratch pool of scratch.h, and the part of it that kernels.h makes public. */
#include "kernels/scratch.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/kernels.h"

enum { ALIGNMENT = 64 };

struct scratch_block {
    struct scratch_block *below; /* the overflow block taken before this one */
    size_t bytes;
};

static _Thread_local struct {
    char *base;                     /* the block that is reused */
    size_t bytes;                   /* its size */
    size_t used;                    /* taken from it */
    struct scratch_block *overflow; /* arrays that did not fit, latest first */
    size_t overflow_bytes;          /* their sum */
    size_t peak;                    /* largest used + overflow_bytes so far */
    int error;                      /* sticky until kernels_take_error */
} pool;

static void *fail(void)
{
    pool.error = ENOMEM;
    return NULL;
}

int kernels_scratch_reserve(size_t bytes)
{
    if (bytes <= pool.bytes)
        return 0;
    if (pool.used > 0 || bytes > SIZE_MAX - ALIGNMENT)
        return ENOMEM;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *base = aligned_alloc(ALIGNMENT, bytes);
    if (base == NULL)
        return ENOMEM;
    free(pool.base);
    pool.base = base;
    pool.bytes = bytes;
    return 0;
}

size_t kernels_scratch_bytes(void)
{
    return pool.bytes;
}

void kernels_scratch_free(void)
{
    scratch_release((struct scratch_mark){0, NULL});
    free(pool.base);
    pool.base = NULL;
    pool.bytes = pool.peak = 0;
}

int kernels_take_error(void)
{
    int error = pool.error;
    pool.error = 0;
    return error;
}

struct scratch_mark scratch_mark(void)
{
    return (struct scratch_mark){pool.used, pool.overflow};
}

static void *take_overflow(size_t bytes)
{
    struct scratch_block *block = aligned_alloc(ALIGNMENT, bytes + ALIGNMENT);
    if (block == NULL)
        return fail();
    *block = (struct scratch_block){pool.overflow, bytes};
    pool.overflow = block;
    pool.overflow_bytes += bytes;
    return (char *)block + ALIGNMENT;
}

void *scratch_take(size_t count, size_t size)
{
    if (count > (SIZE_MAX / 2) / size)
        return fail();
    size_t bytes = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    void *array;
    if (pool.overflow == NULL && bytes <= pool.bytes - pool.used) {
        array = pool.base + pool.used;
        pool.used += bytes;
    } else {
        array = take_overflow(bytes);
    }
    if (pool.used + pool.overflow_bytes > pool.peak)
        pool.peak = pool.used + pool.overflow_bytes;
    return array;
}

void scratch_release(struct scratch_mark mark)
{
    while (pool.overflow != mark.overflow) {
        struct scratch_block *block = pool.overflow;
        pool.overflow = block->below;
        pool.overflow_bytes -= block->bytes;
        free(block);
    }
    pool.used = mark.used;
    /* A failure to grow is no error: the next kernel overflows again, and reports if it cannot. */
    if (pool.used == 0 && pool.overflow == NULL && pool.peak > pool.bytes)
        (void)kernels_scratch_reserve(pool.peak);
}
