// Contradictions between the fields of a case: each rule is a function that names the field at fault.
//
// Types and ranges of single fields are checked where they are read (case_fields.c); this file holds
// what no field can know alone. The list of rules is at the end.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/case_fields.h"
#include "harness/protocol/memory.h"

// Names the field and says what is wrong with it; false.
#define WRONG(field, ...) (snprintf(path, 96, "%s", field), error_set(error, __VA_ARGS__))
#define WRONG_AT(list, index, field, ...) (snprintf(path, 96, "%s.%d.%s", list, index, field), error_set(error, __VA_ARGS__))
#define RULE(name) static bool name(const struct fsdp_case *c, char *path, struct error *error)

static bool is_file_name(const char *name)
{
    return *name && *name != '.' && strlen(name) <= 200 &&
           name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == 0;
}

RULE(names_are_sound)
{
    if (!is_file_name(c->id))
        return WRONG("id", "found '%s', expected up to 200 letters, digits, '.', '_', '-', no '.' in front", c->id);
    if (!*c->family)
        return WRONG("family", "found an empty text, expected a name");
    if (c->checkpoint && *c->checkpoint && *c->checkpoint != '/')
        return WRONG("checkpoint", "found '%s', expected an absolute path", c->checkpoint);
    return true;
}

RULE(every_rank_has_a_row)
{
    int n = case_data_ranks(c);
    return c->global_rows >= n ||
           WRONG("global_rows", "found %" PRId64 " rows for %d ranks, expected at least one row a rank", c->global_rows, n);
}

RULE(model_parallel_divides)
{
    const struct sharding_spec *s = &c->sharding;
    int64_t parts = (int64_t)s->tensor * s->pipeline;
    return c->world_size % parts == 0 ||
           WRONG(s->tensor > 1 ? "sharding.tensor" : "sharding.pipeline", "found tensor %d and pipeline %d for %d ranks, expected a product that divides %d",
                 s->tensor, s->pipeline, c->world_size, c->world_size);
}

RULE(mesh_fits)
{
    const struct sharding_spec *s = &c->sharding;
    int n = case_data_ranks(c);
    if ((int64_t)s->replicas * s->shards != n)
        return WRONG("sharding.mesh", "found mesh %d x %d for %d ranks, expected a product of %d", s->replicas, s->shards, n, n);
    if (s->strategy == STRATEGY_NONE && s->shards != 1)
        return WRONG("sharding.mesh", "found mesh %d x %d with strategy none, expected %d x 1", s->replicas, s->shards, n);
    if (s->strategy != STRATEGY_NONE && s->strategy != STRATEGY_HYBRID && s->replicas != 1)
        return WRONG("sharding.mesh", "found mesh %d x %d with strategy %s, expected 1 x %d", s->replicas, s->shards,
                     strategy_name(s->strategy), n);
    return true;
}

RULE(reshard_groups_fit)
{
    const struct sharding_spec *s = &c->sharding;
    const char *field = "sharding.reshard_ranks";
    int k = s->reshard_ranks;
    if (k == 0)
        return true;
    if (s->strategy != STRATEGY_FULL && s->strategy != STRATEGY_HYBRID)
        return WRONG(field, "found %d with strategy %s, expected 0, or strategy full or hybrid", k, strategy_name(s->strategy));
    if (!s->reshard_after_forward)
        return WRONG(field, "found %d with reshard_after_forward false, expected 0, or reshard_after_forward true", k);
    return (1 < k && k < s->shards && s->shards % k == 0) ||
           WRONG(field, "found groups of %d of %d shards, expected 0, or a divisor above 1 and below %d", k, s->shards, s->shards);
}

RULE(wrapping_is_told)
{
    const struct sharding_spec *s = &c->sharding;
    if (s->wrap == WRAP_SIZE && s->wrap_min_parameters < 1)
        return WRONG("sharding.wrap.min_parameters", "found 0 with policy size, expected at least 1");
    if (s->wrap == WRAP_PATTERN && (!s->wrap_pattern || !*s->wrap_pattern))
        return WRONG("sharding.wrap.pattern", "found an empty pattern with policy pattern, expected a glob of block names");
    return true;
}

RULE(clip_has_a_limit)
{
    return c->clip == CLIP_OFF || c->clip_limit > 0 || WRONG("clip.limit", "found no limit, expected a number above 0");
}

static bool same_shape(const struct case_parameter *a, const struct case_parameter *b)
{
    return a->dims == b->dims && memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) == 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// A name that occurs twice, or NULL.
static const char *repeated_parameter(const struct fsdp_case *c)
{
    const char **names = memory_zeros((size_t)c->parameter_count, sizeof *names), *twice = NULL;
    for (int i = 0; i < c->parameter_count; i++)
        names[i] = c->parameters[i].name;
    qsort(names, (size_t)c->parameter_count, sizeof *names, by_text);
    for (int i = 1; i < c->parameter_count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            twice = names[i];
    free(names);
    return twice;
}

RULE(parameters_are_sound)
{
    if (c->parameter_count == 0)
        return WRONG("parameters", "found an empty list, expected at least one parameter");
    const char *twice = repeated_parameter(c);
    if (twice)
        return WRONG("parameters", "found '%s' twice, expected each name once", twice);
    for (int i = 0; i < c->parameter_count; i++) {
        const struct case_parameter *p = &c->parameters[i];
        if (!*p->name)
            return WRONG_AT("parameters", i, "name", "found an empty text, expected a name");
        if (p->tied_to < 0)
            continue;
        const struct case_parameter *storage = p->tied_to < i ? &c->parameters[p->tied_to] : NULL;
        if (!storage || storage->tied_to >= 0)
            return WRONG_AT("parameters", i, "tied_to", "found a parameter that is tied itself, expected an earlier one with storage");
        if (!same_shape(p, storage))
            return WRONG_AT("parameters", i, "shape", "found another shape than that of '%s', expected the same for tied parameters", storage->name);
    }
    return true;
}

RULE(witness_is_sound)
{
    const struct model_spec *m = &c->model;
    if (m->kind != MODEL_WITNESS)
        return true;
    if (m->unit_count == 0)
        return WRONG("model.units", "found an empty list, expected at least one unit");
    for (int i = 0; i < m->unit_count; i++)
        if (!*m->units[i].name || m->units[i].parameter_count == 0)
            return WRONG_AT("model.units", i, "parameters", "found a unit without name or parameters, expected both");
    return true;
}

RULE(mlp_chains)
{
    const struct model_spec *m = &c->model;
    if (m->kind != MODEL_MLP)
        return true;
    if (m->size_count < 2)
        return WRONG("model.sizes", "found %d sizes, expected at least 2", m->size_count);
    if (m->call_count < 1)
        return WRONG("model.calls", "found an empty list, expected at least one layer");
    for (int i = 0; i < m->call_count; i++) {
        int layer = m->calls[i], before = i ? m->calls[i - 1] : -1;
        if (layer >= m->size_count - 1)
            return WRONG("model.calls", "found layer %d, expected one of 0 to %d", layer, m->size_count - 2);
        if (m->sizes[layer] != m->sizes[before + 1])
            return WRONG("model.calls", "found layer %d with %" PRId64 " inputs after one with %" PRId64 " outputs, expected equal sizes",
                         layer, m->sizes[layer], m->sizes[before + 1]);
    }
    int64_t columns = m->sizes[m->calls[m->call_count - 1] + 1], expected = m->sizes[m->size_count - 1];
    if (columns != expected)
        return WRONG("model.calls", "found %" PRId64 " outputs of the last call, expected %" PRId64 ", the last of sizes", columns, expected);
    return true;
}

RULE(transformer_divides)
{
    const struct model_spec *m = &c->model;
    if (m->kind != MODEL_TRANSFORMER)
        return true;
    if (m->dim % m->heads)
        return WRONG("model.heads", "found %" PRId64 " heads of dimension %" PRId64 ", expected a divisor", m->heads, m->dim);
    if (m->heads % m->kv_heads)
        return WRONG("model.kv_heads", "found %" PRId64 " for %" PRId64 " heads, expected a divisor", m->kv_heads, m->heads);
    if (m->position == POSITION_ROPE && m->dim / m->heads % 2)
        return WRONG("model.heads", "found heads of odd size %" PRId64 " with rope, expected an even size", m->dim / m->heads);
    return true;
}

static bool is_one_of(const char *text, const char *const *names)
{
    for (; text && *names; names++)
        if (strcmp(text, *names) == 0)
            return true;
    return false;
}

RULE(data_is_told)
{
    const struct data_spec *d = &c->data;
    char list[96];
    if (!is_one_of(d->recipe, recipe_names))
        return WRONG("data.recipe", "found '%s', expected one of %s", d->recipe ? d->recipe : "", name_list(recipe_names, list, sizeof list));
    bool values = strcmp(d->recipe, "values") == 0;
    if ((values || strcmp(d->recipe, "integers") == 0) && c->model.kind != MODEL_WITNESS)
        return WRONG("data.recipe", "found %s with model %s, expected model witness", d->recipe, model_kind_name(c->model.kind));
    if (values && (d->value_count == 0 || d->pattern_count == 0))
        return WRONG(d->value_count ? "data.pattern" : "data.values", "found an empty list with recipe values, expected at least one number");
    return true;
}

static bool in_data(const struct fsdp_case *c, const struct instruction *at, int i, char *path, struct error *error)
{
    enum verb v = at->verb;
    bool has_micro = v == VERB_MICRO || v == VERB_FORWARD || v == VERB_EVAL;
    if ((has_micro || v == VERB_CLIP || v == VERB_STEP) && at->step >= c->data.steps)
        return WRONG_AT("program", i, "step", "found step %d, expected less than the data's %" PRId64 " steps", at->step, c->data.steps);
    if (has_micro && at->micro >= c->data.micros)
        return WRONG_AT("program", i, "micro", "found microbatch %d, expected less than the data's %" PRId64, at->micro, c->data.micros);
    return true;
}

static bool pattern_matches(const struct fsdp_case *c, const char *pattern)
{
    for (int i = 0; i < c->parameter_count; i++)
        if (fnmatch(pattern, c->parameters[i].name, 0) == 0)
            return true;
    return false;
}

static bool can_observe(const struct fsdp_case *c, const struct instruction *at, int i, char *path, struct error *error)
{
    bool adam = c->optimizer.kind == OPTIMIZER_ADAMW;
    if (!is_file_name(at->label))
        return WRONG_AT("program", i, "label", "found '%s', expected letters, digits, '.', '_', '-', no '.' in front", at->label);
    for (int k = 0; k < i; k++)
        if (c->program[k].verb == VERB_OBSERVE && strcmp(c->program[k].label, at->label) == 0)
            return WRONG_AT("program", i, "label", "found '%s' a second time, expected each label once", at->label);
    if (!adam && at->what & (OBSERVE_EXP_AVG | OBSERVE_EXP_AVG_SQ))
        return WRONG_AT("program", i, "what", "found exp_avg or exp_avg_sq with sgd, expected them with adamw only");
    if ((adam || c->optimizer.momentum == 0) && at->what & OBSERVE_MOMENTUM)
        return WRONG_AT("program", i, "what", "found momentum, expected it with sgd and a momentum above 0 only");
    if (c->clip == CLIP_OFF && at->what & OBSERVE_CLIPPED)
        return WRONG_AT("program", i, "what", "found clipped in a case without clip, expected a limit there");
    return true;
}

RULE(program_is_sound)
{
    enum { SLOTS = 1001 };
    bool full[SLOTS] = {false};
    int labels = 0;
    for (int i = 0; i < c->program_length; i++) {
        const struct instruction *at = &c->program[i];
        if (!in_data(c, at, i, path, error))
            return false;
        if (i > 0 && c->program[i - 1].verb == VERB_STOP)
            return WRONG_AT("program", i, "verb", "found %s after stop, expected nothing", verb_name(at->verb));
        if (at->verb == VERB_OBSERVE && ++labels > 10000)
            return WRONG("program", "found more than 10000 labels, expected fewer");
        if (at->verb == VERB_OBSERVE && !can_observe(c, at, i, path, error))
            return false;
        if (at->verb == VERB_CLIP && c->clip == CLIP_OFF)
            return WRONG_AT("program", i, "verb", "found clip in a case without clip, expected a norm and a limit there");
        if ((at->verb == VERB_FREEZE || at->verb == VERB_UNFREEZE) && !pattern_matches(c, at->pattern))
            return WRONG_AT("program", i, "pattern", "found '%s', expected a glob that matches a parameter", at->pattern);
        if (at->verb == VERB_FORWARD && full[at->slot])
            return WRONG_AT("program", i, "slot", "found slot %d in use, expected a backward of it first", at->slot);
        if (at->verb == VERB_BACKWARD && !full[at->slot])
            return WRONG_AT("program", i, "slot", "found slot %d empty, expected a forward into it first", at->slot);
        if (at->verb == VERB_FORWARD || at->verb == VERB_BACKWARD)
            full[at->slot] = at->verb == VERB_FORWARD;
    }
    return true;
}

static bool (*const rules[])(const struct fsdp_case *, char *, struct error *) = {
    names_are_sound, model_parallel_divides, every_rank_has_a_row, mesh_fits, reshard_groups_fit, wrapping_is_told, clip_has_a_limit, witness_is_sound, mlp_chains,
    transformer_divides, parameters_are_sound, data_is_told, program_is_sound,
};

bool case_consistent(const struct fsdp_case *c, char path[96], struct error *error)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!rules[i](c, path, error))
            return false;
    return true;
}

bool case_validate(const struct fsdp_case *c, const char *where, struct error *error)
{
    char path[96];
    struct error problem = {""};
    return case_consistent(c, path, &problem) || error_set(error, "%s: %s: %s", where, path, problem.text);
}
