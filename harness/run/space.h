// Room for answers: a worker that cannot write them is not to blame.
#ifndef HARNESS_SPACE_H
#define HARNESS_SPACE_H

#include <stdbool.h>
#include <sys/statvfs.h>

#include "harness/judge/judge.h"

// Below this, a failure may come from a full file system: an MPI's session folder alone takes some megabytes, and is gone when
// the failure is looked at.
enum { SPACE_BYTES = 16 << 20, SPACE_FILES = 64 };

// True where a file system has less than SPACE_BYTES or SPACE_FILES (where it counts files at all) left for this user.
bool space_is_short(const struct statvfs *info);
// Where the file system of a run's folder is short of space, every FAIL among the results becomes BROKEN "no space left in FOLDER".
void space_excuse(const char *folder, struct result *results, int count);

#endif
