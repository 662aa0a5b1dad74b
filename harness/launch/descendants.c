// Finds and signals all descendants of this process.
//
// How: /proc/<pid>/stat of every process gives its parent; marks spread from this process downwards until nothing
// changes. Why not process groups: a worker may open groups and sessions of its own (mpirun and its ranks, a shell and
// its children do). Orphans are found as well, since the keeper adopts them.
// Source: proc(5), /proc/[pid]/stat: field 2 is in parentheses and may hold any character, field 4 is the parent.
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/launch/keeper.h"

struct process { pid_t pid, parent; bool mine; };

static bool read_parent(const char *pid, struct process *out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *end = strrchr(text, ')');
    char state;
    int parent;
    if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2)
        return false;
    // A zombie needs no signal, only its parent's wait.
    *out = (struct process){atoi(pid), parent, false};
    return state != 'Z';
}

static int list_processes(struct process **out)
{
    int count = 0, capacity = 0;
    DIR *folder = opendir("/proc");
    *out = NULL;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (count == capacity) {
            struct process *grown = realloc(*out, sizeof **out * (size_t)(capacity = 2 * capacity + 256));
            if (grown == NULL)
                break;
            *out = grown;
        }
        count += read_parent(entry->d_name, &(*out)[count]);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static bool is_mine(const struct process *list, int count, pid_t parent, pid_t self)
{
    if (parent == self)
        return true;
    for (int i = 0; i < count; i++)
        if (list[i].pid == parent)
            return list[i].mine;
    return false;
}

int descendants_signal(int number, pid_t except)
{
    struct process *list;
    int count = list_processes(&list), found = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < count; i++)
            if (!list[i].mine && is_mine(list, count, list[i].parent, getpid()))
                list[i].mine = changed = true;
    }
    for (int i = 0; i < count; i++)
        if (list[i].mine && list[i].pid != except) {
            found++;
            kill(list[i].pid, number);
        }
    free(list);
    return found;
}
