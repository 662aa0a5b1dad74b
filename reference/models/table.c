// The parameter table: names, shapes, units, ties and decay of a case's model. See model.h.
//
// Why a table: engine, truth, checks and adapters all walk the parameters, and a list kept in two places drifts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/models/ops.h"

enum { NAME_BYTES = 256 };

static int64_t shape_count(int dims, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < dims; d++)
        if (shape[d] < 1 || __builtin_mul_overflow(count, shape[d], &count))
            return -1;
    return count;
}

int table_add(struct fsdp_case *c, const char *unit, const char *name, int dims, const int64_t *shape, int tied_to,
              bool decay, struct error *error)
{
    char full[NAME_BYTES];
    int length = snprintf(full, sizeof full, "%s%s%s", unit, unit[0] ? "." : "", name);
    int64_t count = shape_count(dims, shape);
    if (length >= NAME_BYTES || dims < 1 || dims > CASE_MAX_DIMS || count < 0)
        return error_set(error, "parameter %.100s of unit %.100s: name, rank or size out of range", name, unit), -1;
    if (case_find_parameter(c, full) >= 0)
        return error_set(error, "parameter %s is named twice", full), -1;
    struct case_parameter *grown = realloc(c->parameters, (size_t)(c->parameter_count + 1) * sizeof *grown);
    if (grown == NULL)
        return error_set(error, "out of memory for the parameter table"), -1;
    c->parameters = grown;
    struct case_parameter *p = &grown[c->parameter_count];
    *p = (struct case_parameter){.name = strdup(full), .dims = dims, .count = count, .unit = strdup(unit),
                                 .tied_to = tied_to, .decay = decay};
    memcpy(p->shape, shape, (size_t)dims * sizeof *shape);
    if (p->name == NULL || p->unit == NULL) {
        free(p->name);
        free(p->unit);
        return error_set(error, "out of memory for the parameter table"), -1;
    }
    return c->parameter_count++;
}

static const struct model_ops *ops_of(enum model_kind kind)
{
    static const struct model_ops *const by_kind[] = {
        [MODEL_WITNESS] = &model_witness, [MODEL_MLP] = &model_mlp, [MODEL_TRANSFORMER] = &model_transformer};
    return (unsigned)kind < sizeof by_kind / sizeof *by_kind ? by_kind[kind] : NULL;
}

static void table_clear(struct fsdp_case *c)
{
    for (int i = 0; i < c->parameter_count; i++) {
        free(c->parameters[i].name);
        free(c->parameters[i].unit);
    }
    free(c->parameters);
    c->parameters = NULL;
    c->parameter_count = 0;
}

bool model_parameter_table(struct fsdp_case *c, struct error *error)
{
    const struct model_ops *ops = ops_of(c->model.kind);
    c->parameters = NULL;
    c->parameter_count = 0;
    if (ops == NULL)
        return error_set(error, "model kind %d: expected witness, mlp or transformer", (int)c->model.kind);
    bool made = ops->list(c, error);
    if (!made)
        table_clear(c);
    return made;
}

static bool same_row(const struct case_parameter *a, const struct case_parameter *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0 && a->dims == b->dims &&
           memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) == 0 && a->tied_to == b->tied_to &&
           a->count == b->count && a->decay == b->decay;
}

static bool table_agrees(const struct fsdp_case *c, struct error *error)
{
    struct fsdp_case expected = {.model = c->model};
    if (!model_parameter_table(&expected, error))
        return false;
    bool agrees = expected.parameter_count == c->parameter_count;
    if (!agrees)
        error_set(error, "%d parameters in the table, expected %d", c->parameter_count, expected.parameter_count);
    for (int i = 0; agrees && i < c->parameter_count; i++) {
        agrees = same_row(&c->parameters[i], &expected.parameters[i]);
        if (!agrees)
            error_set(error, "row %d of the parameter table, %s, is not what the model says of %s", i,
                      c->parameters[i].name, expected.parameters[i].name);
    }
    table_clear(&expected);
    return agrees;
}

bool model_create_on(struct model *m, const struct fsdp_case *c, const struct device *device, enum dtype storage, struct error *error)
{
    *m = (struct model){.spec = c, .storage = storage, .device = device, .kernels = device->kernels(storage), .ops = ops_of(c->model.kind)};
    if (m->kernels == NULL)
        return error_set(error, "no kernels for %s, expected f32, f64, bf16 or f16", dtype_name(storage));
    return table_agrees(c, error) && m->ops->build(m, error);
}

bool model_create(struct model *m, const struct fsdp_case *c, enum dtype storage, struct error *error)
{
    return model_create_on(m, c, &device_cpu, storage, error);
}
