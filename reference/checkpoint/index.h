// index.json of a sharded checkpoint: which shard file holds which elements, and what is not a tensor.
#ifndef REFERENCE_CHECKPOINT_INDEX_H
#define REFERENCE_CHECKPOINT_INDEX_H

#include <jansson.h>

#include "reference/engine/engine.h"

struct index_piece { int shard; int64_t offset, length; }; // elements of the full tensor
struct index_tensor { const char *name; enum dtype dtype; int64_t count; int piece_count; struct index_piece *pieces; };
struct index { json_t *root; int count; struct index_tensor *tensors; };

// Writes folder/index.json, whole or not at all.
bool index_write(const struct engine *e, const char *folder, struct error *error);
// Reads and checks it. Errors: "FILE: found, expected".
bool index_read(const struct engine *e, const char *folder, struct index *out, struct error *error);
const struct index_tensor *index_find(const struct index *index, const char *name);
// Takes over the counters: updates of each parameter, loss scale and good steps.
bool index_apply(struct engine *e, const struct index *index, struct error *error);
void index_free(struct index *index);

#endif
