// Claim: ranks that hold the same element hold the same bits, read before any collective, and the gathered tensor has them too.
// Source: data parallelism keeps replicas identical (ZeRO, section 5.1); hybrid sharding likewise across replicas (FSDP, section 3.2.2).
// How: each rank's own part (observed with local) laid over the gathered tensor by its `shards` ranges.
// Catches: Z03 Z24 Z10 Z16
// Blind to: labels without local parts; replicas that are wrong alike
#include <stdio.h>
#include <string.h>

#include "harness/judge/holdings.h"
#include "harness/judge/program.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    for (int k = 0; k < e->observed_count; k++)
        if (e->observed[k].local && e->world_size > 1)
            return true;
    return false;
}

// Elements of a rank's part that differ from the gathered tensor; *first is the flat index of the first.
static int64_t differences(const struct tensor *full, const struct tensor *own, const struct held_part *part, int64_t *first)
{
    size_t size = dtype_size(full->dtype);
    int64_t count = 0, at = 0;
    for (int k = 0; k < part->count; k++)
        for (int64_t i = 0; i < part->ranges[k].length; i++, at++)
            if (memcmp((const char *)full->data + (size_t)(part->ranges[k].offset + i) * size, (const char *)own->data + (size_t)at * size, size) != 0)
                *first = count++ == 0 ? part->ranges[k].offset + i : *first;
    return count;
}

// What a difference can mean, by where it is first seen: labels are walked in order, so all before it agree.
static const char *classes_of(const struct evidence *e, const char *label, unsigned bit)
{
    int at = -1;
    for (int i = 0; i < e->c->program_length; i++)
        at = e->c->program[i].verb == VERB_OBSERVE && strcmp(e->c->program[i].label, label) == 0 ? i : at;
    if (at >= 0 && program_after_load(e->c, at))
        return "Z26 Z25";
    if (bit == OBSERVE_GRAD || bit == OBSERVE_CLIPPED)
        return e->c->sharding.strategy == STRATEGY_HYBRID ? "Z03 Z02" : "Z03";
    return at >= 0 && program_label_at(e->c, at).steps_done == 0 ? "Z24" : "Z15 Z10";
}

static int judge_kind(const struct evidence *e, struct finding *f, const struct observed *o, unsigned bit, int p)
{
    const char *prefix = observe_name((enum observe_bit)bit), *name = e->c->parameters[p].name;
    const struct tensor *full = tensors_find2(&o->full, prefix, name);
    int judged = 0;
    for (int r = 0; full && holdings_complete(e, held_of(bit)) && r < e->world_size; r++) {
        const struct held_part *part = &holdings_rank(e, held_of(bit), r)->parts[p];
        const struct tensor *own = tensors_find2(&o->local[r], prefix, name);
        int64_t first = -1;
        if (!own || own->count != part->total || own->dtype != full->dtype)
            continue;
        int64_t off = differences(full, own, part, &first);
        finding_compare(f, (double)off, 0, "elements", classes_of(e, o->label, bit),
                        off > 0 ? "%s: %s of %s on rank %d differs from the gathered tensor in %lld of its %lld elements, first at %lld"
                                : "%s: %s of %s on rank %d equals the gathered tensor bitwise", o->label, prefix, name, r,
                        (long long)off, (long long)part->total, (long long)first);
        if (off > 0 && !f->ranks[0])
            snprintf(f->ranks, sizeof f->ranks, "%d", r);
        judged++;
    }
    return judged;
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (int k = 0; k < e->observed_count; k++)
        for (unsigned bit = 1; e->observed[k].local && bit <= OBSERVE_MOMENTUM; bit <<= 1)
            for (int p = 0; p < e->c->parameter_count; p++)
                if (e->c->parameters[p].tied_to < 0)
                    judge_kind(e, f, &e->observed[k], bit, p);
}

const struct check check_replicas_agree = {
    .name = "replicas-agree", .number = 24, .claim = "local(r)[i] = gathered[i] for every rank r that holds element i, bitwise",
    .source = "ZeRO section 5.1; FSDP section 3.2.2", .catches = "Z03 Z24 Z10", .blind = "labels without local parts", .applies = applies, .judge = judge};
