// A trainer of the model `mlp` over MPI that shards all it has (FSDP, ZeRO-3): of every tensor and its gradient a rank keeps its
// rows of dimension 0. For a microbatch it gathers whole tensors; after it, it scatters the sum of the gradients.
#include <fsdpmark.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENSORS = 32, RANKS = 64, CALLS = 16, WIDTH = 64 };
struct tensor {
    const struct fsdpmark_parameter *p;
    int counts[RANKS], firsts[RANKS]; // elements of each rank
    float *own, *gradient;            // this rank's part, kept between steps
    float *whole, *sum;               // the gathered tensor; gradients that are not yet reduced
};
static struct tensor tensors[TENSORS]; // of layer l: weight, then bias
static int count, rank, ranks, calls, layers[CALLS];
static bool bias;

static float *zeros(int64_t n) { return calloc((size_t)n + 1, sizeof(float)); }

static void open_tensor(fsdpmark *f, struct tensor *t)
{
    int64_t d0 = t->p->shape[0], row = t->p->count / d0, chunk = (d0 + ranks - 1) / ranks;
    for (int r = 0; r < ranks; r++) {
        int64_t first = r * chunk < d0 ? r * chunk : d0, end = first + chunk < d0 ? first + chunk : d0;
        t->firsts[r] = (int)(first * row);
        t->counts[r] = (int)((end - first) * row);
    }
    t->own = zeros(t->counts[rank]);
    t->gradient = zeros(t->counts[rank]);
    t->sum = zeros(t->p->count);
    const struct fsdpmark_tensor *init = fsdpmark_init(f, t->p->name);
    for (int i = 0; init && i < t->counts[rank]; i++)
        t->own[i] = ((const float *)init->data)[t->firsts[rank] + i];
}

static float *gather(const struct tensor *t, const float *own)
{
    float *whole = zeros(t->p->count);
    MPI_Allgatherv(own, t->counts[rank], MPI_FLOAT, whole, t->counts, t->firsts, MPI_FLOAT, MPI_COMM_WORLD);
    return whole;
}

static void reduce(struct tensor *t)
{
    float *part = zeros(t->counts[rank]);
    MPI_Reduce_scatter(t->sum, part, t->counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < t->counts[rank]; i++)
        t->gradient[i] += part[i] / (float)ranks;
    for (int64_t i = 0; i < t->p->count; i++)
        t->sum[i] = 0;
    free(part);
}

// The loss of a row. Adds scale times its gradient to the sums.
static double train_row(const float *input, const float *target, float scale)
{
    static float x[CALLS + 1][WIDTH], d[CALLS + 1][WIDTH]; // inputs of the calls, gradients of these
    double loss = 0;
    for (int i = 0; i < tensors[0].p->shape[1]; i++)
        x[0][i] = input[i];
    for (int c = 0; c < calls; c++) {
        const struct tensor *w = &tensors[layers[c] * (1 + bias)], *b = w + 1;
        int outs = (int)w->p->shape[0], ins = (int)w->p->shape[1];
        for (int o = 0; o < outs; o++) {
            float y = bias ? b->whole[o] : 0;
            for (int i = 0; i < ins; i++)
                y += w->whole[o * ins + i] * x[c][i];
            x[c + 1][o] = y > 0 || c + 1 == calls ? y : 0;
            if (c + 1 == calls) {
                loss += (y - target[o]) * (y - target[o]);
                d[calls][o] = 2 * scale * (y - target[o]);
            }
        }
    }
    for (int c = calls - 1; c >= 0; c--) {
        struct tensor *w = &tensors[layers[c] * (1 + bias)], *b = w + 1;
        int outs = (int)w->p->shape[0], ins = (int)w->p->shape[1];
        for (int i = 0; i < ins; i++) {
            d[c][i] = 0;
            for (int o = 0; o < outs; o++) {
                d[c][i] += x[c][i] > 0 ? w->whole[o * ins + i] * d[c + 1][o] : 0;
                w->sum[o * ins + i] += d[c + 1][o] * x[c][i];
            }
        }
        for (int o = 0; bias && o < outs; o++)
            b->sum[o] += d[c + 1][o];
    }
    return loss;
}

static void micro(fsdpmark *f, const struct fsdpmark_instruction *in)
{
    const struct fsdpmark_tensor *x = fsdpmark_batch(f, "input", in->step, in->micro), *y = fsdpmark_batch(f, "target", in->step, in->micro);
    const struct fsdpmark_tensor *weight = fsdpmark_batch(f, "weight", in->step, in->micro);
    double factor = fsdpmark_loss_factor(f, in->step, in->micro), loss = 0;
    for (int t = 0; t < count; t++)
        tensors[t].whole = gather(&tensors[t], tensors[t].own);
    for (int64_t r = 0; !fsdpmark_error(f) && r < weight->count; r++) {
        float w = ((const float *)weight->data)[r];
        loss += w * train_row((const float *)x->data + r * x->shape[1], (const float *)y->data + r * y->shape[1], (float)factor * w);
    }
    for (int t = 0; t < count; t++) {
        free(tensors[t].whole);
        if (in->sync)
            reduce(&tensors[t]);
    }
    fsdpmark_micro(f, in->step, in->micro, factor * loss / ranks, weight ? (double)weight->count : 0, 0);
}

static void put(fsdpmark *f, const struct fsdpmark_instruction *in, unsigned what, const struct tensor *t, const float *own)
{
    if (in->local)
        fsdpmark_put_local(f, what, t->p->name, FSDPMARK_F32, t->counts[rank], own);
    float *whole = gather(t, own);
    fsdpmark_put(f, what, t->p->name, FSDPMARK_F32, whole);
    free(whole);
}

static void obey(fsdpmark *f, const struct fsdpmark_instruction *in)
{
    float lr = (float)fsdpmark_number(f, "optimizer.lr");
    if (in->verb == FSDPMARK_MICRO)
        micro(f, in);
    for (int t = 0; t < count; t++) {
        for (int i = 0; in->verb == FSDPMARK_STEP && i < tensors[t].counts[rank]; i++)
            tensors[t].own[i] -= lr * tensors[t].gradient[i];
        for (int i = 0; in->verb == FSDPMARK_ZERO_GRAD && i < tensors[t].counts[rank]; i++)
            tensors[t].gradient[i] = 0;
        if (in->what & FSDPMARK_PARAM)
            put(f, in, FSDPMARK_PARAM, &tensors[t], tensors[t].own);
        if (in->what & FSDPMARK_GRAD)
            put(f, in, FSDPMARK_GRAD, &tensors[t], tensors[t].gradient);
    }
    if (in->verb == FSDPMARK_STEP)
        fsdpmark_step(f, in->step, false, 1, 0);
    if (in->verb == FSDPMARK_OBSERVE)
        fsdpmark_observed(f, in);
}

static void train(fsdpmark *f)
{
    const struct fsdpmark_instruction *in;
    struct fsdpmark_part parts[TENSORS];
    for (int t = 0; t < count; t++) {
        open_tensor(f, &tensors[t]);
        parts[t] = (struct fsdpmark_part){tensors[t].p->name, tensors[t].firsts[rank], tensors[t].counts[rank]};
    }
    // none is asked of everybody, on one rank: then the one part is the whole, and nothing is sharded.
    fsdpmark_configured(f, "strategy", "%s", fsdpmark_is(f, "sharding.strategy", "none") ? "none" : "full");
    fsdpmark_configured(f, "parameter", "f32");
    fsdpmark_hello(f, NULL);
    fsdpmark_shards(f, "parameter", parts, count, 0, -1);
    fsdpmark_shards(f, "gradient", parts, count, 0, -1);
    fsdpmark_shards(f, "optimizer", parts, count, 0, -1);
    for (int i = 0; (in = fsdpmark_instruction_at(f, i)); i++)
        obey(f, in);
    for (int t = 0; t < count; t++)
        free(tensors[t].own), free(tensors[t].gradient), free(tensors[t].sum);
    fsdpmark_done(f);
}

// Reads the shape of the model; the first thing that this trainer cannot do, or NULL.
static const char *read_model(fsdpmark *f)
{
    bias = fsdpmark_flag(f, "model.bias");
    calls = fsdpmark_length(f, "model.calls");
    count = fsdpmark_length(f, "parameters");
    if (calls > CALLS || count > TENSORS || ranks > RANKS)
        return "more layers, tensors or ranks than there is room for";
    for (int c = 0; c < calls; c++) {
        char path[32];
        snprintf(path, sizeof path, "model.calls.%d", c);
        layers[c] = (int)fsdpmark_integer(f, path);
    }
    for (int t = 0; t < count; t++) {
        tensors[t].p = fsdpmark_parameter_at(f, t);
        if (tensors[t].p->shape[0] > WIDTH || tensors[t].p->count > WIDTH * WIDTH)
            return "a wider layer than there is room for";
    }
    bool plain = fsdpmark_is(f, "optimizer.kind", "sgd") && fsdpmark_number(f, "optimizer.weight_decay") == 0 && !fsdpmark_length(f, "clip");
    return plain ? NULL : "more than plain SGD without clipping";
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fsdpmark *f = fsdpmark_open("mine", "1.0");
    while (fsdpmark_next(f)) {
        const char *lack = read_model(f);
        if (lack)
            fsdpmark_unsupported(f, "%s", lack);
        else
            train(f);
    }
    if (fsdpmark_error(f)) {
        fprintf(stderr, "%s\n", fsdpmark_error(f));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return fsdpmark_close(f);
}
