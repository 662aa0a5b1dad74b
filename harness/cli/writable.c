// Whether reports can be written, asked before anything is measured: nobody wants to hear of a wrong path after minutes.
//
// By trying, since root may do what permissions forbid and a file system may refuse what they allow. What was made for it is taken away again. A pipe or a
// device is not opened: its reader would take the first close for the end.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/run/scratch.h"

static bool takes_text(const char *path)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return access(path, W_OK) == 0;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | (exists ? 0 : O_CREAT), 0666);
    if (fd < 0)
        return false;
    close(fd);
    if (!exists)
        unlink(path);
    return true;
}

// Makes the folder with its parents; *kept: how much of the path was there before. The reason of the first that cannot be made is the one that tells.
static bool make_folders(char *path, size_t *kept)
{
    int reason = 0;
    *kept = strlen(path);
    for (char *at = path + 1;; at++) {
        char end = *at;
        if (end != '/' && end != 0)
            continue;
        *at = 0;
        if (mkdir(path, 0777) == 0)
            *kept = *kept < (size_t)(at - path) ? *kept : (size_t)(at - path) - 1;
        else if (errno != EEXIST && reason == 0)
            reason = errno;
        *at = end;
        if (end == 0)
            break;
    }
    errno = reason;
    return reason == 0;
}

static bool takes_files(const char *folder)
{
    char path[PATH_MAX];
    size_t kept;
    errno = folder[0] == 0 ? ENOENT : ENAMETOOLONG;
    if (folder[0] == 0 || (size_t)snprintf(path, sizeof path, "%s", folder) >= sizeof path)
        return false;
    bool ok = make_folders(path, &kept) && scratch_takes_files(path);
    int reason = errno;
    for (size_t n = strlen(path); n > kept; path[--n] = 0)
        if (path[n - 1] != '/' && (path[n] == 0 || path[n] == '/'))
            rmdir(path);
    errno = reason;
    return ok;
}

static bool complain(const struct cli *cli, const char *option, const char *path)
{
    if (path[0] == 0)
        return options_bad(cli->command, "--%s: found '', expected a path", option), false;
    return options_bad(cli->command, "%s: cannot be written: %s", path, strerror(errno)), false;
}

bool cli_can_write(const struct cli *cli, const char *option, const char *path)
{
    return path == NULL || strcmp(path, "-") == 0 || takes_text(path) || complain(cli, option, path);
}

bool cli_can_fill(const struct cli *cli, const char *option, const char *folder)
{
    return folder == NULL || takes_files(folder) || complain(cli, option, folder);
}

bool cli_can_work(const struct cli *cli)
{
    struct error error = {0};
    return scratch_usable(&error) || (options_bad(cli->command, "%s", error.text), false);
}
