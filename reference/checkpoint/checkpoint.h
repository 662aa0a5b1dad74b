// Sharded checkpoints: a file for each shard and an index, so that another number of ranks and another layout can load them.
//
// What: save: shard s of the first replica writes shard<s>.safetensors: its pieces of every "<kind>/<parameter>" (param, exp_avg,
//       exp_avg_sq, momentum), one-dimensional. Rank 0 writes index.json last: shapes, types, counters, loss scale, and
//       where each piece is: {"tensors": {"param/w": {"dtype", "count", "pieces": [[shard, offset, length], ...]}}}.
//       load: each rank copies what overlaps its own pieces out of the files, whatever cut them.
// How:  offsets come from sharding/layout.h on both sides. A load checks that every element that it needs was found once.
// Why:  nobody ever holds the whole model, and the number of ranks that wrote is not that which reads.
#ifndef REFERENCE_CHECKPOINT_CHECKPOINT_H
#define REFERENCE_CHECKPOINT_CHECKPOINT_H

#include "reference/engine/engine.h"

// Collective. folder is made if it is missing. Errors: the file system's.
bool checkpoint_save(struct engine *e, const char *folder, struct error *error);
// Collective. Errors: "FILE: found, expected": no index, another model, missing pieces.
bool checkpoint_load(struct engine *e, const char *folder, struct error *error);

#endif
