// Who a rank is and which rows are its own: docs/protocol.md, "sharding" and "The loss".
//
// Ranks are numbered as Megatron-LM does (megatron/core/parallel_state.py, order tp-cp-ep-dp-pp): tensor coordinates
// follow each other, then data ranks, then pipeline stages. 0 in `tensor` and `pipeline` (a struct made by hand) means 1.
#include "harness/protocol/case.h"

static int64_t at_least_one(int n)
{
    return n > 1 ? n : 1;
}

int case_data_ranks(const struct fsdp_case *c)
{
    return (int)(c->world_size / (at_least_one(c->sharding.tensor) * at_least_one(c->sharding.pipeline)));
}

struct rank_place case_place(const struct fsdp_case *c, int rank)
{
    int tensor = (int)at_least_one(c->sharding.tensor), data = (int)at_least_one(case_data_ranks(c)), shards = (int)at_least_one(c->sharding.shards);
    int d = rank / tensor % data;
    return (struct rank_place){.stage = rank / (tensor * data), .data = d, .replica = d / shards, .shard = d % shards, .tensor = rank % tensor};
}

int case_rank_at(const struct fsdp_case *c, int stage, int data, int tensor)
{
    return (stage * case_data_ranks(c) + data) * (int)at_least_one(c->sharding.tensor) + tensor;
}

void case_rows(const struct fsdp_case *c, int r, int n, int64_t *first, int64_t *end)
{
    *first = r * c->global_rows / n;
    *end = (r + 1) * c->global_rows / n;
}
