// Bytes of a rank at the peak of a training step.
//
//   rest        parameters, gradients, states: memory_model.h
//   + gathered  the root and as many of the largest other units as take turns: what a call reads, and the prefetched ones
//   + gradients the same for full gradients, one more where a reduction runs beside the backward
//   + sums      the versions of the largest part by all ranks
//   + activations of the microbatch: what forward keeps, or one call's of it with activation checkpointing; gradients of activations; scratch
// (reference/engine/predict.c plans the same buffers from the engine's side.)
#include "harness/advise/advise.h"
#include "harness/judge/memory_model.h"
#include "reference/models/model.h"

static double size(enum dtype t) { return (double)dtype_size(t); }

static void largest_units(const struct workload_model *w, int shards, double *root, double *other, double *part)
{
    *root = *other = *part = 0;
    for (int u = 0; u < w->unit_count; u++) {
        double *to = w->units[u].root ? root : other;
        *to = fmax(*to, w->units[u].elements);
        *part = fmax(*part, workload_part(w, u, shards));
    }
}

static double in_use(const struct workload_model *w, const struct schedule *s)
{
    double root, other, part;
    bool whole = s->strategy == STRATEGY_NONE || s->strategy == STRATEGY_GRAD || s->strategy == STRATEGY_OPTIMIZER;
    int ahead = s->prefetch_forward > s->prefetch_backward ? s->prefetch_forward : s->prefetch_backward;
    largest_units(w, s->shards, &root, &other, &part);
    double parameters = whole || !s->reshard_after_forward ? 0 : root + fmin(1 + ahead, w->unit_count) * other;
    double gradients = root + fmin(1 + (s->prefetch_backward > 0), w->unit_count) * other;
    double sums = s->shards > 1 ? part * s->shards : 0;
    return (parameters + gradients) * size(w->compute) + sums * size(w->reduce);
}

static double activations(const struct model *m, int64_t rows, bool checkpointing)
{
    double outs = 0, saved = 0, out = 0, one = 0;
    for (int call = 0; call < m->call_count; call++) {
        double o = (double)model_out_bytes(m, call, rows), s = (double)model_saved_bytes(m, call, rows);
        outs += o;
        saved += s;
        out = fmax(out, o);
        one = fmax(one, s);
    }
    return outs + (checkpointing ? one : saved) + (2 + checkpointing) * out + (double)model_scratch_bytes(m, rows);
}

static struct fsdp_case with_schedule(const struct fsdp_case *c, const struct schedule *s)
{
    struct fsdp_case other = *c;
    other.sharding.strategy = s->strategy;
    other.sharding.replicas = s->replicas;
    other.sharding.shards = s->shards;
    other.sharding.reshard_after_forward = s->reshard_after_forward;
    other.world_size = s->replicas * s->shards;
    return other;
}

double advise_memory(const struct fsdp_case *c, const struct workload_model *w, const struct schedule *s, int64_t rows, struct error *error)
{
    struct fsdp_case other = with_schedule(c, s);
    struct memory_model rest = memory_model_of(&other, true);
    struct model m = {0};
    double bytes = -1;
    if (model_create(&m, c, c->precision.compute, error))
        bytes = memory_share_bytes(memory_model_at(&rest, MEMORY_BACKWARD), s->shards) * memory_parameters(c) + in_use(w, s) +
                activations(&m, rows, c->sharding.activation_checkpointing);
    model_free(&m);
    return bytes;
}

// The largest number of rows by doubling, then halving the gap.
int64_t advise_rows_that_fit(const struct fsdp_case *c, const struct schedule *s, double limit, struct error *error)
{
    struct workload_model w;
    int64_t fits = 0, beyond = 1;
    if (!workload_create(&w, c, 1, error))
        return -1;
    while (beyond < 1 << 24 && advise_memory(c, &w, s, beyond, error) <= limit) {
        fits = beyond;
        beyond *= 2;
    }
    while (beyond - fits > 1) {
        int64_t middle = (fits + beyond) / 2;
        *(advise_memory(c, &w, s, middle, error) <= limit ? &fits : &beyond) = middle;
    }
    workload_free(&w);
    return fits;
}
