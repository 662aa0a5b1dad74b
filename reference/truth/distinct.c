// Are the data of ranks and microbatches different? See distinct_check in recipe.h.
#include <stdlib.h>
#include <string.h>

#include "reference/models/model.h"
#include "reference/truth/recipe.h"

// Two rows of one step, by (micro, row): equal in every tensor.
static bool rows_equal(const struct fsdp_case *c, const struct tensors *data, int64_t a, int64_t b)
{
    for (int i = 0; i < data->count; i++) {
        const struct tensor *t = &data->items[i];
        const int64_t rows = c->data.steps * c->data.micros * c->global_rows;
        const size_t bytes = (size_t)(t->count / rows) * dtype_size(t->dtype);
        if (memcmp((const char *)t->data + (size_t)a * bytes, (const char *)t->data + (size_t)b * bytes, bytes) != 0)
            return false;
    }
    return true;
}

bool distinct_step(const struct fsdp_case *c, const struct tensors *data, int step, struct error *error)
{
    const int64_t per_step = c->data.micros * c->global_rows, base = step * per_step;
    for (int64_t a = 0; a < per_step; a++)
        for (int64_t b = 0; b < a; b++)
            if ((a / c->global_rows == b / c->global_rows || a % c->global_rows == b % c->global_rows) &&
                rows_equal(c, data, base + a, base + b))
                return error_set(error, "step %d: row %lld of micro %lld and row %lld of micro %lld are alike; equal data hide a "
                                 "missing reduction", step, (long long)(b % c->global_rows), (long long)(b / c->global_rows),
                                 (long long)(a % c->global_rows), (long long)(a / c->global_rows));
    return true;
}

static bool all_rows_differ(const struct fsdp_case *c, const struct tensors *data, struct error *error)
{
    for (int step = 0; step < c->data.steps; step++)
        if (!distinct_step(c, data, step, error))
            return false;
    return true;
}

// Is any row of the ranks' or microbatches' blocks unlike its counterpart in the first one?
static bool ranks_differ(const struct fsdp_case *c, const struct tensors *data, int64_t base)
{
    int64_t first, end;
    for (int r = 1; r < case_data_ranks(c); r++) {
        case_rows(c, r, case_data_ranks(c), &first, &end);
        for (int64_t i = first; i < end; i++)
            if (!rows_equal(c, data, base + i, base + (i - first)))
                return true;
    }
    return case_data_ranks(c) == 1;
}

static bool micros_differ(const struct fsdp_case *c, const struct tensors *data, int64_t base)
{
    for (int64_t i = c->global_rows; i < c->data.micros * c->global_rows; i++)
        if (!rows_equal(c, data, base + i, base + i % c->global_rows))
            return true;
    return c->data.micros == 1;
}

static bool some_rows_differ(const struct fsdp_case *c, const struct tensors *data, struct error *error)
{
    const int64_t per_step = c->data.micros * c->global_rows;
    for (int64_t step = 0; step < c->data.steps; step++) {
        bool ranks = false;
        for (int64_t m = 0; m < c->data.micros; m++)
            ranks = ranks || ranks_differ(c, data, step * per_step + m * c->global_rows);
        if (!ranks || !micros_differ(c, data, step * per_step))
            return error_set(error, "step %lld: the data of all %s are alike; equal data hide a missing reduction", (long long)step,
                             ranks ? "microbatches" : "ranks");
    }
    return true;
}

static bool weights_count(const struct fsdp_case *c, const struct tensors *data, struct error *error)
{
    for (int step = 0; step < c->data.steps; step++)
        for (int m = 0; m < c->data.micros; m++)
            for (int r = 0; r < case_data_ranks(c); r++) {
                int64_t first = 0, end = c->global_rows;
                if (c->loss == LOSS_MEAN_OF_RANKS)
                    case_rows(c, r, case_data_ranks(c), &first, &end);
                if (!(model_weight_sum(c, data, step, m, first, end) > 0))
                    return error_set(error, "step %d, micro %d: the loss weights of rows %lld to %lld sum to 0", step, m,
                                     (long long)first, (long long)end - 1);
            }
    return true;
}

// For shapes and dtypes: every batch can be pointed at.
static bool batches_sound(const struct fsdp_case *c, const struct tensors *data, struct error *error)
{
    const float **x = calloc((size_t)c->parameter_count, sizeof *x);
    struct model_batch batch;
    bool ok = x != NULL;
    for (int step = 0; ok && step < c->data.steps; step++)
        for (int m = 0; ok && m < c->data.micros; m++)
            ok = model_batch_at(c, data, step, m, 0, c->global_rows, x, &batch, error);
    free(x);
    return ok;
}

bool distinct_check(const struct fsdp_case *c, const struct tensors *data, struct error *error)
{
    const bool chosen = strcmp(c->data.recipe, "values") == 0 || strcmp(c->data.recipe, "given") == 0;
    return batches_sound(c, data, error) && weights_count(c, data, error) &&
           (chosen ? some_rows_differ(c, data, error) : all_rows_differ(c, data, error));
}
