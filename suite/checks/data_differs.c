// Claim: no two ranks and no two microbatches see the same data, and each has a loss weight. Hand-chosen witness values may repeat
//     (256, 1, 1), but not be all alike.
// Source: faults.md's lesson that equal data on all ranks hides a missing reduction; here a property of our own data, so BROKEN.
// How: the rows of each rank and microbatch in data.safetensors, compared as bytes with those of every other.
// Catches: nothing of the subject: it guards the other checks
// Blind to: data that differ but lead to the same gradient (exact recipes reject those when they search seeds)
#include <string.h>

#include "suite/checks/check.h"

static bool applies(const struct evidence *e) { return case_data_ranks(e->c) > 1 || e->c->data.micros > 1; }

// Bytes of the rows of (step, micro, rank) in one tensor.
static const char *rows_of(const struct fsdp_case *c, const struct tensor *t, int64_t step, int64_t micro, int rank, size_t *bytes)
{
    int64_t first, end, row = t->count / (c->data.steps * c->data.micros * c->global_rows);
    case_rows(c, rank, case_data_ranks(c), &first, &end);
    *bytes = (size_t)((end - first) * row) * dtype_size(t->dtype);
    return (const char *)t->data + (size_t)(((step * c->data.micros + micro) * c->global_rows + first) * row) * dtype_size(t->dtype);
}

// Cells are (micro, rank) of one step, numbered micro * N + rank. Equal in every input tensor?
static bool same_cell(const struct evidence *e, int64_t step, int a, int b)
{
    int n = case_data_ranks(e->c);
    for (int i = 0; i < e->truth->data.count; i++) {
        const struct tensor *t = &e->truth->data.items[i];
        size_t x_bytes, y_bytes;
        if (strcmp(t->name, "weight") == 0)
            continue;
        const char *x = rows_of(e->c, t, step, a / n, a % n, &x_bytes), *y = rows_of(e->c, t, step, b / n, b % n, &y_bytes);
        size_t shared = x_bytes < y_bytes ? x_bytes : y_bytes;
        if (memcmp(x, y, shared) != 0)
            return false;
    }
    return true;
}

static bool has_weight(const struct evidence *e, int64_t step, int cell)
{
    const struct tensor *t = tensors_find(&e->truth->data, "weight");
    size_t bytes;
    int n = case_data_ranks(e->c);
    const char *w = t ? rows_of(e->c, t, step, cell / n, cell % n, &bytes) : NULL;
    for (size_t i = 0; w && i < bytes / sizeof(float); i++)
        if (((const float *)(const void *)w)[i] != 0)
            return true;
    return false;
}

static void judge(const struct evidence *e, struct finding *f)
{
    int n = case_data_ranks(e->c), cells = (int)e->c->data.micros * n;
    bool chosen = e->c->data.recipe && (strcmp(e->c->data.recipe, "values") == 0 || strcmp(e->c->data.recipe, "given") == 0);
    for (int64_t step = 0; step < e->c->data.steps; step++)
        for (int a = 0, alike = 0; a < cells; a++) {
            if (!has_weight(e, step, a) && !e->c->data.uneven_tokens)
                finding_broken(f, "step %lld: the rows of rank %d, microbatch %d have no loss weight", (long long)step, a % n, a / n);
            for (int b = a + 1; b < cells; b++)
                if (same_cell(e, step, a, b) && (!chosen || ++alike == cells * (cells - 1) / 2))
                    finding_broken(f, "step %lld: rank %d, microbatch %d has the same data as rank %d, microbatch %d", (long long)step,
                                   a % n, a / n, b % n, b / n);
        }
    if (cells > 1 && e->truth->data.count > 1)
        finding_pass(f, "%d shares of data per step, all different", cells);
}

const struct check check_data_differs = {
    .name = "data-differs", .number = 0, .claim = "data(step, micro, rank) are pairwise different and weighted",
    .source = "docs/method.md, contract of a verdict", .catches = "", .blind = "different data with the same gradient",
    .applies = applies, .judge = judge};
