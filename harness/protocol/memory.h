// Small allocations that cannot fail: names, table rows, tree nodes.
//
// Running out of memory for a few bytes is not an input error that a caller could report; the
// process says so and aborts. Sizes that come from a file are checked against the file's size first;
// tensors are allocated in tensors.c and report their failure.
#ifndef FSDPMARK_MEMORY_H
#define FSDPMARK_MEMORY_H

#include <stddef.h>

// count elements of size bytes, all zero; never NULL.
void *memory_zeros(size_t count, size_t size);
// Grows an array of count elements so that one more fits; doubles at powers of two. New bytes are not set.
void *memory_grow(void *array, size_t count, size_t size);
// Copies; NULL stays NULL.
char *memory_text(const char *text);
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
// NULL where count is 0.
void *memory_copy(const void *bytes, size_t count, size_t size);

#endif
