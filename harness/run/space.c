// See space.h.
#include "harness/run/space.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t available(const struct statvfs *info)
{
    return (uint64_t)info->f_bavail * info->f_frsize;
}

bool space_is_short(const struct statvfs *info)
{
    return available(info) < SPACE_BYTES || (info->f_files > 0 && info->f_favail < SPACE_FILES);
}

void space_excuse(const char *folder, struct result *results, int count)
{
    struct statvfs info;
    const char *slash = strrchr(folder, '/');
    // A folder that cannot be asked excuses nothing.
    if (statvfs(folder, &info) != 0 || !space_is_short(&info))
        return;
    for (int i = 0; i < count; i++) {
        struct finding *f = &results[i].finding, broken = {0};
        if (f->verdict != VERDICT_FAIL)
            continue;
        finding_broken(&broken, "no space left in %.*s: found %" PRIu64 " bytes and %" PRIu64 " files available, expected at least %d "
                       "and %d; the worker may be right. It failed with: %.300s", (int)(slash != NULL ? slash - folder : 0), folder,
                       available(&info), (uint64_t)info.f_favail, SPACE_BYTES, SPACE_FILES, f->message);
        *f = broken;
    }
}
