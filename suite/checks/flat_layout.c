// Claim: flat sharding cuts equally: what a rank holds plus its padding is the same on all shards, shards follow each other in table
//     order, and the padding is 0 after training.
// Source: FSDP, section 3.2.1 (FlatParameter: concatenated, padded to a multiple of N, divided).
// How: `shards` events of each kind that the strategy shards; padding_max as reported after the last step. Padding beyond N - 1
//     elements (alignment of single tensors) is allowed: it is counted by its equality.
// Catches: Z11 Z25 Z18 (gradients of padding leak into it)
// Blind to: padding that the worker does not report
#include <stdlib.h>

#include "harness/judge/holdings.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->sharding.layout == SHARD_FLAT && holdings_must_shard(e->c, HELD_OPTIMIZER);
}

static int64_t held_total(const struct evidence *e, enum held of, int rank)
{
    int64_t total = 0;
    for (int p = 0; p < e->c->parameter_count; p++)
        total += holdings_rank(e, of, rank)->parts[p].total;
    return total;
}

// The rank of another shard in the same replica, stage and tensor coordinate.
static int peer_of(const struct evidence *e, int rank, int shard)
{
    struct rank_place at = case_place(e->c, rank);
    return case_rank_at(e->c, at.stage, at.replica * e->c->sharding.shards + shard, at.tensor);
}

// Within a tensor, a later shard starts where the earlier one ended; of a tensor-parallel part, which need not be one piece, after it.
static void judge_order(const struct evidence *e, struct finding *f, enum held of, int rank)
{
    int earlier = peer_of(e, rank, case_place(e->c, rank).shard - 1);
    for (int p = 0; p < e->c->parameter_count; p++) {
        const struct held_part *mine = &holdings_rank(e, of, rank)->parts[p], *before = &holdings_rank(e, of, earlier)->parts[p];
        int64_t start = mine->count > 0 ? mine->ranges[0].offset : 0, end = holdings_extent(before).offset + holdings_extent(before).length;
        bool follows = e->c->sharding.tensor > 1 ? holdings_extent(mine).offset >= end : start == end;
        if (mine->count > 0 && before->count > 0 && !follows)
            finding_fail(f, "Z11 Z25", "%s of %s: rank %d ends at %lld, rank %d starts at %lld", held_name(of), e->c->parameters[p].name,
                         earlier, (long long)end, rank, (long long)start);
    }
}

// States that are kept for each parameter by itself, without padding, are not cut equally and need not be, where the gradients are judged.
static bool equal_cut(const struct evidence *e, enum held of)
{
    bool padded = false;
    for (int r = 0; r < e->world_size; r++)
        padded |= holdings_rank(e, of, r)->padding > 0;
    return padded || of != HELD_OPTIMIZER || !holdings_must_shard(e->c, HELD_GRADIENT);
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++)
        for (int r = 0; r < e->world_size && holdings_must_shard(e->c, of) && holdings_complete(e, of); r++) {
            int reference = e->c->sharding.tensor > 1 || e->c->sharding.pipeline > 1 ? peer_of(e, r, 0) : 0; // its own part of the model
            const struct held_rank *held = holdings_rank(e, of, r), *first = holdings_rank(e, of, reference);
            int64_t size = held_total(e, of, r) + held->padding, expected = held_total(e, of, reference) + first->padding;
            if (equal_cut(e, of))
                finding_compare(f, (double)llabs((long long)(size - expected)), 0, "elements", "Z11", "%s: rank %d holds %lld elements with padding, rank %d holds %lld",
                                held_name(of), r, (long long)size, reference, (long long)expected);
            if (case_place(e->c, r).shard > 0)
                judge_order(e, f, of, r);
            if (held->has_padding_max)
                finding_compare(f, held->padding_max, 0, "", "Z18 Z11", "%s: the largest value in rank %d's %lld elements of padding is %g", held_name(of), r,
                                (long long)held->padding, held->padding_max);
        }
}

const struct check check_flat_layout = {
    .name = "flat-layout", .number = 15, .claim = "held + padding is equal over shards; padding = 0 after training", .source = "FSDP section 3.2.1",
    .catches = "Z11 Z25 Z18", .blind = "unreported padding", .applies = applies, .judge = judge};
