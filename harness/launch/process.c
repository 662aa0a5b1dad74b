// Source: proc(5), /proc/[pid]/stat field 22: start time in clock ticks after boot.
#include "harness/launch/process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool process_start(long pid, unsigned long long *ticks)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    size_t size = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        fclose(file);
    text[size] = 0;
    const char *at = strrchr(text, ')');
    // Who has ended and was not waited for yet is gone as well.
    if (at != NULL && strncmp(at, ") Z", 3) == 0)
        return false;
    // ')' ends field 2; the blank before field 22 is the twentieth after it.
    for (int blank = 0; at != NULL && blank < 20; blank++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, " %llu", ticks) == 1;
}

bool process_shared(char *path, size_t size)
{
    unsigned long long ticks = 0;
    process_start(getpid(), &ticks);
    snprintf(path, size, "%s/fsdpmark.%ld.%llu", PROCESS_SHARED, (long)getpid(), ticks);
    return access(path, W_OK | X_OK) == 0;
}
