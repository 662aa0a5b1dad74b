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

static int64_t end_of(const struct held_part *part)
{
    int64_t end = 0;
    for (int k = 0; k < part->count; k++)
        end = part->ranges[k].offset + part->ranges[k].length > end ? part->ranges[k].offset + part->ranges[k].length : end;
    return end;
}

// Within a tensor, a later shard starts where the earlier one ended.
static void judge_order(const struct evidence *e, struct finding *f, enum held of, int rank)
{
    for (int p = 0; p < e->c->parameter_count; p++) {
        const struct held_part *mine = &holdings_rank(e, of, rank)->parts[p], *before = &holdings_rank(e, of, rank - 1)->parts[p];
        if (mine->count > 0 && before->count > 0 && mine->ranges[0].offset != end_of(before))
            finding_fail(f, "Z11 Z25", "%s of %s: rank %d ends at %lld, rank %d starts at %lld", held_name(of), e->c->parameters[p].name,
                         rank - 1, (long long)end_of(before), rank, (long long)mine->ranges[0].offset);
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
            const struct held_rank *held = holdings_rank(e, of, r), *first = holdings_rank(e, of, 0);
            int64_t size = held_total(e, of, r) + held->padding, expected = held_total(e, of, 0) + first->padding;
            if (equal_cut(e, of))
                finding_compare(f, (double)llabs((long long)(size - expected)), 0, "elements", "Z11", "%s: rank %d holds %lld elements with padding, rank 0 holds %lld",
                                held_name(of), r, (long long)size, (long long)expected);
            if (r % e->c->sharding.shards > 0)
                judge_order(e, f, of, r);
            if (held->has_padding_max)
                finding_compare(f, held->padding_max, 0, "", "Z18 Z11", "%s: the largest value in rank %d's %lld elements of padding is %g", held_name(of), r,
                                (long long)held->padding, held->padding_max);
        }
}

const struct check check_flat_layout = {
    .name = "flat-layout", .number = 15, .claim = "held + padding is equal over shards; padding = 0 after training", .source = "FSDP section 3.2.1",
    .catches = "Z11 Z25 Z18", .blind = "unreported padding", .applies = applies, .judge = judge};
