// The EMULATION's own tests: that it computes what CUDA says, and that it reports what it is there to report. No GPU is meant here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern "C" {
#include <cmocka.h>
}

#include "kernels/cuda/launch.h"
#include "kernels/cuda/tests/emulation/queue.h"

static const double DEADLINE_S = 20;

static int open_device(void **state)
{
    struct error error = {};
    (void)state;
    cudaDeviceReset();
    if (!cuda_open(0, DEADLINE_S, NULL, &error))
        fail_msg("%s", error.text);
    return 0;
}
static int close_device(void **state)
{
    (void)state;
    cuda_close();
    cudaDeviceReset();
    unsetenv("FSDPMARK_EMULATION_ORDER");
    return 0;
}

template <class T> static T *device(int64_t n)
{
    T *memory = NULL;
    assert_int_equal(cudaMalloc(&memory, (size_t)n * sizeof(T)), cudaSuccess);
    return memory;
}
template <class T> static T read_one(const T *at)
{
    T value;
    assert_int_equal(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
}

// Waits, and expects a failure whose text has all of these.
__attribute__((unused)) static void expect_failure(const char *const *parts)
{
    struct error error = {};
    assert_false(cuda_finish(&error));
    for (; *parts; parts++)
        if (strstr(error.text, *parts) == NULL)
            fail_msg("found '%s', expected it to name '%s'", error.text, *parts);
}
#define EXPECT_FAILURE(...)                               \
    do {                                                  \
        static const char *const parts[] = {__VA_ARGS__, NULL}; \
        expect_failure(parts);                            \
    } while (0)
static void expect_success(void)
{
    struct error error = {};
    if (!cuda_finish(&error))
        fail_msg("%s", error.text);
}

// ---- what CUDA computes ----

__global__ void sum_blocks(int64_t n, const float *x, float *sums)
{
    SHARED_ARRAY(float, parts, WARP);
    float sum = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        sum += x[i];
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(FULL_MASK, sum, offset);
    if (threadIdx.x % WARP == 0)
        parts[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x < WARP) {
        sum = threadIdx.x < blockDim.x / WARP ? parts[threadIdx.x] : 0;
        for (int offset = WARP / 2; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(FULL_MASK, sum, offset);
        if (threadIdx.x == 0)
            sums[blockIdx.x] = sum;
    }
}

__global__ void count_up(int64_t n, float *x)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        x[i] = (float)(i % 7);
}

static void test_reduction(void **state)
{
    (void)state;
    const int64_t n = 100003;
    float *x = device<float>(n), *sums = device<float>(64), total = 0, expected = 0, host[64];
    LAUNCH(count_up, launch_grid(n, 256), 256, 0, CUDA_COMPUTE, n, x);
    LAUNCH(sum_blocks, 64, 256, 0, CUDA_COMPUTE, n, x, sums);
    expect_success();
    assert_int_equal(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 64; i++)
        total += host[i];
    for (int64_t i = 0; i < n; i++)
        expected += (float)(i % 7);
    assert_true(total == expected);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_speed(void **state)
{
    (void)state;
    const int64_t n = 64 * 256;
    enum { LAUNCHES = 100 };
    float *x = device<float>(n), *sums = device<float>(64);
    double begin = seconds();
    for (int i = 0; i < LAUNCHES; i++)
        LAUNCH(count_up, 64, 256, 0, CUDA_COMPUTE, n, x);
    expect_success();
    double plain = (seconds() - begin) / LAUNCHES;
    begin = seconds();
    for (int i = 0; i < LAUNCHES; i++)
        LAUNCH(sum_blocks, 64, 256, 0, CUDA_COMPUTE, n, x, sums);
    expect_success();
    double waits = (seconds() - begin) / LAUNCHES;
    print_message("# 64 blocks of 256 threads: %.2f ms without barriers, %.2f ms with 10 shuffles and a barrier\n", 1e3 * plain, 1e3 * waits);
    assert_true(plain < 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reduction, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_speed, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
