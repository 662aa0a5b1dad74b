// The recipes without a search: gaussian, values and integers. See recipe.h.
//
// gaussian: weights N(0, std^2), norms N(1, std^2), inputs and targets N(0, 1), tokens uniform; all rounded to float32.
// values:   x[row, e] = pattern[e mod P] * values[(step, micro, row) mod V]: hand-made witnesses.
// integers: x[row, e] = unit * (1 + e + E * row'), e over all E elements of all parameters and row' over (step, micro,
//           row): every element of a gradient is its own integer, so that an offset, a permutation or a lost row shows.
//           Where that would not stay exact, 1 + e + row'; where even that would not, e starts again after an odd span.
//           unit makes means over up to 8 ranks exact.
#include "reference/truth/recipe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t row_count(const struct fsdp_case *c)
{
    return c->data.steps * c->data.micros * c->global_rows;
}

// ---- allocation and masks ----

static void add_rows(const struct fsdp_case *c, struct tensors *data, const char *name, enum dtype dtype, int dims,
                     const int64_t *inner)
{
    int64_t shape[TENSOR_MAX_DIMS] = {c->data.steps, c->data.micros, c->global_rows};
    memcpy(shape + 3, inner, (size_t)dims * sizeof *inner);
    tensors_add(data, name, dtype, 3 + dims, shape, NULL, false);
}

// Uneven tokens: a sequence keeps 1 to T of its tokens; other models lose every third row.
static void set_weights(const struct fsdp_case *c, struct tensors *data)
{
    const int64_t columns = c->model.kind == MODEL_TRANSFORMER ? c->model.context : 1;
    struct random r = random_stream(c->seed, "mask", 0);
    float *weight = tensors_find(data, "weight")->data;
    for (int64_t row = 0; row < row_count(c); row++) {
        int64_t kept = columns;
        if (c->data.uneven_tokens)
            kept = columns > 1 ? random_integer(&r, 1, columns) : row % c->global_rows % 3 != 2;
        for (int64_t i = 0; i < columns; i++)
            weight[row * columns + i] = i < kept;
    }
}

void recipe_allocate(const struct fsdp_case *c, struct tensors *init, struct tensors *data)
{
    const struct model_spec *m = &c->model;
    char name[300];
    for (int p = 0; p < c->parameter_count; p++) {
        const struct case_parameter *row = &c->parameters[p];
        if (row->tied_to < 0)
            tensors_add(init, row->name, DTYPE_F32, row->dims, row->shape, NULL, false);
        snprintf(name, sizeof name, "x/%s", row->name);
        if (m->kind == MODEL_WITNESS)
            add_rows(c, data, name, DTYPE_F32, row->dims, row->shape);
    }
    if (m->kind == MODEL_MLP) {
        add_rows(c, data, "input", DTYPE_F32, 1, &m->sizes[0]);
        add_rows(c, data, "target", DTYPE_F32, 1, &m->sizes[m->size_count - 1]);
    } else if (m->kind == MODEL_TRANSFORMER) {
        add_rows(c, data, "tokens", DTYPE_I32, 1, &m->context);
        add_rows(c, data, "targets", DTYPE_I32, 1, &m->context);
    }
    add_rows(c, data, "weight", DTYPE_F32, m->kind == MODEL_TRANSFORMER, &m->context);
    set_weights(c, data);
}

// ---- gaussian ----

static bool is_norm_weight(const struct fsdp_case *c, const char *name)
{
    const char *dot = strrchr(name, '.');
    return c->model.kind == MODEL_TRANSFORMER && dot != NULL && strcmp(dot, ".weight") == 0 && dot > name &&
           (strncmp(name, "norm.", 5) == 0 || strstr(name, ".norm1.") != NULL || strstr(name, ".norm2.") != NULL);
}

static void draw_parameters(const struct fsdp_case *c, uint64_t variant, struct tensors *init)
{
    for (int i = 0; i < init->count; i++) {
        struct tensor *t = &init->items[i];
        struct random r = random_stream(c->seed, t->name, variant);
        double centre = is_norm_weight(c, t->name) ? 1 : 0;
        for (int64_t e = 0; e < t->count; e++)
            ((float *)t->data)[e] = (float)(centre + c->data.std * random_normal(&r));
    }
}

static void draw_data(const struct fsdp_case *c, struct tensors *data)
{
    for (int i = 0; i < data->count; i++) {
        struct tensor *t = &data->items[i];
        struct random r = random_stream(c->seed, t->name, 1);
        if (strcmp(t->name, "weight") == 0)
            continue;
        for (int64_t e = 0; e < t->count; e++)
            if (t->dtype == DTYPE_I32)
                ((int32_t *)t->data)[e] = (int32_t)random_integer(&r, 0, c->model.vocab - 1);
            else
                ((float *)t->data)[e] = (float)random_normal(&r);
    }
}

static bool gaussian(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error)
{
    if (!(c->data.std > 0) || !isfinite(c->data.std))
        return error_set(error, "recipe gaussian with std %g, expected a number above 0", c->data.std);
    draw_parameters(c, 0, init);
    draw_data(c, data);
    return true;
}

// ---- witness ----

static void set_initial(const struct fsdp_case *c, struct tensors *init)
{
    int64_t next = 1;
    for (int i = 0; i < init->count; i++)
        for (int64_t e = 0; e < init->items[i].count; e++)
            ((float *)init->items[i].data)[e] = (float)(isnan(c->data.init) ? (double)next++ : c->data.init);
}

static float *witness_x(const struct fsdp_case *c, struct tensors *data, int p)
{
    return tensors_find2(data, "x", c->parameters[p].name)->data;
}

static bool values(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error)
{
    const struct data_spec *d = &c->data;
    if (c->model.kind != MODEL_WITNESS || d->value_count < 1)
        return error_set(error, "recipe values: found model %s and %lld values, expected a witness and at least one value",
                         model_kind_name(c->model.kind), (long long)d->value_count);
    set_initial(c, init);
    for (int p = 0; p < c->parameter_count; p++) {
        const int64_t n = c->parameters[p].count;
        float *x = witness_x(c, data, p);
        for (int64_t row = 0; row < row_count(c); row++)
            for (int64_t e = 0; e < n; e++)
                x[row * n + e] = (float)((d->pattern_count > 0 ? d->pattern[e % d->pattern_count] : 1) *
                                         d->values[row % d->value_count]);
    }
    return true;
}

static int64_t element_count(const struct fsdp_case *c)
{
    int64_t count = 0;
    for (int p = 0; p < c->parameter_count; p++)
        count += c->parameters[p].count;
    return count;
}

// Largest integer whose sum over rows, microbatches and (scaled by) 8 ranks is exact in the narrowest type that sums.
static int64_t largest_exact(const struct fsdp_case *c)
{
    double u = fmax(fmax(dtype_unit_roundoff(c->precision.compute), dtype_unit_roundoff(c->precision.reduce)), 0x1p-24);
    return (int64_t)(1 / u / (double)(c->global_rows * c->data.micros) / (c->loss == LOSS_SUM ? 8 : 1));
}

static bool integers(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error)
{
    const int64_t elements = element_count(c), rows = row_count(c), most = largest_exact(c);
    // Means need a multiple of each N up to 8: 840 = 8 * 105. A factor of 8 costs no bits; where those of 105 are
    // missing, means over 3, 5, 6 and 7 have no certificate.
    const bool all_means = c->loss != LOSS_SUM && most >= 105 * (elements + rows);
    const int64_t unit = c->loss == LOSS_SUM ? 1 : all_means ? 840 : 8, left = all_means ? most / 105 : most;
    const int64_t stride = elements * rows <= left ? elements : 1;
    const int64_t span = elements + stride * (rows - 1) <= left ? elements : (left - stride * (rows - 1) - 1) / 2 * 2 + 1;
    int64_t first = 0;
    if (c->model.kind != MODEL_WITNESS)
        return error_set(error, "recipe integers with model %s, expected a witness", model_kind_name(c->model.kind));
    if (span < 2 && elements > 1)
        return error_set(error, "no exact data for this case: %lld rows of unlike integers do not add up in %s", (long long)rows,
                         dtype_name(c->precision.reduce));
    set_initial(c, init);
    for (int p = 0; p < c->parameter_count; first += c->parameters[p].count, p++) {
        const int64_t n = c->parameters[p].count;
        float *x = witness_x(c, data, p);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t e = 0; e < n; e++)
                x[row * n + e] = (float)(unit * (1 + (first + e) % span + stride * row));
    }
    return true;
}

// ---- all ----

static const struct {
    const char *name;
    bool (*make)(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error);
} recipes[] = {{"exact", exact_make}, {"wide", exact_make}, {"gaussian", gaussian}, {"values", values}, {"integers", integers}};

bool recipe_make(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strcmp(c->data.recipe, recipes[i].name) == 0) {
            recipe_allocate(c, init, data);
            return recipes[i].make(c, init, data, error);
        }
    return error_set(error, "recipe '%s', expected exact, wide, gaussian, values, integers or given", c->data.recipe);
}

void recipe_other(const struct fsdp_case *c, const struct tensors *init, struct tensors *other)
{
    for (int i = 0; i < init->count; i++) {
        const struct tensor *t = &init->items[i];
        struct random r = random_stream(c->seed, t->name, 2);
        float *x = tensors_add(other, t->name, t->dtype, t->dims, t->shape, t->data, true)->data;
        for (int64_t e = 0; e < t->count; e++)
            x[e] += (float)random_integer(&r, 1, 3);
    }
}
