// The temporary folder of one run, and the folders that killed runs have left.
#ifndef HARNESS_SCRATCH_H
#define HARNESS_SCRATCH_H

#include <stdbool.h>

#include "harness/protocol/error.h"

// Makes $TMPDIR/fsdpmark.<pid>.<start time of the pid> (mode 0700) and removes those of this user whose process is gone.
// keep: the folder is called fsdpmark-kept... and never taken for a stale one. NULL on failure; the path is owned by the caller.
char *scratch_make(bool keep, struct error *error);
// Its end, where it is not kept, and that of the folder in shared memory that goes with it (harness/launch/process.h).
void scratch_end(const char *path, bool keep);
// Removes a folder and all in it; follows no link.
void scratch_remove(const char *folder);
// Whether files can be made in a folder that exists; errno tells why not.
bool scratch_takes_files(const char *folder);
// Whether they can in TMPDIR. Errors: its name, and why not.
bool scratch_usable(struct error *error);
// Makes a folder and its parents; an existing one is fine. Errors: "PATH: reason".
bool scratch_folder(const char *path, struct error *error);

#endif
