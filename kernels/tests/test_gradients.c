/*
 * Claim: the backward of each differentiable kernel is the derivative of its forward, in float64.
 *
 * How:  f = sum of w * forward(inputs) over the forward's output, w random. For each input element,
 *       (f(x + h) - f(x - h)) / 2h with h = 2^-17 is compared with the gradient that the backward gives for
 *       dout = w. A pair of kernels is one line of the table below: which argument of the backward is the
 *       gradient of which argument of the forward.
 * Bound: |difference| <= 1e-8 * (1 + largest gradient). The formula's truncation is h^2/6 f''' ~ 1e-11, its
 *       rounding u |f| / h ~ 1e-10; a wrong term shows at 1e-2.
 */
#include "kernels/tests/arrays.h"

static const struct kernel_setting setting = {
    .M = 3, .N = 4, .K = 5, .rows = 4, .C = 7, .V = 9, .B = 2, .T = 5, .H = 2, .Hq = 4, .Hkv = 2, .D = 6, .n = 21,
    .step = 1, .alpha = 0.75, .beta = 1, .eps = 1e-5, .theta = 100, .scale = 0.4};

/* backward argument = gradient of forward argument */
struct pairing {
    const char *gradient, *input;
};

static const struct {
    const char *forward, *output, *backward, *seed; /* seed: the backward's argument that takes w */
    struct pairing pairs[4];
} gradients[] = {
    {"bias_add_forward", "y", "bias_backward", "dy", {{"dbias", "bias"}}},
    {"embedding_forward", "out", "embedding_backward", "dout", {{"dtable", "table"}}},
    {"layernorm_forward", "y", "layernorm_backward", "dy", {{"dx", "x"}, {"dgamma", "gamma"}, {"dbeta", "beta"}}},
    {"rmsnorm_forward", "y", "rmsnorm_backward", "dy", {{"dx", "x"}, {"dgamma", "gamma"}}},
    {"rope_forward", "x", "rope_backward", "dx", {{"dx", "x"}}},
    {"attention_forward", "out", "attention_backward", "dout", {{"dq", "q"}, {"dk", "k"}, {"dv", "v"}}},
    {"gelu_forward", "y", "gelu_backward", "dy", {{"dx", "x"}}},
    {"swiglu_forward", "y", "swiglu_backward", "dy", {{"da", "a"}, {"db", "b"}}},
    {"relu_forward", "y", "relu_backward", "dy", {{"dx", "x"}}},
    {"softmax_xent_forward", "loss", "softmax_xent_backward", NULL, {{"dlogits", "logits"}}},
    {"squared_error_forward", "loss", "squared_error_backward", NULL, {{"dy", "y"}}},
};

static const struct kernel_row *find_row(const char *name)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (strcmp(kernel_rows[i].name, name) == 0)
            return &kernel_rows[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

/* The index of an argument, or -1. */
static int find(const struct kernel_row *row, const char *name)
{
    for (int i = 0; i < row->argument_count; i++)
        if (strcmp(row->arguments[i].name, name) == 0)
            return i;
    return -1;
}

/* f at the inputs with element e of argument i moved by delta. */
static double weighted_output(const struct arrays *inputs, int i, int64_t e, double delta, int output, const double *w)
{
    struct arrays a = arrays_new(inputs->row, inputs->setting, DTYPE_F64, false, 11);
    double f = 0;
    ((double *)a.at[i])[e] += delta;
    arrays_call(&a, kernels_cpu(DTYPE_F64));
    for (int64_t k = 0; k < a.work.extent[output]; k++)
        f += w[k] * ((double *)a.at[output])[k];
    arrays_free(&a);
    return f;
}

/* Gives the backward its arguments: the forward's of the same name, w as seed, 0 where it accumulates. */
static void prepare_backward(struct arrays *back, const struct arrays *inputs, const struct arrays *results,
                             const char *seed, const double *w)
{
    for (int i = 0; i < back->row->argument_count; i++) {
        const struct kernel_argument *argument = &back->row->arguments[i];
        int same = find(inputs->row, argument->name);
        if (back->at[i] == NULL)
            continue;
        if (seed != NULL && strcmp(argument->name, seed) == 0)
            memcpy(back->at[i], w, bytes_at(back, i));
        else if (same >= 0) {
            bool result = inputs->row->arguments[same].kind != KERNEL_UPD;
            memcpy(back->at[i], result ? results->at[same] : inputs->at[same], bytes_at(back, i));
        } else if (argument->kind == KERNEL_UPD)
            memset(back->at[i], 0, bytes_at(back, i));
    }
}

static void check_pair(const struct arrays *inputs, const struct arrays *back, struct pairing pair, int output,
                       const double *w)
{
    const double h = 0x1p-17;
    int input = find(inputs->row, pair.input), gradient = find(back->row, pair.gradient);
    assert_true(input >= 0 && gradient >= 0 && inputs->work.extent[input] > 0);
    assert_int_equal(inputs->work.extent[input], back->work.extent[gradient]);
    double largest = 0, *g = back->at[gradient];
    for (int64_t e = 0; e < inputs->work.extent[input]; e++)
        largest = fabs(g[e]) > largest ? fabs(g[e]) : largest;
    assert_true(largest > 0.01);
    for (int64_t e = 0; e < inputs->work.extent[input]; e++) {
        double up = weighted_output(inputs, input, e, h, output, w);
        double slope = (up - weighted_output(inputs, input, e, -h, output, w)) / (2 * h);
        if (!(fabs(slope - g[e]) <= 1e-8 * (1 + largest)))
            fail_msg("%s, %s[%lld]: %.12g, central difference %.12g", back->row->name, pair.gradient, (long long)e,
                     g[e], slope);
    }
}

static void test_backwards_are_derivatives(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof gradients / sizeof *gradients; k++) {
        struct arrays inputs = arrays_new(find_row(gradients[k].forward), &setting, DTYPE_F64, false, 11);
        struct arrays results = arrays_new(inputs.row, &setting, DTYPE_F64, false, 11);
        struct arrays back = arrays_new(find_row(gradients[k].backward), &setting, DTYPE_F64, false, 12);
        int output = find(inputs.row, gradients[k].output);
        double w[256];
        uint64_t random = 13;
        assert_true(output >= 0 && inputs.work.extent[output] <= 256);
        /* A loss is its own f; its backward has a scale instead of a seed. */
        for (int i = 0; i < 256; i++)
            w[i] = gradients[k].seed != NULL ? random_normal(&random) : setting.scale;
        arrays_call(&results, kernels_cpu(DTYPE_F64));
        prepare_backward(&back, &inputs, &results, gradients[k].seed, w);
        arrays_call(&back, kernels_cpu(DTYPE_F64));
        for (int p = 0; p < 4 && gradients[k].pairs[p].input != NULL; p++)
            check_pair(&inputs, &back, gradients[k].pairs[p], output, w);
        arrays_free(&inputs);
        arrays_free(&results);
        arrays_free(&back);
    }
}

/* d/dA of sum w (A B) is w B^T, and d/dB is A^T w: the transposes that a model's backward uses. */
static void test_matmul_transposes(void **state)
{
    (void)state;
    enum { M = 3, N = 4, K = 5 };
    const struct kernel_set *k = kernels_cpu(DTYPE_F64);
    double a[M * K], b[K * N], w[M * N], c[M * N], da[M * K], db[K * N];
    uint64_t random = 17;
    for (int i = 0; i < M * K; i++) a[i] = random_normal(&random);
    for (int i = 0; i < K * N; i++) b[i] = random_normal(&random);
    for (int i = 0; i < M * N; i++) w[i] = random_normal(&random);
    k->matmul(false, true, M, K, N, 1, w, b, 0, da);
    k->matmul(true, false, K, N, M, 1, a, w, 0, db);
    for (int i = 0; i < M * K + K * N; i++) {
        double *x = i < M * K ? &a[i] : &b[i - M * K], old = *x, f[2];
        for (int side = 0; side < 2; side++) {
            *x = old + (side ? 0x1p-17 : -0x1p-17);
            k->matmul(false, false, M, N, K, 1, a, b, 0, c);
            f[side] = 0;
            for (int j = 0; j < M * N; j++) f[side] += w[j] * c[j];
        }
        *x = old;
        assert_true(fabs((f[1] - f[0]) * 0x1p16 - (i < M * K ? da[i] : db[i - M * K])) < 1e-8);
    }
}

int main(void)
{
    kernels_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backwards_are_derivatives),
        cmocka_unit_test(test_matmul_transposes),
    };
    int failed = cmocka_run_group_tests_name("kernels: gradients", tests, NULL, NULL);
    kernels_scratch_free();
    return failed;
}
