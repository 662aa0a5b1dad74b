// The EMULATION's matrix products against plain loops, on numbers whose sums are exact; what they refuse.
#include "kernels/cuda/tests/emulation_fixture.h"

#include <cublas_v2.h>

enum { M = 5, N = 7, K = 3, BATCH = 2, LEADING = 9 };
static cublasHandle_t handle;

static int open_blas(void **state)
{
    open_device(state);
    return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS && cublasSetStream(handle, cuda_stream(CUDA_COMPUTE)) == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}
static int close_blas(void **state)
{
    cublasDestroy(handle);
    return close_device(state);
}

// Small integers, exact in every type; a product's sum of K is too.
static double entry(int i) { return i * 7 % 5 - 2; }

static void encode(cudaDataType type, int n, double scale, void *to)
{
    for (int i = 0; i < n; i++) {
        double x = scale * entry(i);
        if (type == CUDA_R_64F)
            ((double *)to)[i] = x;
        else if (type == CUDA_R_32F)
            ((float *)to)[i] = (float)x;
        else
            dtype_set(type == CUDA_R_16F ? DTYPE_F16 : DTYPE_BF16, to, i, x);
    }
}

static double decode(cudaDataType type, const void *from, int i)
{
    return dtype_get(type == CUDA_R_64F ? DTYPE_F64 : type == CUDA_R_32F ? DTYPE_F32 : type == CUDA_R_16F ? DTYPE_F16 : DTYPE_BF16, from, i);
}

static void check(cudaDataType type, cudaDataType c_type, bool ta, bool tb, double beta)
{
    enum { SIZE = LEADING * LEADING * BATCH };
    const long long stride = LEADING * LEADING;
    double host[SIZE], alpha = 2;
    float alpha32 = 2, beta32 = (float)beta;
    bool wide = type == CUDA_R_64F;
    void *a = device<double>(SIZE), *b = device<double>(SIZE), *c = device<double>(SIZE);
    encode(type, SIZE, 1, host);
    assert_int_equal(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
    encode(c_type, SIZE, beta == 0 ? NAN : 1, host);
    assert_int_equal(cudaMemcpy(c, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(cublasGemmStridedBatchedEx(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K, wide ? (void *)&alpha : &alpha32, a, type,
                                                LEADING, stride, b, type, LEADING, stride, wide ? (void *)&beta : &beta32, c, c_type, LEADING, stride, BATCH,
                                                wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_SUCCESS);
    expect_success();
    assert_int_equal(cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int batch = 0; batch < BATCH; batch++)
        for (int col = 0; col < LEADING; col++)
            for (int row = 0; row < LEADING; row++) {
                int at = batch * LEADING * LEADING, i = at + col * LEADING + row;
                double expected = beta == 0 ? NAN : entry(i);
                if (row < M && col < N) {
                    expected = beta == 0 ? 0 : beta * entry(i);
                    for (int k = 0; k < K; k++)
                        expected += alpha * entry(at + (ta ? row * LEADING + k : k * LEADING + row)) * entry(at + (tb ? k * LEADING + col : col * LEADING + k));
                }
                double found = decode(c_type, host, i);
                assert_true(found == expected || (found != found && expected != expected));
            }
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
}

static void test_products(void **state)
{
    (void)state;
    static const cudaDataType types[][2] = {{CUDA_R_32F, CUDA_R_32F}, {CUDA_R_64F, CUDA_R_64F}, {CUDA_R_16BF, CUDA_R_16BF}, {CUDA_R_16F, CUDA_R_16F},
                                            {CUDA_R_16BF, CUDA_R_32F}, {CUDA_R_16F, CUDA_R_32F}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int how = 0; how < 8; how++)
            check(types[t][0], types[t][1], how & 1, how & 2, how & 4 ? 1 : 0);
}

// The host's memory of alpha and beta is free at once; the product runs in its stream, after what was there.
static void test_in_its_stream(void **state)
{
    (void)state;
    float alpha = 1, beta = 0, found, *a = device<float>(1), *c = device<float>(1);
    float three = 3;
    cudaMemcpyAsync(a, &three, sizeof three, cudaMemcpyHostToDevice, cuda_stream(CUDA_COMPUTE));
    assert_int_equal(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, a, 1, a, 1, &beta, c, 1), CUBLAS_STATUS_SUCCESS);
    alpha = beta = NAN;
    expect_success();
    assert_int_equal(cudaMemcpy(&found, c, sizeof found, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_true(found == 9);
}

static void test_rounding(void **state)
{
    (void)state;
    static const struct { cudaDataType type; enum dtype dtype; } types[] = {{CUDA_R_16F, DTYPE_F16}, {CUDA_R_16BF, DTYPE_BF16}};
    float alpha = 1, beta = 0;
    for (int t = 0; t < 2; t++)
        for (int i = 1; i < 200; i++) { // 1/i as 16 bits times a number near 1: rounded once, to nearest even
            uint16_t x[2], y, expected;
            void *a = device<uint16_t>(2), *c = device<uint16_t>(1);
            dtype_set(types[t].dtype, x, 0, 1.0 / i);
            dtype_set(types[t].dtype, x, 1, 1 + i / 128.0);
            dtype_set(types[t].dtype, &expected, 0, (double)((float)dtype_get(types[t].dtype, x, 0) * (float)dtype_get(types[t].dtype, x, 1)));
            cudaMemcpy(a, x, sizeof x, cudaMemcpyHostToDevice);
            assert_int_equal(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, a, types[t].type, 1, (uint16_t *)a + 1, types[t].type, 1, &beta, c, types[t].type,
                                          1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                             CUBLAS_STATUS_SUCCESS);
            expect_success();
            cudaMemcpy(&y, c, sizeof y, cudaMemcpyDeviceToHost);
            assert_int_equal(y, expected);
            cudaFree(a);
            cudaFree(c);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    float one = 1, *a = device<float>(4);
    assert_int_equal(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 1, a, 2, &one, a, 2), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, CUDA_R_32F, 1, a, CUDA_R_16F, 1, &one, a, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                                  CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, a, 2, &one, a, 3), CUBLAS_STATUS_EXECUTION_FAILED); // C is too large
    EXPECT_FAILURE("matrix product: C of 2 x 2, leading dimension 3");
}

#define BLAS_TEST(name) cmocka_unit_test_setup_teardown(name, open_blas, close_blas)
int main(void)
{
    const struct CMUnitTest tests[] = {BLAS_TEST(test_products), BLAS_TEST(test_in_its_stream), BLAS_TEST(test_rounding), BLAS_TEST(test_refusals)};
    return cmocka_run_group_tests_name("emulated BLAS", tests, NULL, NULL);
}
