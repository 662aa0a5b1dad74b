// Small allocations that cannot fail. See memory.h.
#include "harness/protocol/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory, size_t bytes)
{
    if (memory)
        return memory;
    fprintf(stderr, "fsdpmark: out of memory for %zu bytes\n", bytes);
    abort();
}

static size_t product(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
        checked(NULL, SIZE_MAX);
    return bytes ? bytes : 1;
}

void *memory_zeros(size_t count, size_t size)
{
    size_t bytes = product(count, size);
    return checked(calloc(1, bytes), bytes);
}

void *memory_grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    size_t bytes = product(count ? 2 * count : 1, size);
    return checked(realloc(array, bytes), bytes);
}

void *memory_copy(const void *bytes, size_t count, size_t size)
{
    if (count == 0)
        return NULL;
    void *copy = memory_zeros(count, size);
    memcpy(copy, bytes, count * size);
    return copy;
}

char *memory_text(const char *text)
{
    return text ? memory_copy(text, strlen(text) + 1, 1) : NULL;
}

char *memory_format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return checked(length < 0 ? NULL : text, 0);
}
