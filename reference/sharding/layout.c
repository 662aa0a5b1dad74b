// Layouts: cutting a unit's tensors into pieces. The rules are told in layout.h.
#include "reference/sharding/layout.h"

#include <stdlib.h>

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

// Elements [*begin, *end) of a tensor that lies at `base` of the full buffer, owned by a shard.
static void owned_range(const struct layout *l, const struct layout_tensor *t, int64_t base, int shard,
                        int64_t *begin, int64_t *end)
{
    int64_t count = t->rows * t->row_count;
    if (l->kind == SHARD_FLAT) {
        int64_t part = l->full_count / l->shards;
        *begin = min64(max64(shard * part - base, 0), count);
        *end = min64(max64((shard + 1) * part - base, 0), count);
        return;
    }
    int64_t chunk = (t->rows + l->shards - 1) / l->shards;
    *begin = min64(shard * chunk, t->rows) * t->row_count;
    *end = min64((shard + 1) * chunk, t->rows) * t->row_count;
}

static void cut_shard(struct layout *l, const struct layout_tensor *tensors, int shard, int *used)
{
    int64_t at = 0;
    l->first_piece[shard] = *used;
    for (int i = 0; i < l->tensor_count; i++) {
        int64_t begin, end;
        owned_range(l, &tensors[i], l->tensor_offset[i], shard, &begin, &end);
        if (begin == end)
            continue;
        l->pieces[(*used)++] = (struct layout_piece){i, begin, end - begin, at};
        at += end - begin;
    }
    l->counts[shard] = l->kind == SHARD_FLAT ? l->full_count / l->shards : at;
}

bool layout_create(struct layout *l, enum shard_layout kind, int shards, int tensor_count,
                   const struct layout_tensor *tensors, struct error *error)
{
    *l = (struct layout){.kind = kind, .shards = shards, .tensor_count = tensor_count};
    l->tensor_offset = calloc((size_t)tensor_count + 1, sizeof *l->tensor_offset);
    l->counts = calloc((size_t)shards, sizeof *l->counts);
    l->starts = calloc((size_t)shards, sizeof *l->starts);
    l->first_piece = calloc((size_t)shards + 1, sizeof *l->first_piece);
    l->pieces = calloc((size_t)tensor_count * (size_t)shards + 1, sizeof *l->pieces);
    if (!l->tensor_offset || !l->counts || !l->starts || !l->first_piece || !l->pieces) {
        layout_free(l);
        return error_set(error, "no memory for the layout of %d tensors on %d shards", tensor_count, shards);
    }
    for (int i = 0; i < tensor_count; i++) {
        l->tensor_offset[i] = l->data_count;
        l->data_count += tensors[i].rows * tensors[i].row_count;
    }
    int64_t padded = (l->data_count + shards - 1) / shards * shards;
    l->full_count = kind == SHARD_FLAT ? padded : l->data_count;
    int used = 0;
    for (int s = 0; s < shards; s++) {
        cut_shard(l, tensors, s, &used);
        l->starts[s] = s ? l->starts[s - 1] + l->counts[s - 1] : 0;
    }
    l->first_piece[shards] = used;
    return true;
}

void layout_free(struct layout *l)
{
    free(l->tensor_offset);
    free(l->counts);
    free(l->starts);
    free(l->first_piece);
    free(l->pieces);
    *l = (struct layout){0};
}

bool layout_concatenation_is_full(const struct layout *l)
{
    for (int s = 0; l->kind != SHARD_FLAT && s < l->shards; s++)
        for (int i = l->first_piece[s]; i < l->first_piece[s + 1]; i++)
            if (l->starts[s] + l->pieces[i].at != l->tensor_offset[l->pieces[i].tensor] + l->pieces[i].offset)
                return false;
    return true;
}

int64_t layout_padding(const struct layout *l, int shard)
{
    int last = l->first_piece[shard + 1] - 1;
    bool empty = last < l->first_piece[shard];
    return l->counts[shard] - (empty ? 0 : l->pieces[last].at + l->pieces[last].length);
}

int layout_owner(const struct layout *l, int tensor, int64_t element, int64_t *at)
{
    for (int s = 0; s < l->shards; s++)
        for (int i = l->first_piece[s]; i < l->first_piece[s + 1]; i++) {
            const struct layout_piece *p = &l->pieces[i];
            if (p->tensor != tensor || element < p->offset || element >= p->offset + p->length)
                continue;
            *at = p->at + element - p->offset;
            return s;
        }
    return -1;
}
