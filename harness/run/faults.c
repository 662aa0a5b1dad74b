// See faults.h.
#include "harness/run/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probes/summary.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"

static const char *const keys[] = {"name", "class", "in", "claim", "cases", "expect", "probes", NULL};

static bool check_keys(const struct document *d, const struct node *node, struct error *error)
{
    char list[200];
    for (int i = 0; i < node->count; i++) {
        bool known = false;
        for (int k = 0; keys[k] != NULL; k++)
            known |= strcmp(keys[k], node->keys[i]) == 0;
        const char *near = known ? NULL : nearest_name(node->keys[i], keys);
        if (!known)
            return error_set(error, "%s:%d: found '%s', expected %s", d->where, node->key_lines[i], node->keys[i],
                             near != NULL ? near : name_list(keys, list, sizeof list));
    }
    return true;
}

static bool read_text(const struct document *d, const struct node *node, const char *key, char **out, struct error *error)
{
    const struct node *value = node_get(node, key);
    char what[64];
    if (value == NULL || value->kind != NODE_SCALAR || value->text[0] == 0)
        return node_error(d, value != NULL ? value : node, error, "%s: found %s, expected a text", key,
                          node_describe(value, what, sizeof what));
    *out = memory_text(value->text);
    return true;
}

static bool is_class(const char *text)
{
    int n = text[0] == 'Z' && strlen(text) == 3 ? atoi(text + 1) : 0;
    return n >= 1 && n <= 30;
}

static bool read_cases(const struct document *d, const struct node *node, struct string_list *out, struct error *error)
{
    const struct node *list = node_get(node, "cases");
    char what[64];
    if (list == NULL || list->kind != NODE_SEQUENCE || list->count == 0)
        return node_error(d, list != NULL ? list : node, error, "cases: found %s, expected a list of case ids or globs",
                          node_describe(list, what, sizeof what));
    out->items = memory_zeros((size_t)list->count, sizeof *out->items);
    for (int i = 0; i < list->count; i++) {
        if (list->items[i]->kind != NODE_SCALAR)
            return node_error(d, list->items[i], error, "cases: found %s, expected a text",
                              node_describe(list->items[i], what, sizeof what));
        out->items[out->count++] = memory_text(list->items[i]->text);
    }
    return true;
}

// probes: [heap, mpi]
static bool read_probes(const struct document *d, const struct node *list, unsigned *out, struct error *error)
{
    if (list == NULL)
        return true;
    if (list->kind != NODE_SEQUENCE || list->count == 0)
        return node_error(d, list, error, "probes: found no list, expected [heap, socket, mpi, ...]");
    for (int i = 0; i < list->count; i++) {
        struct error own = {""};
        unsigned one = 0;
        if (list->items[i]->kind != NODE_SCALAR || !probe_set(list->items[i]->text, &one, &own) || one == 0)
            return node_error(d, list->items[i], error, "probes: %s", own.text[0] ? own.text : "found no name, expected one of a probe");
        *out |= one;
    }
    return true;
}

static bool read_fault(const struct document *d, const struct node *node, struct fault_list *list, struct error *error)
{
    char what[64];
    if (node->kind != NODE_MAPPING)
        return node_error(d, node, error, "found %s, expected a fault (a mapping)", node_describe(node, what, sizeof what));
    list->items = memory_grow(list->items, (size_t)list->count, sizeof *list->items);
    struct fault *f = &list->items[list->count++];
    *f = (struct fault){.origin = memory_format("%s:%d", d->where, node->line)};
    if (!check_keys(d, node, error) || !read_text(d, node, "name", &f->name, error) ||
        !read_text(d, node, "class", &f->class_name, error) || !read_text(d, node, "in", &f->in, error) ||
        !read_text(d, node, "claim", &f->claim, error) || !read_cases(d, node, &f->cases, error) ||
        (node_get(node, "expect") != NULL && !read_text(d, node, "expect", &f->expect, error)) ||
        !read_probes(d, node_get(node, "probes"), &f->probes, error))
        return false;
    if (!is_class(f->class_name))
        return node_error(d, node_get(node, "class"), error, "class: found '%s', expected Z01 to Z30", f->class_name);
    for (int i = 0; i < list->count - 1; i++)
        if (strcmp(list->items[i].name, f->name) == 0 && strcmp(list->items[i].in, f->in) == 0)
            return node_error(d, node_get(node, "name"), error, "name: found '%s' again, expected each once in %s (first %s)", f->name,
                              f->in, list->items[i].origin);
    return true;
}

static bool read_file(const char *path, struct fault_list *out, struct error *error)
{
    struct document d;
    if (!document_read(path, &d, error))
        return false;
    const struct node *several = node_get(d.root, "faults");
    bool ok = true;
    if (several == NULL)
        ok = read_fault(&d, d.root, out, error);
    for (int i = 0; ok && several != NULL && i < several->count; i++)
        ok = read_fault(&d, several->items[i], out, error);
    document_free(&d);
    return ok;
}

static int is_yaml(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 5 && strcmp(entry->d_name + size - 5, ".yaml") == 0;
}

bool faults_read(const char *suite, struct fault_list *out, struct error *error)
{
    char *folder = memory_format("%s/faults", suite);
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_yaml, alphasort);
    bool ok = count >= 0 || error_set(error, "%s: %s", folder, strerror(errno));
    *out = (struct fault_list){0};
    for (int i = 0; i < count; i++) {
        char *path = memory_format("%s/%s", folder, files[i]->d_name);
        ok = ok && read_file(path, out, error);
        free(path);
        free(files[i]);
    }
    free(files);
    if (ok && out->count == 0)
        ok = error_set(error, "%s: found no fault, expected files *.yaml", folder);
    free(folder);
    return ok;
}

void faults_free(struct fault_list *l)
{
    for (int i = 0; i < l->count; i++) {
        struct fault *f = &l->items[i];
        char *texts[] = {f->name, f->class_name, f->in, f->claim, f->expect, f->origin};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
        string_list_free(&f->cases);
    }
    free(l->items);
    *l = (struct fault_list){0};
}

static void append_text(char **text, const char *suffix)
{
    char *longer = memory_format("%s%s", *text, suffix);
    free(*text);
    *text = longer;
}

static void set_fault(struct fsdp_case *c, const char *name)
{
    char *suffix = memory_format(".fault-%s", name);
    append_text(&c->id, suffix);
    append_text(&c->family, suffix);
    free(suffix);
    struct case_option *grown = memory_zeros((size_t)c->option_count + 1, sizeof *grown);
    if (c->option_count > 0)
        memcpy(grown, c->options, (size_t)c->option_count * sizeof *grown);
    grown[c->option_count++] = (struct case_option){memory_text("fault"), memory_text(name)};
    free(c->options);
    c->options = grown;
}

static int index_of(const struct plan *plan, const char *id)
{
    for (int i = 0; i < plan->count; i++)
        if (strcmp(plan->cases[i].c.id, id) == 0)
            return i;
    return -1;
}

// saver: index in the plan of the case that saves for it, or -1.
static void append_case(struct plan *plan, int **fault_of, const struct planned_case *from, int saver, const char *fault, int index)
{
    plan->cases = memory_grow(plan->cases, (size_t)plan->count, sizeof *plan->cases);
    *fault_of = memory_grow(*fault_of, (size_t)plan->count, sizeof **fault_of);
    struct planned_case *to = &plan->cases[plan->count];
    *to = (struct planned_case){.skip = memory_text(from->skip), .origin = memory_text(from->origin), .gate = -1, .saver = saver,
                               .is_saver = from->is_saver};
    case_copy(&to->c, &from->c);
    if (fault != NULL)
        set_fault(&to->c, fault);
    if (index_of(plan, to->c.id) >= 0) {
        case_free(&to->c);
        free(to->skip);
        free(to->origin);
        return;
    }
    (*fault_of)[plan->count++] = fault != NULL ? index : -1;
}

// Cases of one entry of `cases`; gates come along only where the entry asks for them by name.
static bool append_entry(const char *entry, const char *fault, int index, const char *suite, const struct implementation *i,
                         struct plan *plan, int **fault_of, struct error *error)
{
    static const char word[] = "profile:";
    bool is_profile = strncmp(entry, word, sizeof word - 1) == 0;
    struct selection s = {.suite = suite, .profile = is_profile ? entry + sizeof word - 1 : NULL, .pattern = is_profile ? NULL : entry, .scale = 1};
    struct plan found = {0};
    if (!plan_make(&s, i, &found, error))
        return false;
    for (int k = 0; k < found.count; k++) {
        const struct planned_case *p = &found.cases[k];
        bool named = !is_profile && fnmatch(entry, p->c.id, 0) == 0;
        if (p->is_gate && !named)
            continue;
        if (p->is_saver)
            append_case(plan, fault_of, p, -1, NULL, -1);
        else
            append_case(plan, fault_of, p, p->saver < 0 ? -1 : index_of(plan, found.cases[p->saver].c.id), fault, index);
    }
    plan_free(&found);
    return true;
}

static bool append_all(const struct fault *f, const char *fault, int index, const char *suite, const struct implementation *i,
                       struct plan *plan, int **fault_of, struct error *error)
{
    int before = plan->count;
    for (int k = 0; k < f->cases.count; k++) {
        struct error own = {0};
        if (!append_entry(f->cases.items[k], fault, index, suite, i, plan, fault_of, &own))
            return error_set(error, "%s: fault %s: %s", f->origin, f->name, own.text);
    }
    return fault == NULL || plan->count > before || error_set(error, "%s: fault %s: its cases select nothing", f->origin, f->name);
}

bool faults_plan(const struct fault *f, int index, const char *suite, const struct implementation *i, struct plan *plan,
                 int **fault_of, struct error *error)
{
    return append_all(f, f->name, index, suite, i, plan, fault_of, error);
}

bool faults_plan_correct(const struct fault *f, const char *suite, const struct implementation *i, struct plan *plan, int **fault_of,
                         struct error *error)
{
    return append_all(f, NULL, -1, suite, i, plan, fault_of, error);
}
