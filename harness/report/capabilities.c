// The capabilities, one row each. A case has one where it says so itself; nothing is asked of the manifest or of the suite.
//
// Cases on one rank count for `one rank` alone: nothing is sharded there, so they must not speak for a strategy. Gates, which
// are unsharded on purpose, are left out by the matrix.
#include "harness/report/capabilities.h"

#include <stdlib.h>
#include <string.h>

static bool sharded(const struct fsdp_case *c) { return c->world_size > 1 && c->sharding.strategy != STRATEGY_NONE; }

static bool verb(const struct fsdp_case *c, enum verb v) {
    for (int i = 0; i < c->program_length; i++)
        if (c->program[i].verb == v) return true;
    return false;
}

static bool unsynchronized(const struct fsdp_case *c) {
    for (int i = 0; i < c->program_length; i++)
        if ((c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_BACKWARD) && !c->program[i].sync) return true;
    return false;
}

// Whether some parameter does not divide evenly: rows over S shards, or in the flat layout the sum of a unit's elements.
static bool uneven(const struct fsdp_case *c) {
    int64_t shards = c->sharding.shards, unit = 0;
    for (int i = 0; i < c->parameter_count && sharded(c) && shards > 1; i++) {
        const struct case_parameter *p = &c->parameters[i];
        bool last = i + 1 == c->parameter_count || strcmp(p->unit, c->parameters[i + 1].unit) != 0;
        unit += p->tied_to < 0 ? p->count : 0;
        if (c->sharding.layout == SHARD_FLAT ? last && unit % shards != 0 : p->dims > 0 && p->shape[0] % shards != 0) return true;
        if (last) unit = 0;
    }
    return false;
}

static bool reused(const struct fsdp_case *c) {
    for (int i = 0; c->model.kind == MODEL_MLP && i < c->model.call_count; i++)
        for (int k = 0; k < i; k++)
            if (c->model.calls[i] == c->model.calls[k]) return true;
    return false;
}

static bool tied(const struct fsdp_case *c) {
    for (int i = 0; i < c->parameter_count; i++)
        if (c->parameters[i].tied_to >= 0) return true;
    return false;
}

static bool several_units(const struct fsdp_case *c) {
    for (int i = 1; i < c->parameter_count; i++)
        if (strcmp(c->parameters[i].unit, c->parameters[0].unit) != 0) return true;
    return false;
}

// What another run saved; on how many ranks stands in the id alone (docs/cases.md, Names).
static bool loads_foreign(const struct fsdp_case *c) { return verb(c, VERB_LOAD) && !verb(c, VERB_SAVE); }
static bool loads_other_count(const struct fsdp_case *c) {
    const char *from = strstr(c->id, ".from-");
    return loads_foreign(c) && from && atoi(from + 6) != c->world_size;
}

#define HAS(name, expression) static bool name(const struct fsdp_case *c) { return c->world_size > 1 && (expression); }
#define STRATEGY(word) (c->sharding.strategy == STRATEGY_##word)
HAS(none, STRATEGY(NONE))
HAS(optimizer, STRATEGY(OPTIMIZER))
HAS(grad, STRATEGY(GRAD))
HAS(full, STRATEGY(FULL))
HAS(hybrid, STRATEGY(HYBRID))
HAS(tensor, c->sharding.tensor > 1)
HAS(pipeline, c->sharding.pipeline > 1)
HAS(per_parameter, sharded(c) && c->sharding.layout == SHARD_PER_PARAMETER)
HAS(flat, sharded(c) && c->sharding.layout == SHARD_FLAT)
HAS(uneven_shards, uneven(c))
HAS(odd_ranks, (c->world_size & (c->world_size - 1)) != 0)
HAS(block, sharded(c) && c->sharding.wrap == WRAP_BLOCK && several_units(c))
HAS(root, sharded(c) && c->sharding.wrap == WRAP_ROOT)
HAS(by_size, sharded(c) && c->sharding.wrap == WRAP_SIZE)
HAS(by_pattern, sharded(c) && c->sharding.wrap == WRAP_PATTERN)
HAS(no_reshard, (STRATEGY(FULL) || STRATEGY(HYBRID)) && !c->sharding.reshard_after_forward)
HAS(reshard_group, sharded(c) && c->sharding.reshard_ranks > 0)
HAS(prefetch, sharded(c) && (c->sharding.prefetch_forward || c->sharding.prefetch_backward))
HAS(offload, sharded(c) && c->sharding.offload == OFFLOAD_CPU)
HAS(recomputation, c->sharding.activation_checkpointing)
#define PRECISION(part, type) (c->precision.part == DTYPE_##type)
HAS(compute_f32, PRECISION(compute, F32))
HAS(compute_f64, PRECISION(compute, F64))
HAS(compute_bf16, PRECISION(compute, BF16))
HAS(compute_f16, PRECISION(compute, F16))
HAS(reduce_f32, PRECISION(reduce, F32))
HAS(reduce_f64, PRECISION(reduce, F64))
HAS(reduce_bf16, PRECISION(reduce, BF16))
HAS(reduce_f16, PRECISION(reduce, F16))
HAS(low_parameters, PRECISION(parameter, BF16))
HAS(loss_scale, c->precision.loss_scale != LOSS_SCALE_NONE)
HAS(accumulation, c->data.micros > 1 && !unsynchronized(c))
HAS(no_sync, unsynchronized(c))
HAS(two_forwards, verb(c, VERB_FORWARD))
HAS(mean_of_ranks, c->loss == LOSS_MEAN_OF_RANKS)
HAS(uneven_tokens, c->data.uneven_tokens)
HAS(clip_l1, c->clip == CLIP_L1)
HAS(clip_l2, c->clip == CLIP_L2)
HAS(clip_linf, c->clip == CLIP_LINF)
HAS(adamw, c->optimizer.kind == OPTIMIZER_ADAMW)
HAS(momentum, c->optimizer.kind == OPTIMIZER_SGD && c->optimizer.momentum > 0)
HAS(tied_weight, tied(c))
HAS(frozen, verb(c, VERB_FREEZE))
HAS(unused, c->model.kind == MODEL_MLP && c->model.unused > 0)
HAS(reused_layer, reused(c))
HAS(divergent, c->divergent_init)
HAS(save, verb(c, VERB_SAVE))
HAS(load, verb(c, VERB_LOAD))
HAS(load_other_count, loads_other_count(c))
// Where what another count of ranks saved is loaded on one rank, one rank is the point.
static bool load_one(const struct fsdp_case *c) { return c->world_size == 1 && loads_other_count(c); }
static bool load_resharded(const struct fsdp_case *c) { return load_other_count(c) || load_one(c); }
static bool one_rank(const struct fsdp_case *c) { return c->world_size == 1; }

const struct capability capabilities[] = {
    {"none", "strategy", "none (data parallel)", none},
    {"optimizer", "strategy", "optimizer (ZeRO-1)", optimizer},
    {"grad", "strategy", "grad (ZeRO-2)", grad},
    {"full", "strategy", "full (ZeRO-3)", full},
    {"hybrid", "strategy", "hybrid", hybrid},
    {"tensor", "strategy", "tensor parallel inside", tensor},
    {"pipeline", "strategy", "pipeline parallel around", pipeline},
    {"one-rank", "ranks", "one", one_rank},
    {"odd-ranks", "ranks", "no power of two", odd_ranks},
    {"per-parameter", "layout", "per parameter", per_parameter},
    {"flat", "layout", "flat", flat},
    {"uneven-shards", "layout", "shards of unequal size", uneven_shards},
    {"wrap-block", "units", "a block each", block},
    {"wrap-root", "units", "the whole model", root},
    {"wrap-size", "units", "by size", by_size},
    {"wrap-pattern", "units", "by name", by_pattern},
    {"no-reshard", "gathering", "kept after the forward", no_reshard},
    {"reshard-ranks", "gathering", "resharded to a group", reshard_group},
    {"prefetch", "gathering", "prefetch", prefetch},
    {"offload", "memory", "CPU offload", offload},
    {"activation-checkpointing", "memory", "activation checkpointing", recomputation},
    {"compute-f32", "compute in", "f32", compute_f32},
    {"compute-f64", "compute in", "f64", compute_f64},
    {"compute-bf16", "compute in", "bf16", compute_bf16},
    {"compute-f16", "compute in", "f16", compute_f16},
    {"reduce-f32", "reduce in", "f32", reduce_f32},
    {"reduce-f64", "reduce in", "f64", reduce_f64},
    {"reduce-bf16", "reduce in", "bf16", reduce_bf16},
    {"reduce-f16", "reduce in", "f16", reduce_f16},
    {"parameter-bf16", "parameters in", "bf16", low_parameters},
    {"loss-scale", "loss", "scaled (f16)", loss_scale},
    {"mean-of-ranks", "loss", "mean of ranks' means", mean_of_ranks},
    {"uneven-tokens", "loss", "unequal token counts", uneven_tokens},
    {"accumulation", "accumulation", "reduced each time", accumulation},
    {"no-sync", "accumulation", "reduced at the end (no_sync)", no_sync},
    {"two-forwards", "accumulation", "two forwards, two backwards", two_forwards},
    {"clip-l1", "clip by norm", "1", clip_l1},
    {"clip-l2", "clip by norm", "2", clip_l2},
    {"clip-linf", "clip by norm", "inf", clip_linf},
    {"adamw", "optimizer", "AdamW", adamw},
    {"momentum", "optimizer", "SGD with momentum", momentum},
    {"tied", "model", "tied weights", tied_weight},
    {"frozen", "model", "frozen parameters", frozen},
    {"unused", "model", "unused parameters", unused},
    {"reused", "model", "a layer called twice", reused_layer},
    {"divergent-init", "model", "ranks start apart", divergent},
    {"save", "checkpoint", "save", save},
    {"load", "checkpoint", "load", load},
    {"load-resharded", "checkpoint", "load on other ranks", load_resharded},
    {NULL, NULL, NULL, NULL},
};

int capability_count(void) { return (int)(sizeof capabilities / sizeof *capabilities) - 1; }
