// Names and figures of stored series. See series_name.h.
#include "harness/report/series_name.h"

#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

struct interval series_interval(double level, const struct stored_series *s) {
    int *counts = memory_zeros((size_t)s->launch_count + 1, sizeof *counts);
    for (int i = 0; i < s->launch_count; i++) counts[i] = s->launches[i].count;
    struct interval out = statistics_launches(level, s->launch_count, counts, s->values);
    free(counts);
    return out;
}

bool series_is_thin(const struct stored_series *s) {
    struct interval i = series_interval(0.95, s);
    return !statistics_tells(&i) || (!strcmp(s->tool, "bench") && s->launch_count < STATISTICS_LEAST);
}

char *series_fabrics(const struct stored_serieses *all) {
    char *out = memory_text("");
    for (int i = 0; i < all->count; i++) {
        bool before = false;
        for (int k = 0; k < i; k++) before |= !strcmp(all->items[k].fabric, all->items[i].fabric);
        char *longer = before ? NULL : memory_format("%s%s%s", out, *out ? ", " : "", all->items[i].fabric);
        if (!longer) continue;
        free(out);
        out = longer;
    }
    return out;
}

static const char *fact(const struct stored_series *s, const char *name) {
    const char *text = json_string_value(json_object_get(s->facts, name));
    return text ? text : "";
}

const char *series_fault(const struct stored_series *s, const char **why) {
    static const char *const words[] = {"WRONG", "SKIP", "BROKEN"};
    bool errors = json_integer_value(json_object_get(s->facts, "errors")) > 0;
    if (why) *why = fact(s, errors ? "first_error" : "why");
    for (int i = 0; i < 3; i++)
        if (!strcmp(fact(s, "verdict"), words[i])) return words[i];
    return errors ? words[0] : s->count ? NULL : "not measured";
}

// Members within members get names with dots: "calls.0.count".
static void flatten(json_t *value, const char *name, json_t *out) {
    const char *key;
    size_t i;
    json_t *inner;
    if (json_is_object(value)) {
        json_object_foreach(value, key, inner) {
            char *longer = memory_format("%s%s%s", name, *name ? "." : "", key);
            flatten(inner, longer, out);
            free(longer);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, inner) {
            char *longer = memory_format("%s%s%zu", name, *name ? "." : "", i);
            flatten(inner, longer, out);
            free(longer);
        }
    } else {
        json_object_set(out, name, value);
    }
}

static json_t *flat(json_t *point) {
    json_t *out = json_object();
    flatten(point, "", out);
    return out;
}

// Members of the points that are not the same in all series: what a name needs.
json_t *series_varying(const struct stored_serieses *all) {
    json_t *out = json_object(), *first = all->count ? flat(all->items[0].point) : json_object(), *value;
    const char *name;
    for (int i = 1; i < all->count; i++) {
        json_t *point = flat(all->items[i].point);
        json_object_foreach(point, name, value)
            if (!json_equal(json_object_get(first, name), value)) json_object_set_new(out, name, json_true());
        json_object_foreach(first, name, value)
            if (!json_object_get(point, name)) json_object_set_new(out, name, json_true());
        json_decref(point);
    }
    json_decref(first);
    return out;
}

// "count 1024", "blocking", "in_place"; "" where it says nothing: false, null.
static char *words_of(const char *path, const json_t *value) {
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
    if (json_is_string(value)) return memory_text(json_string_value(value));
    if (json_is_integer(value)) return memory_format("%s %lld", name, (long long)json_integer_value(value));
    if (json_is_real(value)) return memory_format("%s %g", name, json_real_value(value));
    return memory_text(json_is_true(value) ? name : "");
}

static bool says(const char *text, const char *words) {
    size_t length = strlen(words);
    for (const char *at = text; (at = strstr(at, words)); at++)
        if ((at == text || at[-1] == ' ') && (at[length] == 0 || at[length] == ',')) return true;
    return false;
}

// Owns the text; what it says already is not said again.
static char *joined(char *text, const char *path, const json_t *value) {
    char *words = words_of(path, value), *out = *words && !says(text, words) ? memory_format("%s, %s", text, words) : memory_text(text);
    free(words);
    free(text);
    return out;
}

char *series_name(const struct stored_series *s, const json_t *varies) {
    char *text = memory_text(s->name);
    const char *path;
    json_t *value, *point = flat(s->point);
    json_object_foreach(point, path, value)
        if (json_object_get(varies, path)) text = joined(text, path, value);
    json_decref(point);
    char *out = memory_format("%s (%s, %s, %s)", text, s->tool, s->fabric, s->subject);
    free(text);
    return out;
}
