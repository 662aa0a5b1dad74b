// Lists of owned texts, and what a folder holds as one. See strings.h.
#include "harness/cases/strings.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/protocol/memory.h"

void string_list_add(struct string_list *l, const char *text)
{
    l->items = memory_grow(l->items, (size_t)l->count, sizeof *l->items);
    l->items[l->count++] = memory_text(text);
}

bool string_list_has(const struct string_list *l, const char *text)
{
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->items[i], text) == 0)
            return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void string_list_sort(struct string_list *l)
{
    if (l->count)
        qsort(l->items, (size_t)l->count, sizeof *l->items, by_text);
}

const char **string_list_names(const struct string_list *l)
{
    const char **names = memory_zeros((size_t)l->count + 1, sizeof *names);
    for (int i = 0; i < l->count; i++)
        names[i] = l->items[i];
    return names;
}

void string_list_free(struct string_list *l)
{
    for (int i = 0; i < l->count; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct string_list){0};
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length > tail && strcmp(text + length - tail, suffix) == 0;
}

bool folder_list(const char *folder, const char *suffix, struct string_list *out, struct error *error)
{
    DIR *d = opendir(folder);
    if (!d)
        return error_set(error, "%s: %s, expected a folder", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(d));) {
        struct stat about;
        char *path = memory_format("%s/%s", folder, entry->d_name);
        bool there = entry->d_name[0] != '.' && stat(path, &about) == 0;
        if (there && (suffix ? S_ISREG(about.st_mode) && ends_with(path, suffix) : S_ISDIR(about.st_mode)))
            string_list_add(out, path);
        free(path);
    }
    closedir(d);
    string_list_sort(out);
    return true;
}
