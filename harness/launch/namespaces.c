// See namespaces.h. A namespace is known by its inode, the same wherever it is looked at from. Source: namespaces(7), "The /proc/pid/ns/ directory".
#include "harness/launch/namespaces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/fabric/fabric.h"

bool namespaces_needed(const struct launch_plan *plan)
{
    struct fabric_namespaces any;
    return plan->place != NULL && fabric_place_namespaces(plan->place, 0, &any);
}

static bool write_line(FILE *file, const char *kind, const char *path, struct error *error)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set(error, "%s: %s", path, strerror(errno));
    fprintf(file, "%s %s %lu\n", kind, path, (unsigned long)info.st_ino);
    return true;
}

bool namespaces_write(const struct launch_plan *plan, int rank, struct error *error)
{
    char path[4200];
    struct fabric_namespaces of;
    fabric_place_namespaces(plan->place, fabric_place_host(plan->place, rank, plan->ranks), &of);
    snprintf(path, sizeof path, "%s/rank%d.namespaces", plan->folder, rank);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return error_set(error, "%s: %s", path, strerror(errno));
    bool ok = write_line(file, "net", of.net, error) && write_line(file, "uts", of.name, error);
    return (fclose(file) == 0 || error_set(error, "%s: %s", path, strerror(errno))) && ok;
}

bool namespaces_hold(const char *folder, int rank, pid_t pid, char *why, size_t size)
{
    char path[4200], kind[8];
    unsigned long expected;
    int lines = 0;
    struct stat found;
    snprintf(path, sizeof path, "%s/rank%d.namespaces", folder, rank);
    FILE *file = fopen(path, "re");
    why[0] = 0;
    for (; why[0] == 0 && file != NULL && fscanf(file, "%7s %*s %lu\n", kind, &expected) == 2; lines++) {
        snprintf(path, sizeof path, "/proc/%ld/ns/%s", (long)pid, kind);
        // Who has ended is nowhere.
        if (stat(path, &found) != 0 && errno != ENOENT && errno != ESRCH)
            snprintf(why, size, "%s: %s", path, strerror(errno));
        else if (stat(path, &found) == 0 && found.st_ino != expected)
            snprintf(why, size, "rank %d, process %ld, is in %s:[%lu], expected [%lu]", rank, (long)pid, kind, (unsigned long)found.st_ino, expected);
    }
    if (file != NULL)
        fclose(file);
    if (lines == 0)
        snprintf(why, size, "rank%d.namespaces cannot be read", rank);
    return why[0] == 0;
}
