// Forward and backward of one row at a time, written out term by term. See certificate_terms.h.
#include "reference/truth/certificate_terms.h"

#include <math.h>
#include <stdlib.h>

#include "harness/protocol/memory.h"
#include "reference/truth/loss.h"

static void witness_row(struct certificate_terms *t, const struct model_batch *batch, int64_t row, double factor)
{
    const struct fsdp_case *c = t->k->c;
    for (int p = 0; p < c->parameter_count; p++)
        for (int64_t e = 0, n = c->parameters[p].count; e < n; e++) {
            double x = batch->x[p][row * n + e];
            certificate_note(t->k, c->precision.compute, fabs(x), certificate_low_bit(x), false, "the input",
                             c->parameters[p].name);
            certificate_term(t, p, e, factor * batch->weights[row], x);
        }
}

// ---- mlp ----

// One row's way through the calls: call i turns in[i] into pre[i].
struct mlp_row { double **in, **pre, *dy, *dx; };

static int64_t widest(const struct model_spec *spec)
{
    int64_t width = 0;
    for (int i = 0; i < spec->size_count; i++)
        width = spec->sizes[i] > width ? spec->sizes[i] : width;
    return width;
}

static struct mlp_row mlp_row_open(const struct model_spec *spec)
{
    const size_t calls = (size_t)spec->call_count, width = (size_t)widest(spec);
    struct mlp_row r = {memory_zeros(calls, sizeof *r.in), memory_zeros(calls, sizeof *r.pre),
                        memory_zeros(width, sizeof(double)), memory_zeros(width, sizeof(double))};
    for (size_t i = 0; i < calls; i++) {
        r.in[i] = memory_zeros(width, sizeof(double));
        r.pre[i] = memory_zeros(width, sizeof(double));
    }
    return r;
}

static void mlp_row_close(struct mlp_row *r, int calls)
{
    for (int i = 0; i < calls; i++) {
        free(r->in[i]);
        free(r->pre[i]);
    }
    free(r->in);
    free(r->pre);
    free(r->dy);
    free(r->dx);
}

// A layer's parameters: index of the weight; the bias follows where there is one.
struct layer_view { int weight, bias; int64_t inputs, outputs; const double *w, *b; };

static struct layer_view view(const struct certificate_terms *t, int call)
{
    const struct model_layer *layer = &t->s->m.layers[t->s->m.calls[call]];
    int w = layer->parameters[0], b = layer->parameter_count > 1 ? layer->parameters[1] : -1;
    return (struct layer_view){w, b, layer->inputs, layer->outputs, t->s->now.p[w], b < 0 ? NULL : t->s->now.p[b]};
}

// y = sum of terms, and the reduction noted.
struct reduction { double value, total, low; };
static void add_product(struct reduction *r, double a, double b)
{
    if (a == 0 || b == 0)
        return;
    r->value += a * b;
    r->total += fabs(a * b);
    double low = certificate_low_bit(a) * certificate_low_bit(b);
    r->low = low < r->low ? low : r->low;
}

static void forward_call(struct certificate_terms *t, const struct mlp_row *r, int call)
{
    const struct layer_view l = view(t, call);
    for (int64_t o = 0; o < l.outputs; o++) {
        struct reduction y = {0, 0, INFINITY};
        add_product(&y, l.b == NULL ? 0 : l.b[o], 1);
        for (int64_t i = 0; i < l.inputs; i++)
            add_product(&y, l.w[o * l.inputs + i], r->in[call][i]);
        certificate_note(t->k, t->k->c->precision.compute, y.total, y.low, false, "the forward", t->k->c->parameters[l.weight].name);
        r->pre[call][o] = y.value;
        if (call + 1 < t->k->c->model.call_count)
            r->in[call + 1][o] = y.value > 0 ? y.value : 0;
    }
}

// r->dy: of the call's output; afterwards of its input.
static void backward_call(struct certificate_terms *t, struct mlp_row *r, int call)
{
    const struct layer_view l = view(t, call);
    for (int64_t o = 0; o < l.outputs; o++) {
        for (int64_t i = 0; i < l.inputs; i++)
            certificate_term(t, l.weight, o * l.inputs + i, r->dy[o], r->in[call][i]);
        if (l.b != NULL)
            certificate_term(t, l.bias, o, r->dy[o], 1);
    }
    for (int64_t i = 0; call > 0 && i < l.inputs; i++) {
        struct reduction dx = {0, 0, INFINITY};
        for (int64_t o = 0; o < l.outputs; o++)
            add_product(&dx, l.w[o * l.inputs + i], r->dy[o]);
        certificate_note(t->k, t->k->c->precision.compute, dx.total, dx.low, false, "the backward", t->k->c->parameters[l.weight].name);
        r->dx[i] = r->pre[call - 1][i] > 0 ? dx.value : 0;
    }
    double *swap = r->dy;
    r->dy = r->dx;
    r->dx = swap;
}

static void mlp_row(struct certificate_terms *t, struct mlp_row *r, const struct model_batch *batch, int64_t row, double factor)
{
    const struct fsdp_case *c = t->k->c;
    const int64_t inputs = c->model.sizes[0], outputs = c->model.sizes[c->model.size_count - 1];
    const int last = c->model.call_count - 1;
    for (int64_t i = 0; i < inputs; i++) {
        double x = r->in[0][i] = batch->input[row * inputs + i];
        certificate_note(t->k, c->precision.compute, fabs(x), certificate_low_bit(x), false, "the input", "data");
    }
    for (int call = 0; call <= last; call++)
        forward_call(t, r, call);
    for (int64_t o = 0; o < outputs; o++) {
        double y = r->pre[last][o], target = batch->target[row * outputs + o];
        double low = fmin(certificate_low_bit(y), certificate_low_bit(target));
        certificate_note(t->k, c->precision.compute, fabs(y) + fabs(target), low, false, "the residual", "the loss");
        r->dy[o] = 2 * factor * batch->weights[row] * (y - target);
        certificate_note(t->k, c->precision.compute, fabs(r->dy[o]), certificate_low_bit(r->dy[o]), false, "the gradient", "the loss");
    }
    for (int call = last; call >= 0; call--)
        backward_call(t, r, call);
}

bool certificate_add_terms(struct certificate_terms *t, struct error *error)
{
    const struct fsdp_case *c = t->k->c;
    struct model_batch batch;
    int64_t first, end;
    case_rows(c, t->rank, t->k->ranks, &first, &end);
    if (!model_batch_at(c, t->s->data, t->step, t->micro, first, end, t->s->x, &batch, error))
        return false;
    const double factor = loss_rank_factor(c, t->s->data, t->step, t->micro, t->rank, t->k->ranks);
    struct mlp_row r = {0};
    if (c->model.kind == MODEL_MLP)
        r = mlp_row_open(&c->model);
    for (int64_t row = 0; row < batch.rows; row++)
        if (c->model.kind == MODEL_MLP)
            mlp_row(t, &r, &batch, row, factor);
        else
            witness_row(t, &batch, row, factor);
    if (c->model.kind == MODEL_MLP)
        mlp_row_close(&r, c->model.call_count);
    return true;
}
