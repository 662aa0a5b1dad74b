// A small mlp on small integers in float64, where every sum is exact, and its plain serial run: what engine tests compare with.
//
// The serial run here is deliberately naive: one rank, all rows, no units, no types. Include it in one file of a test program.
#ifndef REFERENCE_TESTS_SMALL_CASE_H
#define REFERENCE_TESTS_SMALL_CASE_H

#include <stdlib.h>
#include <string.h>

#include "reference/engine/engine.h"

enum { SMALL_STEPS = 3, SMALL_MICROS = 3, SMALL_ROWS = 10 };

struct small { struct fsdp_case c; struct tensors data, init; };

static int64_t small_sizes[] = {6, 7, 6, 3}, small_square[] = {6, 6, 3};
static int small_calls[] = {0, 1, 2}, small_again[] = {0, 0, 1};

static inline double small_integer(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return (double)(*state >> 16 & 0x7fff) / 0x8000 * 3 < 1 ? -1 : (int)(*state >> 20 & 1);
}

static inline void small_fill(struct tensor *t, unsigned *state)
{
    for (int64_t i = 0; i < t->count; i++)
        dtype_set(t->dtype, t->data, i, small_integer(state));
}

// reuse: layer 0 is called twice, and there is a layer that nothing calls.
static inline bool small_make(struct small *s, int ranks, bool reuse, struct error *error)
{
    struct fsdp_case *c = &s->c;
    unsigned state = 7;
    *s = (struct small){.c = {.id = (char *)"small", .world_size = ranks, .global_rows = SMALL_ROWS}};
    c->model = (struct model_spec){.kind = MODEL_MLP, .bias = true, .size_count = reuse ? 3 : 4, .call_count = 3, .unused = reuse,
                                   .sizes = reuse ? small_square : small_sizes, .calls = reuse ? small_again : small_calls};
    c->precision = (struct precision_spec){DTYPE_F64, DTYPE_F64, DTYPE_F64, DTYPE_F64, LOSS_SCALE_NONE, 1, 2, 0.5, 2};
    c->optimizer = (struct optimizer_spec){.kind = OPTIMIZER_SGD, .lr = 0.0078125};
    c->sharding = (struct sharding_spec){.replicas = 1, .shards = ranks, .tensor = 1, .pipeline = 1, .reshard_after_forward = true, .wrap_pattern = (char *)""};
    c->data = (struct data_spec){.steps = SMALL_STEPS, .micros = SMALL_MICROS};
    if (!model_parameter_table(c, error))
        return false;
    for (int i = 0; i < c->parameter_count; i++)
        small_fill(tensors_add(&s->init, c->parameters[i].name, DTYPE_F32, c->parameters[i].dims, c->parameters[i].shape, NULL, false),
                   &state);
    int64_t shape[4] = {SMALL_STEPS, SMALL_MICROS, SMALL_ROWS, c->model.sizes[0]};
    small_fill(tensors_add(&s->data, "input", DTYPE_F32, 4, shape, NULL, false), &state);
    shape[3] = c->model.sizes[c->model.size_count - 1];
    small_fill(tensors_add(&s->data, "target", DTYPE_F32, 4, shape, NULL, false), &state);
    struct tensor *weight = tensors_add(&s->data, "weight", DTYPE_F32, 3, shape, NULL, false);
    for (int64_t i = 0; i < weight->count; i++)
        ((float *)weight->data)[i] = (float)(1 + i % 2);
    return true;
}

static inline void small_free(struct small *s)
{
    tensors_free(&s->data);
    tensors_free(&s->init);
    for (int i = 0; i < s->c.parameter_count; i++) {
        free(s->c.parameters[i].name);
        free(s->c.parameters[i].unit);
    }
    free(s->c.parameters);
}

// ---- the serial run ----

struct serial_run { struct model m; double **p, **g; void **outs, **saved, *ping, *pong, *scratch; double norm; };

static inline void *serial_zeros(size_t bytes) { return calloc(bytes + 1, 1); }

static inline bool serial_start(struct serial_run *r, const struct small *s, struct error *error)
{
    const struct fsdp_case *c = &s->c;
    *r = (struct serial_run){0};
    if (!model_create(&r->m, c, DTYPE_F64, error))
        return false;
    r->p = serial_zeros((size_t)c->parameter_count * sizeof *r->p);
    r->g = serial_zeros((size_t)c->parameter_count * sizeof *r->g);
    for (int i = 0; i < c->parameter_count; i++) {
        const struct tensor *t = tensors_find(&s->init, c->parameters[i].name);
        r->p[i] = serial_zeros((size_t)t->count * sizeof **r->p);
        r->g[i] = serial_zeros((size_t)t->count * sizeof **r->g);
        kernels_cast(t->count, t->dtype, t->data, DTYPE_F64, r->p[i]);
    }
    r->outs = serial_zeros((size_t)r->m.call_count * sizeof *r->outs);
    r->saved = serial_zeros((size_t)r->m.call_count * sizeof *r->saved);
    size_t most = 0;
    for (int i = 0; i < r->m.call_count; i++) {
        size_t out = model_out_bytes(&r->m, i, SMALL_ROWS);
        most = out > most ? out : most;
        r->outs[i] = serial_zeros(out);
        r->saved[i] = serial_zeros(model_saved_bytes(&r->m, i, SMALL_ROWS));
    }
    r->ping = serial_zeros(most);
    r->pong = serial_zeros(most);
    r->scratch = serial_zeros(model_scratch_bytes(&r->m, SMALL_ROWS));
    return true;
}

static inline bool serial_batch(struct serial_run *r, const struct small *s, int step, int micro, double *loss, struct error *error)
{
    struct model_batch batch;
    struct model_arrays arrays = {(const void *const *)r->p, (void *const *)r->g};
    int calls = r->m.call_count;
    *loss = 0;
    if (!model_batch_at(&s->c, &s->data, step, micro, 0, SMALL_ROWS, NULL, &batch, error))
        return false;
    batch.scale = 1;
    for (int i = 0; i < calls; i++)
        model_forward(&r->m, i, &batch, &arrays, i ? r->outs[i - 1] : NULL, i < calls - 1 ? r->outs[i] : NULL, r->saved[i],
                      r->scratch, loss);
    for (int i = calls - 1; i >= 0; i--)
        model_backward(&r->m, i, &batch, &arrays, i ? r->outs[i - 1] : NULL, r->saved[i],
                       i == calls - 1 ? NULL : i % 2 ? r->ping : r->pong, i ? (i % 2 ? r->pong : r->ping) : NULL, r->scratch);
    return true;
}

// All microbatches of a step, then p -= lr g for parameters whose name does not begin with `frozen`.
static inline bool serial_step(struct serial_run *r, const struct small *s, int step, const char *frozen, struct error *error)
{
    double loss;
    for (int i = 0; i < s->c.parameter_count; i++)
        memset(r->g[i], 0, (size_t)s->c.parameters[i].count * sizeof **r->g);
    for (int micro = 0; micro < SMALL_MICROS; micro++)
        if (!serial_batch(r, s, step, micro, &loss, error))
            return false;
    r->norm = 0;
    for (int i = 0; i < s->c.parameter_count; i++)
        for (int64_t e = 0; e < s->c.parameters[i].count; e++) {
            bool trains = !frozen || strncmp(s->c.parameters[i].name, frozen, strlen(frozen));
            r->norm += trains * r->g[i][e] * r->g[i][e];
            r->p[i][e] -= trains * s->c.optimizer.lr * r->g[i][e];
        }
    return true;
}

static inline void serial_end(struct serial_run *r, const struct small *s)
{
    for (int i = 0; i < s->c.parameter_count; i++) {
        free(r->p[i]);
        free(r->g[i]);
    }
    for (int i = 0; i < r->m.call_count; i++) {
        free(r->outs[i]);
        free(r->saved[i]);
    }
    free(r->p), free(r->g), free(r->outs), free(r->saved), free(r->ping), free(r->pong), free(r->scratch);
    model_free(&r->m);
}

#endif
