// Claim: within one replica every element of what the strategy shards is held by exactly one rank of each tensor coordinate; tensor-parallel
//     ranks split the blocks between them, pipeline stages hold different blocks; parameters are complete.
// Source: ZeRO, section 5 (what each stage partitions); FSDP, section 3; Megatron-LM, section 3 (tensor parallelism); GPipe, section 2.
// How: the ranges of the `shards` events of the ranks of each replica, counted per element, tensor coordinate and stage. A strategy that
//     shards more than it must (parameters under `grad`) is leaner, not wrong; what need not be sharded is held at least once. Along the tensor
//     axis small tensors (norms, biases of a row-parallel layer) may be held by all: at most half of a block's elements. Along the pipeline
//     axis only a tied tensor may lie in two stages, and every stage has a part of a block.
// Catches: Z27 (memory not 1/N), Z11 (an uneven shard that nobody holds)
// Blind to: memory that the worker does not report
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/holdings.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return e->c->sharding.strategy != STRATEGY_NONE || e->c->sharding.tensor > 1 || e->c->sharding.pipeline > 1;
}

// What is counted of one kind in one replica.
struct census {
    const struct evidence *e;
    enum held of;
    int replica;
    char ranks[32];     // whose, in words
    const char *ranks_word;
    int64_t *repeated;  // by parameter: elements that several tensor coordinates hold
    bool *in_blocks;    // by stage: it holds an element of a block
};

// Ranks that hold each element: holders[(tensor P + stage) count + element].
static int *count_holders(const struct census *s, int p)
{
    const struct fsdp_case *c = s->e->c;
    int64_t count = c->parameters[p].count;
    int *holders = calloc((size_t)(c->sharding.tensor * c->sharding.pipeline * count) + 1, sizeof *holders);
    for (int r = 0; r < s->e->world_size; r++) {
        struct rank_place at = case_place(c, r);
        const struct held_part *part = &holdings_rank(s->e, s->of, r)->parts[p];
        int *row = holders + (at.tensor * c->sharding.pipeline + at.stage) * count;
        for (int k = 0; at.replica == s->replica && k < part->count; k++)
            for (int64_t i = part->ranges[k].offset; i < part->ranges[k].offset + part->ranges[k].length; i++)
                row[i]++;
        s->in_blocks[at.stage] |= at.replica == s->replica && part->total > 0 && *c->parameters[p].unit;
    }
    return holders;
}

static bool is_tied(const struct fsdp_case *c, int p)
{
    for (int q = 0; q < c->parameter_count; q++)
        if (c->parameters[q].tied_to == p)
            return true;
    return false;
}

static void judge_parameter(const struct census *s, struct finding *f, int p)
{
    const struct fsdp_case *c = s->e->c;
    const struct case_parameter *parameter = &c->parameters[p];
    int tensor = c->sharding.tensor, stages = c->sharding.pipeline, *holders = count_holders(s, p);
    int64_t none = 0, several = 0, staged = 0;
    s->repeated[p] = 0;
    for (int64_t i = 0; i < parameter->count; i++) {
        int most = 0;
        uint64_t in_tensor = 0, in_stages = 0; // bits; the suite has at most 64 ranks
        for (int k = 0; k < tensor * stages; k++) {
            int here = holders[k * parameter->count + i];
            most = here > most ? here : most;
            in_tensor |= (uint64_t)(here > 0) << k / stages % 64;
            in_stages |= (uint64_t)(here > 0) << k % stages % 64;
        }
        none += most == 0;
        several += most > 1;
        staged += (in_stages & (in_stages - 1)) != 0;
        s->repeated[p] += (in_tensor & (in_tensor - 1)) != 0;
    }
    free(holders);
    // states and gradients of frozen or unused parameters may not exist at all
    if (none > 0 && (s->of == HELD_PARAMETER || none < parameter->count))
        finding_compare(f, (double)none, 0, "elements", "Z11", "%s of %s: no rank of %s holds %lld of its %lld elements", held_name(s->of),
                        parameter->name, s->ranks, (long long)none, (long long)parameter->count);
    if (several > 0 && holdings_must_shard(c, s->of))
        finding_compare(f, (double)several, 0, "elements", "Z27", "%s of %s: %lld of %lld elements are held by several of %s%s, strategy %s shards them",
                        held_name(s->of), parameter->name, (long long)several, (long long)parameter->count, s->ranks_word, s->ranks, strategy_name(c->sharding.strategy));
    if (staged > 0 && !is_tied(c, p))
        finding_compare(f, (double)staged, 0, "elements", "Z27", "%s of %s: %lld of %lld elements are held by several pipeline stages of %s",
                        held_name(s->of), parameter->name, (long long)staged, (long long)parameter->count, s->ranks);
}

// The blocks, unit by unit: a unit begins where the table's name of it changes.
static void judge_tensor_axis(const struct census *s, struct finding *f)
{
    const struct fsdp_case *c = s->e->c;
    for (int p = 0, next; p < c->parameter_count && c->sharding.tensor > 1; p = next) {
        int64_t count = 0, repeated = 0;
        bool matrix = false;
        for (next = p; next < c->parameter_count && strcmp(c->parameters[next].unit, c->parameters[p].unit) == 0; next++) {
            count += c->parameters[next].count;
            repeated += s->repeated[next];
            matrix |= c->parameters[next].dims > 1;
        }
        if (*c->parameters[p].unit && matrix && repeated > count / 2)
            finding_compare(f, (double)repeated, (double)(count / 2), "elements", "Z27",
                            "%s of %s: %lld of its %lld elements are held by several tensor-parallel ranks of %s, which split them", held_name(s->of),
                            c->parameters[p].unit, (long long)repeated, (long long)count, s->ranks);
    }
}

static void judge_replica(struct census *s, struct finding *f)
{
    const struct fsdp_case *c = s->e->c;
    int shards = c->sharding.shards;
    bool flat = c->sharding.tensor == 1 && c->sharding.pipeline == 1;
    s->ranks_word = flat ? "ranks " : "";
    if (!flat)
        snprintf(s->ranks, sizeof s->ranks, "replica %d", s->replica);
    else
        snprintf(s->ranks, sizeof s->ranks, "%d-%d", s->replica * shards, s->replica * shards + shards - 1);
    memset(s->in_blocks, 0, (size_t)c->sharding.pipeline * sizeof *s->in_blocks);
    for (int p = 0; p < c->parameter_count; p++)
        if (c->parameters[p].tied_to < 0)
            judge_parameter(s, f, p);
    judge_tensor_axis(s, f);
    for (int g = 0; g < c->sharding.pipeline && c->sharding.pipeline > 1 && s->of == HELD_PARAMETER; g++)
        if (!s->in_blocks[g])
            finding_fail(f, "Z27", "pipeline stage %d of %s holds no part of a block", g, s->ranks);
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct census s = {.e = e, .repeated = calloc((size_t)e->c->parameter_count + 1, sizeof *s.repeated),
                       .in_blocks = calloc((size_t)e->c->sharding.pipeline + 1, sizeof *s.in_blocks)};
    for (s.of = HELD_PARAMETER; s.of < HELD_COUNT; s.of++) {
        if (!holdings_complete(e, s.of)) {
            if (holdings_must_shard(e->c, s.of) || s.of == HELD_PARAMETER)
                finding_broken(f, "not every rank reported its shards of %s: nothing to see", held_name(s.of));
            continue;
        }
        for (s.replica = 0; s.replica < e->c->sharding.replicas; s.replica++)
            judge_replica(&s, f);
        finding_pass(f, "every element of what %s shards has one holder per replica%s", strategy_name(e->c->sharding.strategy),
                     e->c->sharding.tensor > 1 || e->c->sharding.pipeline > 1 ? ", tensor coordinates and stages split the blocks" : "");
    }
    free(s.repeated);
    free(s.in_blocks);
}

const struct check check_really_sharded = {
    .name = "really-sharded", .number = 0,
    .claim = "for each element: holders within a replica and tensor coordinate = 1 where sharded, >= 1 elsewhere; tensor ranks and stages split the blocks",
    .source = "ZeRO section 5; FSDP section 3", .catches = "Z27 Z11", .blind = "memory that the worker does not report",
    .applies = applies, .judge = judge};
