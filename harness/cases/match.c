// Asking a draft for the value of a key, and comparing it with a value written in YAML: for `exclude` rules and
// the restrictions of profiles.
#include <stdio.h>
#include <string.h>

#include "harness/cases/draft.h"
#include "harness/cases/precision.h"

// Keys of the suite whose value lies elsewhere in case.json.
static const struct { const char *key, *path; } aliases[] = {
    {"ranks", "world_size"}, {"steps", "data.steps"}, {"micros", "data.micros"}, {"mesh", "sharding.mesh"},
};

static json_t *own_value(const struct draft *d, const char *key)
{
    if (strcmp(key, "precision") == 0)
        return json_string(precision_word(&d->c.precision));
    if (strcmp(key, "variant") == 0)
        return d->variant ? json_string(d->variant) : NULL;
    if (strcmp(key, "sync") == 0)
        return json_string(d->sync_last ? "last" : "all");
    if (strcmp(key, "rows_per_rank") == 0)
        return json_integer(d->rows_per_rank);
    if (strcmp(key, "observe_local") == 0)
        return json_boolean(d->observe_local);
    if (strcmp(key, "save_ranks") == 0)
        return d->save_ranks ? json_integer(d->save_ranks) : NULL;
    if (strcmp(key, "save_layout") == 0)
        return json_string(save_layout_names[d->save_layout]);
    if (strcmp(key, "data") == 0)
        return json_string(d->c.data.recipe);
    return NULL;
}

json_t *draft_value(const struct draft *d, const char *key)
{
    char path[160], *save;
    json_t *own = own_value(d, key);
    if (own)
        return own;
    snprintf(path, sizeof path, "%s", key);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(key, aliases[i].key) == 0)
            snprintf(path, sizeof path, "%s", aliases[i].path);
    char *word = strtok_r(path, ".", &save);
    const struct field *f = word ? field_find(case_fields, word) : NULL;
    const struct field *sharding = field_find(case_fields, "sharding");
    json_t *value = f ? field_write(f, d, d) : NULL;
    if (!value && word && (f = field_find(sharding->object[0], word)))
        value = field_write(f, &d->c.sharding, d);
    while (value && (word = strtok_r(NULL, ".", &save))) {
        json_t *inner = json_incref(json_object_get(value, word));
        json_decref(value);
        value = inner;
    }
    return value;
}

static bool scalar_matches(const struct node *written, const json_t *value)
{
    double number;
    bool flag;
    switch (json_typeof(value)) {
    case JSON_STRING: return strcmp(written->text, json_string_value(value)) == 0;
    case JSON_INTEGER:
    case JSON_REAL: return node_number(written, &number) && number == json_number_value(value);
    case JSON_TRUE:
    case JSON_FALSE: return node_flag(written, &flag) && flag == json_is_true(value);
    case JSON_NULL: return node_is_null(written);
    default: return false;
    }
}

static bool list_matches(const struct node *written, const json_t *value)
{
    bool any = !json_is_array(value) || (written->count && written->items[0]->kind == NODE_SEQUENCE);
    bool all = json_is_array(value) && (size_t)written->count == json_array_size(value);
    for (int i = 0; i < written->count; i++) {
        if (any && draft_value_matches(written->items[i], value))
            return true;
        all = all && draft_value_matches(written->items[i], json_array_get(value, (size_t)i));
    }
    return !any && all;
}

bool draft_value_matches(const struct node *written, const json_t *value)
{
    if (!value)
        return false;
    if (written->kind == NODE_SCALAR)
        return scalar_matches(written, value);
    if (written->kind == NODE_SEQUENCE)
        return list_matches(written, value);
    for (int i = 0; i < written->count; i++)
        if (!draft_value_matches(written->items[i], json_object_get(value, written->keys[i])))
            return false;
    return true;
}

bool draft_matches(const struct draft *d, const struct node *mapping, const char *skip)
{
    for (int i = 0; i < mapping->count; i++) {
        if (skip && strcmp(mapping->keys[i], skip) == 0)
            continue;
        json_t *value = draft_value(d, mapping->keys[i]);
        bool matches = draft_value_matches(mapping->items[i], value);
        json_decref(value);
        if (!matches)
            return false;
    }
    return true;
}
