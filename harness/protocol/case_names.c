// Names of enumerators as docs/protocol.md spells them: one table each, for reading, writing and messages.
#include "harness/protocol/case_fields.h"

const char *const layer_names[] = {[LAYER_EXACT] = "exact", [LAYER_WITNESS] = "witness", [LAYER_CALIBRATED] = "calibrated", [LAYER_MEASURED] = "measured", NULL};
const char *const model_kind_names[] = {[MODEL_WITNESS] = "witness", [MODEL_MLP] = "mlp", [MODEL_TRANSFORMER] = "transformer", NULL};
const char *const strategy_names[] = {[STRATEGY_NONE] = "none", [STRATEGY_OPTIMIZER] = "optimizer", [STRATEGY_GRAD] = "grad",
                                      [STRATEGY_FULL] = "full", [STRATEGY_HYBRID] = "hybrid", NULL};
const char *const layout_names[] = {[SHARD_PER_PARAMETER] = "per_parameter", [SHARD_FLAT] = "flat", [SHARD_ANY] = "any", NULL};
const char *const wrap_names[] = {[WRAP_BLOCK] = "block", [WRAP_ROOT] = "root", [WRAP_SIZE] = "size", [WRAP_PATTERN] = "pattern", NULL};
const char *const offload_names[] = {[OFFLOAD_NONE] = "none", [OFFLOAD_CPU] = "cpu", NULL};
const char *const optimizer_names[] = {[OPTIMIZER_SGD] = "sgd", [OPTIMIZER_ADAMW] = "adamw", NULL};
const char *const loss_scale_names[] = {[LOSS_SCALE_NONE] = "none", [LOSS_SCALE_STATIC] = "static", [LOSS_SCALE_DYNAMIC] = "dynamic", NULL};
const char *const loss_names[] = {[LOSS_SUM] = "sum", [LOSS_MEAN_OF_TOKENS] = "mean_of_tokens", [LOSS_MEAN_OF_RANKS] = "mean_of_ranks", NULL};
const char *const clip_names[] = {[CLIP_OFF] = "off", [CLIP_L1] = "1", [CLIP_L2] = "2", [CLIP_LINF] = "inf", NULL};
const char *const verb_names[] = {
    [VERB_MICRO] = "micro", [VERB_FORWARD] = "forward", [VERB_BACKWARD] = "backward", [VERB_EVAL] = "eval",
    [VERB_CLIP] = "clip", [VERB_STEP] = "step", [VERB_ZERO_GRAD] = "zero_grad", [VERB_FREEZE] = "freeze",
    [VERB_UNFREEZE] = "unfreeze", [VERB_SAVE] = "save", [VERB_LOAD] = "load", [VERB_OBSERVE] = "observe", [VERB_STOP] = "stop", NULL,
};
const char *const observe_names[] = {"param", "grad", "clipped", "exp_avg", "exp_avg_sq", "momentum", NULL}; // by bit
const char *const norm_names[] = {[NORM_LAYERNORM] = "layernorm", [NORM_RMSNORM] = "rmsnorm", NULL};
const char *const position_names[] = {[POSITION_LEARNED] = "learned", [POSITION_ROPE] = "rope", NULL};
const char *const activation_names[] = {[ACTIVATION_GELU] = "gelu", [ACTIVATION_SWIGLU] = "swiglu", NULL};
const char *const float_names[] = {[DTYPE_F32] = "f32", [DTYPE_F64] = "f64", [DTYPE_BF16] = "bf16", [DTYPE_F16] = "f16", NULL};
const char *const recipe_names[] = {"exact", "wide", "gaussian", "values", "integers", "given", NULL};

#define NAME(function, type, table) const char *function(type value) { return table[value]; }
NAME(strategy_name, enum strategy, strategy_names)
NAME(layout_name, enum shard_layout, layout_names)
NAME(model_kind_name, enum model_kind, model_kind_names)
NAME(layer_name, enum case_layer, layer_names)
NAME(wrap_name, enum wrap_policy, wrap_names)
NAME(loss_name, enum loss_kind, loss_names)
NAME(verb_name, enum verb, verb_names)
NAME(optimizer_name, enum optimizer_kind, optimizer_names)
NAME(clip_name, enum clip_norm, clip_names)

const char *observe_name(enum observe_bit bit)
{
    return observe_names[__builtin_ctz((unsigned)bit)];
}
