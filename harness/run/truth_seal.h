// Tells a truth that is still what was put into the cache from one that was damaged since.
//
// The seal is a file of the truth's folder: the digest of the lines after it, then by file "DIGEST BYTES PATH". A file that is
// missing, short, longer or different breaks it, and so does a damaged seal. It is no protection against intent.
#ifndef HARNESS_TRUTH_SEAL_H
#define HARNESS_TRUTH_SEAL_H

#include <stdbool.h>

#include "harness/protocol/error.h"

#define TRUTH_SEAL "digests"

// Makes the files of a folder read-only (mode 0444) and writes their digests (XXH3, 128 bits, hex) to FOLDER/digests.
bool truth_seal(const char *folder, struct error *error);
// True where every sealed file is as it was. Errors: "PATH: what was found, what was expected".
bool truth_seal_holds(const char *folder, struct error *error);

#endif
