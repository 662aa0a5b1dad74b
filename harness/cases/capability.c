// Which features a case uses, and whether a manifest excludes one: a SKIP decided before any start.
//
// One row per feature: its name and the question whether a case needs it. feature_names is checked against the rows by a test.
#include "harness/cases/capability.h"

#include <string.h>

#include "harness/cases/strings.h"
#include "harness/protocol/memory.h"

static bool has_verb(const struct fsdp_case *c, enum verb verb)
{
    for (int i = 0; i < c->program_length; i++)
        if (c->program[i].verb == verb)
            return true;
    return false;
}

static bool uses_no_sync(const struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length; i++)
        if ((c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_BACKWARD) && !c->program[i].sync)
            return true;
    return false;
}

// A layer that runs twice in a forward pass.
static bool uses_reuse(const struct fsdp_case *c)
{
    for (int i = 0; c->model.kind == MODEL_MLP && i < c->model.call_count; i++)
        for (int k = 0; k < i; k++)
            if (c->model.calls[i] == c->model.calls[k])
                return true;
    return false;
}

#define FEATURE(name, expression) static bool name(const struct fsdp_case *c) { return expression; }
FEATURE(uses_offload, c->sharding.offload != OFFLOAD_NONE)
FEATURE(uses_freeze, has_verb(c, VERB_FREEZE) || has_verb(c, VERB_UNFREEZE))
FEATURE(uses_forward_backward, has_verb(c, VERB_FORWARD) || has_verb(c, VERB_BACKWARD))
FEATURE(uses_save, has_verb(c, VERB_SAVE))
FEATURE(uses_load, has_verb(c, VERB_LOAD))
FEATURE(uses_checkpointing, c->sharding.activation_checkpointing)
FEATURE(uses_divergent_init, c->divergent_init)
FEATURE(uses_clip_l1, c->clip == CLIP_L1)
FEATURE(uses_clip_linf, c->clip == CLIP_LINF)
FEATURE(uses_loss_scale, c->precision.loss_scale != LOSS_SCALE_NONE)
FEATURE(uses_prefetch, c->sharding.prefetch_forward || c->sharding.prefetch_backward)
FEATURE(uses_no_reshard, !c->sharding.reshard_after_forward && (c->sharding.strategy == STRATEGY_FULL || c->sharding.strategy == STRATEGY_HYBRID))
FEATURE(uses_reshard_ranks, c->sharding.reshard_ranks > 0)
FEATURE(uses_wrap_size, c->sharding.wrap == WRAP_SIZE)
FEATURE(uses_wrap_pattern, c->sharding.wrap == WRAP_PATTERN)
FEATURE(uses_unused, c->model.kind == MODEL_MLP && c->model.unused > 0)
FEATURE(uses_momentum, c->optimizer.kind == OPTIMIZER_SGD && c->optimizer.momentum > 0)
FEATURE(uses_tied, c->model.kind == MODEL_TRANSFORMER && c->model.tied)
FEATURE(uses_low_parameters, c->precision.parameter == DTYPE_BF16 || c->precision.optimizer_state == DTYPE_BF16)

static bool (*const feature_uses[])(const struct fsdp_case *) = {
    uses_offload, uses_freeze, uses_no_sync, uses_forward_backward, uses_save, uses_load, uses_checkpointing, uses_divergent_init,
    uses_clip_l1, uses_clip_linf, uses_loss_scale, uses_prefetch, uses_no_reshard, uses_wrap_size, uses_wrap_pattern, uses_reuse,
    uses_unused, uses_momentum, uses_tied, uses_low_parameters, uses_reshard_ranks,
};
const char *const feature_names[] = {
    "offload", "freeze", "no_sync", "forward_backward", "save", "load", "activation_checkpointing", "divergent_init",
    "clip_l1", "clip_linf", "loss_scale", "prefetch", "no_reshard", "wrap_size", "wrap_pattern", "reuse",
    "unused", "momentum", "tied", "parameter_bf16", "reshard_ranks", NULL,
};
_Static_assert(sizeof feature_names / sizeof *feature_names == sizeof feature_uses / sizeof *feature_uses + 1, "one name a feature");

static char *not_listed(const char *what, const struct string_list *list, const char *value)
{
    return string_list_has(list, value) ? NULL : memory_format("%s %s is not in the manifest's list", what, value);
}

static char *not_parallel(const char *axis, int asked, int least, int most)
{
    if (asked > 1 && most == 1)
        return memory_format("its manifest lists no %s parallelism", axis);
    return asked >= least && asked <= most ? NULL : memory_format("%s %d is outside the manifest's %d to %d", axis, asked, least, most);
}

char *capability_missing(const struct implementation *i, const struct fsdp_case *c)
{
    const struct sharding_spec *s = &c->sharding;
    bool plain = s->strategy == STRATEGY_NONE && c->world_size == 1; // asked of everybody
    char *reason = NULL;
    if (!plain && (c->world_size < i->min_ranks || c->world_size > i->max_ranks))
        return memory_format("%d ranks are outside the manifest's %d to %d", c->world_size, i->min_ranks, i->max_ranks);
    if (!plain)
        reason = not_parallel("tensor", s->tensor, i->min_tensor, i->max_tensor);
    if (!plain && !reason)
        reason = not_parallel("pipeline", s->pipeline, i->min_pipeline, i->max_pipeline);
    if (!plain && !reason)
        reason = not_listed("strategy", &i->strategies, strategy_name(s->strategy));
    if (!reason && s->strategy != STRATEGY_NONE && s->layout != SHARD_ANY)
        reason = not_listed("layout", &i->layouts, layout_name(s->layout));
    if (!reason)
        reason = not_listed("model", &i->models, model_kind_name(c->model.kind));
    if (!reason)
        reason = not_listed("compute type", &i->compute, dtype_name(c->precision.compute));
    if (!reason)
        reason = not_listed("reduce type", &i->reduce, dtype_name(c->precision.reduce));
    for (int k = 0; !reason && k < i->cannot.count; k++)
        for (int f = 0; feature_names[f]; f++)
            if (strcmp(i->cannot.items[k], feature_names[f]) == 0 && feature_uses[f](c))
                return memory_format("the manifest says that it cannot do %s", feature_names[f]);
    return reason;
}
