// Manifests of implementations: suite/implementations/NAME/implementation.yaml, or any path. See docs/cases.md.
//
// NAME:VARIANT is the same implementation with one of the manifest's `variants` laid over it.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cases/capability.h"
#include "harness/cases/strings.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/memory.h"

#define IN(member) .offset = offsetof(struct implementation, member)

static const struct field text_field = {"", FIELD_STRING, .offset = 0};
static void release_text(void *text)
{
    free(*(char **)text);
}

// A list of words, each out of f->names.
static bool read_words(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct string_list *list = (struct string_list *)((char *)base + f->offset);
    if (!node || node->kind != NODE_SEQUENCE)
        return field_error(r, f, node, "a list of words");
    string_list_free(list);
    for (int i = 0; i < node->count; i++) {
        const struct field word = {f->name, FIELD_ENUM, .names = f->names};
        int index;
        if (!field_read(r, &word, node->items[i], &index))
            return false;
        string_list_add(list, f->names[index]);
    }
    return true;
}

// A mapping of texts, or a list of NAME=VALUE.
static bool read_environment(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct implementation *impl = base;
    bool mapping = node && node->kind == NODE_MAPPING;
    if (!node || node->kind == NODE_SCALAR)
        return field_error(r, f, node, "a mapping of texts or a list of NAME=VALUE");
    for (int i = 0; i < node->count; i++) {
        const struct node *item = node->items[i];
        if (item->kind != NODE_SCALAR || (!mapping && (!strchr(item->text, '=') || item->text[0] == '=')))
            return field_error(r, f, item, mapping ? "a text" : "NAME=VALUE");
        char *text = mapping ? memory_format("%s=%s", node->keys[i], item->text) : memory_text(item->text);
        string_list_add(&impl->environment, text);
        free(text);
    }
    return true;
}

// A variant gives an option of the manifest another value.
static bool option_replaced(struct implementation *impl, const char *name, const char *value)
{
    for (int i = 0; i < impl->option_count; i++)
        if (strcmp(impl->options[i].name, name) == 0) {
            free(impl->options[i].value);
            impl->options[i].value = memory_text(value);
            return true;
        }
    return false;
}

static bool read_manifest_options(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct implementation *impl = base;
    if (!node || node->kind != NODE_MAPPING)
        return field_error(r, f, node, "a mapping of texts");
    for (int i = 0; i < node->count; i++) {
        if (node->items[i]->kind != NODE_SCALAR)
            return field_error(r, f, node->items[i], "a text");
        if (option_replaced(impl, node->keys[i], node->items[i]->text))
            continue;
        impl->options = memory_grow(impl->options, (size_t)impl->option_count, sizeof *impl->options);
        impl->options[impl->option_count++] = (struct case_option){memory_text(node->keys[i]), memory_text(node->items[i]->text)};
    }
    return true;
}

static bool read_subject(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    bool flag;
    if (!node_flag(node, &flag))
        return field_error(r, f, node, "true or false");
    ((struct implementation *)base)->no_subject = !flag;
    return true;
}

static void start(struct implementation *i);
static bool read_variants(struct reading *r, const struct field *f, const struct node *node, void *base);

#define TEXTS(member) FIELD_LIST, .offset = offsetof(struct implementation, member.items), \
    .count_offset = offsetof(struct implementation, member.count), .span = sizeof(char *), .element = &text_field, .release = release_text
static const char *const launcher_names[] = {"fork", "local", "mpirun", "srun", NULL};
static const char *const sharded_layout_names[] = {"per_parameter", "flat", NULL};
static const struct field manifest_fields[] = {
    {"name", FIELD_STRING, IN(name), .optional = true},
    {"title", FIELD_STRING, IN(title)},
    {"command", TEXTS(command)},
    {"installed", TEXTS(installed), .optional = true},
    {"remedy", FIELD_STRING, IN(remedy), .optional = true},
    {"note", FIELD_STRING, IN(note), .optional = true},
    {"subject", FIELD_CUSTOM, .read = read_subject, .optional = true},
    {"versions", TEXTS(versions), .optional = true},
    {"launchers", FIELD_CUSTOM, IN(launchers), .names = launcher_names, .read = read_words, .optional = true},
    {"environment", FIELD_CUSTOM, .read = read_environment, .optional = true},
    {"ranks", FIELD_PAIR, IN(min_ranks), .least = 1, .most = 65536, .optional = true},
    {"tensor", FIELD_PAIR, IN(min_tensor), .least = 1, .most = 65536, .optional = true},
    {"pipeline", FIELD_PAIR, IN(min_pipeline), .least = 1, .most = 65536, .optional = true},
    {"strategies", FIELD_CUSTOM, IN(strategies), .names = strategy_names, .read = read_words, .optional = true},
    {"layouts", FIELD_CUSTOM, IN(layouts), .names = sharded_layout_names, .read = read_words, .optional = true},
    {"models", FIELD_CUSTOM, IN(models), .names = model_kind_names, .read = read_words, .optional = true},
    {"compute", FIELD_CUSTOM, IN(compute), .names = float_names, .read = read_words, .optional = true},
    {"reduce", FIELD_CUSTOM, IN(reduce), .names = float_names, .read = read_words, .optional = true},
    {"cannot", FIELD_CUSTOM, IN(cannot), .names = feature_names, .read = read_words, .optional = true},
    {"options", FIELD_CUSTOM, .read = read_manifest_options, .optional = true},
    {"variants", FIELD_CUSTOM, .read = read_variants, .optional = true},
    {0},
};

// Lays one variant over the manifest.
static bool lay_over(struct reading *r, const struct node *variant, struct implementation *out)
{
    struct reading part = *r;
    part.partial = true;
    const char *const fixed[] = {"name", "variants", NULL};
    for (int i = 0; variant->kind == NODE_MAPPING && i < variant->count; i++)
        for (int k = 0; fixed[k]; k++)
            if (strcmp(variant->keys[i], fixed[k]) == 0)
                return node_error(r->document, variant->items[i], r->error, "variants: found '%s' in a variant, expected keys that it may change", fixed[k]);
    return fields_read(&part, variant, manifest_fields, out);
}

// The names; each variant is also read once for its errors, whether or not it was asked for.
static bool read_variants(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct implementation *impl = base;
    if (!node || node->kind != NODE_MAPPING)
        return field_error(r, f, node, "a mapping of names to what each changes");
    for (int i = 0; i < node->count; i++) {
        struct implementation scratch;
        struct node place = {.line = node->key_lines[i]};
        if (!*node->keys[i] || node->keys[i][strspn(node->keys[i], "abcdefghijklmnopqrstuvwxyz0123456789-")])
            return node_error(r->document, &place, r->error, "variants: found the name '%.60s', expected letters a-z, digits and -", node->keys[i]);
        start(&scratch);
        bool fine = lay_over(r, node->items[i], &scratch);
        implementation_free(&scratch);
        if (!fine)
            return false;
        string_list_add(&impl->variants, node->keys[i]);
    }
    return true;
}

static bool take_variant(struct reading *r, const struct node *root, const char *variant, struct implementation *out)
{
    const struct node *all = node_get(root, "variants"), *one = all ? node_get(all, variant) : NULL;
    char list[512];
    if (one) {
        out->variant = memory_text(variant);
        return lay_over(r, one, out);
    }
    const char **names = string_list_names(&out->variants), *near = nearest_name(variant, names);
    if (out->variants.count)
        node_error(r->document, all, r->error, "found no variant '%.60s', expected %s%s%s%s", variant, name_list(names, list, sizeof list),
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    else
        node_error(r->document, root, r->error, "found no variant '%.60s', expected none: the manifest has no variants", variant);
    free(names);
    return false;
}

static void fill(struct string_list *list, const char *const *names)
{
    for (; *names; names++)
        string_list_add(list, *names);
}

static void start(struct implementation *i)
{
    static const char *const f32_alone[] = {"f32", NULL}, *const local_alone[] = {"local", NULL};
    *i = (struct implementation){.min_ranks = 1, .max_ranks = 64, .min_tensor = 1, .max_tensor = 1, .min_pipeline = 1, .max_pipeline = 1, .remedy = memory_text(""),
                                  .note = memory_text("")};
    fill(&i->launchers, local_alone);
    fill(&i->strategies, strategy_names);
    fill(&i->layouts, sharded_layout_names);
    fill(&i->models, model_kind_names);
    fill(&i->compute, f32_alone);
    fill(&i->reduce, f32_alone);
}

struct place { const char *name; char *value; };

// ${python:ENV}: the interpreter of a virtual environment of its own, BUILD/venv-ENV; NULL where it is none such.
static char *environment_python(const char *at, const char *end, const struct place *places)
{
    static const char head[] = "${python:";
    size_t size = sizeof head - 1;
    if (!end || strncmp(at, head, size) != 0 || end == at + size)
        return NULL;
    while (strcmp(places->name, "build") != 0)
        places++;
    return memory_format("%s/venv-%.*s/bin/python", places->value, (int)(end - at - (ptrdiff_t)size), at + size);
}

// Replaces every ${name} of a text. Returns false and the unknown name's start where there is none such.
static bool replace(char **text, const struct place *places, const char **unknown)
{
    for (char *at; (at = strstr(*text, "${"));) {
        const struct place *p = places;
        char *end = strchr(at, '}');
        while (p->name && !(end && strlen(p->name) == (size_t)(end - at - 2) && strncmp(p->name, at + 2, strlen(p->name)) == 0))
            p++;
        char *other = p->name ? NULL : environment_python(at, end, places);
        if (!p->name && !other) {
            *unknown = at;
            return false;
        }
        char *longer = memory_format("%.*s%s%s", (int)(at - *text), *text, other ? other : p->value, end + 1);
        free(other);
        free(*text);
        *text = longer;
    }
    return true;
}

static char *program_folder(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *told = getenv("FSDPMARK_BUILD");
    char *resolved = told ? realpath(told, NULL) : NULL;
    if (resolved)
        return resolved;
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return memory_text(path);
}

static bool replace_all(struct implementation *i, const struct document *doc, const char *suite, struct error *error)
{
    char *build = program_folder(), *whole_suite = realpath(suite, NULL);
    const char *told = getenv("FSDPMARK_PYTHON");
    struct place places[] = {{"folder", memory_text(i->folder)}, {"suite", whole_suite ? whole_suite : memory_text(suite)}, {"build", build},
                             {"python", told && *told ? memory_text(told) : memory_format("%s/venv/bin/python", build)}, {NULL, NULL}};
    struct { const char *key; struct string_list *list; } lists[] = {
        {"command", &i->command}, {"installed", &i->installed}, {"versions", &i->versions}, {"environment", &i->environment}};
    const char *unknown = NULL;
    bool fine = true;
    for (size_t k = 0; fine && k < sizeof lists / sizeof *lists; k++)
        for (int n = 0; fine && n < lists[k].list->count; n++)
            if (!replace(&lists[k].list->items[n], places, &unknown))
                fine = node_error(doc, node_get(doc->root, lists[k].key), error, "%s: found '%.40s', expected ${folder}, ${suite}, ${build}, ${python} or ${python:ENV}",
                                  lists[k].key, unknown);
    for (struct place *p = places; p->name; p++)
        free(p->value);
    return fine;
}

// The manifest's own folder, absolute; its last part is the default name.
static bool take_folder(struct implementation *i, const char *path, struct error *error)
{
    char *whole = realpath(path, NULL);
    if (!whole)
        return error_set(error, "%s: found no such file, expected a manifest", path);
    char *slash = strrchr(whole, '/');
    *slash = 0;
    i->folder = memory_text(*whole ? whole : "/");
    if (!i->name)
        i->name = memory_text(strrchr(whole, '/') ? strrchr(whole, '/') + 1 : "root");
    free(whole);
    if (i->variant) {
        char *both = memory_format("%s:%s", i->name, i->variant);
        free(i->name);
        i->name = both;
    }
    return true;
}

static bool read_manifest(const char *path, const char *variant, const char *suite, struct implementation *out, struct error *error)
{
    struct document doc;
    if (!document_read(path, &doc, error))
        return false;
    start(out);
    struct reading r = {.document = &doc, .error = error, .root = out};
    bool fine = fields_read(&r, doc.root, manifest_fields, out) && (!variant || take_variant(&r, doc.root, variant, out));
    if (fine && out->command.count == 0)
        fine = node_error(&doc, node_get(doc.root, "command"), error, "command: found an empty list, expected a program and its arguments");
    const struct { const char *key; int least, most; } spans[] = {
        {"ranks", out->min_ranks, out->max_ranks}, {"tensor", out->min_tensor, out->max_tensor}, {"pipeline", out->min_pipeline, out->max_pipeline}};
    for (size_t k = 0; fine && k < sizeof spans / sizeof *spans; k++)
        if (spans[k].least > spans[k].most)
            fine = node_error(&doc, node_get(doc.root, spans[k].key), error, "%s: found %d to %d, expected the lower number first", spans[k].key,
                              spans[k].least, spans[k].most);
    fine = fine && take_folder(out, path, error) && replace_all(out, &doc, suite, error);
    document_free(&doc);
    if (!fine)
        implementation_free(out);
    return fine;
}

static bool no_such_name(const char *name, const char *suite, struct error *error)
{
    struct string_list known = {0};
    char list[512];
    if (!suite_list_implementations(suite, &known, error))
        return false;
    const char **names = string_list_names(&known), *near = nearest_name(name, names);
    error_set(error, "found no implementation '%.100s' in %s/implementations, expected %s or the path of a manifest%s%s%s", name, suite,
              name_list(names, list, sizeof list), near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    free(names);
    string_list_free(&known);
    return false;
}

bool implementation_read(const char *path_or_name, const char *suite, struct implementation *out, struct error *error)
{
    struct stat about;
    *out = (struct implementation){0};
    const char *colon = access(path_or_name, F_OK) == 0 ? NULL : strrchr(path_or_name, ':'); // a path may have one itself
    char *name = memory_format("%.*s", colon ? (int)(colon - path_or_name) : (int)strlen(path_or_name), path_or_name);
    bool is_path = strchr(name, '/') || strstr(name, ".yaml");
    char *path = is_path ? memory_text(name) : memory_format("%s/implementations/%s", suite, name);
    bool there = stat(path, &about) == 0, fine = there || is_path;
    if (there && S_ISDIR(about.st_mode)) {
        char *inside = memory_format("%s/implementation.yaml", path);
        free(path);
        path = inside;
        fine = is_path || access(path, F_OK) == 0;
    }
    fine = fine ? read_manifest(path, colon ? colon + 1 : NULL, suite, out, error) : no_such_name(name, suite, error);
    free(path);
    free(name);
    return fine;
}

void implementation_free(struct implementation *i)
{
    struct string_list *lists[] = {&i->command, &i->installed, &i->versions, &i->launchers, &i->environment, &i->strategies,
                                   &i->layouts, &i->models, &i->compute, &i->reduce, &i->cannot, &i->variants};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        string_list_free(lists[k]);
    for (int k = 0; k < i->option_count; k++) {
        free(i->options[k].name);
        free(i->options[k].value);
    }
    free(i->options);
    free(i->name);
    free(i->variant);
    free(i->title);
    free(i->folder);
    free(i->remedy);
    free(i->note);
    *i = (struct implementation){0};
}
