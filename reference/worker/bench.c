// A benchmark of the step. See bench.h.
//
// What: parameters ~ N(0, 0.02^2) (norms 1, biases 0), random tokens or inputs, the microbatches of the case's data recipe; each step is
//       zero_grad, the microbatches, clip where the case clips, and the optimizer. One line a step, from barrier to barrier:
//       {"step", "seconds", "processor_seconds", "tokens", "tokens_per_second", "loss"}, and "recorded" where the probes are loaded. Tokens are rows for a model that has no tokens.
// How:  under mpirun for several ranks; nothing is allocated, written or printed between the barriers.
// Why:  a peer's step can be interleaved with it, line by line, on the same machine.
#include "reference/worker/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reference/engine/publish.h"
#include "reference/worker/serve.h"

enum { DEFAULT_STEPS = 20 };

// Lehmer's generator modulo 2^31 - 1 with multiplier 48271: good enough for data that is only timed.
static uint32_t draw(uint64_t *state) { return (uint32_t)(*state = *state * 48271 % 2147483647); }

static float draw_normal(uint64_t *state)
{
    double u = (draw(state) + 1.0) / 2147483648.0, v = draw(state) / 2147483647.0;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static void make_init(const struct fsdp_case *c, struct tensors *init, uint64_t *state)
{
    for (int i = 0; i < c->parameter_count; i++) {
        const struct case_parameter *p = &c->parameters[i];
        if (p->tied_to >= 0)
            continue;
        float *values = tensors_add(init, p->name, DTYPE_F32, p->dims, p->shape, NULL, false)->data;
        bool norm = p->dims == 1 && strstr(p->name, "norm") && strstr(p->name, "weight");
        for (int64_t e = 0; e < p->count; e++)
            values[e] = p->dims > 1 ? 0.02f * draw_normal(state) : norm;
    }
}

static void add_floats(struct tensors *data, const char *name, int dims, const int64_t *shape, bool ones, uint64_t *state)
{
    struct tensor *t = tensors_add(data, name, DTYPE_F32, dims, shape, NULL, false);
    for (int64_t e = 0; e < t->count; e++)
        ((float *)t->data)[e] = ones ? 1 : draw_normal(state);
}

static void add_tokens(struct tensors *data, const char *name, const int64_t *shape, int64_t vocab, uint64_t *state)
{
    struct tensor *t = tensors_add(data, name, DTYPE_I32, 4, shape, NULL, false);
    for (int64_t e = 0; e < t->count; e++)
        ((int32_t *)t->data)[e] = (int32_t)(draw(state) % (uint64_t)vocab);
}

// Data of one step, used again in every step.
static bool make_data(const struct fsdp_case *c, struct tensors *data, uint64_t *state, struct error *error)
{
    const struct model_spec *m = &c->model;
    int64_t shape[4] = {1, c->data.micros, c->global_rows, m->context};
    if (m->kind == MODEL_TRANSFORMER) {
        add_tokens(data, "tokens", shape, m->vocab, state);
        add_tokens(data, "targets", shape, m->vocab, state);
        add_floats(data, "weight", 4, shape, true, state);
        return true;
    }
    if (m->kind != MODEL_MLP)
        return error_set(error, "model witness has nothing to time, expected mlp or transformer");
    shape[3] = m->sizes[0];
    add_floats(data, "input", 4, shape, false, state);
    shape[3] = m->sizes[m->size_count - 1];
    add_floats(data, "target", 4, shape, false, state);
    add_floats(data, "weight", 3, shape, true, state);
    return true;
}

bool bench_tensors(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error)
{
    uint64_t state = c->seed % 2147483646 + 1;
    make_init(c, init, &state);
    return make_data(c, data, &state, error);
}

// Phases for the probes, as a worker marks them, so that their cost can be timed (docs/probes.md).
static void mark(void *context, const char *phase, int step)
{
    static void (*function)(const char *, int);
    static bool looked;
    (void)context;
    if (!looked)
        *(void **)&function = dlsym(RTLD_DEFAULT, "fsdpmark_mark");
    looked = true;
    if (function != NULL)
        function(phase, step);
}

// With the probes loaded every other step goes unrecorded, as r u u r r u u r ..., so that both kinds meet the same moments of the machine.
// True: this one is recorded.
static bool record_some(int step, bool *loaded)
{
    static void (*function)(int);
    bool pause = (step & 1) ^ (step >> 1 & 1);
    if (step == 0)
        *(void **)&function = dlsym(RTLD_DEFAULT, "fsdpmark_pause");
    *loaded = function != NULL;
    if (function != NULL)
        function(pause);
    return !pause;
}

static void say_backward(void *context, int step) { mark(context, "backward", step); }

bool bench_step(struct engine *e, double *loss, struct error *error)
{
    bool skipped;
    double norm, scale, micro_loss;
    *loss = 0;
    e->at_backward = say_backward;
    mark(NULL, "zero_grad", -1);
    engine_zero_grad(e);
    for (int m = 0; m < e->c->data.micros; m++) {
        mark(NULL, "forward", 0);
        if (!engine_micro(e, 0, m, m == e->c->data.micros - 1, &micro_loss, error))
            return false;
        *loss += micro_loss;
    }
    mark(NULL, "step", 0);
    return (e->c->clip == CLIP_OFF || engine_clip(e, &norm, error)) && engine_step(e, &skipped, &scale, error);
}

// Of all threads of this process: what a busy machine changes less than the time on the wall.
static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool time_steps(struct engine *e, int steps, struct error *error)
{
    const struct fsdp_case *c = e->c;
    double tokens = (double)(c->global_rows * c->data.micros * (c->model.kind == MODEL_TRANSFORMER ? c->model.context : 1));
    for (int step = 0; step < steps; step++) {
        double loss;
        bool loaded, recorded = record_some(step, &loaded);
        if (!comm_barrier(&e->comm, error))
            return false;
        double start = comm_seconds(), processor = processor_seconds();
        if (!bench_step(e, &loss, error) || !e->on->finish(error) || !comm_barrier(&e->comm, error)) // a device runs behind: its update belongs to this step
            return false;
        double seconds = comm_seconds() - start;
        processor = processor_seconds() - processor;
        if (e->rank == 0)
            printf("{\"step\": %d, \"seconds\": %.9f, \"processor_seconds\": %.9f, \"tokens\": %.0f, \"tokens_per_second\": %.3f, \"loss\": %.9g%s}\n", step, seconds, processor,
                   tokens, tokens / seconds, loss, !loaded ? "" : recorded ? ", \"recorded\": true" : ", \"recorded\": false");
        if (e->rank == 0)
            fflush(stdout);
    }
    return true;
}

static bool run(const struct fsdp_case *c, struct comm_world *world, int steps, struct error *error)
{
    struct tensors init = {0}, data = {0};
    struct engine e;
    bool ok = bench_tensors(c, &init, &data, error) && engine_open(&e, c, world, &data, &init, error);
    if (ok) {
        publish_engine(&e);
        ok = time_steps(&e, steps, error);
        publish_engine(NULL);
        engine_close(&e);
    }
    tensors_free(&init);
    tensors_free(&data);
    return ok;
}

int bench_run(int count, char **arguments)
{
    struct fsdp_case c;
    struct comm_world world;
    struct error error = {""};
    int steps = count > 1 ? atoi(arguments[1]) : DEFAULT_STEPS;
    if (steps < 1 || count > 2) {
        fprintf(stderr, "--bench: found '%s', expected CASE.json and a number of steps\n", count > 1 ? arguments[1] : "");
        return 2;
    }
    if (!case_read(arguments[0], &c, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    serve_threads();
    publish_open();
    bool ok = serve_open(&world, c.world_size, &error) && run(&c, &world, steps, &error);
    if (ok)
        comm_world_close(&world);
    else
        fprintf(stderr, "%s\n", error.text);
    case_free(&c);
    return !ok;
}
