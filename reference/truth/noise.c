// The noise of plain data parallelism: how far correct programs in the case's precision are from float64.
//
// Each of N ranks computes the gradients of its microbatches in the compute dtype from parameters rounded to it,
// accumulates them in the wider of compute and reduce dtype, and the ranks' sums are reduced in the reduce dtype:
//   ascending, descending, binary tree, ring (element e starts at the rank of its chunk), each divided by N before or after.
// Under loss scaling the loss is scaled by the initial scale (halved until nothing overflows) and unscaled at the end.
// Every addition is rounded to the reduce dtype. Compared with the float64 gradient at the same unrounded parameters.
// One rounding pattern may be lucky. So the same is done again with each parameter moved up or down by one unit in the last
// place of the compute dtype, REALISATIONS times in all, and the largest distance counts: a gradient that is the exact one of
// parameters within a rounding is a right one (backward error; Higham, section 1.5).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "reference/models/pass.h"
#include "reference/truth/loss.h"
#include "reference/truth/truth.h"

enum { REALISATIONS = 4 };
enum order { ASCENDING, DESCENDING, TREE, RING, ORDER_COUNT };

struct noise {
    const struct fsdp_case *c;
    const struct tensors *data, *exact; // exact: "grad/<name>", what to compare with
    struct model m;
    struct model_pass pass;
    enum dtype sums;                    // of accumulation on a rank
    const float **x;
    void **parameters, **micro;         // in the compute dtype; micro NULL where there is no gradient
    void **ranks;                       // [rank * parameter_count + parameter], of dtype sums
    double loss_scale;
};

static enum dtype wider(enum dtype a, enum dtype b)
{
    return dtype_unit_roundoff(a) <= dtype_unit_roundoff(b) ? a : b;
}

static bool noise_open(struct noise *n, const struct fsdp_case *c, const struct tensors *data, const struct tensors *exact,
                       struct error *error)
{
    const size_t count = (size_t)c->parameter_count;
    *n = (struct noise){.c = c, .data = data, .exact = exact, .sums = wider(c->precision.compute, c->precision.reduce),
                        .loss_scale = c->precision.loss_scale == LOSS_SCALE_NONE ? 1 : c->precision.scale_initial};
    n->x = memory_zeros(count, sizeof *n->x);
    n->parameters = memory_zeros(count, sizeof *n->parameters);
    n->micro = memory_zeros(count, sizeof *n->micro);
    n->ranks = memory_zeros(count * (size_t)case_data_ranks(c), sizeof *n->ranks);
    for (size_t p = 0; p < count; p++) {
        const size_t elements = (size_t)c->parameters[p].count;
        n->parameters[p] = memory_zeros(elements, dtype_size(c->precision.compute));
        if (tensors_find2(exact, "grad", c->parameters[p].name) == NULL)
            continue;
        n->micro[p] = memory_zeros(elements, dtype_size(c->precision.compute));
        for (int r = 0; r < case_data_ranks(c); r++)
            n->ranks[(size_t)r * count + p] = memory_zeros(elements, dtype_size(n->sums));
    }
    return model_create(&n->m, c, c->precision.compute, error) &&
           model_pass_open(&n->pass, &n->m, (c->global_rows + case_data_ranks(c) - 1) / case_data_ranks(c), error);
}

static void noise_close(struct noise *n)
{
    const int count = n->c->parameter_count;
    for (int p = 0; p < count; p++) {
        free(n->parameters[p]);
        free(n->micro[p]);
        for (int r = 0; r < case_data_ranks(n->c); r++)
            free(n->ranks[r * count + p]);
    }
    free(n->x);
    free(n->parameters);
    free(n->micro);
    free(n->ranks);
    model_pass_close(&n->pass);
    model_free(&n->m);
}

// Up or down by one unit in the last place; which way is drawn from the place and the realisation.
static void perturb(enum dtype type, void *values, int64_t count, uint64_t seed)
{
    const double ulp = 2 * dtype_unit_roundoff(type);
    for (int64_t e = 0; e < count; e++) {
        uint64_t z = (seed + (uint64_t)e) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
        dtype_set(type, values, e, dtype_get(type, values, e) * (z >> 63 ? 1 + ulp : 1 - ulp));
    }
}

static bool cast_parameters(struct noise *n, int realisation, const struct tensors *from, const char *prefix, struct error *error)
{
    for (int p = 0; p < n->c->parameter_count; p++) {
        const struct case_parameter *row = &n->c->parameters[p];
        const struct tensor *t = tensors_find2(from, prefix, row->name);
        if (row->tied_to >= 0)
            continue;
        if (t == NULL || t->count != row->count || !dtype_is_float(t->dtype))
            return error_set(error, "%s/%s: missing or of the wrong size, expected %lld values", prefix, row->name,
                             (long long)row->count);
        kernels_cast(t->count, t->dtype, t->data, n->c->precision.compute, n->parameters[p]);
        if (realisation > 0)
            perturb(n->c->precision.compute, n->parameters[p], t->count, (uint64_t)realisation << 48 | (uint64_t)p << 32);
    }
    return true;
}

// One rank's gradient of one microbatch, added to the rank's sums. *finite: nothing overflowed.
static bool add_micro(struct noise *n, int step, int micro, int rank, bool *finite, struct error *error)
{
    const struct fsdp_case *c = n->c;
    const enum dtype compute = c->precision.compute;
    const struct model_arrays arrays = {(const void *const *)n->parameters, n->micro};
    struct model_batch batch;
    int64_t first, end;
    double loss;
    case_rows(c, rank, case_data_ranks(c), &first, &end);
    if (!model_batch_at(c, n->data, step, micro, first, end, n->x, &batch, error))
        return false;
    batch.scale = loss_rank_factor(c, n->data, step, micro, rank, case_data_ranks(c)) * n->loss_scale;
    for (int p = 0; p < c->parameter_count; p++)
        if (n->micro[p] != NULL)
            memset(n->micro[p], 0, (size_t)c->parameters[p].count * dtype_size(compute));
    model_pass_forward(&n->pass, &batch, &arrays, &loss);
    model_pass_backward(&n->pass, &batch, &arrays);
    for (int p = 0; p < c->parameter_count; p++)
        if (n->micro[p] != NULL) {
            *finite = *finite && n->m.kernels->all_finite(c->parameters[p].count, n->micro[p]);
            kernels_accumulate(c->parameters[p].count, compute, n->micro[p], n->sums, n->ranks[rank * c->parameter_count + p]);
        }
    return true;
}

static bool run_ranks(struct noise *n, int step, bool *finite, struct error *error)
{
    const struct fsdp_case *c = n->c;
    *finite = true;
    for (int i = 0; i < case_data_ranks(c) * c->parameter_count; i++)
        if (n->ranks[i] != NULL)
            memset(n->ranks[i], 0, (size_t)c->parameters[i % c->parameter_count].count * dtype_size(n->sums));
    for (int r = 0; r < case_data_ranks(c); r++)
        for (int m = 0; m < c->data.micros; m++)
            if (!add_micro(n, step, m, r, finite, error))
                return false;
    return true;
}

// ---- reduction ----

static double rounded(enum dtype type, double x)
{
    double store;
    dtype_set(type, &store, 0, x);
    return dtype_get(type, &store, 0);
}

// The sum of v[0 .. n) in that order; v is used up. chunk: the rank at which a ring starts.
static double reduce(enum order order, enum dtype type, int n, double *v, int chunk)
{
    if (order == TREE) {
        for (int half = 1; half < n; half *= 2)
            for (int i = 0; i + half < n; i += 2 * half)
                v[i] = rounded(type, v[i] + v[i + half]);
        return v[0];
    }
    const int first = order == ASCENDING ? 0 : order == DESCENDING ? n - 1 : chunk;
    const int stride = order == DESCENDING ? n - 1 : 1; // one back is n - 1 on
    double sum = v[first % n];
    for (int i = 1; i < n; i++)
        sum = rounded(type, sum + v[(first + i * stride) % n]);
    return sum;
}

// The mean over ranks of element e, as a program of that order and division gets it.
static double mean_of(const struct noise *n, int p, int64_t e, enum order order, bool divide_first)
{
    const enum dtype type = n->c->precision.reduce;
    const int ranks = case_data_ranks(n->c);
    double v[ranks];
    for (int r = 0; r < ranks; r++) {
        v[r] = rounded(type, dtype_get(n->sums, n->ranks[r * n->c->parameter_count + p], e));
        if (divide_first)
            v[r] = rounded(type, v[r] / ranks);
    }
    double sum = reduce(order, type, ranks, v, (int)(e * ranks / n->c->parameters[p].count));
    return (divide_first ? sum : rounded(type, sum / ranks)) / n->loss_scale;
}

struct distance { double squares, largest; };

static struct distance distance_of(const struct noise *n, int p, const double *exact, enum order order, bool divide_first)
{
    struct distance d = {0, 0};
    for (int64_t e = 0; e < n->c->parameters[p].count; e++) {
        double difference = fabs(mean_of(n, p, e, order, divide_first) - exact[e]);
        d.squares += difference * difference;
        d.largest = fmax(d.largest, difference);
    }
    return d;
}

// worst: largest L2 distance and largest difference of one element so far.
static void add_noise(const struct noise *n, int p, double worst[2])
{
    const struct tensor *g = tensors_find2(n->exact, "grad", n->c->parameters[p].name);
    for (int i = 0; g != NULL && i < (case_data_ranks(n->c) == 1 ? 1 : 2 * ORDER_COUNT); i++) {
        struct distance d = distance_of(n, p, g->data, (enum order)(i / 2), i % 2);
        worst[0] = fmax(worst[0], sqrt(d.squares));
        worst[1] = fmax(worst[1], d.largest);
    }
}

static bool run_realisation(struct noise *n, int realisation, const struct tensors *parameters, const char *prefix, int step,
                            struct error *error)
{
    bool finite = true;
    bool ok = cast_parameters(n, realisation, parameters, prefix, error) && run_ranks(n, step, &finite, error);
    while (ok && !finite && n->loss_scale > 1) {
        n->loss_scale /= 2;
        ok = run_ranks(n, step, &finite, error);
    }
    return ok;
}

bool truth_noise(const struct fsdp_case *c, const struct tensors *data, const struct tensors *parameters, const char *prefix,
                 int step, const bool *frozen, struct tensors *noise, struct error *error)
{
    struct tensors exact;
    struct noise n;
    double loss, (*worst)[2] = memory_zeros((size_t)c->parameter_count, sizeof *worst);
    *noise = (struct tensors){0};
    bool ok = truth_gradient(c, data, parameters, prefix, step, frozen, &exact, &loss, error);
    if (!ok) {
        free(worst);
        return false;
    }
    ok = noise_open(&n, c, data, &exact, error);
    for (int k = 0; ok && k < REALISATIONS; k++) {
        ok = run_realisation(&n, k, parameters, prefix, step, error);
        for (int p = 0; ok && p < c->parameter_count; p++)
            add_noise(&n, p, worst[p]);
    }
    for (int p = 0; ok && p < c->parameter_count; p++) {
        const struct tensor *g = tensors_find2(&exact, "grad", c->parameters[p].name);
        if (g != NULL)
            tensors_add(noise, g->name, DTYPE_F64, 1, (int64_t[]){3},
                        (double[]){worst[p][0], worst[p][1], sqrt(kernels_cpu(DTYPE_F64)->norm_l2_squared(g->count, g->data))}, true);
    }
    free(worst);
    noise_close(&n);
    tensors_free(&exact);
    return ok;
}
