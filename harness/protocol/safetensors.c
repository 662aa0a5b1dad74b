// The safetensors format: reading with every length distrusted, and writing. See tensors.h.
//
// Layout: u64 little-endian length of the header, the header (JSON), the bytes of the tensors. The
// ranges of the tensors must cover these bytes without gap or overlap, as the format demands.
// A file is mapped privately; tensors whose bytes lie unaligned there are copied.
// Source: format description at github.com/huggingface/safetensors.
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/protocol/memory.h"
#include "harness/protocol/tensors.h"

enum { PREFIX_BYTES = 8, ALIGNMENT = 8, MAX_HEADER_BYTES = 64 << 20, MAX_TENSORS = 20000 };

static const char *const type_names[DTYPE_COUNT] = {
    [DTYPE_F32] = "F32", [DTYPE_F64] = "F64", [DTYPE_BF16] = "BF16", [DTYPE_F16] = "F16", [DTYPE_I32] = "I32", [DTYPE_I64] = "I64",
};

struct range { uint64_t begin, end; const char *name; };

struct parsing {
    const char *where;
    const unsigned char *bytes; // of the tensors
    uint64_t size;
    bool borrow;                // aligned bytes may be borrowed
    struct range *ranges;
    struct tensors *out;
    struct error *error;
};

static bool type_parse(const char *name, enum dtype *out)
{
    for (int i = 0; name && i < DTYPE_COUNT; i++)
        if (strcmp(name, type_names[i]) == 0) {
            *out = (enum dtype)i;
            return true;
        }
    return false;
}

static bool shape_parse(struct parsing *p, const char *name, json_t *list, struct tensor *t)
{
    if (!json_is_array(list) || json_array_size(list) > TENSOR_MAX_DIMS)
        return error_set(p->error, "%s: tensor '%.100s': found no shape, expected a list of at most %d sizes", p->where, name, TENSOR_MAX_DIMS);
    t->dims = (int)json_array_size(list);
    t->count = 1;
    for (int i = 0; i < t->dims; i++) {
        json_t *size = json_array_get(list, (size_t)i);
        t->shape[i] = json_integer_value(size);
        if (!json_is_integer(size) || t->shape[i] < 0)
            return error_set(p->error, "%s: tensor '%.100s': found a size that is no whole number of at least 0 in shape", p->where, name);
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count) || t->count > INT64_MAX / 8)
            return error_set(p->error, "%s: tensor '%.100s': found a shape of more elements than a file can hold", p->where, name);
    }
    return true;
}

static bool offsets_parse(struct parsing *p, const char *name, json_t *list, const struct tensor *t, struct range *range)
{
    json_t *begin = json_array_get(list, 0), *end = json_array_get(list, 1);
    if (json_array_size(list) != 2 || !json_is_integer(begin) || !json_is_integer(end) || json_integer_value(begin) < 0)
        return error_set(p->error, "%s: tensor '%.100s': found no data_offsets, expected two whole numbers", p->where, name);
    *range = (struct range){(uint64_t)json_integer_value(begin), (uint64_t)json_integer_value(end), name};
    if (json_integer_value(end) < json_integer_value(begin) || range->end > p->size)
        return error_set(p->error, "%s: tensor '%.100s': found data_offsets %" PRIu64 " to %" JSON_INTEGER_FORMAT ", expected a range within %" PRIu64 " bytes",
                         p->where, name, range->begin, json_integer_value(end), p->size);
    uint64_t bytes = (uint64_t)t->count * dtype_size(t->dtype);
    if (range->end - range->begin != bytes)
        return error_set(p->error, "%s: tensor '%.100s': found %" PRIu64 " bytes, expected %" PRIu64 " for its shape and dtype", p->where, name,
                         range->end - range->begin, bytes);
    return true;
}

static bool tensor_parse(struct parsing *p, const char *name, json_t *about, struct range *range)
{
    struct tensor t = {0};
    const char *type = json_string_value(json_object_get(about, "dtype")), *key;
    json_t *value;
    if (!json_is_object(about))
        return error_set(p->error, "%s: tensor '%.100s': found no object, expected dtype, shape and data_offsets", p->where, name);
    json_object_foreach(about, key, value) {
        if (strcmp(key, "dtype") && strcmp(key, "shape") && strcmp(key, "data_offsets"))
            return error_set(p->error, "%s: tensor '%.100s': found unknown field '%.60s', expected dtype, shape and data_offsets", p->where, name, key);
    }
    if (!type_parse(type, &t.dtype))
        return error_set(p->error, "%s: tensor '%.100s': found dtype '%.20s', expected one of F32, F64, BF16, F16, I32 or I64", p->where, name, type ? type : "");
    if (!shape_parse(p, name, json_object_get(about, "shape"), &t) ||
        !offsets_parse(p, name, json_object_get(about, "data_offsets"), &t, range))
        return false;
    const unsigned char *data = p->bytes + range->begin;
    bool borrow = p->borrow && (uintptr_t)data % dtype_size(t.dtype) == 0;
    struct tensors *out = p->out; // names are unique: the JSON reader rejected duplicates
    if (borrow)
        memcpy(&t.data, &data, sizeof data);
    else
        t.data = t.count ? memory_copy(data, (size_t)t.count, dtype_size(t.dtype)) : memory_zeros(0, 1);
    t.owned = !borrow;
    t.name = memory_text(name);
    out->items = memory_grow(out->items, (size_t)out->count, sizeof *out->items);
    out->items[out->count++] = t;
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool ranges_cover(struct parsing *p, int count)
{
    uint64_t at = 0;
    qsort(p->ranges, (size_t)count, sizeof *p->ranges, by_begin);
    for (int i = 0; i < count; i++) {
        if (p->ranges[i].begin != at)
            return error_set(p->error, "%s: tensor '%.100s': found bytes from %" PRIu64 ", expected them from %" PRIu64 " (%s)", p->where,
                             p->ranges[i].name, p->ranges[i].begin, at, p->ranges[i].begin < at ? "overlap" : "gap");
        at = p->ranges[i].end;
    }
    return at == p->size || error_set(p->error, "%s: found %" PRIu64 " bytes after the last tensor, expected none", p->where, p->size - at);
}

static bool metadata_parse(struct parsing *p, json_t *metadata)
{
    const char *key;
    json_t *value;
    bool fine = json_is_object(metadata);
    json_object_foreach(metadata, key, value)
        fine = fine && json_is_string(value);
    return fine || error_set(p->error, "%s: found no object of texts as __metadata__, expected one", p->where);
}

static bool header_parse(struct parsing *p, json_t *header)
{
    const char *name;
    json_t *about;
    int count = 0;
    if (!json_is_object(header))
        return error_set(p->error, "%s: found no object as header, expected tensors by name", p->where);
    if (json_object_size(header) > MAX_TENSORS)
        return error_set(p->error, "%s: found more than %d tensors, expected fewer", p->where, MAX_TENSORS);
    p->ranges = memory_zeros(json_object_size(header), sizeof *p->ranges);
    json_object_foreach(header, name, about) {
        bool meta = strcmp(name, "__metadata__") == 0;
        if (meta ? !metadata_parse(p, about) : !tensor_parse(p, name, about, &p->ranges[count]))
            return false;
        count += !meta;
    }
    return ranges_cover(p, count);
}

static bool parse(const unsigned char *bytes, size_t size, const char *where, bool borrow, struct tensors *out, struct error *error)
{
    uint64_t length;
    if (size < PREFIX_BYTES)
        return error_set(error, "%s: found %zu bytes, expected at least 8 (the header's length)", where, size);
    memcpy(&length, bytes, sizeof length);
    length = le64toh(length);
    if (length > size - PREFIX_BYTES || length > MAX_HEADER_BYTES)
        return error_set(error, "%s: found a header length of %" PRIu64 ", expected at most %zu", where, length,
                         size - PREFIX_BYTES < MAX_HEADER_BYTES ? size - PREFIX_BYTES : (size_t)MAX_HEADER_BYTES);
    json_error_t problem;
    json_t *header = json_loadb((const char *)bytes + PREFIX_BYTES, length, JSON_REJECT_DUPLICATES, &problem);
    if (!header)
        return error_set(error, "%s: found a header that is no JSON: %s", where, problem.text);
    struct parsing p = {.where = where, .bytes = bytes + PREFIX_BYTES + length, .size = size - PREFIX_BYTES - length,
                        .borrow = borrow, .out = out, .error = error};
    bool fine = header_parse(&p, header);
    free(p.ranges);
    json_decref(header);
    return fine;
}

bool tensors_parse(const void *bytes, size_t size, const char *where, struct tensors *out, struct error *error)
{
    *out = (struct tensors){0};
    bool fine = parse(bytes, size, where, false, out, error);
    if (!fine)
        tensors_free(out);
    return fine;
}

bool tensors_read(const char *path, struct tensors *out, struct error *error)
{
    *out = (struct tensors){0};
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &about) != 0) {
        error_set(error, "%s: %s, expected a safetensors file", path, strerror(errno));
        if (file >= 0)
            close(file);
        return false;
    }
    size_t size = S_ISREG(about.st_mode) ? (size_t)about.st_size : 0;
    void *mapping = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    int failure = errno;
    close(file);
    if (size && mapping == MAP_FAILED)
        return error_set(error, "%s: cannot be mapped: %s", path, strerror(failure));
    if (size) {
        out->mapping = mapping;
        out->mapping_bytes = size;
    }
    bool fine = parse(size ? mapping : (const void *)"", size, path, true, out, error);
    if (!fine)
        tensors_free(out);
    return fine;
}

static char *header_text(const struct tensors *set)
{
    json_t *header = json_object();
    uint64_t at = 0;
    for (int i = 0; i < set->count; i++) {
        const struct tensor *t = &set->items[i];
        json_t *shape = json_array();
        for (int k = 0; k < t->dims; k++)
            json_array_append_new(shape, json_integer(t->shape[k]));
        uint64_t end = at + (uint64_t)t->count * dtype_size(t->dtype);
        json_object_set_new(header, t->name, json_pack("{s:s,s:o,s:[I,I]}", "dtype", type_names[t->dtype], "shape", shape,
                                                       "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

// The header is padded with blanks so that the bytes start aligned.
static bool write_all(FILE *file, const struct tensors *set)
{
    char *text = header_text(set);
    if (!text)
        return false;
    size_t length = strlen(text), padding = (ALIGNMENT - length % ALIGNMENT) % ALIGNMENT;
    uint64_t prefix = htole64(length + padding);
    bool fine = fwrite(&prefix, sizeof prefix, 1, file) == 1 && fwrite(text, 1, length, file) == length &&
                fwrite("        ", 1, padding, file) == padding;
    for (int i = 0; fine && i < set->count; i++) {
        const struct tensor *t = &set->items[i];
        fine = t->count == 0 || fwrite(t->data, dtype_size(t->dtype), (size_t)t->count, file) == (size_t)t->count;
    }
    free(text);
    return fine;
}

bool tensors_write(const char *path, const struct tensors *set, struct error *error)
{
    char *part = memory_format("%s.tmp", path);
    FILE *file = fopen(part, "wb");
    bool fine = file && write_all(file, set);
    if (file)
        fine = (fclose(file) == 0) && fine;
    fine = fine && rename(part, path) == 0;
    if (!fine) {
        error_set(error, "%s: cannot be written: %s", path, strerror(errno));
        unlink(part);
    }
    free(part);
    return fine;
}
