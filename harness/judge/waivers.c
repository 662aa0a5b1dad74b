// Reads and matches waivers. See waivers.h.
#include "harness/judge/waivers.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/cases/strings.h"
#include "harness/judge/versions.h"
#include "harness/protocol/fields.h"
#include "harness/protocol/memory.h"
#include "suite/checks/check.h"

// What is no check but FAILs too: wrong structure, error, crash, hang.
#define ANSWER "answer"

// One text, or a list of texts; none of them empty.
static bool read_texts(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct string_list *list = (struct string_list *)((char *)base + f->offset);
    const struct node *one[] = {node}, *const *items = one;
    int count = 1;
    if (node && node->kind == NODE_SEQUENCE) {
        items = (const struct node *const *)node->items;
        count = node->count;
    }
    for (int i = 0; i < count; i++) {
        if (!items[i] || items[i]->kind != NODE_SCALAR || !*items[i]->text)
            return field_error(r, f, items[i], "a text, or a list of texts");
        string_list_add(list, items[i]->text);
    }
    return count > 0 || field_error(r, f, node, "a text, or a list of texts");
}

// A list of ranges is the same as one text with ';' between them.
static bool read_ranges(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct waiver *w = base;
    struct string_list parts = {0};
    const struct field texts = {f->name, FIELD_CUSTOM, .offset = 0};
    bool fine = read_texts(r, &texts, node, &parts);
    for (int i = 0; fine && i < parts.count; i++) {
        char *longer = memory_format("%s%s%s", w->versions ? w->versions : "", w->versions ? "; " : "", parts.items[i]);
        free(w->versions);
        w->versions = longer;
    }
    string_list_free(&parts);
    return fine;
}

#define TEXTS(member) FIELD_CUSTOM, .offset = offsetof(struct waiver, member), .read = read_texts
#define TEXT(member) FIELD_STRING, .offset = offsetof(struct waiver, member)
static const struct field waiver_fields[] = {
    {"implementation", TEXTS(implementations)}, {"versions", FIELD_CUSTOM, .read = read_ranges}, {"check", TEXTS(checks)},
    {"cases", TEXTS(cases)}, {"reason", TEXT(reason)}, {"page", TEXT(page)}, {"expires", TEXT(expires)}, {0},
};

// ---- what a field may say ----

struct place { const struct document *doc; const struct node *node; const char *folder; struct error *error; };

static bool check_names(const struct waiver *w, const struct place *p)
{
    const char *names[128];
    int count = 0;
    for (int i = 0; check_list[i] && count < 126; i++)
        names[count++] = check_list[i]->name;
    names[count++] = ANSWER;
    names[count] = NULL;
    for (int i = 0; i < w->checks.count; i++) {
        int at = 0;
        while (names[at] && strcmp(names[at], w->checks.items[i]) != 0)
            at++;
        const char *near = nearest_name(w->checks.items[i], names);
        if (!names[at])
            return node_error(p->doc, node_get(p->node, "check"), p->error, "check: found '%.60s'%s%s%s, expected a check (fsdpmark list checks) or " ANSWER,
                              w->checks.items[i], near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    return true;
}

static bool check_date(const struct waiver *w, const struct place *p)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, end = 0;
    bool form = sscanf(w->expires, "%4d-%2d-%2d%n", &year, &month, &day, &end) == 3 && end == 10 && !w->expires[end] &&
                strspn(w->expires, "0123456789-") == 10 && month >= 1 && month <= 12;
    bool leap = form && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (form && day >= 1 && day <= days[month - 1] + (leap && month == 2))
        return true;
    return node_error(p->doc, node_get(p->node, "expires"), p->error, "expires: found '%.40s', expected a day as YYYY-MM-DD", w->expires);
}

static bool check_page(const struct waiver *w, const struct place *p)
{
    struct stat info;
    char *path = memory_format("%s/%.*s", p->folder, (int)strcspn(w->page, "#"), w->page);
    bool there = *w->page && w->page[0] != '#' && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    if (!there)
        node_error(p->doc, node_get(p->node, "page"), p->error, "page: found '%.200s', expected a file below %s that tells the cause", w->page, p->folder);
    free(path);
    return there;
}

static bool check_texts(const struct waiver *w, const struct place *p)
{
    struct error own = {0};
    if (!versions_valid(w->versions, &own))
        return node_error(p->doc, node_get(p->node, "versions"), p->error, "versions: %s", own.text);
    if (!w->reason[strspn(w->reason, " ")])
        return node_error(p->doc, node_get(p->node, "reason"), p->error, "reason: found nothing, expected why it fails");
    return check_names(w, p) && check_date(w, p) && check_page(w, p);
}

// ---- the list ----

static bool read_one(const struct document *doc, const struct node *node, const char *folder, struct waiver *w, struct error *error)
{
    struct reading r = {.document = doc, .error = error, .root = w};
    struct place place = {doc, node, folder, error};
    *w = (struct waiver){.origin = memory_format("%s:%d", doc->where, node->line)};
    if (node->kind != NODE_MAPPING)
        return node_error(doc, node, error, "found no mapping, expected {implementation, versions, check, cases, reason, page, expires}");
    return fields_read(&r, node, waiver_fields, w) && check_texts(w, &place);
}

static bool read_all(const struct document *doc, const char *folder, struct waiver_list *out, struct error *error)
{
    const struct node *list = node_get(doc->root, "waivers");
    if (!list || list->kind != NODE_SEQUENCE || doc->root->count != 1)
        return node_error(doc, doc->root, error, "found no list under waivers alone, expected {waivers: [...]}");
    out->items = memory_zeros((size_t)list->count + 1, sizeof *out->items);
    for (; out->count < list->count; out->count++)
        if (!read_one(doc, list->items[out->count], folder, &out->items[out->count], error)) {
            out->count++; // half read: freed with the rest
            return false;
        }
    return true;
}

bool waivers_read(const char *path, const char *folder, struct waiver_list *out, struct error *error)
{
    struct document doc;
    *out = (struct waiver_list){0};
    if (!document_read(path, &doc, error))
        return false;
    bool fine = read_all(&doc, folder, out, error);
    document_free(&doc);
    if (!fine)
        waivers_free(out);
    return fine;
}

void waivers_free(struct waiver_list *l)
{
    for (int i = 0; i < l->count; i++) {
        struct waiver *w = &l->items[i];
        string_list_free(&w->implementations);
        string_list_free(&w->checks);
        string_list_free(&w->cases);
        char *texts[] = {w->versions, w->reason, w->page, w->expires, w->origin};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
    }
    free(l->items);
    *l = (struct waiver_list){0};
}

static bool any_matches(const struct string_list *globs, const char *text)
{
    for (int i = 0; i < globs->count; i++)
        if (fnmatch(globs->items[i], text, 0) == 0)
            return true;
    return false;
}

bool waiver_concerns(const struct waiver *w, const char *implementation, json_t *versions)
{
    char why[128];
    return any_matches(&w->implementations, implementation) && versions_within(w->versions, versions, why, sizeof why);
}

bool waiver_covers_case(const struct waiver *w, const char *case_id) { return any_matches(&w->cases, case_id); }

bool waiver_covers_check(const struct waiver *w, const char *check) { return string_list_has(&w->checks, check); }
