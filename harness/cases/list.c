// What a suite folder offers: the names for `fsdpmark list` and for messages about unknown names.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cases/expand.h"
#include "harness/cases/strings.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"

// The last part of a path without its ending.
static char *stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return memory_format("%.*s", (int)(dot ? dot - name : (long)strlen(name)), name);
}

bool suite_list_implementations(const char *suite, struct string_list *out, struct error *error)
{
    struct string_list folders = {0};
    char *folder = memory_format("%s/implementations", suite);
    bool fine = folder_list(folder, NULL, &folders, error);
    free(folder);
    for (int i = 0; i < folders.count; i++) {
        char *manifest = memory_format("%s/implementation.yaml", folders.items[i]);
        if (access(manifest, F_OK) == 0)
            string_list_add(out, strrchr(folders.items[i], '/') + 1);
        free(manifest);
    }
    string_list_free(&folders);
    return fine;
}

static bool add_profile(const char *path, struct string_list *names, struct string_list *titles, struct error *error)
{
    struct document doc;
    if (!document_read(path, &doc, error))
        return false;
    const struct node *title = node_get(doc.root, "title");
    char *name = stem(path);
    string_list_add(names, name);
    string_list_add(titles, title && title->kind == NODE_SCALAR ? title->text : "");
    free(name);
    document_free(&doc);
    return true;
}

bool suite_list_profiles(const char *suite, struct string_list *names, struct string_list *titles, struct error *error)
{
    struct string_list files = {0};
    char *folder = memory_format("%s/profiles", suite);
    bool fine = folder_list(folder, ".yaml", &files, error);
    free(folder);
    for (int i = 0; fine && i < files.count; i++)
        fine = add_profile(files.items[i], names, titles, error);
    string_list_free(&files);
    return fine;
}

static bool list_titled(const char *suite, const char *kind, struct string_list *names, struct string_list *titles, struct error *error)
{
    struct string_list files = {0};
    char *folder = memory_format("%s/%s", suite, kind);
    bool fine = folder_list(folder, ".yaml", &files, error);
    free(folder);
    for (int i = 0; fine && i < files.count; i++)
        fine = expand_names(files.items[i], names, titles, error);
    string_list_free(&files);
    return fine;
}

bool suite_list_cases(const char *suite, struct string_list *names, struct string_list *titles, struct error *error)
{
    return list_titled(suite, "cases", names, titles, error);
}

bool suite_list_workloads(const char *suite, struct string_list *names, struct string_list *titles, struct error *error)
{
    return list_titled(suite, "workloads", names, titles, error);
}

char *suite_workload_file(const char *suite, const char *word, struct error *error)
{
    size_t size = strlen(word);
    bool is_path = strchr(word, '/') != NULL || (size > 5 && strcmp(word + size - 5, ".yaml") == 0);
    char *path = is_path ? memory_text(word) : memory_format("%s/workloads/%s.yaml", suite, word);
    if (is_path || access(path, R_OK) == 0)
        return path;
    if (access(word, R_OK) == 0) {
        free(path);
        return memory_text(word);
    }
    struct string_list names = {0}, titles = {0};
    char list[400] = "";
    struct error ignored = {0};
    suite_list_workloads(suite, &names, &titles, &ignored);
    for (int i = 0; i < names.count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "", names.items[i]);
    error_set(error, "--workload: found '%s', expected a file or one of %s", word, list);
    string_list_free(&names);
    string_list_free(&titles);
    free(path);
    return NULL;
}
