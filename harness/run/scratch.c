// See scratch.h.
#include "harness/run/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/launch/process.h"

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    remove(path);
    return 0;
}

void scratch_remove(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *temporary_folder(void)
{
    const char *t = getenv("TMPDIR");
    return t != NULL && t[0] == '/' ? t : "/tmp";
}

bool scratch_takes_files(const char *folder)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/.fsdpmark.XXXXXX", folder) >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return false;
    close(fd);
    unlink(path);
    return true;
}

bool scratch_usable(struct error *error)
{
    const char *folder = temporary_folder();
    return scratch_takes_files(folder) ||
           error_set(error, "TMPDIR: found %s, where no file can be made: %s; expected a folder for temporary files", folder, strerror(errno));
}

static void remove_stale(const char *below)
{
    DIR *folder = opendir(below);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        long pid;
        unsigned long long recorded, current;
        char rest, path[4096];
        struct stat info;
        bool is_run = sscanf(entry->d_name, "fsdpmark.%ld.%llu%c", &pid, &recorded, &rest) == 2;
        if (!is_run && sscanf(entry->d_name, "fsdpmark.capture.%ld.%c", &pid, &rest) != 2)
            continue;
        snprintf(path, sizeof path, "%s/%s", below, entry->d_name);
        bool alive = process_start(pid, &current) && (!is_run || current == recorded);
        if (!alive && lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid())
            scratch_remove(path);
    }
    if (folder != NULL)
        closedir(folder);
}

char *scratch_make(bool keep, struct error *error)
{
    unsigned long long ticks = 0;
    char *path, shared[64];
    remove_stale(temporary_folder());
    remove_stale(PROCESS_SHARED);
    process_start(getpid(), &ticks);
    // A machine without it has none: then MPI's files lie where MPI puts them.
    if (!process_shared(shared, sizeof shared))
        mkdir(shared, 0700);
    if (asprintf(&path, "%s/%s%ld.%llu", temporary_folder(), keep ? "fsdpmark-kept." : "fsdpmark.", (long)getpid(), ticks) < 0)
        return NULL;
    if (mkdir(path, 0700) != 0) {
        error_set(error, "%s: cannot be made: %s", path, strerror(errno));
        free(path);
        return NULL;
    }
    return path;
}

void scratch_end(const char *path, bool keep)
{
    char shared[64];
    if (process_shared(shared, sizeof shared))
        scratch_remove(shared);
    if (!keep)
        scratch_remove(path);
}

bool scratch_folder(const char *path, struct error *error)
{
    char copy[4096];
    if ((size_t)snprintf(copy, sizeof copy, "%s", path) >= sizeof copy)
        return error_set(error, "%s: the path is too long", path);
    // Of a parent that cannot be made and its children, the parent's reason tells what is wrong.
    int reason = 0;
    for (char *slash = copy + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        if (mkdir(copy, 0777) != 0 && errno != EEXIST && reason == 0)
            reason = errno;
        *slash = '/';
    }
    if (mkdir(copy, 0777) != 0 && errno != EEXIST)
        return error_set(error, "%s: cannot be made: %s", path, strerror(errno == ENOENT && reason != 0 ? reason : errno));
    return true;
}
