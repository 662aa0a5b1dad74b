// truth.json: everything of a truth that is not a tensor. Private to this folder.
#ifndef REFERENCE_TRUTH_RECORD_H
#define REFERENCE_TRUTH_RECORD_H

#include "reference/truth/truth.h"

// Writes FOLDER/truth.json, whole or not at all; it is the last file of a truth.
bool record_write(const struct fsdp_case *c, const struct truth *t, const char *folder, struct error *error);
// Fills all but tensors (labels get their names only). Errors: not there, not sound, of another case or version.
bool record_read(const struct fsdp_case *c, const char *folder, struct truth *t, struct error *error);

#endif
