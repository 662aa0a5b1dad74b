// The rows of a batch: where a rank's part of (step, micro) lies in data.safetensors. See model.h, docs/protocol.md.
#include <stdio.h>
#include <string.h>

#include "reference/models/ops.h"

// Which tensor is wanted: (steps, micros, G, inner...) of that dtype.
struct wanted { const char *name; enum dtype dtype; int inner_dims; int64_t inner[CASE_MAX_DIMS]; };
struct place { int step, micro; int64_t first; };

// Address of the first element at the place, NULL with an error where the tensor is not as it must be.
static const void *locate(const struct fsdp_case *c, const struct tensors *data, struct place at,
                          const struct wanted *w, struct error *error)
{
    const struct tensor *t = tensors_find(data, w->name);
    if (t == NULL)
        return error_set(error, "data has no tensor %s", w->name), NULL;
    if (t->dtype != w->dtype || t->dims != 3 + w->inner_dims || t->shape[2] != c->global_rows ||
        memcmp(t->shape + 3, w->inner, (size_t)w->inner_dims * sizeof *w->inner) != 0)
        return error_set(error, "data tensor %s: wrong dtype or shape, expected %s (steps, micros, %lld rows, ...)", w->name,
                         dtype_name(w->dtype), (long long)c->global_rows), NULL;
    if (at.step < 0 || at.micro < 0 || at.step >= t->shape[0] || at.micro >= t->shape[1])
        return error_set(error, "data tensor %s: no step %d, micro %d", w->name, at.step, at.micro), NULL;
    int64_t row_count = 1;
    for (int d = 0; d < w->inner_dims; d++)
        row_count *= w->inner[d];
    int64_t row = (at.step * t->shape[1] + at.micro) * c->global_rows + at.first;
    return (const char *)t->data + (size_t)(row * row_count) * dtype_size(w->dtype);
}

static bool in_vocabulary(const int32_t *tokens, int64_t count, int64_t vocab, const char *name, struct error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= vocab)
            return error_set(error, "data tensor %s: %d, expected 0 to %lld", name, (int)tokens[i], (long long)vocab - 1);
    return true;
}

static bool token_batch(const struct fsdp_case *c, const struct tensors *data, struct place at, struct model_batch *b,
                        struct error *error)
{
    const int64_t t = c->model.context;
    b->tokens = locate(c, data, at, &(struct wanted){"tokens", DTYPE_I32, 1, {t}}, error);
    b->targets = b->tokens == NULL ? NULL : locate(c, data, at, &(struct wanted){"targets", DTYPE_I32, 1, {t}}, error);
    return b->targets != NULL && in_vocabulary(b->tokens, b->rows * t, c->model.vocab, "tokens", error) &&
           in_vocabulary(b->targets, b->rows * t, c->model.vocab, "targets", error);
}

static bool mlp_batch(const struct fsdp_case *c, const struct tensors *data, struct place at, struct model_batch *b,
                      struct error *error)
{
    const int64_t first = c->model.sizes[0], last = c->model.sizes[c->model.size_count - 1];
    b->input = locate(c, data, at, &(struct wanted){"input", DTYPE_F32, 1, {first}}, error);
    b->target = b->input == NULL ? NULL : locate(c, data, at, &(struct wanted){"target", DTYPE_F32, 1, {last}}, error);
    return b->target != NULL;
}

static bool witness_batch(const struct fsdp_case *c, const struct tensors *data, struct place at, const float **x_storage,
                          struct model_batch *b, struct error *error)
{
    char name[300];
    for (int i = 0; i < c->parameter_count; i++) {
        const struct case_parameter *p = &c->parameters[i];
        snprintf(name, sizeof name, "x/%s", p->name);
        struct wanted w = {name, DTYPE_F32, p->dims, {0}};
        memcpy(w.inner, p->shape, sizeof w.inner);
        x_storage[i] = locate(c, data, at, &w, error);
        if (x_storage[i] == NULL)
            return false;
    }
    b->x = x_storage;
    return true;
}

static const float *weights_at(const struct fsdp_case *c, const struct tensors *data, struct place at,
                               struct error *error)
{
    struct wanted w = {"weight", DTYPE_F32, c->model.kind == MODEL_TRANSFORMER, {c->model.context}};
    return locate(c, data, at, &w, error);
}

bool model_batch_at(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int64_t first,
                    int64_t end, const float **x_storage, struct model_batch *out, struct error *error)
{
    struct place at = {step, micro, first};
    *out = (struct model_batch){.rows = end - first, .scale = 1};
    if (first < 0 || end < first || end > c->global_rows)
        return error_set(error, "rows %lld to %lld of %lld", (long long)first, (long long)end, (long long)c->global_rows);
    out->weights = weights_at(c, data, at, error);
    if (out->weights == NULL)
        return false;
    switch (c->model.kind) {
    case MODEL_WITNESS: return witness_batch(c, data, at, x_storage, out, error);
    case MODEL_MLP: return mlp_batch(c, data, at, out, error);
    case MODEL_TRANSFORMER: return token_batch(c, data, at, out, error);
    }
    return false;
}

// ---- on a device ----

// Adds an array to what is counted or, with a device, copied.
static const void *move(const struct device *device, struct carve *to, const void *from, int64_t count)
{
    enum { ELEMENT = 4 }; // all arrays of a batch are I32 or F32
    void *place = carve_take(to, count, ELEMENT);
    if (device != NULL)
        device->upload(place, from, (size_t)count * ELEMENT);
    return place;
}

// Every array of a batch, once.
static size_t move_all(const struct fsdp_case *c, const struct device *device, void *memory, const float **x, struct model_batch *b)
{
    const int64_t rows = b->rows, tokens = rows * c->model.context;
    struct carve to = {memory, 0};
    b->weights = move(device, &to, b->weights, c->model.kind == MODEL_TRANSFORMER ? tokens : rows);
    if (c->model.kind == MODEL_TRANSFORMER) {
        b->tokens = move(device, &to, b->tokens, tokens);
        b->targets = move(device, &to, b->targets, tokens);
    }
    if (c->model.kind == MODEL_MLP) {
        b->input = move(device, &to, b->input, rows * c->model.sizes[0]);
        b->target = move(device, &to, b->target, rows * c->model.sizes[c->model.size_count - 1]);
    }
    for (int i = 0; c->model.kind == MODEL_WITNESS && i < c->parameter_count; i++) {
        const void *place = move(device, &to, x != NULL ? x[i] : NULL, rows * c->parameters[i].count);
        if (x != NULL)
            x[i] = place;
    }
    return to.used;
}

size_t model_batch_bytes(const struct fsdp_case *c, int64_t rows)
{
    struct model_batch none = {.rows = rows};
    return move_all(c, NULL, NULL, NULL, &none);
}

void model_batch_upload(const struct fsdp_case *c, const struct device *device, void *memory, const float **x_storage, struct model_batch *batch)
{
    move_all(c, device, memory, x_storage, batch);
}

double model_weight_sum(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int64_t first, int64_t end)
{
    const float *weights = weights_at(c, data, (struct place){step, micro, first}, NULL);
    const int64_t columns = c->model.kind == MODEL_TRANSFORMER ? c->model.context : 1;
    double sum = 0;
    for (int64_t i = 0; weights != NULL && i < (end - first) * columns; i++)
        sum += weights[i];
    return sum;
}
