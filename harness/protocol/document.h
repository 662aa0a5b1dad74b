// A document read from YAML or JSON as a tree whose nodes know their lines.
//
// Every file that people write for the suite (cases, profiles, manifests, fabrics) and case.json go
// through it, so that each complaint can say FILE:LINE. Scalars stay text; who asks for a number,
// a flag or a name gets it checked. JSON is read as the subset of YAML that it is.
//
// A hostile file cannot hang the reader: file size, depth, keys of one mapping, anchors and the number of
// nodes after following all aliases are limited. Aliases share nodes, so the tree is a graph without cycles.
#ifndef FSDPMARK_DOCUMENT_H
#define FSDPMARK_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/protocol/error.h"

enum {
    DOCUMENT_MAX_BYTES = 8 << 20, DOCUMENT_MAX_DEPTH = 32, DOCUMENT_MAX_NODES = 1000000,
    DOCUMENT_MAX_KEYS = 2000, DOCUMENT_MAX_ANCHORS = 1000
};
enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
    enum node_kind kind;
    int line;            // 1-based
    bool quoted;         // scalar: written in quotes, so never a number, flag or null
    char *text;          // scalar
    int count;           // sequence, mapping
    struct node **items; // sequence: elements; mapping: values
    char **keys;         // mapping
    int *key_lines;      // mapping
    int64_t weight;      // nodes below and this one, aliases counted each time
};

struct document {
    char *where;         // the file's name in messages
    struct node *root;
    int node_count;      // owned nodes
    struct node **nodes;
};

// Errors: "FILE:LINE: what was found, what was expected"; a file that cannot be read: "FILE: ...".
bool document_read(const char *path, struct document *out, struct error *error);
bool document_parse(const char *text, size_t size, const char *where, struct document *out, struct error *error);
void document_free(struct document *d);

// Value of a key of a mapping, or NULL (also where node is no mapping).
struct node *node_get(const struct node *node, const char *key);
// The node at a dotted path, list elements by index ("program.3.step"); the deepest node that exists.
const struct node *node_at(const struct node *root, const char *path);
// An unquoted null or nothing at all.
bool node_is_null(const struct node *node);
// What a node is, for messages: "'text'", "a list of 3", "a mapping", "nothing".
const char *node_describe(const struct node *node, char *buffer, size_t size);
// Sets "WHERE:LINE: ..." and returns false.
bool node_error(const struct document *d, const struct node *node, struct error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// New nodes owned by the document, for shorthands that stand for longer forms.
struct node *node_scalar(struct document *d, int line, const char *text);
struct node *node_mapping(struct document *d, int line);
struct node *node_sequence(struct document *d, int line);
void node_append(struct node *parent, const char *key, struct node *item);

// Scalars as values; false where the text is none (nothing is reported).
bool node_integer(const struct node *node, int64_t *out);
bool node_number(const struct node *node, double *out); // also hexadecimal, nan, inf, -inf
bool node_flag(const struct node *node, bool *out);

// The candidate nearest to text by edit distance, or NULL where none is near; list ends with NULL.
const char *nearest_name(const char *text, const char *const *candidates);
// "a, b or c" of a NULL-terminated list.
const char *name_list(const char *const *names, char *buffer, size_t size);
// Whole file as a NUL-terminated text of *size bytes, at most limit. Errors: "PATH: ...".
char *file_read(const char *path, size_t limit, size_t *size, struct error *error);

#endif
