// Single answers of the truth: one step's gradient, one update. See truth.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/truth/serial.h"

static void add_gradients(const struct serial *s, struct tensors *out)
{
    char name[300];
    for (int i = 0; i < s->c->parameter_count; i++) {
        const struct case_parameter *p = &s->c->parameters[i];
        snprintf(name, sizeof name, "grad/%s", p->name);
        if (s->has_gradient[i])
            tensors_add(out, name, DTYPE_F64, p->dims, p->shape, s->g[i], true);
    }
}

bool truth_gradient(const struct fsdp_case *c, const struct tensors *data, const struct tensors *parameters, const char *prefix,
                    int step, const bool *frozen, struct tensors *gradient, double *loss, struct error *error)
{
    struct serial s;
    double own;
    *gradient = (struct tensors){0};
    *loss = 0;
    bool ok = serial_open(&s, c, data, error) && serial_set_parameters(&s, parameters, prefix, error);
    for (int i = 0; ok && frozen != NULL && i < c->parameter_count; i++)
        s.frozen[i] = frozen[i];
    for (int m = 0; ok && m < c->data.micros; m++) {
        ok = serial_micro(&s, step, m, true, &own, error);
        *loss += own;
    }
    if (ok)
        add_gradients(&s, gradient);
    serial_close(&s);
    return ok;
}

// "<prefix>/<name>" as float64 of the parameter's size; false with an error where it is something else.
static bool find_array(const struct tensors *set, const char *prefix, const struct case_parameter *p, double **out,
                       struct error *error)
{
    const struct tensor *t = tensors_find2(set, prefix, p->name);
    *out = t == NULL ? NULL : t->data;
    return t != NULL && t->dtype == DTYPE_F64 && t->count == p->count
               ? true
               : error_set(error, "%s/%s: %s, expected %lld float64 values", prefix, p->name,
                           t == NULL ? "missing" : "wrong type or shape", (long long)p->count);
}

static bool update_one(const struct fsdp_case *c, int i, struct tensors *state, const double *g, int step_count,
                       struct error *error)
{
    const struct case_parameter *row = &c->parameters[i];
    const bool adam = c->optimizer.kind == OPTIMIZER_ADAMW;
    double *p, *first = NULL, *second = NULL;
    if (!find_array(state, "param", row, &p, error) || (adam && !find_array(state, "exp_avg", row, &first, error)) ||
        (adam && !find_array(state, "exp_avg_sq", row, &second, error)) ||
        (!adam && c->optimizer.momentum != 0 && !find_array(state, "momentum", row, &first, error)))
        return false;
    serial_update(&c->optimizer, row->decay, step_count, row->count, p, g, first, second);
    return true;
}

bool truth_update(const struct fsdp_case *c, struct tensors *state, const struct tensors *gradient, const char *prefix,
                  int step_count, const bool *frozen, struct error *error)
{
    if (step_count < 1)
        return error_set(error, "step count %d, expected at least 1", step_count);
    for (int i = 0; i < c->parameter_count; i++) {
        const struct case_parameter *row = &c->parameters[i];
        const struct tensor *g = tensors_find2(gradient, prefix, row->name);
        if (row->tied_to >= 0 || g == NULL || (frozen != NULL && frozen[i]))
            continue;
        if (!dtype_is_float(g->dtype) || g->count != row->count)
            return error_set(error, "%s/%s: wrong type or shape, expected %lld floating-point values", prefix, row->name,
                             (long long)row->count);
        double *wide = malloc((size_t)row->count * sizeof *wide + 1);
        if (wide == NULL)
            return error_set(error, "out of memory for the gradient of %s", row->name);
        kernels_cast(row->count, g->dtype, g->data, DTYPE_F64, wide);
        bool ok = update_one(c, i, state, wide, step_count, error);
        free(wide);
        if (!ok)
            return false;
    }
    return true;
}
