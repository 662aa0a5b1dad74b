// Building the located tree from libyaml's events. See document.h.
//
// How: a stack of open collections; each event adds a node to the collection on top. An alias adds the
// node that its anchor named once more, after its weight (nodes below, aliases counted each time) has
// been added to the total, so that nested aliases run into the limit instead of exploding later. An alias
// inside the node that its anchor names is an error, so there are no cycles.
#include "harness/protocol/document.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "harness/protocol/memory.h"

struct open_node { struct node *node; char *key; int key_line; };
struct anchor { char *name; struct node *node; };
struct builder {
    struct document *document;
    struct error *error;
    int depth;
    struct open_node stack[DOCUMENT_MAX_DEPTH];
    int anchor_count;
    struct anchor *anchors;
};

static struct node *node_new(struct document *d, enum node_kind kind, int line)
{
    struct node *node = memory_zeros(1, sizeof *node);
    node->kind = kind;
    node->line = line;
    node->weight = 1;
    d->nodes = memory_grow(d->nodes, (size_t)d->node_count, sizeof *d->nodes);
    d->nodes[d->node_count++] = node;
    return node;
}

struct node *node_scalar(struct document *d, int line, const char *text)
{
    struct node *node = node_new(d, NODE_SCALAR, line);
    node->text = memory_text(text);
    return node;
}

struct node *node_mapping(struct document *d, int line)
{
    return node_new(d, NODE_MAPPING, line);
}

struct node *node_sequence(struct document *d, int line)
{
    return node_new(d, NODE_SEQUENCE, line);
}

static void append(struct node *parent, char *key, int key_line, struct node *item)
{
    size_t count = (size_t)parent->count;
    parent->items = memory_grow(parent->items, count, sizeof *parent->items);
    parent->items[count] = item;
    if (parent->kind == NODE_MAPPING) {
        parent->keys = memory_grow(parent->keys, count, sizeof *parent->keys);
        parent->key_lines = memory_grow(parent->key_lines, count, sizeof *parent->key_lines);
        parent->keys[count] = key;
        parent->key_lines[count] = key_line;
    }
    parent->count++;
    parent->weight += item->weight;
}

void node_append(struct node *parent, const char *key, struct node *item)
{
    append(parent, memory_text(key), item->line, item);
}

static bool builder_error(struct builder *b, int line, const char *text)
{
    return error_set(b->error, "%s:%d: %s", b->document->where, line, text);
}

// A scalar in the place of a key.
static bool take_key(struct builder *b, struct node *node)
{
    struct open_node *top = &b->stack[b->depth - 1];
    if (node->kind != NODE_SCALAR)
        return builder_error(b, node->line, "found a list or mapping as a key, expected a word");
    const struct node *first = top->node;
    if (first->count == DOCUMENT_MAX_KEYS)
        return builder_error(b, node->line, "found more than 2000 keys in one mapping, expected fewer");
    for (int i = 0; i < first->count; i++)
        if (strcmp(first->keys[i], node->text) == 0)
            return error_set(b->error, "%s:%d: found '%s' a second time, expected each key once (first at line %d)",
                             b->document->where, node->line, node->text, first->key_lines[i]);
    top->key = memory_text(node->text);
    top->key_line = node->line;
    return true;
}

static bool place(struct builder *b, struct node *node)
{
    if (b->depth == 0) {
        b->document->root = node;
        return true;
    }
    struct open_node *top = &b->stack[b->depth - 1];
    if (top->node->kind == NODE_MAPPING && !top->key)
        return take_key(b, node);
    append(top->node, top->key, top->key_line, node);
    top->key = NULL;
    if (b->document->node_count > DOCUMENT_MAX_NODES || top->node->weight > DOCUMENT_MAX_NODES)
        return builder_error(b, node->line, "found a document of more than 1000000 nodes (aliases counted each time), expected a smaller one");
    return true;
}

static bool remember_anchor(struct builder *b, const yaml_char_t *name, struct node *node)
{
    if (!name)
        return true;
    if (b->anchor_count == DOCUMENT_MAX_ANCHORS)
        return builder_error(b, node->line, "found more than 1000 anchors, expected fewer");
    b->anchors = memory_grow(b->anchors, (size_t)b->anchor_count, sizeof *b->anchors);
    b->anchors[b->anchor_count++] = (struct anchor){memory_text((const char *)name), node};
    return true;
}

static bool open_collection(struct builder *b, enum node_kind kind, int line, const yaml_char_t *anchor)
{
    const struct open_node *top = b->depth ? &b->stack[b->depth - 1] : NULL;
    if (top && top->node->kind == NODE_MAPPING && !top->key)
        return builder_error(b, line, "found a list or mapping as a key, expected a word");
    if (b->depth == DOCUMENT_MAX_DEPTH)
        return builder_error(b, line, "found more than 32 levels of nesting, expected fewer");
    struct node *node = node_new(b->document, kind, line);
    b->stack[b->depth++] = (struct open_node){node, NULL, 0};
    return remember_anchor(b, anchor, node);
}

static bool close_collection(struct builder *b)
{
    struct node *node = b->stack[--b->depth].node;
    return place(b, node);
}

static bool add_scalar(struct builder *b, const yaml_event_t *event, int line)
{
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return builder_error(b, line, "found a NUL character in a text, expected none");
    struct node *node = node_scalar(b->document, line, text);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return remember_anchor(b, event->data.scalar.anchor, node) && place(b, node);
}

static bool add_alias(struct builder *b, const char *name, int line)
{
    for (int i = b->anchor_count - 1; i >= 0; i--) {
        if (strcmp(b->anchors[i].name, name) != 0)
            continue;
        for (int j = 0; j < b->depth; j++)
            if (b->stack[j].node == b->anchors[i].node)
                return error_set(b->error, "%s:%d: found alias '*%s' inside its own anchor, expected one before it",
                                 b->document->where, line, name);
        return place(b, b->anchors[i].node);
    }
    return error_set(b->error, "%s:%d: found alias '*%s', expected an anchor '&%s' before it", b->document->where, line, name, name);
}

static bool take_event(struct builder *b, const yaml_event_t *event)
{
    int line = (int)event->start_mark.line + 1;
    switch (event->type) {
    case YAML_SCALAR_EVENT: return add_scalar(b, event, line);
    case YAML_ALIAS_EVENT: return add_alias(b, (const char *)event->data.alias.anchor, line);
    case YAML_SEQUENCE_START_EVENT: return open_collection(b, NODE_SEQUENCE, line, event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT: return open_collection(b, NODE_MAPPING, line, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return close_collection(b);
    case YAML_DOCUMENT_START_EVENT:
        return !b->document->root || builder_error(b, line, "found a second document, expected one in the file");
    default: return true;
    }
}

static bool build(struct builder *b, yaml_parser_t *parser)
{
    for (bool ended = false; !ended;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return error_set(b->error, "%s:%d: found broken YAML or JSON: %s%s%s", b->document->where,
                             (int)(parser->problem_mark.line ? parser->problem_mark.line : parser->context_mark.line) + 1,
                             parser->problem ? parser->problem : "unreadable text", parser->context ? " " : "",
                             parser->context ? parser->context : "");
        ended = event.type == YAML_STREAM_END_EVENT;
        bool fine = take_event(b, &event);
        yaml_event_delete(&event);
        if (!fine)
            return false;
    }
    return b->document->root || builder_error(b, 1, "found an empty document, expected a mapping");
}

bool document_parse(const char *text, size_t size, const char *where, struct document *out, struct error *error)
{
    *out = (struct document){.where = memory_text(where)};
    struct builder b = {.document = out, .error = error};
    if (size > DOCUMENT_MAX_BYTES)
        return document_free(out), error_set(error, "%s: found %zu bytes, expected at most %d", where, size, DOCUMENT_MAX_BYTES);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return document_free(out), error_set(error, "%s: out of memory", where);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    bool fine = build(&b, &parser);
    yaml_parser_delete(&parser);
    for (int i = 0; i < b.anchor_count; i++)
        free(b.anchors[i].name);
    free(b.anchors);
    for (int i = 0; i < b.depth; i++)
        free(b.stack[i].key);
    if (!fine)
        document_free(out);
    return fine;
}

char *file_read(const char *path, size_t limit, size_t *size, struct error *error)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    char *text = NULL;
    if (!file || fstat(fileno(file), &about) != 0)
        error_set(error, "%s: %s, expected a readable file", path, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        error_set(error, "%s: found no regular file, expected one", path);
    else if ((size_t)about.st_size > limit)
        error_set(error, "%s: found %zu bytes, expected at most %zu", path, (size_t)about.st_size, limit);
    else {
        text = memory_zeros((size_t)about.st_size + 1, 1);
        *size = fread(text, 1, (size_t)about.st_size, file);
    }
    if (file)
        fclose(file);
    return text;
}

bool document_read(const char *path, struct document *out, struct error *error)
{
    *out = (struct document){0};
    size_t size;
    char *text = file_read(path, DOCUMENT_MAX_BYTES, &size, error);
    if (!text)
        return false;
    bool fine = document_parse(text, size, path, out, error);
    free(text);
    return fine;
}

void document_free(struct document *d)
{
    for (int i = 0; i < d->node_count; i++) {
        struct node *node = d->nodes[i];
        for (int j = 0; node->keys && j < node->count; j++)
            free(node->keys[j]);
        free(node->keys);
        free(node->key_lines);
        free(node->items);
        free(node->text);
        free(node);
    }
    free(d->nodes);
    free(d->where);
    *d = (struct document){0};
}
