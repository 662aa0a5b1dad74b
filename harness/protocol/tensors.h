// Named tensors and their file format, safetensors.
//
// Layout of a file: u64 little-endian header length, JSON header {"name": {"dtype", "shape",
// "data_offsets": [begin, end]}, "__metadata__": {...}}, then the bytes. Source: the format's
// description at github.com/huggingface/safetensors. The reader trusts nothing: lengths, overlaps,
// dtypes, shapes, duplicate names and trailing bytes are checked, with one message each.
#ifndef FSDPMARK_TENSORS_H
#define FSDPMARK_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/protocol/error.h"
#include "kernels/dtype.h"

enum { TENSOR_MAX_DIMS = 8 };

struct tensor {
    char *name;
    enum dtype dtype;
    int dims;
    int64_t shape[TENSOR_MAX_DIMS];
    int64_t count;
    void *data;  // inside the set's mapping or owned, see struct tensors; 8-byte aligned copies
    bool owned;
};

struct tensors {
    int count, capacity;
    struct tensor *items; // sorted by nothing: the order of insertion
    void *mapping;        // of the file read, or NULL
    size_t mapping_bytes;
};

// Reads a whole file. Errors: "FILE: what, expected what". The set must be released.
bool tensors_read(const char *path, struct tensors *out, struct error *error);
// Same, from memory (used by the fuzzer); where names the source in messages. Copies what it keeps.
bool tensors_parse(const void *bytes, size_t size, const char *where, struct tensors *out, struct error *error);
// Writes to PATH.tmp, then renames.
bool tensors_write(const char *path, const struct tensors *set, struct error *error);
void tensors_free(struct tensors *set);

// Adds a tensor; data NULL allocates zeros (returned in ->data), else the bytes are copied if copy,
// or borrowed. Returns the item (valid until the next add), or NULL where the name exists already.
struct tensor *tensors_add(struct tensors *set, const char *name, enum dtype dtype, int dims,
                           const int64_t *shape, const void *data, bool copy);
struct tensor *tensors_find(const struct tensors *set, const char *name);
// find with a "prefix/" in front of the name.
struct tensor *tensors_find2(const struct tensors *set, const char *prefix, const char *name);

#endif
