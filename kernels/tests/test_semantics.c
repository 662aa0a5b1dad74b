/*
 * Claims that the table's budgets cannot express: NaN and infinity in norms, exact integer data, optional
 * arguments, the optimizers' first step and mixed types, accumulation across types, the scratch pool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "kernels/scratch.h"

static const enum dtype float_types[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16};
enum { FLOAT_TYPE_COUNT = sizeof float_types / sizeof *float_types, MOST = 37 };

/* One bad value at each place of arrays of each length: no vector remainder may lose it. */
static void check_norms_with(enum dtype type, double bad)
{
    const struct kernel_set *k = kernels_cpu(type);
    double array[MOST];
    for (int n = 1; n <= MOST; n++)
        for (int place = 0; place < n; place++) {
            kernels_fill(n, type, array, -2);
            assert_true(k->all_finite(n, array));
            assert_true(k->norm_l1(n, array) == 2 * n && k->norm_l2_squared(n, array) == 4 * n);
            assert_true(k->norm_linf(n, array) == 2);
            dtype_set(type, array, place, bad);
            assert_false(k->all_finite(n, array));
            double norms[] = {k->norm_l1(n, array), k->norm_l2_squared(n, array), k->norm_linf(n, array)};
            for (int i = 0; i < 3; i++)
                assert_true(isnan(bad) ? isnan(norms[i]) : norms[i] == INFINITY);
        }
}

static void test_norms_propagate(void **state)
{
    (void)state;
    for (int i = 0; i < FLOAT_TYPE_COUNT; i++) {
        const struct kernel_set *k = kernels_cpu(float_types[i]);
        check_norms_with(float_types[i], NAN);
        check_norms_with(float_types[i], INFINITY);
        check_norms_with(float_types[i], -INFINITY);
        assert_true(k->norm_l1(0, NULL) == 0 && k->norm_l2_squared(0, NULL) == 0 && k->norm_linf(0, NULL) == 0);
        assert_true(k->all_finite(0, NULL));
    }
}

/* The squares of float32's largest numbers are no float32. */
static void test_squares_do_not_overflow(void **state)
{
    (void)state;
    float x[3] = {0x1p100f, 0x1p100f, 0x1p-100f};
    assert_true(kernels_cpu(DTYPE_F32)->norm_l2_squared(3, x) == 0x1p201);
}

static void test_activations_keep_nan_and_limits(void **state)
{
    (void)state;
    const struct kernel_set *k = kernels_cpu(DTYPE_F32);
    float x[] = {NAN, -1e30f, -100, 0, 100, -0.0f}, one[] = {1, 1, 1, 1, 1, 1}, y[6];
    k->relu_forward(6, x, y);
    assert_true(isnan(y[0]) && y[1] == 0 && y[3] == 0 && y[4] == 100);
    k->relu_backward(6, x, one, y);
    assert_true(y[2] == 0 && y[3] == 0 && y[4] == 1 && y[5] == 0);
    k->gelu_forward(6, x, y);
    assert_true(isnan(y[0]) && y[1] == 0 && y[2] == 0 && y[3] == 0 && y[4] == 100);
    k->gelu_backward(6, x, one, y);
    assert_true(isnan(y[0]) && y[2] == 0 && y[3] == 0.5f && y[4] == 1);
    k->swiglu_forward(6, x, one, y);
    assert_true(isnan(y[0]) && y[1] == 0 && fabsf(y[2]) < 1e-40f && y[4] == 100);
}

/* Against the C library on both sides of each limit; the row budgets see moderate arguments only. */
static void test_exponential(void **state)
{
    (void)state;
    const struct kernel_set *k = kernels_cpu(DTYPE_F32);
    int32_t target = 1;
    double weight = 1;
    for (double x = -110; x <= 0; x += 0x1.3p-9) {
        float logits[2] = {(float)x, 0}, lse = 0, probability[2];
        k->softmax_xent_backward(1, 2, logits, &target, &weight, &lse, 1, probability);
        double exact = exp((double)logits[0]), bound = 1.6 * 0x1p-24 * exact + 0x1p-149;
        assert_true(fabs((double)probability[0] - exact) <= bound);
    }
    for (double x = 0; x <= 110; x += 0x1.3p-9) {
        float logits[2] = {(float)x, 0}, lse = 0, e[2];
        k->softmax_xent_backward(1, 2, logits, &target, &weight, &lse, 1, e);
        double exact = exp((double)logits[0]);
        assert_true(isinf((float)exact) ? isinf(e[0]) : fabs((double)e[0] - exact) <= 1.6 * 0x1p-24 * exact);
    }
}

/* Small integers: every order of summation gives the same float32, and so must these kernels. */
static void test_integers_are_exact(void **state)
{
    (void)state;
    enum { M = 37, N = 29, K = 53 };
    static float a[M * K], b[K * N], c[M * N], t[M * N], d[M * N];
    const struct kernel_set *k = kernels_cpu(DTYPE_F32);
    double weights[M], loss, expected_loss = 0;
    for (int i = 0; i < M * K; i++) a[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < K * N; i++) b[i] = (float)(i * 5 % 7 - 3);
    for (int i = 0; i < M * N; i++) t[i] = (float)(i % 5);
    for (int i = 0; i < M; i++) weights[i] = 1 + i % 3;
    k->matmul(false, false, M, N, K, 1, a, b, 0, c);
    k->squared_error_forward(M, N, c, t, weights, &loss);
    k->squared_error_backward(M, N, c, t, weights, 3, d);
    for (int i = 0; i < M * N; i++) {
        int64_t sum = 0;
        for (int j = 0; j < K; j++)
            sum += (int64_t)a[i / N * K + j] * (int64_t)b[j * N + i % N];
        int64_t error = sum - (int64_t)t[i];
        assert_true(c[i] == (float)sum && d[i] == (float)(6 * (int64_t)weights[i / N] * error));
        expected_loss += weights[i / N] * (double)(error * error);
    }
    assert_true(loss == expected_loss);
    k->sgd(M * N, 0.25, 0, 0, 0, false, 1, c, d, NULL);
    k->sgd(M * N, 0.25, 0, 0, 0, false, 2, c, d, NULL);
    for (int i = 0; i < M * N; i++)
        assert_true(c[i] == d[i] / (6 * (float)weights[i / N]) + t[i] - d[i] / 2);
}

static void test_beta_zero_does_not_read(void **state)
{
    (void)state;
    for (int i = 0; i < FLOAT_TYPE_COUNT; i++)
        for (int64_t K = 0; K < 2; K++) {
            enum dtype type = float_types[i];
            double a, b, c;
            dtype_set(type, &a, 0, 3);
            dtype_set(type, &b, 0, 2);
            dtype_set(type, &c, 0, NAN);
            kernels_cpu(type)->matmul(false, false, 1, 1, K, 1, &a, &b, 0, &c);
            assert_true(dtype_get(type, &c, 0) == (K > 0 ? 6 : 0));
        }
}

/* A frozen gain or shift gets no gradient, and the rest is the same without it. */
static void test_optional_arguments(void **state)
{
    (void)state;
    for (int i = 0; i < FLOAT_TYPE_COUNT; i++) {
        enum dtype type = float_types[i];
        const struct kernel_set *k = kernels_cpu(type);
        double x[6], gamma[3], zero[3], y[6], z[6], mean[2], rstd[2], dgamma[3];
        for (int e = 0; e < 6; e++)
            dtype_set(type, x, e, e * e - 3);
        kernels_fill(3, type, gamma, 1.5);
        kernels_fill(3, type, zero, 0);
        k->layernorm_forward(2, 3, 1e-5, x, gamma, NULL, y, mean, rstd);
        k->layernorm_forward(2, 3, 1e-5, x, gamma, zero, z, mean, rstd);
        assert_memory_equal(y, z, 6 * dtype_size(type));
        kernels_fill(3, type, dgamma, 0);
        k->layernorm_backward(2, 3, x, gamma, mean, rstd, x, y, dgamma, NULL);
        k->layernorm_backward(2, 3, x, gamma, mean, rstd, x, z, NULL, NULL);
        assert_memory_equal(y, z, 6 * dtype_size(type));
        k->rmsnorm_backward(2, 3, x, gamma, rstd, x, y, dgamma);
        k->rmsnorm_backward(2, 3, x, gamma, rstd, x, z, NULL);
        assert_memory_equal(y, z, 6 * dtype_size(type));
    }
}

/* Numbers by hand: first step takes the gradient as momentum whatever the buffer held and the dampening. */
static void test_sgd_by_hand(void **state)
{
    (void)state;
    float p = 8, g = 2, m = NAN;
    const struct kernel_set *k = kernels_cpu(DTYPE_F32);
    k->sgd(1, 0.5, 0.5, 0.25, 0, false, 1, &p, &g, &m);
    assert_true(m == 2 && p == 7);
    k->sgd(1, 0.5, 0.5, 0.25, 0, false, 2, &p, &g, &m);
    assert_true(m == 2.5f && p == 5.75f);
    k->sgd(1, 0.5, 0.5, 0, 0, true, 3, &p, &g, &m);
    assert_true(m == 3.25f && p == 5.75f - 0.5f * (2 + 0.5f * 3.25f));
    p = 8;
    k->sgd(1, 0.5, 0, 0, 0.25, false, 1, &p, &g, NULL);
    assert_true(p == 6);
}

/* With beta2 = 3/4 and beta1 = 1/2 the bias corrections of the first step are exact: m/(1-b1) = g, v/(1-b2) = g^2. */
static void test_adamw_by_hand(void **state)
{
    (void)state;
    float p = 8, g = 4, m = 0, v = 0;
    const struct kernel_set *k = kernels_cpu(DTYPE_F32);
    k->adamw(1, 0.5, 0.5, 0.75, 4, 0.25, 1, &p, &g, &m, &v);
    assert_true(m == 2 && v == 4 && p == 8 * 0.875f - 0.5f * (4.0f / (4 + 4)));
    g = 0;
    k->adamw(1, 0.5, 0.5, 0.75, 0, 0, 2, &p, &g, &m, &v);
    double expected = 6.75 - 0.5 / 0.75 * 1 / (sqrt(3) / sqrt(1 - 0.5625));
    assert_true(m == 1 && v == 3 && fabs(p - expected) < 1e-6);
}

/* Every combination of types: as the row in the wide type on widened arrays, each array rounded once. */
static void check_mixed(struct optim_types t, bool adam)
{
    enum { n = 1100 };
    enum dtype wide = t.p == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32, types[4] = {t.p, t.g, t.s, t.s};
    static double narrow[4][n], widened[4][n], expected[4][n];
    for (int a = 0; a < 4; a++) {
        for (int i = 0; i < n; i++)
            dtype_set(types[a], narrow[a], i, a == 3 ? 0.5 + i % 7 : sin(i + 10.0 * a));
        kernels_cast(n, types[a], narrow[a], wide, widened[a]);
    }
    memcpy(expected[1], narrow[1], n * dtype_size(t.g)); /* the gradient is only read */
    const struct kernel_set *k = kernels_cpu(wide);
    if (adam) {
        k->adamw(n, 0.01, 0.9, 0.99, 1e-8, 0.1, 3, widened[0], widened[1], widened[2], widened[3]);
        optim_adamw(t, n, 0.01, 0.9, 0.99, 1e-8, 0.1, 3, narrow[0], narrow[1], narrow[2], narrow[3]);
    } else {
        k->sgd(n, 0.1, 0.9, 0, 0.1, true, 3, widened[0], widened[1], widened[2]);
        optim_sgd(t, n, 0.1, 0.9, 0, 0.1, true, 3, narrow[0], narrow[1], narrow[2]);
    }
    for (int a = 0; a < 4; a++) {
        if (a != 1)
            kernels_cast(n, wide, widened[a], types[a], expected[a]);
        assert_memory_equal(narrow[a], expected[a], n * dtype_size(types[a]));
    }
}

static void test_mixed_optimizers(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * FLOAT_TYPE_COUNT * FLOAT_TYPE_COUNT * FLOAT_TYPE_COUNT; i++) {
        int p = i / 2 % 4, g = i / 8 % 4, s = i / 32 % 4;
        check_mixed((struct optim_types){float_types[p], float_types[g], float_types[s]}, i % 2);
    }
}

/* 256 + 1 is a tie in bfloat16 and lost, in float32 it arrives; a double destination keeps 2^-40. */
static void test_accumulate_and_cast_between_types(void **state)
{
    (void)state;
    for (int s = 0; s < FLOAT_TYPE_COUNT; s++)
        for (int d = 0; d < FLOAT_TYPE_COUNT; d++) {
            enum dtype from = float_types[s], to = float_types[d];
            double src[600], dst[600], copy[600];
            kernels_fill(600, from, src, 1);
            kernels_fill(600, to, dst, 256);
            kernels_accumulate(599, from, src, to, dst);
            assert_true(dtype_get(to, dst, 0) == (to == DTYPE_BF16 ? 256 : 257));
            assert_true(dtype_get(to, dst, 598) == (to == DTYPE_BF16 ? 256 : 257));
            assert_true(dtype_get(to, dst, 599) == 256);
            kernels_cast(599, from, src, to, copy);
            assert_true(dtype_get(to, copy, 0) == 1 && dtype_get(to, copy, 598) == 1);
        }
    double sum = 1, tiny = 0x1p-40;
    float one = 1;
    kernels_accumulate(1, DTYPE_F64, &tiny, DTYPE_F64, &sum);
    assert_true(sum == 1 + 0x1p-40);
    kernels_accumulate(1, DTYPE_F32, &one, DTYPE_F64, &sum);
    assert_true(sum == 2 + 0x1p-40);
    int64_t large = -3;
    kernels_cast(1, DTYPE_I64, &large, DTYPE_F32, &one);
    assert_true(one == -3);
}

static void test_sets_by_type(void **state)
{
    (void)state;
    for (int i = 0; i < FLOAT_TYPE_COUNT; i++) {
        enum dtype type = float_types[i];
        assert_int_equal(kernels_cpu(type)->storage, type);
        assert_int_equal(kernels_cpu(type)->accumulation, kernels_acc_dtype(type));
    }
    assert_null(kernels_cpu(DTYPE_I32));
    assert_null(kernels_cpu(DTYPE_I64));
}

/* Overflowing arrays stay where they are while others are taken; then the pool has grown to their sum. */
static void test_scratch_pool(void **state)
{
    (void)state;
    kernels_scratch_free();
    assert_int_equal(kernels_scratch_reserve(1000), 0);
    size_t before = kernels_scratch_bytes();
    struct scratch_mark mark = scratch_mark();
    char *small = scratch_take(100, 1), *large = scratch_take(5000, 2), *larger = scratch_take(5000, 8);
    assert_true(small != NULL && large != NULL && larger != NULL && (uintptr_t)larger % 64 == 0);
    memset(small, 1, 100);
    memset(large, 2, 10000);
    memset(larger, 3, 40000);
    assert_true(small[99] == 1 && large[9999] == 2);
    assert_int_equal(kernels_scratch_bytes(), before);
    scratch_release(mark);
    assert_true(kernels_scratch_bytes() >= 50100);
    assert_int_equal(kernels_take_error(), 0);
}

/* Scratch beyond all memory: the kernel says so and leaves its result alone. */
static void test_missing_scratch_is_an_error(void **state)
{
    (void)state;
    assert_null(scratch_take(SIZE_MAX / 4, 4));
    assert_int_equal(kernels_take_error(), ENOMEM);
    assert_int_equal(kernels_take_error(), 0);
    uint16_t x = 0x3f80;
    assert_true(isnan(kernels_cpu(DTYPE_BF16)->norm_l1(INT64_MAX / 2, &x)));
    assert_int_equal(kernels_take_error(), ENOMEM);
    assert_int_equal(x, 0x3f80);
}

static int release_scratch(void **state)
{
    (void)state;
    kernels_scratch_free();
    return kernels_scratch_bytes() == 0 ? 0 : -1;
}

int main(void)
{
    kernels_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms_propagate),
        cmocka_unit_test(test_squares_do_not_overflow),
        cmocka_unit_test(test_activations_keep_nan_and_limits),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_beta_zero_does_not_read),
        cmocka_unit_test(test_optional_arguments),
        cmocka_unit_test(test_sgd_by_hand),
        cmocka_unit_test(test_adamw_by_hand),
        cmocka_unit_test(test_mixed_optimizers),
        cmocka_unit_test(test_accumulate_and_cast_between_types),
        cmocka_unit_test(test_sets_by_type),
        cmocka_unit_test(test_scratch_pool),
        cmocka_unit_test(test_missing_scratch_is_an_error),
    };
    return cmocka_run_group_tests_name("kernels: semantics", tests, NULL, release_scratch);
}
