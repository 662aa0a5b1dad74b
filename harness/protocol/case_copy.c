// Copying, freeing and asking a case. See case.h.
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/case_fields.h"
#include "harness/protocol/memory.h"

#define COPY(pointer, count) (memory_copy((pointer), (size_t)(count), sizeof *(pointer)))

static void copy_model(struct model_spec *dst, const struct model_spec *src)
{
    dst->units = COPY(src->units, src->unit_count);
    dst->sizes = COPY(src->sizes, src->size_count);
    dst->calls = COPY(src->calls, src->call_count);
    for (int i = 0; i < src->unit_count; i++) {
        struct witness_unit *unit = &dst->units[i];
        unit->name = memory_text(unit->name);
        unit->parameters = COPY(unit->parameters, unit->parameter_count);
        for (int k = 0; k < unit->parameter_count; k++)
            unit->parameters[k].name = memory_text(unit->parameters[k].name);
    }
}

void case_copy(struct fsdp_case *dst, const struct fsdp_case *src)
{
    *dst = *src;
    dst->id = memory_text(src->id);
    dst->family = memory_text(src->family);
    dst->checkpoint = memory_text(src->checkpoint);
    copy_model(&dst->model, &src->model);
    dst->sharding.wrap_pattern = memory_text(src->sharding.wrap_pattern);
    dst->data.recipe = memory_text(src->data.recipe);
    dst->data.values = COPY(src->data.values, src->data.value_count);
    dst->data.pattern = COPY(src->data.pattern, src->data.pattern_count);
    dst->parameters = COPY(src->parameters, src->parameter_count);
    for (int i = 0; i < dst->parameter_count; i++) {
        dst->parameters[i].name = memory_text(src->parameters[i].name);
        dst->parameters[i].unit = memory_text(src->parameters[i].unit);
    }
    dst->program = COPY(src->program, src->program_length);
    for (int i = 0; i < dst->program_length; i++) {
        dst->program[i].pattern = memory_text(src->program[i].pattern);
        dst->program[i].label = memory_text(src->program[i].label);
    }
    dst->options = COPY(src->options, src->option_count);
    for (int i = 0; i < dst->option_count; i++)
        dst->options[i] = (struct case_option){memory_text(src->options[i].name), memory_text(src->options[i].value)};
}

static void free_model(struct model_spec *m)
{
    for (int i = 0; i < m->unit_count; i++) {
        for (int k = 0; k < m->units[i].parameter_count; k++)
            free(m->units[i].parameters[k].name);
        free(m->units[i].parameters);
        free(m->units[i].name);
    }
    free(m->units);
    free(m->sizes);
    free(m->calls);
}

void case_free(struct fsdp_case *c)
{
    free(c->id);
    free(c->family);
    free(c->checkpoint);
    free_model(&c->model);
    free(c->sharding.wrap_pattern);
    free(c->data.recipe);
    free(c->data.values);
    free(c->data.pattern);
    for (int i = 0; i < c->parameter_count; i++) {
        free(c->parameters[i].name);
        free(c->parameters[i].unit);
    }
    free(c->parameters);
    for (int i = 0; i < c->program_length; i++)
        instruction_release(&c->program[i]);
    free(c->program);
    for (int i = 0; i < c->option_count; i++) {
        free(c->options[i].name);
        free(c->options[i].value);
    }
    free(c->options);
    *c = (struct fsdp_case){0};
}

int case_find_parameter(const struct fsdp_case *c, const char *name)
{
    for (int i = 0; i < c->parameter_count; i++)
        if (strcmp(c->parameters[i].name, name) == 0)
            return i;
    return -1;
}

const char *case_option(const struct fsdp_case *c, const char *name)
{
    for (int i = 0; i < c->option_count; i++)
        if (strcmp(c->options[i].name, name) == 0)
            return c->options[i].value;
    return NULL;
}
