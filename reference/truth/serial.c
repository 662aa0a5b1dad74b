// The state of a serial run, a microbatch, and an update. See serial.h.
#include "reference/truth/serial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "reference/truth/loss.h"

// ---- state ----

static double **arrays_open(const struct fsdp_case *c)
{
    double **arrays = memory_zeros((size_t)c->parameter_count, sizeof *arrays);
    for (int i = 0; i < c->parameter_count; i++)
        arrays[i] = memory_zeros((size_t)(c->parameters[i].tied_to < 0 ? c->parameters[i].count : 0), sizeof **arrays);
    return arrays;
}

static void arrays_close(const struct fsdp_case *c, double **arrays)
{
    for (int i = 0; arrays != NULL && i < c->parameter_count; i++)
        free(arrays[i]);
    free(arrays);
}

static void state_open(struct serial_state *s, const struct fsdp_case *c)
{
    *s = (struct serial_state){arrays_open(c), arrays_open(c), arrays_open(c),
                               memory_zeros((size_t)c->parameter_count, sizeof *s->counts), 0};
}

static void state_close(struct serial_state *s, const struct fsdp_case *c)
{
    arrays_close(c, s->p);
    arrays_close(c, s->first);
    arrays_close(c, s->second);
    free(s->counts);
}

// Rows of the largest rank.
static int64_t most_rows(const struct fsdp_case *c)
{
    return (c->global_rows + case_data_ranks(c) - 1) / case_data_ranks(c);
}

static void steps_open(struct serial *s)
{
    s->step_count = (int)s->c->data.steps;
    s->steps = memory_zeros((size_t)s->step_count, sizeof *s->steps);
    for (int k = 0; k < s->step_count; k++) {
        int micros = (int)s->c->data.micros;
        s->steps[k] = (struct truth_step){.norm = NAN, .micro_count = micros,
                                          .micro_losses = memory_zeros((size_t)micros, sizeof(double))};
        for (int m = 0; m < micros; m++)
            s->steps[k].micro_losses[m] = NAN;
    }
}

bool serial_open(struct serial *s, const struct fsdp_case *c, const struct tensors *data, struct error *error)
{
    const size_t n = (size_t)c->parameter_count;
    *s = (struct serial){.c = c, .data = data, .clip_factor = 1, .g = arrays_open(c)};
    state_open(&s->now, c);
    state_open(&s->saved, c);
    s->has_gradient = memory_zeros(n, sizeof(bool));
    s->frozen = memory_zeros(n, sizeof(bool));
    s->used = memory_zeros(n, sizeof(bool));
    s->x = memory_zeros(n, sizeof *s->x);
    steps_open(s);
    if (!model_create(&s->m, c, DTYPE_F64, error) || !model_pass_open(&s->pass, &s->m, most_rows(c), error))
        return false;
    for (int call = 0; call < s->m.call_count; call++) {
        const struct model_layer *layer = &s->m.layers[s->m.calls[call]];
        for (int i = 0; i < layer->parameter_count; i++)
            s->used[layer->parameters[i]] = true;
    }
    return true;
}

void serial_close(struct serial *s)
{
    if (s->c == NULL)
        return;
    arrays_close(s->c, s->g);
    state_close(&s->now, s->c);
    state_close(&s->saved, s->c);
    free(s->has_gradient);
    free(s->frozen);
    free(s->used);
    free(s->x);
    for (int k = 0; k < s->step_count; k++)
        free(s->steps[k].micro_losses);
    free(s->steps);
    free(s->evals);
    model_pass_close(&s->pass);
    model_free(&s->m);
    *s = (struct serial){0};
}

bool serial_set_parameters(struct serial *s, const struct tensors *from, const char *prefix, struct error *error)
{
    for (int i = 0; i < s->c->parameter_count; i++) {
        const struct case_parameter *p = &s->c->parameters[i];
        if (p->tied_to >= 0)
            continue;
        const struct tensor *t = prefix == NULL ? tensors_find(from, p->name) : tensors_find2(from, prefix, p->name);
        if (t == NULL || !dtype_is_float(t->dtype) || t->dims != p->dims ||
            memcmp(t->shape, p->shape, (size_t)p->dims * sizeof *p->shape) != 0)
            return error_set(error, "parameter %s: %s, expected floating-point values in the shape of the parameter table",
                             p->name, t == NULL ? "missing" : "wrong type or shape");
        kernels_cast(t->count, t->dtype, t->data, DTYPE_F64, s->now.p[i]);
    }
    return true;
}

// ---- a microbatch ----

// Gradients that a backward writes: none for frozen parameters.
static void wanted_gradients(const struct serial *s, double **wanted)
{
    for (int i = 0; i < s->c->parameter_count; i++)
        wanted[i] = s->frozen[i] || !s->used[i] ? NULL : s->g[i];
}

bool serial_micro(struct serial *s, int step, int micro, bool backward, double *loss, struct error *error)
{
    double **wanted = memory_zeros((size_t)s->c->parameter_count, sizeof *wanted);
    wanted_gradients(s, wanted);
    struct model_arrays arrays = {(const void *const *)s->now.p, (void *const *)wanted};
    bool ok = true;
    *loss = 0;
    for (int rank = 0; ok && rank < case_data_ranks(s->c); rank++) {
        struct model_batch batch;
        int64_t first, end;
        double own;
        case_rows(s->c, rank, case_data_ranks(s->c), &first, &end);
        ok = model_batch_at(s->c, s->data, step, micro, first, end, s->x, &batch, error);
        if (!ok)
            break;
        batch.scale = loss_rank_factor(s->c, s->data, step, micro, rank, case_data_ranks(s->c)) / case_data_ranks(s->c);
        model_pass_forward(&s->pass, &batch, &arrays, &own);
        if (batch.scale != 0)
            *loss += batch.scale * own;
        if (backward)
            model_pass_backward(&s->pass, &batch, &arrays);
    }
    for (int i = 0; backward && i < s->c->parameter_count; i++)
        s->has_gradient[i] = s->has_gradient[i] || wanted[i] != NULL;
    free(wanted);
    return ok;
}

// ---- an update ----

static void update_sgd(const struct optimizer_spec *o, double weight_decay, int64_t n, double *p, const double *g,
                       double *momentum)
{
    for (int64_t i = 0; i < n; i++) {
        double d = g[i] + weight_decay * p[i];
        if (o->momentum != 0)
            d = momentum[i] = o->momentum * momentum[i] + d;
        p[i] -= o->lr * d;
    }
}

static void update_adamw(const struct optimizer_spec *o, double weight_decay, int64_t t, int64_t n, double *p,
                         const double *g, double *m, double *v)
{
    const double correct_m = 1 - pow(o->beta1, (double)t), correct_v = 1 - pow(o->beta2, (double)t);
    for (int64_t i = 0; i < n; i++) {
        p[i] -= o->lr * weight_decay * p[i];
        m[i] = o->beta1 * m[i] + (1 - o->beta1) * g[i];
        v[i] = o->beta2 * v[i] + (1 - o->beta2) * g[i] * g[i];
        p[i] -= o->lr * (m[i] / correct_m) / (sqrt(v[i] / correct_v) + o->eps);
    }
}

void serial_update(const struct optimizer_spec *o, bool decay, int64_t t, int64_t n, double *p, const double *g,
                   double *first, double *second)
{
    const double weight_decay = o->no_decay && !decay ? 0 : o->weight_decay;
    if (o->kind == OPTIMIZER_SGD)
        update_sgd(o, weight_decay, n, p, g, first);
    else
        update_adamw(o, weight_decay, t, n, p, g, first, second);
}
