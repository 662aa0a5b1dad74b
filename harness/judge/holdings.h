// Who holds which elements: what the `shards` events say, and what the layouts demand.
#ifndef HARNESS_JUDGE_HOLDINGS_H
#define HARNESS_JUDGE_HOLDINGS_H

#include "harness/judge/judge.h"

enum held { HELD_PARAMETER, HELD_GRADIENT, HELD_OPTIMIZER, HELD_COUNT };
const char *held_name(enum held of); // "parameter" ...
enum held held_of(unsigned observe_bit); // what a local tensor of that kind is cut like

struct range { int64_t offset, length; };
struct held_part { int count; struct range *ranges; int64_t total; };
// What one rank said of one kind.
struct held_rank {
    bool reported;
    int64_t padding;
    bool has_padding_max;
    double padding_max;      // largest of all reports, NAN stays
    struct held_part *parts; // by parameter of the table; tied ones empty
};
struct holdings { int ranks, parameters; struct held_rank *by[HELD_COUNT]; };

// Reads all `shards` events. Errors (one line, naming rank and tensor): unknown name, range outside the tensor or
// overlapping another, a second event that contradicts the first. Released by holdings_free.
bool holdings_load(const struct fsdp_case *c, const struct answer *answers, struct holdings *out, struct error *error);
void holdings_free(struct holdings *h);

const struct held_rank *holdings_rank(const struct evidence *e, enum held of, int rank);
// Every rank reported this kind.
bool holdings_complete(const struct evidence *e, enum held of);
// Does the strategy demand that this kind is sharded? (optimizer: the states; grad: gradients too; full, hybrid: all)
bool holdings_must_shard(const struct fsdp_case *c, enum held of);
// Rows of dimension 0 that shard s of S holds in the per-parameter layout, as one range of elements:
// chunks of ceil(d0/S) rows, the last ones shorter or empty.
struct range holdings_chunk(const struct case_parameter *p, int s, int shards);
// The same of `rows` rows, as a range of rows.
struct range holdings_chunk_rows(int64_t rows, int s, int shards);

// What the shards of rank's group (the ranks of its replica, stage and tensor coordinate) hold of a parameter together: rows [first, end)
// of dimension 0, in each the same number of elements, `width`. Without tensor and pipeline axes the whole parameter. rows 0: nothing.
struct block { int64_t first, rows, width; };
struct block holdings_block(const struct evidence *e, enum held of, int rank, int parameter);
// Lowest and past the highest element of a part; both 0 where it is empty.
struct range holdings_extent(const struct held_part *part);

// Where elements lie, in words and as a list of ranks: "only in the last shard (rank 2 of 3)", "in every shard",
// "only in the shards of ranks 1-2 of 4". differs: by element of the full tensor. Empty text where nothing is known.
struct place { char text[128]; char ranks[64]; bool everywhere, only_last, only_first; };
void holdings_where(const struct evidence *e, enum held of, int parameter, const bool *differs, struct place *out);

#endif
