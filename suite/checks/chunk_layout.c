// Claim: per-parameter sharding gives shard s of S the rows [s c, (s+1) c) of dimension 0, c = ceil(d0/S); the last shards may be short or empty.
// Source: PyTorch documentation, torch.chunk and fully_shard.
// How: the `shards` events of every kind that the strategy shards, against the chunks. d0 in {1, N-1, N, N+1, 2N-1} in the cases.
// Catches: Z11 Z25
// Blind to: what the elements hold (initial-gather)
#include "harness/judge/holdings.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->sharding.layout == SHARD_PER_PARAMETER && holdings_must_shard(e->c, HELD_OPTIMIZER);
}

static void judge_part(const struct evidence *e, struct finding *f, enum held of, int rank, int p)
{
    const struct case_parameter *parameter = &e->c->parameters[p];
    const struct held_part *part = &holdings_rank(e, of, rank)->parts[p];
    struct range chunk = holdings_chunk(parameter, rank % e->c->sharding.shards, e->c->sharding.shards);
    int64_t next = chunk.offset;
    bool contiguous = true;
    for (int k = 0; k < part->count; k++) {
        contiguous &= part->ranges[k].offset == next;
        next += part->ranges[k].length;
    }
    if (part->total != chunk.length || (part->total > 0 && !contiguous))
        finding_fail(f, "Z11", "%s of %s: rank %d holds %lld elements from %lld on, chunk %d of %d has %lld from %lld on", held_name(of),
                     parameter->name, rank, (long long)part->total, (long long)(part->count ? part->ranges[0].offset : 0),
                     rank % e->c->sharding.shards, e->c->sharding.shards, (long long)chunk.length, (long long)chunk.offset);
    else
        finding_pass(f, "every shard is its chunk of dimension 0");
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++)
        for (int r = 0; r < e->world_size && holdings_must_shard(e->c, of) && holdings_complete(e, of); r++)
            for (int p = 0; p < e->c->parameter_count; p++) {
                bool absent = of != HELD_PARAMETER && holdings_rank(e, of, r)->parts[p].count == 0; // frozen and unused ones have none
                if (e->c->parameters[p].tied_to < 0 && !absent)
                    judge_part(e, f, of, r, p);
            }
}

const struct check check_chunk_layout = {
    .name = "chunk-layout", .number = 14, .claim = "shard s = rows [s c, min(d0, (s+1) c)), c = ceil(d0/S)",
    .source = "PyTorch documentation, torch.chunk", .catches = "Z11 Z25", .blind = "what the elements hold", .applies = applies, .judge = judge};
