/*
 * What the settings of the table do not reach: sizes beyond one block, chunk or shared memory, arguments that are NULL, values that must not be read, NaN, and
 * data for which every sum is exact.
 *
 * Claims: the paths for large shapes give the host's results (float64, within its budget) and write nothing beyond; NULL changes nothing else; on small integers
 *         float32 has the host's bits in every row, whatever the order of its sums.
 */
#include "kernels/cuda/tests/on_device.h"

#define SIZES(...) {.M = 1, .N = 1, .K = 1, .rows = 1, .C = 1, .V = 3, .B = 1, .T = 1, .H = 1, .Hq = 1, .Hkv = 1, .D = 2, .n = 1, .step = 2, SCALARS, __VA_ARGS__}

/* Later initialisers take the place of earlier ones, on purpose. */
#pragma GCC diagnostic ignored "-Woverride-init"

/* Many chunks of rows, lists of many rows a token; a row beyond shared memory; several tiles of queries; more elements than the grid has threads. */
static const struct kernel_setting large[] = {
    SIZES(.rows = 1100, .C = 40, .V = 7), SIZES(.rows = 3, .C = 6500, .V = 4001), SIZES(.rows = 70, .C = 300, .V = 2),
    SIZES(.B = 1, .T = 300, .H = 2, .Hq = 4, .Hkv = 2, .D = 8), SIZES(.n = 2200000),
};

static bool has_size(const struct kernel_row *row, const char *name)
{
    for (int i = 0; i < row->argument_count; i++)
        if (row->arguments[i].kind == KERNEL_DIM && strcmp(row->arguments[i].name, name) == 0)
            return true;
    return false;
}

/* Which rows of the table a large setting is about. */
static bool concerned(const struct kernel_row *row, const struct kernel_setting *s)
{
    return (s->rows > 1 && has_size(row, "rows")) || (s->T > 1 && has_size(row, "T")) || (s->n > 1 && strstr("add norm_l1 norm_l2_squared", row->name));
}

static void test_large_shapes(void **state)
{
    (void)state;
    for (const struct kernel_setting *s = large; s < large + sizeof large / sizeof *large; s++)
        for (const struct kernel_row *row = kernel_rows; row < kernel_rows + kernel_row_count; row++) {
            if (!concerned(row, s))
                continue;
            struct arrays fast = arrays_new(row, s, DTYPE_F64, false, 1), host = arrays_new(row, s, DTYPE_F64, false, 1);
            device_call(&fast, kernels_cuda(DTYPE_F64), 0);
            arrays_call(&host, kernels_cpu(DTYPE_F64));
            check_results(&fast, &host, 1, 2 * fast.work.budget + 64, dtype_unit_roundoff(DTYPE_F64));
            arrays_free(&fast);
            arrays_free(&host);
        }
}

/* Every number a small integer, every statistic and scalar one that keeps sums exact. */
static void make_exact(struct arrays *a)
{
    for (int i = 0; i < a->row->argument_count; i++)
        for (int64_t e = 0; a->at[i] != NULL && e < a->work.extent[i]; e++)
            if (a->row->arguments[i].kind != KERNEL_TOKENS)
                dtype_set(type_at(a, i), a->at[i], e, (double)((e * 7 + i * 3) % 5) - (a->row->arguments[i].kind == KERNEL_WEIGHTS ? 0 : 2));
}

static void test_integers_are_exact(void **state)
{
    (void)state;
    static const char *const exact[] = {"matmul", "bias_add_forward", "bias_backward", "add", "embedding_forward", "embedding_backward", "relu_forward", "relu_backward",
                                        "squared_error_forward", "squared_error_backward", "scale", "norm_l1", "norm_l2_squared", "norm_linf"};
    struct kernel_setting s = settings[6];
    s.alpha = 2, s.beta = 1, s.scale = 1;
    for (const struct kernel_row *row = kernel_rows; row < kernel_rows + kernel_row_count; row++)
        for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
            if (strcmp(row->name, exact[i]) != 0)
                continue;
            struct arrays a = arrays_new(row, &s, DTYPE_F32, false, 1), b = arrays_new(row, &s, DTYPE_F32, false, 1);
            make_exact(&a);
            make_exact(&b);
            device_call(&a, kernels_cuda(DTYPE_F32), 0);
            arrays_call(&b, kernels_cpu(DTYPE_F32));
            if (!arrays_same_results(&a, &b))
                fail_msg("%s: integers give other bits than on the host", row->name);
            arrays_free(&a);
            arrays_free(&b);
        }
}

static int argument_at(const struct kernel_row *row, const char *name)
{
    for (int i = 0; i < row->argument_count; i++)
        if (strcmp(row->arguments[i].name, name) == 0)
            return i;
    fail_msg("%s has no %s", row->name, name);
    return -1;
}

static const struct kernel_row *row_named(const char *name)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (strcmp(kernel_rows[i].name, name) == 0)
            return &kernel_rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* The arrays named are NULL on both sides; all others must agree. */
static void check_without(const char *name, const char *first, const char *second)
{
    const struct kernel_row *row = row_named(name);
    struct arrays a = arrays_new(row, &settings[5], DTYPE_F64, false, 1), b = arrays_new(row, &settings[5], DTYPE_F64, false, 1), whole_a = a, whole_b = b;
    const char *const missing[] = {first, second};
    for (int i = 0; i < 2; i++)
        if (missing[i] != NULL)
            a.at[argument_at(row, missing[i])] = b.at[argument_at(row, missing[i])] = NULL;
    device_call(&a, kernels_cuda(DTYPE_F64), 0);
    arrays_call(&b, kernels_cpu(DTYPE_F64));
    for (int i = 0; i < row->argument_count; i++)
        if (a.at[i] != NULL && kernel_kind_writes(row->arguments[i].kind)) {
            struct distance d = distance_at(&a, &b, i);
            assert_true(d.error <= 100 * dtype_unit_roundoff(DTYPE_F64) * d.magnitude);
        }
    arrays_free(&whole_a);
    arrays_free(&whole_b);
}

static void test_optional_arguments(void **state)
{
    (void)state;
    check_without("layernorm_forward", "beta", NULL);
    check_without("layernorm_backward", "dgamma", NULL);
    check_without("layernorm_backward", "dbeta", NULL);
    check_without("layernorm_backward", "dgamma", "dbeta");
    check_without("rmsnorm_backward", "dgamma", NULL);
}

static void check_matmul_of_nan(enum dtype type, int64_t K)
{
    struct kernel_setting s = settings[5];
    s.beta = 0, s.K = K;
    struct arrays a = arrays_new(row_named("matmul"), &s, type, false, 1);
    int c = argument_at(a.row, "c");
    for (int64_t e = 0; e < a.work.extent[c]; e++)
        dtype_set(type, a.at[c], e, NAN);
    device_call(&a, kernels_cuda(type), 0);
    for (int64_t e = 0; e < a.work.extent[c]; e++)
        assert_true(K == 0 ? dtype_get(type, a.at[c], e) == 0 : isfinite(dtype_get(type, a.at[c], e)));
    arrays_free(&a);
}

static void test_beta_zero_does_not_read(void **state)
{
    (void)state;
    const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16};
    for (int i = 0; i < 4; i++) {
        check_matmul_of_nan(types[i], 13);
        check_matmul_of_nan(types[i], 0);
    }
}

/* Of n numbers: forward activations at NaN and beyond what exp can reach. */
static void activate(void (*forward)(int64_t, const void *, void *), const float *x, float *y)
{
    char *from = to_device(x, 6 * sizeof *x, 0), *to = device_cuda.allocate(6 * sizeof *y);
    forward(6, from, to);
    device_cuda.download(y, to, 6 * sizeof *y);
    device_cuda.release(from);
    device_cuda.release(to);
    device_must_work();
}

static void test_activations_keep_nan_and_limits(void **state)
{
    (void)state;
    const float x[] = {NAN, -1e30f, -100, 0, 100, -0.0f};
    float y[6];
    activate(kernels_cuda(DTYPE_F32)->relu_forward, x, y);
    assert_true(isnan(y[0]) && y[1] == 0 && y[3] == 0 && y[4] == 100);
    activate(kernels_cuda(DTYPE_F32)->gelu_forward, x, y);
    assert_true(isnan(y[0]) && y[1] == 0 && y[2] == 0 && y[3] == 0 && y[4] == 100);
}

/* Logits that are -infinity take no part, wherever they stand; a NaN is not lost. */
static void test_masked_logits(void **state)
{
    (void)state;
    struct kernel_setting s = settings[6];
    struct arrays a = arrays_new(row_named("softmax_xent_forward"), &s, DTYPE_F32, false, 1), b = arrays_new(a.row, &s, DTYPE_F32, false, 1);
    int logits = argument_at(a.row, "logits"), lse = argument_at(a.row, "lse");
    for (int64_t e = 0; e < a.work.extent[logits]; e++) {
        int64_t r = e / s.V, v = e % s.V;
        if (r < 30 ? v % 600 != r * 20 : v == 300 + r) {
            ((float *)a.at[logits])[e] = r < 30 ? -INFINITY : NAN;
            ((float *)b.at[logits])[e] = r < 30 ? -INFINITY : NAN;
        }
    }
    device_call(&a, kernels_cuda(DTYPE_F32), 0);
    arrays_call(&b, kernels_cpu(DTYPE_F32));
    for (int64_t r = 0; r < s.rows; r++) {
        float found = ((float *)a.at[lse])[r], expected = ((float *)b.at[lse])[r];
        if (!(r < 30 ? fabsf(found - expected) <= 1e-6f * (1 + fabsf(expected)) : isnan(found)))
            fail_msg("row %d: lse %g, expected %g", (int)r, (double)found, (double)expected);
    }
    arrays_free(&a);
    arrays_free(&b);
}

int main(void)
{
    kernels_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_shapes),           cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_optional_arguments),     cmocka_unit_test(test_beta_zero_does_not_read),
        cmocka_unit_test(test_activations_keep_nan_and_limits), cmocka_unit_test(test_masked_logits),
    };
    return cmocka_run_group_tests_name("kernels/cuda: special cases", tests, open_device, close_device);
}
