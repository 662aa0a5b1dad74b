// Who owns which element of a unit's parameters: the two layouts of sharded parameters.
//
// What: a unit holds tensors; its full buffer is their concatenation in table order. A layout cuts it
//       for S shards into pieces: piece = elements [offset, offset + length) of one tensor, kept at
//       position `at` of its owner's shard.
//         per-parameter: shard s has rows [s k, min((s+1) k, d0)) of each tensor, k = ceil(d0 / S), so the
//                        last chunks are short or empty (the rule of torch.chunk, used by PyTorch FSDP2);
//         flat:          the full buffer is padded to a multiple of S and cut into equal parts (as in
//                        PyTorch FSDP1 and ZeRO); a part may begin and end within a tensor.
// How:  arithmetic only, no communication and no memory of tensors, so that it can be tested exhaustively.
// Why:  everything that moves, updates, stores or reports shards asks this module; nobody else computes offsets.
// Source: Zhao et al. 2023, arXiv:2304.11277, section 3.2 (flat parameters); torch.chunk's documentation.
#ifndef REFERENCE_SHARDING_LAYOUT_H
#define REFERENCE_SHARDING_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/protocol/case.h"

// A tensor as rows: d0 rows (1 for a scalar) of row_count elements.
struct layout_tensor { int64_t rows, row_count; };

struct layout_piece {
    int tensor;             // index within the unit
    int64_t offset, length; // elements of the full tensor, length > 0
    int64_t at;             // where they begin in the owner's shard
};

struct layout {
    enum shard_layout kind;
    int shards, tensor_count;
    int64_t data_count;       // elements of all tensors
    int64_t full_count;       // with the padding: the sum of counts
    int64_t *tensor_offset;   // [tensor_count] of each tensor in the full buffer
    int64_t *counts;          // [shards] elements that a shard keeps, padding included
    int64_t *starts;          // [shards] sum of the counts before: where a shard lies when all are concatenated
    int *first_piece;         // [shards + 1] shard s has pieces first_piece[s] .. first_piece[s + 1] - 1
    struct layout_piece *pieces;
};

// Cuts tensors for a number of shards. kind is SHARD_PER_PARAMETER or SHARD_FLAT. Errors: none but no memory.
bool layout_create(struct layout *l, enum shard_layout kind, int shards, int tensor_count,
                   const struct layout_tensor *tensors, struct error *error);
void layout_free(struct layout *l);

// True where the concatenation of the shards is the full buffer itself: no copy between the two.
bool layout_concatenation_is_full(const struct layout *l);

// Elements of padding at the end of a shard.
int64_t layout_padding(const struct layout *l, int shard);

// The shard that owns an element of a tensor, and where it keeps it.
int layout_owner(const struct layout *l, int tensor, int64_t element, int64_t *at);

#endif
