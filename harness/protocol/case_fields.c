// A case as tables of fields: what docs/protocol.md says of case.json, one row per field.
#include "harness/protocol/case_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

#define IN(type, member) .offset = offsetof(struct type, member)
#define COUNT(type, member) .count_offset = offsetof(struct type, member)
#define RANGE(low, high) .least = (low), .most = (high)
#define TABLES(...) (const struct field *const[]){__VA_ARGS__}
#define ONE(...) (const struct field[]){{__VA_ARGS__}}

enum { LARGEST = 1 << 20 }; // of sizes, steps and slots

static const struct field whole64 = {"", FIELD_INT64, RANGE(1, LARGEST)};
static const struct field whole = {"", FIELD_INT, RANGE(0, LARGEST)};
static const struct field number = {"", FIELD_DOUBLE, .nonfinite = true};

static const struct field witness_parameter_fields[] = {
    {"name", FIELD_STRING, IN(witness_parameter, name)},
    {"shape", FIELD_SHAPE, IN(witness_parameter, shape), COUNT(witness_parameter, dims), .span = CASE_MAX_DIMS},
    {0},
};
static void witness_parameter_release(void *p)
{
    free(((struct witness_parameter *)p)->name);
}
static const struct field witness_unit_fields[] = {
    {"name", FIELD_STRING, IN(witness_unit, name)},
    {"parameters", FIELD_LIST, IN(witness_unit, parameters), COUNT(witness_unit, parameter_count),
     .span = sizeof(struct witness_parameter), .release = witness_parameter_release,
     .element = ONE("", FIELD_OBJECT, .object = TABLES(witness_parameter_fields))},
    {0},
};
static void witness_unit_release(void *p)
{
    struct witness_unit *unit = p;
    for (int i = 0; i < unit->parameter_count; i++)
        witness_parameter_release(&unit->parameters[i]);
    free(unit->parameters);
    free(unit->name);
}
static const struct field witness_fields[] = {
    {"units", FIELD_LIST, IN(model_spec, units), COUNT(model_spec, unit_count), .span = sizeof(struct witness_unit),
     .release = witness_unit_release, .element = ONE("", FIELD_OBJECT, .object = TABLES(witness_unit_fields))},
    {0},
};
static const struct field mlp_fields[] = {
    {"sizes", FIELD_LIST, IN(model_spec, sizes), COUNT(model_spec, size_count), .span = sizeof(int64_t), .element = &whole64},
    {"bias", FIELD_BOOL, IN(model_spec, bias)},
    {"calls", FIELD_LIST, IN(model_spec, calls), COUNT(model_spec, call_count), .span = sizeof(int), .element = &whole},
    {"unused", FIELD_INT, IN(model_spec, unused), RANGE(0, 200)},
    {0},
};
static const struct field transformer_fields[] = {
    {"layers", FIELD_INT64, IN(model_spec, layers), RANGE(1, 200)},
    {"dim", FIELD_INT64, IN(model_spec, dim), RANGE(1, LARGEST)},
    {"heads", FIELD_INT64, IN(model_spec, heads), RANGE(1, LARGEST)},
    {"kv_heads", FIELD_INT64, IN(model_spec, kv_heads), RANGE(1, LARGEST)},
    {"ffn", FIELD_INT64, IN(model_spec, ffn), RANGE(1, LARGEST)},
    {"vocab", FIELD_INT64, IN(model_spec, vocab), RANGE(1, LARGEST)},
    {"context", FIELD_INT64, IN(model_spec, context), RANGE(1, LARGEST)},
    {"norm", FIELD_ENUM, IN(model_spec, norm), .names = norm_names},
    {"position", FIELD_ENUM, IN(model_spec, position), .names = position_names},
    {"activation", FIELD_ENUM, IN(model_spec, activation), .names = activation_names},
    {"bias", FIELD_BOOL, IN(model_spec, bias)},
    {"tied", FIELD_BOOL, IN(model_spec, tied)},
    {"norm_eps", FIELD_DOUBLE, IN(model_spec, norm_eps), RANGE(0, 1)},
    {"rope_theta", FIELD_DOUBLE, IN(model_spec, rope_theta), RANGE(0, INFINITY), .above = true},
    {0},
};

// tied_to is an index in the struct and the name of an earlier parameter, or null, in the file.
static bool read_tied_to(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct case_parameter *p = base;
    const struct fsdp_case *c = r->root;
    p->tied_to = -1;
    if (node_is_null(node))
        return true;
    for (int i = 0; node->kind == NODE_SCALAR && &c->parameters[i] < p; i++)
        if (strcmp(c->parameters[i].name, node->text) == 0) {
            p->tied_to = i;
            return true;
        }
    return field_error(r, f, node, "null or the name of an earlier parameter");
}
static json_t *write_tied_to(const struct field *f, const void *base, const void *root)
{
    (void)f;
    int index = ((const struct case_parameter *)base)->tied_to;
    return index < 0 ? json_null() : json_string(((const struct fsdp_case *)root)->parameters[index].name);
}
static const struct field parameter_fields[] = {
    {"name", FIELD_STRING, IN(case_parameter, name)},
    {"shape", FIELD_SHAPE, IN(case_parameter, shape), COUNT(case_parameter, dims), .span = CASE_MAX_DIMS},
    {"unit", FIELD_STRING, IN(case_parameter, unit)},
    {"tied_to", FIELD_CUSTOM, .read = read_tied_to, .write = write_tied_to},
    {"decay", FIELD_BOOL, IN(case_parameter, decay)},
    {0},
};
static void parameter_release(void *p)
{
    free(((struct case_parameter *)p)->name);
    free(((struct case_parameter *)p)->unit);
}

static const struct field wrap_fields[] = {
    {"policy", FIELD_ENUM, IN(sharding_spec, wrap), .names = wrap_names},
    {"min_parameters", FIELD_INT64, IN(sharding_spec, wrap_min_parameters), RANGE(0, INFINITY)},
    {"pattern", FIELD_STRING, IN(sharding_spec, wrap_pattern)},
    {0},
};
static const struct field prefetch_fields[] = {
    {"forward", FIELD_INT, IN(sharding_spec, prefetch_forward), RANGE(0, 1000)},
    {"backward", FIELD_INT, IN(sharding_spec, prefetch_backward), RANGE(0, 1000)},
    {0},
};
static const struct field sharding_fields[] = {
    {"strategy", FIELD_ENUM, IN(sharding_spec, strategy), .names = strategy_names},
    {"mesh", FIELD_PAIR, IN(sharding_spec, replicas), RANGE(1, LARGEST)},
    {"tensor", FIELD_INT, IN(sharding_spec, tensor), RANGE(1, 65536)},
    {"pipeline", FIELD_INT, IN(sharding_spec, pipeline), RANGE(1, 65536)},
    {"layout", FIELD_ENUM, IN(sharding_spec, layout), .names = layout_names},
    {"reshard_after_forward", FIELD_BOOL, IN(sharding_spec, reshard_after_forward)},
    {"reshard_ranks", FIELD_INT, IN(sharding_spec, reshard_ranks), RANGE(0, LARGEST)},
    {"wrap", FIELD_OBJECT, .object = TABLES(wrap_fields)},
    {"prefetch", FIELD_OBJECT, .object = TABLES(prefetch_fields)},
    {"offload", FIELD_ENUM, IN(sharding_spec, offload), .names = offload_names},
    {"activation_checkpointing", FIELD_BOOL, IN(sharding_spec, activation_checkpointing)},
    {0},
};

static const struct field loss_scale_fields[] = {
    {"mode", FIELD_ENUM, IN(precision_spec, loss_scale), .names = loss_scale_names},
    {"initial", FIELD_DOUBLE, IN(precision_spec, scale_initial), RANGE(0, INFINITY), .above = true},
    {"growth", FIELD_DOUBLE, IN(precision_spec, scale_growth), RANGE(1, INFINITY)},
    {"backoff", FIELD_DOUBLE, IN(precision_spec, scale_backoff), RANGE(0, 1), .above = true},
    {"interval", FIELD_INT, IN(precision_spec, scale_interval), RANGE(1, INFINITY)},
    {0},
};
static const struct field precision_fields[] = {
    {"parameter", FIELD_ENUM, IN(precision_spec, parameter), .names = float_names},
    {"compute", FIELD_ENUM, IN(precision_spec, compute), .names = float_names},
    {"reduce", FIELD_ENUM, IN(precision_spec, reduce), .names = float_names},
    {"optimizer_state", FIELD_ENUM, IN(precision_spec, optimizer_state), .names = float_names},
    {"loss_scale", FIELD_OBJECT, .object = TABLES(loss_scale_fields)},
    {0},
};

static const struct field sgd_fields[] = {
    {"lr", FIELD_DOUBLE, IN(optimizer_spec, lr), RANGE(0, INFINITY)},
    {"momentum", FIELD_DOUBLE, IN(optimizer_spec, momentum), RANGE(0, 1)},
    {"weight_decay", FIELD_DOUBLE, IN(optimizer_spec, weight_decay), RANGE(0, INFINITY)},
    {"no_decay", FIELD_BOOL, IN(optimizer_spec, no_decay)},
    {0},
};
static const struct field adamw_fields[] = {
    {"lr", FIELD_DOUBLE, IN(optimizer_spec, lr), RANGE(0, INFINITY)},
    {"beta1", FIELD_DOUBLE, IN(optimizer_spec, beta1), RANGE(0, 1)},
    {"beta2", FIELD_DOUBLE, IN(optimizer_spec, beta2), RANGE(0, 1)},
    {"eps", FIELD_DOUBLE, IN(optimizer_spec, eps), RANGE(0, INFINITY)},
    {"weight_decay", FIELD_DOUBLE, IN(optimizer_spec, weight_decay), RANGE(0, INFINITY)},
    {"no_decay", FIELD_BOOL, IN(optimizer_spec, no_decay)},
    {0},
};

#define STEP {"step", FIELD_INT, IN(instruction, step), RANGE(0, LARGEST)}
#define MICRO {"micro", FIELD_INT, IN(instruction, micro), RANGE(0, LARGEST)}
#define SLOT {"slot", FIELD_INT, IN(instruction, slot), RANGE(0, 1000)}
#define SYNC {"sync", FIELD_BOOL, IN(instruction, sync)}
#define PATTERN {"pattern", FIELD_STRING, IN(instruction, pattern)}
#define FIELDS(...) (const struct field[]){__VA_ARGS__, {0}}
const struct field *const instruction_fields[] = {
    [VERB_MICRO] = FIELDS(STEP, MICRO, SYNC),
    [VERB_FORWARD] = FIELDS(STEP, MICRO, SLOT),
    [VERB_BACKWARD] = FIELDS(SLOT, SYNC),
    [VERB_EVAL] = FIELDS(STEP, MICRO),
    [VERB_CLIP] = FIELDS(STEP),
    [VERB_STEP] = FIELDS(STEP),
    [VERB_FREEZE] = FIELDS(PATTERN),
    [VERB_UNFREEZE] = FIELDS(PATTERN),
    [VERB_OBSERVE] = FIELDS({"label", FIELD_STRING, IN(instruction, label)},
                            {"what", FIELD_FLAGS, IN(instruction, what), .names = observe_names},
                            {"local", FIELD_BOOL, IN(instruction, local)}),
    [VERB_STOP] = NULL,
};
const struct field instruction_field = {"", FIELD_TAGGED, .tag = "verb", .names = verb_names, .object = instruction_fields};
void instruction_release(void *p)
{
    free(((struct instruction *)p)->pattern);
    free(((struct instruction *)p)->label);
}

static const struct field data_fields[] = {
    {"recipe", FIELD_STRING, IN(data_spec, recipe)},
    {"density", FIELD_DOUBLE, IN(data_spec, density), RANGE(0, 1), .above = true},
    {"std", FIELD_DOUBLE, IN(data_spec, std), RANGE(0, INFINITY), .above = true},
    {"steps", FIELD_INT64, IN(data_spec, steps), RANGE(1, LARGEST)},
    {"micros", FIELD_INT64, IN(data_spec, micros), RANGE(1, LARGEST)},
    {"values", FIELD_LIST, IN(data_spec, values), COUNT(data_spec, value_count), .span = sizeof(double), .wide_count = true, .element = &number},
    {"pattern", FIELD_LIST, IN(data_spec, pattern), COUNT(data_spec, pattern_count), .span = sizeof(double), .wide_count = true, .element = &number},
    {"init", FIELD_DOUBLE, IN(data_spec, init), .nonfinite = true},
    {"uneven_tokens", FIELD_BOOL, IN(data_spec, uneven_tokens)},
    {0},
};

// Clipping is null where it is off.
static bool read_clip(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct clip { int norm; double limit; }; // norm: index into the names that a file may say
    static const struct field clip_fields[] = {
        {"norm", FIELD_ENUM, IN(clip, norm), .names = clip_names + 1},
        {"limit", FIELD_DOUBLE, IN(clip, limit), RANGE(0, INFINITY), .above = true},
        {0},
    };
    struct fsdp_case *c = base;
    struct clip clip = {(int)c->clip - 1, c->clip_limit};
    const struct field object = {f->name, FIELD_OBJECT, .object = TABLES(clip_fields)};
    if (node_is_null(node))
        clip = (struct clip){CLIP_OFF - 1, 0};
    else if (!field_read(r, &object, node, &clip))
        return false;
    c->clip = (enum clip_norm)(clip.norm + 1);
    c->clip_limit = clip.limit;
    return true;
}
static json_t *write_clip(const struct field *f, const void *base, const void *root)
{
    (void)f, (void)root;
    const struct fsdp_case *c = base;
    return c->clip == CLIP_OFF ? json_null() : json_pack("{s:s,s:f}", "norm", clip_names[c->clip], "limit", c->clip_limit);
}

static bool read_options(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct fsdp_case *c = base;
    if (!node || node->kind != NODE_MAPPING)
        return field_error(r, f, node, "a mapping of texts");
    for (int i = 0; i < node->count; i++) {
        const struct field value = {node->keys[i], FIELD_STRING, IN(case_option, value)};
        c->options = memory_grow(c->options, (size_t)c->option_count, sizeof *c->options);
        struct case_option *option = &c->options[c->option_count++];
        *option = (struct case_option){memory_text(node->keys[i]), NULL};
        snprintf(r->path, sizeof r->path, "options.");
        if (!field_read(r, &value, node->items[i], option))
            return false;
        r->path[0] = 0;
    }
    return true;
}
static json_t *write_options(const struct field *f, const void *base, const void *root)
{
    (void)f, (void)root;
    const struct fsdp_case *c = base;
    json_t *object = json_object();
    for (int i = 0; i < c->option_count; i++)
        json_object_set_new(object, c->options[i].name, json_string(c->options[i].value));
    return object;
}

const struct field case_fields[] = {
    {"protocol", FIELD_FIXED, .least = CASE_PROTOCOL},
    {"id", FIELD_STRING, IN(fsdp_case, id)},
    {"family", FIELD_STRING, IN(fsdp_case, family)},
    {"layer", FIELD_ENUM, IN(fsdp_case, layer), .names = layer_names},
    {"world_size", FIELD_INT, IN(fsdp_case, world_size), RANGE(1, 65536)},
    {"global_rows", FIELD_INT64, IN(fsdp_case, global_rows), RANGE(1, LARGEST)},
    {"seed", FIELD_INT64, IN(fsdp_case, seed), RANGE(0, INFINITY)},
    {"model", FIELD_TAGGED, IN(fsdp_case, model), .tag = "kind", .names = model_kind_names,
     .object = TABLES([MODEL_WITNESS] = witness_fields, [MODEL_MLP] = mlp_fields, [MODEL_TRANSFORMER] = transformer_fields)},
    {"parameters", FIELD_LIST, IN(fsdp_case, parameters), COUNT(fsdp_case, parameter_count), .span = sizeof(struct case_parameter),
     .release = parameter_release, .element = ONE("", FIELD_OBJECT, .object = TABLES(parameter_fields))},
    {"sharding", FIELD_OBJECT, IN(fsdp_case, sharding), .object = TABLES(sharding_fields)},
    {"precision", FIELD_OBJECT, IN(fsdp_case, precision), .object = TABLES(precision_fields)},
    {"optimizer", FIELD_TAGGED, IN(fsdp_case, optimizer), .tag = "kind", .names = optimizer_names,
     .object = TABLES([OPTIMIZER_SGD] = sgd_fields, [OPTIMIZER_ADAMW] = adamw_fields)},
    {"clip", FIELD_CUSTOM, .read = read_clip, .write = write_clip},
    {"loss", FIELD_ENUM, IN(fsdp_case, loss), .names = loss_names},
    {"divergent_init", FIELD_BOOL, IN(fsdp_case, divergent_init)},
    {"data", FIELD_OBJECT, IN(fsdp_case, data), .object = TABLES(data_fields)},
    {"program", FIELD_LIST, IN(fsdp_case, program), COUNT(fsdp_case, program_length), .span = sizeof(struct instruction),
     .release = instruction_release, .element = &instruction_field},
    {"checkpoint", FIELD_STRING, IN(fsdp_case, checkpoint)},
    {"options", FIELD_CUSTOM, .read = read_options, .write = write_options},
    {0},
};
