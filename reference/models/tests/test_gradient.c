// The hand-written gradients of every model agree with central differences in float64, add to what is there, leave
// out what is not wanted, and come out alike in the narrower types.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/models/pass.h"

// ---- data without a library: a counter hashed to (-1, 1) ----

static uint64_t counter;
static double uniform(void)
{
    uint64_t z = ++counter * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

enum { MAX_PARAMETERS = 64, ROWS = 3 };

// A case with its table, model, batch and arrays; freed by subject_close.
struct subject {
    struct fsdp_case c;
    struct model m;
    struct model_pass pass;
    struct model_batch batch;
    void *parameters[MAX_PARAMETERS], *gradients[MAX_PARAMETERS];
    const float *x[MAX_PARAMETERS];
    struct model_arrays arrays;
    void *owned[MAX_PARAMETERS + 8];
    int owned_count;
};

static float *random_floats(struct subject *s, int64_t count, double offset)
{
    float *values = model_allocate((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(uniform() + offset);
    return s->owned[s->owned_count++] = values;
}

static int32_t *random_tokens(struct subject *s, int64_t count)
{
    int32_t *values = model_allocate((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (int32_t)((uniform() + 1) / 2 * (double)s->c.model.vocab);
    return s->owned[s->owned_count++] = values;
}

static void make_batch(struct subject *s)
{
    const struct model_spec *spec = &s->c.model;
    int64_t per_row = spec->kind == MODEL_TRANSFORMER ? spec->context : 1;
    s->batch = (struct model_batch){.rows = ROWS, .scale = 0.75, .x = s->x};
    float *weights = random_floats(s, ROWS * per_row, 1.5);
    weights[ROWS * per_row - 2] = 0; // a masked row or token
    s->batch.weights = weights;
    if (spec->kind == MODEL_TRANSFORMER) {
        s->batch.tokens = random_tokens(s, ROWS * per_row);
        s->batch.targets = random_tokens(s, ROWS * per_row);
    } else if (spec->kind == MODEL_MLP) {
        s->batch.input = random_floats(s, ROWS * spec->sizes[0], 0);
        s->batch.target = random_floats(s, ROWS * spec->sizes[spec->size_count - 1], 0);
    } else {
        for (int i = 0; i < s->c.parameter_count; i++)
            s->x[i] = random_floats(s, ROWS * s->c.parameters[i].count, 0);
    }
}

static void subject_open(struct subject *s, struct model_spec spec, enum dtype storage)
{
    struct error error = {""};
    *s = (struct subject){.c = {.model = spec}};
    counter = 0;
    if (!model_parameter_table(&s->c, &error) || !model_create(&s->m, &s->c, storage, &error) ||
        !model_pass_open(&s->pass, &s->m, ROWS, &error))
        fail_msg("%s", error.text);
    assert_true(s->c.parameter_count <= MAX_PARAMETERS);
    for (int i = 0; i < s->c.parameter_count; i++) {
        const struct case_parameter *p = &s->c.parameters[i];
        s->parameters[i] = model_allocate((size_t)p->count * sizeof(double));
        s->gradients[i] = model_allocate((size_t)p->count * sizeof(double));
        for (int64_t e = 0; e < p->count; e++)
            dtype_set(storage, s->parameters[i], e, uniform() * 0.6 + (strstr(p->name, "norm") ? 1 : 0));
    }
    s->arrays = (struct model_arrays){(const void *const *)s->parameters, s->gradients};
    make_batch(s);
}

static void subject_close(struct subject *s)
{
    for (int i = 0; i < s->c.parameter_count; i++) {
        free(s->parameters[i]);
        free(s->gradients[i]);
        free(s->c.parameters[i].name);
        free(s->c.parameters[i].unit);
    }
    for (int i = 0; i < s->owned_count; i++)
        free(s->owned[i]);
    free(s->c.parameters);
    model_pass_close(&s->pass);
    model_free(&s->m);
}

static double loss_of(struct subject *s)
{
    double loss;
    model_pass_forward(&s->pass, &s->batch, &s->arrays, &loss);
    return loss;
}

static void run(struct subject *s)
{
    loss_of(s);
    model_pass_backward(&s->pass, &s->batch, &s->arrays);
}

// Derivative of scale * loss along the direction d of one parameter, by central differences.
static double slope(struct subject *s, int p, const double *d)
{
    const double h = 1e-5;
    double *w = s->parameters[p], side[2];
    for (int sign = 0; sign < 2; sign++) {
        for (int64_t e = 0; e < s->c.parameters[p].count; e++)
            w[e] += (sign ? -2 : 1) * h * d[e];
        side[sign] = loss_of(s);
    }
    for (int64_t e = 0; e < s->c.parameters[p].count; e++)
        w[e] += h * d[e];
    return s->batch.scale * (side[0] - side[1]) / (2 * h);
}

static void check_direction(struct subject *s, const char *what, int p, const double *d)
{
    const double *g = s->gradients[p];
    double predicted = 0, size = 1;
    for (int64_t e = 0; e < s->c.parameters[p].count; e++) {
        predicted += g[e] * d[e];
        size += fabs(g[e] * d[e]);
    }
    double measured = slope(s, p, d);
    if (!(fabs(predicted - measured) <= 1e-7 * size))
        fail_msg("%s, %s: gradient %.12g, central difference %.12g", what, s->c.parameters[p].name, predicted, measured);
}

// Two random directions and every fifth element of every parameter; tied and unused ones must have no gradient.
static void check_gradients(struct model_spec spec, const char *what)
{
    struct subject s;
    subject_open(&s, spec, DTYPE_F64);
    run(&s);
    for (int p = 0; p < s.c.parameter_count; p++) {
        int64_t count = s.c.parameters[p].count, nonzero = 0;
        double *d = model_allocate((size_t)count * sizeof *d);
        for (int64_t e = 0; e < count; e++)
            nonzero += ((double *)s.gradients[p])[e] != 0;
        bool used = s.c.parameters[p].tied_to < 0 && strncmp(s.c.parameters[p].name, "unused", 6) != 0;
        assert_true(used == (nonzero > 0));
        for (int repeat = 0; repeat < 2; repeat++) {
            for (int64_t e = 0; e < count; e++)
                d[e] = uniform();
            check_direction(&s, what, p, d);
        }
        for (int64_t e = 0; e < count; e += 5) {
            memset(d, 0, (size_t)count * sizeof *d);
            d[e] = 1;
            check_direction(&s, what, p, d);
        }
        free(d);
    }
    subject_close(&s);
}

static struct model_spec transformer(int switches)
{
    bool rope = switches & 2, grouped = switches & 32;
    return (struct model_spec){.kind = MODEL_TRANSFORMER, .layers = 2, .heads = rope ? 2 : 3, .dim = rope ? 12 : 15,
                               .kv_heads = grouped ? 1 : rope ? 2 : 3, .ffn = 7, .vocab = 11, .context = 5,
                               .norm = switches & 1 ? NORM_RMSNORM : NORM_LAYERNORM,
                               .position = rope ? POSITION_ROPE : POSITION_LEARNED,
                               .activation = switches & 4 ? ACTIVATION_SWIGLU : ACTIVATION_GELU,
                               .bias = switches & 8, .tied = switches & 16, .norm_eps = 1e-5, .rope_theta = 10000};
}

static void test_transformer_every_switch(void **state)
{
    (void)state;
    for (int switches = 0; switches < 64; switches++) {
        char what[32];
        snprintf(what, sizeof what, "switches %d", switches);
        check_gradients(transformer(switches), what);
    }
}

static struct model_spec mlp_spec = {.kind = MODEL_MLP, .size_count = 4, .sizes = (int64_t[]){5, 7, 7, 3}, .call_count = 5,
                                     .calls = (int[]){0, 1, 1, 1, 2}, .unused = 2, .bias = true};

static void test_mlp_reused_and_unused(void **state)
{
    (void)state;
    check_gradients(mlp_spec, "mlp");
    struct model_spec single = {.kind = MODEL_MLP, .size_count = 2, .sizes = (int64_t[]){3, 1}, .call_count = 1,
                                .calls = (int[]){0}};
    check_gradients(single, "mlp of one layer");
}

static struct witness_parameter witness_first[] = {{"w", 2, {5, 3}}, {"bias", 1, {1}}};
static struct witness_parameter witness_second[] = {{"w", 3, {7, 11, 13}}};
static struct witness_unit witness_units[] = {{"u0", 2, witness_first}, {"u1", 1, witness_second}};
static struct model_spec witness_spec = {.kind = MODEL_WITNESS, .unit_count = 2, .units = witness_units};

static void test_witness(void **state)
{
    (void)state;
    check_gradients(witness_spec, "witness");
    struct subject s;
    subject_open(&s, witness_spec, DTYPE_F64);
    run(&s);
    for (int p = 0; p < s.c.parameter_count; p++)
        for (int64_t e = 0, n = s.c.parameters[p].count; e < n; e++) {
            double sum = 0;
            for (int r = 0; r < ROWS; r++)
                sum += 0.75 * s.batch.weights[r] * s.x[p][r * n + e];
            assert_true(fabs(((double *)s.gradients[p])[e] - sum) <= 1e-15);
        }
    subject_close(&s);
}

// A second backward doubles every gradient; without a wanted gradient the others keep their bits.
static void check_accumulation(struct model_spec spec)
{
    struct subject once, twice, frozen;
    subject_open(&once, spec, DTYPE_F64);
    subject_open(&twice, spec, DTYPE_F64);
    subject_open(&frozen, spec, DTYPE_F64);
    run(&once);
    run(&twice);
    run(&twice);
    void *kept = frozen.gradients[1];
    frozen.gradients[1] = NULL;
    run(&frozen);
    frozen.gradients[1] = kept;
    for (int p = 0; p < once.c.parameter_count; p++)
        for (int64_t e = 0; e < once.c.parameters[p].count; e++) {
            double a = ((double *)once.gradients[p])[e], b = ((double *)twice.gradients[p])[e];
            assert_true(fabs(b - 2 * a) <= 1e-13 * (1 + fabs(a)));
            assert_true(((double *)frozen.gradients[p])[e] == (p == 1 ? 0 : a));
        }
    subject_close(&once);
    subject_close(&twice);
    subject_close(&frozen);
}

static void test_gradients_add_up_and_can_be_left_out(void **state)
{
    (void)state;
    for (int switches = 0; switches < 64; switches += 21)
        check_accumulation(transformer(switches));
    check_accumulation(mlp_spec);
    check_accumulation(witness_spec);
}

static double difference(struct model_spec spec, enum dtype narrow)
{
    struct subject exact, other;
    subject_open(&exact, spec, DTYPE_F64);
    subject_open(&other, spec, narrow);
    run(&exact);
    run(&other);
    double distance = 0, size = 0;
    for (int p = 0; p < exact.c.parameter_count; p++)
        for (int64_t e = 0; e < exact.c.parameters[p].count; e++) {
            double g = ((double *)exact.gradients[p])[e], d = dtype_get(narrow, other.gradients[p], e) - g;
            distance += d * d;
            size += g * g;
        }
    subject_close(&exact);
    subject_close(&other);
    return sqrt(distance / size);
}

static void test_narrow_types_are_near(void **state)
{
    (void)state;
    const struct model_spec specs[] = {transformer(0), transformer(47), mlp_spec, witness_spec};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const double f32 = difference(specs[i], DTYPE_F32), bf16 = difference(specs[i], DTYPE_BF16),
                     f16 = difference(specs[i], DTYPE_F16);
        assert_true(f32 > 0 && f32 < 64 * 0x1p-24);
        assert_true(bf16 > 0x1p-12 && bf16 < 16 * 0x1p-8);
        assert_true(f16 > 0x1p-15 && f16 < 16 * 0x1p-11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformer_every_switch), cmocka_unit_test(test_mlp_reused_and_unused),
        cmocka_unit_test(test_witness), cmocka_unit_test(test_gradients_add_up_and_can_be_left_out),
        cmocka_unit_test(test_narrow_types_are_near)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
