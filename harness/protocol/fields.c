// Reading a mapping into a struct by its table of fields. See fields.h.
#include "harness/protocol/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

enum { MAX_FIELDS = 64, MAX_LIST = 1000000 };

#define AT(type, base, offset) ((type *)((char *)(base) + (offset)))

const struct field *field_find(const struct field *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

bool field_error(struct reading *r, const struct field *f, const struct node *node, const char *expected)
{
    char found[96];
    int path = (int)strlen(r->path) - (!*f->name && *r->path); // an element without name of its own: no dot at the end
    return node_error(r->document, node, r->error, "%.*s%s: found %s, expected %s", path, r->path, f->name,
                      node_describe(node, found, sizeof found), expected);
}

bool field_unknown(struct reading *r, const struct node *node, int line, const char *name, const char *const *expected)
{
    char list[512];
    const char *near = nearest_name(name, expected);
    struct node place = {.line = line ? line : node->line};
    return node_error(r->document, &place, r->error, "found unknown field '%s%.60s'%s%s%s, expected %s%s", r->path, name,
                      near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", *expected && expected[1] ? "one of " : "",
                      name_list(expected, list, sizeof list));
}

// Extends the path of messages by one level; the old length is what leave needs.
static size_t enter(struct reading *r, const char *name, int index)
{
    size_t length = strlen(r->path), space = sizeof r->path - length;
    if (name && *name)
        snprintf(r->path + length, space, "%.40s.", name);
    else if (index >= 0)
        snprintf(r->path + length, space, "%d.", index);
    return length;
}

static bool read_integer(struct reading *r, const struct field *f, const struct node *node, int64_t least, int64_t most, int64_t *out)
{
    if (node_integer(node, out) && *out >= least && *out <= most)
        return true;
    char expected[96] = "a whole number";
    if (least == most)
        snprintf(expected, sizeof expected, "%" PRId64, least);
    else if (most < INT32_MAX)
        snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, least, most);
    else if (least > -INT32_MAX)
        snprintf(expected, sizeof expected, "a whole number of at least %" PRId64, least);
    return field_error(r, f, node, expected);
}

static bool read_whole(struct reading *r, const struct field *f, const struct node *node, int64_t *out)
{
    bool bounded = f->least != 0 || f->most != 0, wide = f->kind == FIELD_INT64 || f->kind == FIELD_SHAPE;
    int64_t highest = wide ? INT64_MAX : INT32_MAX;
    int64_t least = bounded ? (int64_t)f->least : -highest;
    int64_t most = bounded && f->most < 0x1p31 ? (int64_t)f->most : highest;
    return read_integer(r, f, node, least, most, out);
}

static bool read_double(struct reading *r, const struct field *f, const struct node *node, double *out)
{
    char expected[96];
    double value;
    if (!node_number(node, &value) || (!f->nonfinite && !isfinite(value)))
        return field_error(r, f, node, f->nonfinite ? "a number" : "a finite number");
    bool bounded = f->least != 0 || f->most != 0 || f->above;
    if (bounded && isfinite(value) && (value < f->least || value > f->most || (f->above && value <= f->least))) {
        if (isinf(f->most))
            snprintf(expected, sizeof expected, "a number %s %g", f->above ? "above" : "of at least", f->least);
        else
            snprintf(expected, sizeof expected, "a number %s %g, at most %g", f->above ? "above" : "of at least", f->least, f->most);
        return field_error(r, f, node, expected);
    }
    *out = value;
    return true;
}

static int name_index(const char *const *names, const struct node *node)
{
    for (int i = 0; node && node->kind == NODE_SCALAR && names[i]; i++)
        if (strcmp(names[i], node->text) == 0)
            return i;
    return -1;
}

static bool read_name(struct reading *r, const struct field *f, const struct node *node, int *out)
{
    char list[256], expected[300];
    int index = name_index(f->names, node);
    if (index < 0) {
        snprintf(expected, sizeof expected, "%s%s", f->names[1] ? "one of " : "", name_list(f->names, list, sizeof list));
        return field_error(r, f, node, expected);
    }
    *out = index;
    return true;
}

static bool read_flags(struct reading *r, const struct field *f, const struct node *node, unsigned *out)
{
    unsigned flags = 0;
    if (node && node->kind == NODE_SCALAR) { // one name alone
        int bit;
        if (!read_name(r, f, node, &bit))
            return false;
        *out = 1u << bit;
        return true;
    }
    if (!node || node->kind != NODE_SEQUENCE || node->count == 0)
        return field_error(r, f, node, "a list of names");
    for (int i = 0; i < node->count; i++) {
        int bit;
        if (!read_name(r, f, node->items[i], &bit))
            return false;
        flags |= 1u << bit;
    }
    *out = flags;
    return true;
}

static bool read_pair(struct reading *r, const struct field *f, const struct node *node, int *out)
{
    if (!node || node->kind != NODE_SEQUENCE || node->count != 2)
        return field_error(r, f, node, "a list of two whole numbers");
    for (int i = 0; i < 2; i++) {
        int64_t value;
        if (!read_integer(r, f, node->items[i], (int64_t)f->least, (int64_t)f->most, &value))
            return false;
        out[i] = (int)value;
    }
    return true;
}

static bool read_shape(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    int64_t count = 1, shape[16];
    char expected[64];
    snprintf(expected, sizeof expected, "a list of 1 to %zu sizes", f->span);
    if (!node || node->kind != NODE_SEQUENCE || node->count < 1 || node->count > (int)f->span)
        return field_error(r, f, node, expected);
    for (int i = 0; i < node->count; i++) {
        if (!read_integer(r, f, node->items[i], 1, INT64_MAX, &shape[i]))
            return false;
        if (__builtin_mul_overflow(count, shape[i], &count) || count > (int64_t)1 << 40)
            return field_error(r, f, node->items[i], "a tensor of at most 2^40 elements");
    }
    memcpy(AT(int64_t, base, f->offset), shape, (size_t)node->count * sizeof *shape);
    *AT(int, base, f->count_offset) = node->count;
    return true;
}

static bool read_tagged(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    if (!node || node->kind != NODE_MAPPING)
        return field_error(r, f, node, "a mapping");
    const struct field tag = {f->tag, FIELD_ENUM, .names = f->names};
    const struct node *kind = node_get(node, f->tag);
    int *value = AT(int, base, f->offset), chosen = *value;
    size_t length = enter(r, f->name, -1);
    if (!kind && (!r->partial || chosen < 0))
        return node_error(r->document, node, r->error, "%s%s: found nothing, expected this field", r->path, f->tag);
    if (kind && !read_name(r, &tag, kind, &chosen))
        return false;
    *value = chosen;
    r->path[length] = 0;
    const struct field inner = {f->name, FIELD_OBJECT, f->offset, .object = &f->object[chosen], .tag = f->tag};
    return field_read(r, &inner, node, base);
}

// Frees the elements of a list of a struct and the list.
static void list_clear(const struct field *f, void *base)
{
    char **items = AT(char *, base, f->offset);
    int64_t count = f->wide_count ? *AT(int64_t, base, f->count_offset) : *AT(int, base, f->count_offset);
    for (int64_t i = 0; f->release && i < count; i++)
        f->release(*items + (size_t)i * f->span);
    free(*items);
    *items = NULL;
    if (f->wide_count)
        *AT(int64_t, base, f->count_offset) = 0;
    else
        *AT(int, base, f->count_offset) = 0;
}

static bool read_list(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    if (!node || node->kind != NODE_SEQUENCE)
        return field_error(r, f, node, "a list");
    if (node->count > MAX_LIST)
        return field_error(r, f, node, "a list of at most 1000000");
    list_clear(f, base);
    char *items = *AT(char *, base, f->offset) = memory_zeros((size_t)node->count, f->span);
    bool partial = r->partial, fine = true;
    for (int i = 0; fine && i < node->count; i++) {
        size_t length = enter(r, f->name, -1);
        enter(r, NULL, i);
        if (f->wide_count)
            *AT(int64_t, base, f->count_offset) = i + 1;
        else
            *AT(int, base, f->count_offset) = i + 1;
        r->partial = false;
        fine = field_read(r, f->element, node->items[i], items + (size_t)i * f->span);
        r->partial = partial;
        r->path[length] = 0;
    }
    return fine;
}

static bool read_string(struct reading *r, const struct field *f, const struct node *node, char **out)
{
    if (!node || node->kind != NODE_SCALAR || (!node->quoted && !*node->text))
        return field_error(r, f, node, "a text");
    free(*out);
    *out = memory_text(node->text);
    return true;
}

static bool read_object(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    size_t length = enter(r, f->name, -1);
    static const struct field no_fields[1];
    const struct field *table = f->object[0] ? f->object[0] : no_fields;
    struct field own[MAX_FIELDS];
    int count = 0;
    if (f->tag) // the tag was read already
        own[count++] = (struct field){.name = f->tag, .kind = FIELD_FIXED};
    for (; table->name && count < MAX_FIELDS - 1; table++)
        own[count++] = *table;
    own[count] = (struct field){0};
    bool fine = fields_read(r, node, own, AT(char, base, f->offset));
    r->path[length] = 0;
    return fine;
}

bool field_read(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    int64_t whole;
    switch (f->kind) {
    case FIELD_FIXED:
        return read_integer(r, f, node, (int64_t)f->least, (int64_t)f->least, &whole);
    case FIELD_BOOL:
        return node_flag(node, AT(bool, base, f->offset)) || field_error(r, f, node, "true or false");
    case FIELD_INT:
        return read_whole(r, f, node, &whole) && (*AT(int, base, f->offset) = (int)whole, true);
    case FIELD_INT64:
        return read_whole(r, f, node, AT(int64_t, base, f->offset));
    case FIELD_DOUBLE: return read_double(r, f, node, AT(double, base, f->offset));
    case FIELD_STRING: return read_string(r, f, node, AT(char *, base, f->offset));
    case FIELD_ENUM: return read_name(r, f, node, AT(int, base, f->offset));
    case FIELD_FLAGS: return read_flags(r, f, node, AT(unsigned, base, f->offset));
    case FIELD_PAIR: return read_pair(r, f, node, AT(int, base, f->offset));
    case FIELD_SHAPE: return read_shape(r, f, node, base);
    case FIELD_OBJECT: return read_object(r, f, node, base);
    case FIELD_TAGGED: return read_tagged(r, f, node, base);
    case FIELD_LIST: return read_list(r, f, node, base);
    case FIELD_CUSTOM: return f->read(r, f, node, base);
    }
    return false;
}

static bool field_missing(struct reading *r, const struct node *node, const struct field *f)
{
    return node_error(r->document, node, r->error, "%s%s: found nothing, expected this field", r->path, f->name);
}

bool fields_read(struct reading *r, const struct node *node, const struct field *table, void *base)
{
    const char *names[MAX_FIELDS];
    int count = 0;
    char found[96];
    if (!node || node->kind != NODE_MAPPING)
        return node_error(r->document, node, r->error, "%s%sfound %s, expected a mapping", r->path, *r->path ? " " : "",
                          node_describe(node, found, sizeof found));
    for (; table[count].name && count < MAX_FIELDS - 1; count++)
        names[count] = table[count].name;
    names[count] = NULL;
    for (int i = 0; i < node->count; i++)
        if (!field_find(table, node->keys[i]))
            return field_unknown(r, node, node->key_lines[i], node->keys[i], names);
    for (int i = 0; i < count; i++) {
        const struct field *f = &table[i];
        const struct node *value = node_get(node, f->name);
        bool is_tag = f->kind == FIELD_FIXED && f->least == 0;
        if (!value && !r->partial && !f->optional && !is_tag)
            return field_missing(r, node, f);
        if (value && !is_tag && !field_read(r, f, value, base))
            return false;
    }
    return true;
}
