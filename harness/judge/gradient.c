// Gradients of shares, uses and calls, all through truth_gradient. See gradient.h.
#include "harness/judge/gradient.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/models/model.h"

const struct tensors *gradient_parameters(const struct evidence *e, const struct program_label *l)
{
    if (l->parameters_at < 0)
        return NULL;
    const struct observed *o = evidence_find(e, e->c->program[l->parameters_at].label);
    return o ? &o->full : NULL;
}

void gradient_add(struct tensors *to, const struct tensors *from, double factor)
{
    for (int i = 0; i < from->count; i++) {
        const struct tensor *source = &from->items[i];
        struct tensor *t = tensors_find(to, source->name);
        if (!t)
            t = tensors_add(to, source->name, DTYPE_F64, source->dims, source->shape, NULL, false);
        for (int64_t k = 0; k < source->count; k++)
            ((double *)t->data)[k] += factor * dtype_get(source->dtype, source->data, k);
    }
}

// Elements of the weight tensor from row `first` of (step, micro) on; *per_row tells how many belong to one row.
static float *weights_at(const struct fsdp_case *c, const struct tensor *weight, int step, int64_t micro, int64_t *per_row)
{
    *per_row = weight->count / (c->data.steps * c->data.micros * c->global_rows);
    return (float *)weight->data + (step * c->data.micros + micro) * c->global_rows * *per_row;
}

// Sum of the loss weights of a share of a step.
static double weight_of(const struct fsdp_case *c, const struct tensors *data, int step, struct share share)
{
    const struct tensor *weight = tensors_find(data, "weight");
    int64_t first = 0, end = c->global_rows, per_row;
    double sum = 0;
    if (share.rank >= 0)
        case_rows(c, share.rank, case_data_ranks(c), &first, &end);
    for (int64_t m = 0; weight && m < c->data.micros; m++) {
        const float *w = weights_at(c, weight, step, m, &per_row);
        for (int64_t i = first * per_row; (share.micro < 0 || share.micro == m) && i < end * per_row; i++)
            sum += w[i];
    }
    return sum;
}

// The data with all weights outside the share set to 0; everything else is borrowed.
static bool masked_data(const struct fsdp_case *c, const struct tensors *data, int step, struct share share, struct tensors *out)
{
    *out = (struct tensors){0};
    int64_t first = 0, end = c->global_rows, per_row;
    if (share.rank >= 0)
        case_rows(c, share.rank, case_data_ranks(c), &first, &end);
    for (int i = 0; i < data->count; i++) {
        const struct tensor *t = &data->items[i];
        bool is_weight = strcmp(t->name, "weight") == 0;
        if (!tensors_add(out, t->name, t->dtype, t->dims, t->shape, t->data, is_weight))
            return false;
    }
    struct tensor *weight = tensors_find(out, "weight");
    for (int64_t m = 0; weight && m < c->data.micros; m++) {
        float *w = weights_at(c, weight, step, m, &per_row);
        bool counts = share.micro < 0 || share.micro == m;
        for (int64_t i = 0; i < c->global_rows * per_row; i++)
            if (!counts || i < first * per_row || i >= end * per_row)
                w[i] = 0;
    }
    return weight != NULL;
}

static void scale(struct tensors *set, double factor)
{
    for (int i = 0; i < set->count; i++)
        for (int64_t k = 0; k < set->items[i].count; k++)
            ((double *)set->items[i].data)[k] *= factor;
}

bool gradient_of(const struct evidence *e, const struct program_label *l, const struct tensors *parameters, struct share share,
                 struct tensors *gradient, double *loss, struct error *error)
{
    const struct fsdp_case *c = e->c;
    bool whole = share.rank < 0 && share.micro < 0;
    double ignored;
    *gradient = (struct tensors){0};
    if (l->gradient_step < 0)
        return error_set(error, "label %s does not show the gradient of exactly one step", l->label);
    bool *frozen = calloc((size_t)c->parameter_count + 1, sizeof *frozen);
    program_frozen(c, l->at, frozen);
    struct tensors masked = {0};
    bool ok = whole || masked_data(c, &e->truth->data, l->gradient_step, share, &masked);
    ok = ok && truth_gradient(c, whole ? &e->truth->data : &masked, parameters, "param", l->gradient_step, frozen, gradient,
                              loss ? loss : &ignored, error);
    if (ok && !whole && c->loss == LOSS_MEAN_OF_TOKENS)
        scale(gradient, weight_of(c, &e->truth->data, l->gradient_step, share) / weight_of(c, &e->truth->data, l->gradient_step, SHARE_ALL));
    tensors_free(&masked);
    free(frozen);
    return ok;
}

bool gradient_normalised_by_rank(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                                 struct tensors *gradient, struct error *error)
{
    const struct fsdp_case *c = e->c;
    double whole = weight_of(c, &e->truth->data, l->gradient_step, SHARE_ALL);
    *gradient = (struct tensors){0};
    if (c->loss != LOSS_MEAN_OF_TOKENS)
        return error_set(error, "the loss is not a mean of tokens");
    for (int r = 0; r < case_data_ranks(c); r++) {
        struct tensors own;
        double weight = weight_of(c, &e->truth->data, l->gradient_step, (struct share){r, -1});
        if (weight == 0)
            continue;
        if (!gradient_of(e, l, parameters, (struct share){r, -1}, &own, NULL, error))
            return false;
        gradient_add(gradient, &own, whole / (weight * case_data_ranks(c)));
        tensors_free(&own);
    }
    return true;
}

static void drop_table(struct fsdp_case *c)
{
    for (int p = 0; p < c->parameter_count; p++) {
        free(c->parameters[p].name);
        free(c->parameters[p].unit);
    }
    free(c->parameters);
    c->parameters = NULL;
    c->parameter_count = 0;
}

// truth_gradient of a changed model. source(variant, p): the original's name of parameter p of the variant.
static bool gradient_of_variant(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                                struct fsdp_case *variant, void (*source)(const struct fsdp_case *original, const char *name, char *out, size_t size),
                                struct tensors *gradient, struct error *error)
{
    double loss;
    struct tensors renamed = {0};
    drop_table(variant);
    bool ok = model_parameter_table(variant, error);
    for (int p = 0; ok && p < variant->parameter_count; p++) {
        char original[256], name[300];
        source(e->c, variant->parameters[p].name, original, sizeof original);
        const struct tensor *t = tensors_find2(parameters, "param", original);
        snprintf(name, sizeof name, "param/%s", variant->parameters[p].name);
        ok = (t && tensors_add(&renamed, name, t->dtype, t->dims, t->shape, t->data, false)) || error_set(error, "no parameter %s", original);
    }
    ok = ok && truth_gradient(variant, &e->truth->data, &renamed, "param", l->gradient_step, NULL, gradient, &loss, error);
    tensors_free(&renamed);
    return ok;
}

static void tied_source(const struct fsdp_case *c, const char *name, char *out, size_t size)
{
    int p = case_find_parameter(c, name);
    int tied = p >= 0 ? c->parameters[p].tied_to : -1;
    snprintf(out, size, "%s", tied >= 0 ? c->parameters[tied].name : name);
}

bool gradient_untied(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                     struct tensors *gradient, struct error *error)
{
    *gradient = (struct tensors){0};
    if (e->c->model.kind != MODEL_TRANSFORMER || !e->c->model.tied || l->gradient_step < 0)
        return error_set(error, "nothing is tied");
    struct fsdp_case variant;
    case_copy(&variant, e->c);
    variant.model.tied = false;
    bool ok = gradient_of_variant(e, l, parameters, &variant, tied_source, gradient, error);
    case_free(&variant);
    return ok;
}

// Call i of the variant is layer calls[i] of the original.
static void call_source(const struct fsdp_case *c, const char *name, char *out, size_t size)
{
    int call = -1, used = 0;
    if (sscanf(name, "layers.%d.%n", &call, &used) == 1 && used > 0 && call >= 0 && call < c->model.call_count)
        snprintf(out, size, "layers.%d.%s", c->model.calls[call], name + used);
    else
        snprintf(out, size, "%s", name);
}

bool gradient_by_call(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                      struct tensors *gradient, struct error *error)
{
    *gradient = (struct tensors){0};
    const struct model_spec *m = &e->c->model;
    if (m->kind != MODEL_MLP || m->call_count < m->size_count || l->gradient_step < 0)
        return error_set(error, "no layer is used twice");
    struct fsdp_case variant;
    case_copy(&variant, e->c);
    struct model_spec *v = &variant.model;
    free(v->sizes);
    free(v->calls);
    v->sizes = malloc((size_t)(m->call_count + 1) * sizeof *v->sizes);
    v->calls = malloc((size_t)m->call_count * sizeof *v->calls);
    for (int i = 0; i < m->call_count; i++) {
        v->sizes[i] = m->sizes[m->calls[i]];
        v->calls[i] = i;
    }
    v->sizes[m->call_count] = m->sizes[m->size_count - 1];
    v->size_count = m->call_count + 1;
    v->unused = 0;
    bool ok = gradient_of_variant(e, l, parameters, &variant, call_source, gradient, error);
    case_free(&variant);
    return ok;
}

bool gradient_one_batch(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                        struct tensors *gradient, struct error *error)
{
    struct fsdp_case single;
    struct tensors data = {0};
    double loss;
    bool *frozen = calloc((size_t)e->c->parameter_count + 1, sizeof *frozen);
    program_frozen(e->c, l->at, frozen);
    case_copy(&single, e->c);
    single.data.micros = 1;
    single.global_rows = e->c->global_rows * e->c->data.micros;
    single.world_size = single.sharding.replicas = single.sharding.shards = single.sharding.tensor = single.sharding.pipeline = 1;
    for (int i = 0; i < e->truth->data.count; i++) {
        const struct tensor *t = &e->truth->data.items[i];
        struct tensor *copy = tensors_add(&data, t->name, t->dtype, t->dims, t->shape, t->data, false);
        copy->shape[1] = 1;
        copy->shape[2] = single.global_rows;
    }
    bool ok = truth_gradient(&single, &data, parameters, "param", l->gradient_step, frozen, gradient, &loss, error);
    tensors_free(&data);
    case_free(&single);
    free(frozen);
    return ok;
}
