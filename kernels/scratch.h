/*
 * Scratch memory for kernels: a stack of temporary arrays, one pool a thread.
 *
 * How:  take() bumps a pointer within one block. What does not fit gets a block of its own, and once
 *       everything is released the pool grows to the peak, so that a second step allocates nothing.
 * Why:  no allocation inside a timed region; see kernels_scratch_reserve in kernels.h.
 */
#ifndef KERNELS_SCRATCH_H
#define KERNELS_SCRATCH_H

#include <stddef.h>

struct scratch_block;
struct scratch_mark {
    size_t used;
    struct scratch_block *overflow;
};

/* The present top of the stack; give it to scratch_release when the arrays taken since are done with. */
struct scratch_mark scratch_mark(void);
void scratch_release(struct scratch_mark mark);

/* count elements of size bytes each, 64-byte aligned; NULL, and kernels_take_error() set, without memory. */
void *scratch_take(size_t count, size_t size);

#endif
