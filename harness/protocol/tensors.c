// A set of named tensors: adding, finding, releasing. The file format is in safetensors.c. See tensors.h.
#include "harness/protocol/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness/protocol/memory.h"

struct tensor *tensors_find(const struct tensors *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (strcmp(set->items[i].name, name) == 0)
            return &set->items[i];
    return NULL;
}

struct tensor *tensors_find2(const struct tensors *set, const char *prefix, const char *name)
{
    size_t length = strlen(prefix);
    for (int i = 0; i < set->count; i++) {
        const char *whole = set->items[i].name;
        if (strncmp(whole, prefix, length) == 0 && whole[length] == '/' && strcmp(whole + length + 1, name) == 0)
            return &set->items[i];
    }
    return NULL;
}

struct tensor *tensors_add(struct tensors *set, const char *name, enum dtype dtype, int dims, const int64_t *shape,
                           const void *data, bool copy)
{
    if (dims < 0 || dims > TENSOR_MAX_DIMS || tensors_find(set, name))
        return NULL;
    struct tensor t = {.dtype = dtype, .dims = dims, .count = 1, .owned = copy || !data};
    for (int i = 0; i < dims; i++) {
        t.shape[i] = shape[i];
        t.count *= shape[i];
    }
    if (t.owned) {
        t.data = memory_zeros((size_t)t.count, dtype_size(dtype));
        if (data && t.count)
            memcpy(t.data, data, (size_t)t.count * dtype_size(dtype));
    } else
        memcpy(&t.data, &data, sizeof data); // borrowed: the caller knows whether it may be written
    t.name = memory_text(name);
    set->items = memory_grow(set->items, (size_t)set->count, sizeof *set->items);
    set->items[set->count] = t;
    return &set->items[set->count++];
}

void tensors_free(struct tensors *set)
{
    for (int i = 0; i < set->count; i++) {
        if (set->items[i].owned)
            free(set->items[i].data);
        free(set->items[i].name);
    }
    free(set->items);
    if (set->mapping)
        munmap(set->mapping, set->mapping_bytes);
    *set = (struct tensors){0};
}
