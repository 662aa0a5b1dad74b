// Reading a matrix: every value of every axis becomes a mapping that can be laid over a draft. See matrix.h.
#include "harness/cases/matrix.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

#define BIT(strategy) (1u << (strategy))
enum { EVERYWHERE = ~0u };

static const struct { const char *key; unsigned strategies; } limited_axes[] = {
    {"layout", ~BIT(STRATEGY_NONE)}, {"wrap", ~BIT(STRATEGY_NONE)}, {"prefetch", ~BIT(STRATEGY_NONE)},
    {"offload", ~BIT(STRATEGY_NONE)}, {"mesh", BIT(STRATEGY_HYBRID)},
    {"reshard_after_forward", BIT(STRATEGY_FULL) | BIT(STRATEGY_HYBRID)}, {"reshard_ranks", BIT(STRATEGY_FULL) | BIT(STRATEGY_HYBRID)},
    {"save_layout", ~BIT(STRATEGY_NONE)},
};

const char *axis_bare_key(const char *key)
{
    return strncmp(key, "sharding.", 9) == 0 ? key + 9 : key;
}

static bool begins_with_word(const char *key, const char *word)
{
    size_t length = strlen(word);
    return strncmp(key, word, length) == 0 && (!key[length] || key[length] == '.');
}

unsigned axis_strategies(const char *key)
{
    for (size_t i = 0; i < sizeof limited_axes / sizeof *limited_axes; i++)
        if (begins_with_word(axis_bare_key(key), limited_axes[i].key))
            return limited_axes[i].strategies;
    return EVERYWHERE;
}

static bool key_only_sharding(const char *key)
{
    static const char *const keys[] = {"strategy", "mesh", "tensor", "pipeline", "layout", "reshard_after_forward", "reshard_ranks", "wrap", "prefetch",
                                       "offload", "activation_checkpointing", "sharding", "observe_local", "divergent_init",
                                       "save_ranks", "save_layout"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (begins_with_word(key, keys[i]))
            return true;
    return false;
}

bool axis_only_sharding(const struct axis *a, int value)
{
    return a->is_variant ? a->values[value].only_sharding : key_only_sharding(a->key);
}

// Short words for names.
static const char *short_key(const char *key)
{
    static const struct { const char *key, *word; } words[] = {
        {"reshard_after_forward", "reshard"}, {"activation_checkpointing", "recompute"}, {"divergent_init", "divergent"},
        {"micros", "m"}, {"steps", "s"}, {"global_rows", "rows"}, {"save_ranks", "from"}, {"save_layout", "layout"},
    };
    const char *last = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].key, last) == 0)
            return words[i].word;
    return last;
}

// Appends a value's text: scalars as they are, lists joined by 'x', mappings by '-'; odd characters become '-'.
static void append_value(char *label, size_t size, const struct node *value)
{
    if (value->kind == NODE_SCALAR) {
        size_t length = strlen(label);
        snprintf(label + length, size - length, "%s", value->text);
        for (char *c = label + length; *c; c++)
            if (!isalnum((unsigned char)*c) && *c != '.')
                *c = '-';
        return;
    }
    for (int i = 0; i < value->count; i++) {
        size_t length = strlen(label);
        if (i)
            snprintf(label + length, size - length, "%s", value->kind == NODE_SEQUENCE ? "x" : "-");
        append_value(label, size, value->items[i]);
    }
}

static char *make_label(const char *key, const struct node *value)
{
    static const char *const elsewhere[] = {"strategy", "mesh", "tensor", "pipeline", "layout", "ranks"}, *const bare[] = {"precision", "loss", "layer"};
    char label[160] = "";
    bool flag, counts = strcmp(key, "micros") == 0 || strcmp(key, "steps") == 0;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(axis_bare_key(key), elsewhere[i]) == 0)
            return memory_text("");
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (strcmp(key, bare[i]) == 0) {
            append_value(label, sizeof label, value);
            return memory_text(label);
        }
    if (node_flag(value, &flag))
        snprintf(label, sizeof label, "%s%s", flag ? "" : "no-", short_key(key));
    else {
        snprintf(label, sizeof label, "%s%s", short_key(key), counts ? "" : "-");
        append_value(label, sizeof label, value);
    }
    for (char *c = label; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return memory_text(label);
}

// {a: {b: value}} for the path "a.b".
static struct node *nest(struct document *doc, const char *path, struct node *value)
{
    const char *dot = strchr(path, '.');
    char *first = memory_format("%.*s", (int)(dot ? dot - path : (long)strlen(path)), path);
    struct node *mapping = node_mapping(doc, value->line);
    node_append(mapping, first, dot ? nest(doc, dot + 1, value) : value);
    free(first);
    return mapping;
}

static void add_value(struct axis *a, struct axis_value value)
{
    a->values = memory_grow(a->values, (size_t)a->count, sizeof *a->values);
    a->values[a->count++] = value;
}

static bool add_variant(const struct document *doc, struct axis *a, const struct node *variant, struct error *error)
{
    const struct node *name = node_get(variant, "name");
    if (!name || name->kind != NODE_SCALAR || !*name->text)
        return node_error(doc, variant, error, "found a variant without a name, expected {name: WORD, KEY: VALUE, ...}");
    struct axis_value value = {variant, NULL, true};
    char label[96] = "";
    append_value(label, sizeof label, name);
    value.label = memory_text(label);
    for (int i = 0; i < variant->count; i++)
        value.only_sharding = value.only_sharding && (strcmp(variant->keys[i], "name") == 0 || key_only_sharding(variant->keys[i]));
    add_value(a, value);
    return true;
}

static bool is_word(const struct node *node, const char *word)
{
    return node->kind == NODE_SCALAR && strcmp(node->text, word) == 0;
}

static bool read_axis(struct document *doc, const struct implementation *impl, const struct node *matrix, int index, struct axis *a,
                      struct error *error)
{
    const char *key = matrix->keys[index];
    struct node *values = matrix->items[index], *layouts = NULL;
    *a = (struct axis){.key = key, .is_variant = strcmp(key, "variant") == 0};
    if (!draft_key_known(doc, matrix, matrix->key_lines[index], key, error))
        return false;
    if (strcmp(axis_bare_key(key), "layout") == 0 && is_word(values, "all")) {
        layouts = node_sequence(doc, values->line);
        for (int i = 0; i < impl->layouts.count; i++)
            node_append(layouts, NULL, node_scalar(doc, values->line, impl->layouts.items[i]));
        if (layouts->count == 0) // an implementation that shards nothing
            node_append(layouts, NULL, node_scalar(doc, values->line, "any"));
        values = layouts;
    }
    if (strcmp(key, "save_layout") == 0 && is_word(values, "all")) {
        layouts = node_sequence(doc, values->line);
        for (int i = 0; save_layout_names[i] && i < (impl->layouts.count > 1 ? 2 : 1); i++)
            node_append(layouts, NULL, node_scalar(doc, values->line, save_layout_names[i]));
        values = layouts;
    }
    bool list = values->kind == NODE_SEQUENCE;
    int count = list ? values->count : 1;
    if (count == 0)
        return node_error(doc, values, error, "found an empty list for axis '%.60s', expected at least one value", key);
    for (int i = 0; i < count; i++) {
        struct node *value = list ? values->items[i] : values;
        if (a->is_variant ? !add_variant(doc, a, value, error) : (add_value(a, (struct axis_value){nest(doc, key, value), make_label(key, value), false}), false))
            return false;
    }
    return true;
}

static bool check_exclude(const struct document *doc, const struct node *exclude, struct error *error)
{
    if (exclude->kind != NODE_SEQUENCE)
        return node_error(doc, exclude, error, "exclude: found no list, expected a list of mappings");
    for (int i = 0; i < exclude->count; i++) {
        const struct node *rule = exclude->items[i];
        if (rule->kind != NODE_MAPPING || rule->count == 0)
            return node_error(doc, rule, error, "exclude: found no mapping, expected {AXIS: VALUE, ...}");
        for (int k = 0; k < rule->count; k++)
            if (!draft_key_known(doc, rule, rule->key_lines[k], rule->keys[k], error))
                return false;
    }
    return true;
}

bool matrix_read(struct document *doc, const struct node *case_node, const struct implementation *impl, struct matrix *out, struct error *error)
{
    const struct node *matrix = node_get(case_node, "matrix");
    int64_t product = 1;
    *out = (struct matrix){.exclude = node_get(case_node, "exclude")};
    if (out->exclude && !check_exclude(doc, out->exclude, error))
        return false;
    if (!matrix)
        return true;
    if (matrix->kind != NODE_MAPPING || matrix->count == 0)
        return node_error(doc, matrix, error, "found no axis in matrix, expected {AXIS: [VALUE, ...], ...}");
    if (matrix->count > MATRIX_MAX_AXES)
        return node_error(doc, matrix, error, "found %d axes, expected at most %d", matrix->count, MATRIX_MAX_AXES);
    for (int i = 0; i < matrix->count; i++) {
        out->axis_count = i + 1;
        if (!read_axis(doc, impl, matrix, i, &out->axes[i], error))
            return false;
        product *= out->axes[i].count;
        if (product > MATRIX_MAX_CASES)
            return node_error(doc, matrix, error, "found a matrix of more than %d combinations, expected fewer", MATRIX_MAX_CASES);
    }
    return true;
}

void matrix_free(struct matrix *m)
{
    for (int i = 0; i < m->axis_count; i++) {
        for (int k = 0; k < m->axes[i].count; k++)
            free(m->axes[i].values[k].label);
        free(m->axes[i].values);
    }
    *m = (struct matrix){0};
}
