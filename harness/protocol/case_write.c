// struct fsdp_case to case.json, whole or not at all. See case.h.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/protocol/case_fields.h"

bool case_write(const struct fsdp_case *c, const char *path, struct error *error)
{
    char part[4096];
    if ((size_t)snprintf(part, sizeof part, "%s.tmp", path) >= sizeof part)
        return error_set(error, "%.200s...: found a path of more than 4000 characters, expected a shorter one", path);
    json_t *object = fields_write(case_fields, c, c);
    // 17 significant digits name every double uniquely.
    bool fine = json_dump_file(object, part, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 && rename(part, path) == 0;
    json_decref(object);
    if (fine)
        return true;
    error_set(error, "%s: cannot be written: %s", path, strerror(errno));
    unlink(part);
    return false;
}
