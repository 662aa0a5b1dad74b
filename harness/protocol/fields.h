// Structs as tables of fields: one table per struct reads it from a located document, strictly, and writes it as JSON.
//
// A table lists the fields of one mapping and ends with a row without a name. Reading reports unknown,
// missing and ill-typed fields with file and line; reading partially leaves the fields that the mapping does not
// mention as they are, so that defaults, a case and the values of a matrix are laid over each other.
#ifndef FSDPMARK_FIELDS_H
#define FSDPMARK_FIELDS_H

#include <jansson.h>

#include "harness/protocol/document.h"

enum field_kind {
    FIELD_FIXED,    // an integer that must be `least`; stored nowhere
    FIELD_BOOL,     // bool
    FIELD_INT,      // int
    FIELD_INT64,    // int64_t, also uint64_t (up to 2^63 - 1)
    FIELD_DOUBLE,   // double; non-finite as "nan", "inf", "-inf" where nonfinite is set
    FIELD_STRING,   // char *, owned
    FIELD_ENUM,     // enum; names by value
    FIELD_FLAGS,    // unsigned; a list of names, bit i for names[i]
    FIELD_PAIR,     // two ints in a row, a list of two
    FIELD_SHAPE,    // int64_t[span] at offset, dims (int) at count_offset
    FIELD_OBJECT,   // a struct at offset; fields in object[0]
    FIELD_TAGGED,   // a struct at offset that begins with an enum: key `tag` with `names`; fields in object[value]
    FIELD_LIST,     // pointer at offset to elements of `span` bytes described by `element`; count at count_offset
    FIELD_CUSTOM    // by functions
};

struct field;
struct reading {
    const struct document *document;
    struct error *error;
    bool partial;       // fields may be missing: they keep their values
    void *root;         // struct that the whole document fills; for custom fields
    char path[160];     // of the mapping being read, for messages
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset, count_offset, span;
    double least, most;                       // range of numbers; none where both are 0
    bool above;                               // number must be > least
    bool nonfinite;
    bool optional;                            // may be missing in a complete document too
    bool wide_count;                          // the count is an int64_t
    const char *const *names;                 // NULL-terminated
    const char *tag;
    const struct field *const *object;
    const struct field *element;
    void (*release)(void *element);           // frees what a list's element owns
    bool (*read)(struct reading *r, const struct field *f, const struct node *node, void *base);
    json_t *(*write)(const struct field *f, const void *base, const void *root);
};

// Fills base from a mapping. Lists and strings that base holds already are freed and replaced.
bool fields_read(struct reading *r, const struct node *node, const struct field *table, void *base);
// Fills one field from its value.
bool field_read(struct reading *r, const struct field *f, const struct node *node, void *base);
// "FILE:LINE: PATH: found X, expected Y"; false.
bool field_error(struct reading *r, const struct field *f, const struct node *node, const char *expected);
bool field_unknown(struct reading *r, const struct node *node, int line, const char *name, const char *const *expected);

json_t *fields_write(const struct field *table, const void *base, const void *root);
json_t *field_write(const struct field *f, const void *base, const void *root);
// The field of that name, or NULL.
const struct field *field_find(const struct field *table, const char *name);
// A JSON number, or the strings "nan", "inf", "-inf".
json_t *json_number_or_name(double value);

#endif
