// Claim: per-parameter sharding gives shard s of S the rows [s c, (s+1) c) of dimension 0, c = ceil(d0/S); the last shards may be short or empty.
//     With a tensor axis d0 counts the rows of the tensor-parallel part: it is cut first, then its rows are sharded.
// Source: PyTorch documentation, torch.chunk and fully_shard.
// How: the `shards` events of every kind that the strategy shards, against the chunks. d0 in {1, N-1, N, N+1, 2N-1} in the cases. The
//     tensor-parallel part is what the shards of one tensor coordinate hold together (really-sharded judges that those parts make the whole).
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
    struct block block = holdings_block(e, of, rank, p);
    int shard = case_place(e->c, rank).shard, shards = e->c->sharding.shards;
    int64_t row = parameter->dims > 0 && parameter->shape[0] > 0 ? parameter->count / parameter->shape[0] : parameter->count;
    struct range rows = holdings_chunk_rows(block.rows, shard, shards), extent = holdings_extent(part);
    int64_t first = (block.first + rows.offset) * row, length = rows.length * block.width;
    bool within = extent.offset >= first && extent.offset + extent.length <= first + rows.length * row;
    if (part->total != length || (part->total > 0 && !within))
        finding_fail(f, "Z11", "%s of %s: rank %d holds %lld elements from %lld on, chunk %d of %d has %lld from %lld on", held_name(of),
                     parameter->name, rank, (long long)part->total, (long long)extent.offset, shard, shards, (long long)length, (long long)first);
    else
        finding_pass(f, "every shard is its chunk of dimension 0");
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++)
        for (int r = 0; r < e->world_size && holdings_must_shard(e->c, of) && holdings_complete(e, of); r++)
            for (int p = 0; p < e->c->parameter_count; p++) {
                bool absent = of != HELD_PARAMETER && holdings_rank(e, of, r)->parts[p].count == 0; // frozen and unused ones have none
                bool elsewhere = holdings_block(e, of, r, p).rows == 0;                              // in another stage
                if (e->c->parameters[p].tied_to < 0 && !absent && !elsewhere)
                    judge_part(e, f, of, r, p);
            }
}

const struct check check_chunk_layout = {
    .name = "chunk-layout", .number = 14, .claim = "shard s = rows [s c, min(d0, (s+1) c)), c = ceil(d0/S)",
    .source = "PyTorch documentation, torch.chunk", .catches = "Z11 Z25", .blind = "what the elements hold", .applies = applies, .judge = judge};
