// Reading profiles and asking them. See profile.h and docs/cases.md.
#include "harness/cases/profile.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cases/strings.h"
#include "harness/probes/summary.h"
#include "harness/protocol/memory.h"

static bool check_entry(const struct document *doc, const struct node *entry, struct error *error)
{
    const struct node *pattern = node_get(entry, "pattern");
    if (entry->kind != NODE_MAPPING || !pattern || pattern->kind != NODE_SCALAR || !*pattern->text)
        return node_error(doc, entry, error, "cases: found no pattern, expected {pattern: GLOB, AXIS: VALUES, ...}");
    for (int i = 0; i < entry->count; i++)
        if (strcmp(entry->keys[i], "pattern") != 0 && !draft_key_known(doc, entry, entry->key_lines[i], entry->keys[i], error))
            return false;
    return true;
}

// probes: [heap, mpi]
static bool read_probes(struct profile *p, const struct node *list, struct error *error)
{
    for (int i = 0; list && list->kind == NODE_SEQUENCE && i < list->count; i++) {
        const struct node *item = list->items[i];
        struct error own = {""};
        unsigned one = 0;
        if (item->kind != NODE_SCALAR || !probe_set(item->text, &one, &own) || !one)
            return node_error(&p->doc, item, error, "probes: %s", own.text[0] ? own.text : "found no name, expected one of a probe");
        p->probes |= one;
    }
    return !list || list->kind == NODE_SEQUENCE || node_error(&p->doc, list, error, "probes: found no list, expected [heap, socket, mpi, ...]");
}

static bool check(struct profile *p, struct error *error)
{
    static const char *const keys[] = {"title", "probes", "cases", NULL};
    const struct node *root = p->doc.root, *title = node_get(root, "title");
    struct reading r = {.document = &p->doc, .error = error};
    p->cases = node_get(root, "cases");
    if (root->kind != NODE_MAPPING)
        return node_error(&p->doc, root, error, "found no mapping, expected {title, probes, cases}");
    for (int i = 0; i < root->count; i++)
        if (strcmp(root->keys[i], "title") != 0 && strcmp(root->keys[i], "probes") != 0 && strcmp(root->keys[i], "cases") != 0)
            return field_unknown(&r, root, root->key_lines[i], root->keys[i], keys);
    if (!title || title->kind != NODE_SCALAR || !*title->text)
        return node_error(&p->doc, title ? title : root, error, "title: found no text, expected one line");
    if (!read_probes(p, node_get(root, "probes"), error))
        return false;
    if (!p->cases || p->cases->kind != NODE_SEQUENCE || p->cases->count == 0)
        return node_error(&p->doc, p->cases ? p->cases : root, error, "cases: found no entry, expected a list of {pattern: GLOB, ...}");
    for (int i = 0; i < p->cases->count; i++)
        if (!check_entry(&p->doc, p->cases->items[i], error))
            return false;
    p->matched = memory_zeros((size_t)p->cases->count, sizeof *p->matched);
    p->selected = memory_zeros((size_t)p->cases->count, sizeof *p->selected);
    return true;
}

static bool no_such_profile(const char *suite, const char *name, struct error *error)
{
    struct string_list known = {0}, titles = {0};
    char list[512];
    if (!suite_list_profiles(suite, &known, &titles, error))
        return false;
    const char **names = string_list_names(&known);
    error_set(error, "found no profile '%.100s' in %s/profiles, expected %s", name, suite, name_list(names, list, sizeof list));
    free(names);
    string_list_free(&known);
    string_list_free(&titles);
    return false;
}

bool profile_read(const char *suite, const char *name, struct profile *out, struct error *error)
{
    char *path = memory_format("%s/profiles/%s.yaml", suite, name);
    *out = (struct profile){0};
    bool fine = access(path, F_OK) == 0 ? document_read(path, &out->doc, error) && check(out, error) : no_such_profile(suite, name, error);
    free(path);
    if (!fine)
        profile_free(out);
    return fine;
}

bool profile_selects(struct profile *p, const struct draft *d)
{
    bool any = false;
    for (int i = 0; i < p->cases->count; i++) {
        const char *pattern = node_get(p->cases->items[i], "pattern")->text;
        if (fnmatch(pattern, d->name, 0) != 0 && fnmatch(pattern, d->c.id, 0) != 0)
            continue;
        bool selected = draft_matches(d, p->cases->items[i], "pattern");
        p->matched[i]++;
        p->selected[i] += selected;
        any = any || selected;
    }
    return any;
}

bool profile_used(const struct profile *p, struct error *error)
{
    for (int i = 0; i < p->cases->count; i++) {
        const struct node *entry = p->cases->items[i];
        // Which layouts there are depends on the implementation.
        if (p->selected[i] == 0 && (p->matched[i] == 0 || !node_get(entry, "layout")))
            return node_error(&p->doc, entry, error, "found pattern '%.100s', which selects no case%s, expected one that does",
                              node_get(entry, "pattern")->text, p->matched[i] ? " at these values" : "");
    }
    return true;
}

void profile_free(struct profile *p)
{
    free(p->matched);
    free(p->selected);
    document_free(&p->doc);
    *p = (struct profile){0};
}
