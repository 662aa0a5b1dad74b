// Claim: within one replica every element of what the strategy shards is held by exactly one rank; parameters are complete.
// Source: ZeRO, section 5 (what each stage partitions); FSDP, section 3.
// How: the ranges of the `shards` events of the S ranks of each replica, counted per element. A strategy that shards more than it
//     must (parameters under `grad`) is leaner, not wrong; what need not be sharded is held at least once.
// Catches: Z27 (memory not 1/N), Z11 (an uneven shard that nobody holds)
// Blind to: memory that the worker does not report
#include <stdio.h>
#include <stdlib.h>

#include "harness/judge/holdings.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return e->c->sharding.strategy != STRATEGY_NONE; }

// Counts holders of each element of a parameter among ranks [first, first + shards).
static void count_holders(const struct evidence *e, enum held of, int first, int p, int *holders)
{
    for (int r = first; r < first + e->c->sharding.shards; r++) {
        const struct held_part *part = &holdings_rank(e, of, r)->parts[p];
        for (int k = 0; k < part->count; k++)
            for (int64_t i = part->ranges[k].offset; i < part->ranges[k].offset + part->ranges[k].length; i++)
                holders[i]++;
    }
}

static void judge_parameter(const struct evidence *e, struct finding *f, enum held of, int first, int p)
{
    const struct case_parameter *parameter = &e->c->parameters[p];
    int *holders = calloc((size_t)parameter->count + 1, sizeof *holders);
    int64_t none = 0, several = 0;
    count_holders(e, of, first, p, holders);
    for (int64_t i = 0; i < parameter->count; i++) {
        none += holders[i] == 0;
        several += holders[i] > 1;
    }
    free(holders);
    // states and gradients of frozen or unused parameters may not exist at all
    if (none > 0 && (of == HELD_PARAMETER || none < parameter->count))
        finding_compare(f, (double)none, 0, "elements", "Z11", "%s of %s: no rank of %d-%d holds %lld of its %lld elements", held_name(of),
                        parameter->name, first, first + e->c->sharding.shards - 1, (long long)none, (long long)parameter->count);
    if (several > 0 && holdings_must_shard(e->c, of))
        finding_compare(f, (double)several, 0, "elements", "Z27", "%s of %s: %lld of %lld elements are held by several of ranks %d-%d, strategy %s shards them",
                        held_name(of), parameter->name, (long long)several, (long long)parameter->count, first,
                        first + e->c->sharding.shards - 1, strategy_name(e->c->sharding.strategy));
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++) {
        if (!holdings_complete(e, of)) {
            if (holdings_must_shard(e->c, of) || of == HELD_PARAMETER)
                finding_broken(f, "not every rank reported its shards of %s: nothing to see", held_name(of));
            continue;
        }
        for (int replica = 0; replica < e->c->sharding.replicas; replica++)
            for (int p = 0; p < e->c->parameter_count; p++)
                if (e->c->parameters[p].tied_to < 0)
                    judge_parameter(e, f, of, replica * e->c->sharding.shards, p);
        finding_pass(f, "every element of what %s shards has one holder per replica", strategy_name(e->c->sharding.strategy));
    }
}

const struct check check_really_sharded = {
    .name = "really-sharded", .number = 0, .claim = "for each element: number of holders within a replica = 1 where sharded, >= 1 elsewhere",
    .source = "ZeRO section 5; FSDP section 3", .catches = "Z27 Z11", .blind = "memory that the worker does not report",
    .applies = applies, .judge = judge};
