// What CUDA leaves undefined and the EMULATION reports: barriers and shuffles that not all reach, memory out of bounds, impossible launches.
#include "kernels/cuda/tests/emulation_fixture.h"

__global__ void half_a_barrier(float *x)
{
    x[threadIdx.x] = 1;
    if (threadIdx.x < 40)
        __syncthreads();
}

__global__ void two_barriers(float *x)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    x[threadIdx.x] = 1;
}

static void test_divergent_barrier(void **state)
{
    (void)state;
    LAUNCH(half_a_barrier, 3, 64, 0, CUDA_COMPUTE, device<float>(64));
    EXPECT_FAILURE("cudaErrorLaunchFailure", "kernel half_a_barrier", "test_emulation_reports.cpp:", "block (", "divergent __syncthreads", "threads 0-39 wait",
                   "threads 40-63 have ended");
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure); // until the device is reset
}

static void test_two_barriers(void **state)
{
    (void)state;
    LAUNCH(two_barriers, 1, 64, 0, CUDA_COMPUTE, device<float>(64));
    EXPECT_FAILURE("divergent __syncthreads", "threads 0-31 wait", "threads 32-63 wait at");
}

__global__ void missing_lane(int *out)
{
    int value = (int)threadIdx.x;
    if (threadIdx.x != 37)
        value = __shfl_xor_sync(FULL_MASK, value, 1);
    out[threadIdx.x] = value;
}

__global__ void outside_mask(int *out)
{
    int value = (int)threadIdx.x;
    if (threadIdx.x < 16)
        value = __shfl_down_sync(0xffffu, value, 8, 32);
    out[threadIdx.x] = value;
}

__global__ void not_in_mask(int *out) { out[threadIdx.x] = __shfl_sync(0x7fffffffu, (int)threadIdx.x, 0); }

static void test_missing_lane(void **state)
{
    (void)state;
    LAUNCH(missing_lane, 1, 64, 0, CUDA_COMPUTE, device<int>(64));
    EXPECT_FAILURE("kernel missing_lane", "__shfl_xor_sync of mask 0xffffffff", "threads 32-36, 38-63 wait", "threads 37 have ended");
}

static void test_lane_outside_mask(void **state)
{
    (void)state;
    LAUNCH(outside_mask, 1, 32, 0, CUDA_COMPUTE, device<int>(32));
    EXPECT_FAILURE("kernel outside_mask", "lane 8 reads lane 16, which mask 0x0000ffff lacks");
}

static void test_caller_not_in_mask(void **state)
{
    (void)state;
    LAUNCH(not_in_mask, 1, 32, 0, CUDA_COMPUTE, device<int>(32));
    EXPECT_FAILURE("kernel not_in_mask", "mask 0x7fffffff lacks the calling lane 31");
}

__global__ void beyond_shared(int *out, int at)
{
    SHARED_ARRAY(int, first, 8);
    SHARED_ARRAY(int, numbers, 33);
    int *some = numbers; // as a pointer: the host's own sanitizer would speak first
    first[threadIdx.x % 8] = 0;
    if (threadIdx.x == 5)
        some[at] = 1;
    out[threadIdx.x] = first[0];
}

static void test_shared_bounds(void **state)
{
    (void)state;
    static const struct { int at; const char *says; } cases[] = {
        {36, "byte 144 of shared memory numbers"}, {33, "something was written behind shared memory numbers"}, {-1, "something was written before shared memory numbers"},
        {5000, "out of bounds"}, {-2000, "out of bounds"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const parts[] = {"kernel beyond_shared", "cudaErrorIllegalAddress", "out of bounds", cases[i].says, NULL};
        LAUNCH(beyond_shared, 1, 32, 0, CUDA_COMPUTE, device<int>(32), cases[i].at);
        expect_failure(parts);
        close_device(state);
        open_device(state);
    }
}

__global__ void fill(int64_t n, float *x)
{
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = 1;
}

static void test_device_bounds(void **state)
{
    (void)state;
    LAUNCH(fill, 1, 32, 0, CUDA_COMPUTE, 1025, device<float>(1024));
    EXPECT_FAILURE("kernel fill", "thread (0,0,0)", "out of bounds: byte 4096 of a region of 4096 bytes");
}

__global__ void write_at(float *x, int at) { x[at] = 1; }

// Beside it within its page, which shows once it is given back.
static void test_device_edges(void **state)
{
    static const struct { int at; const char *says; } cases[] = {{-1, "written before a region of 400 bytes"}, {100, "written behind a region of 400 bytes"}};
    for (size_t i = 0; i < 2; i++) {
        float *x = device<float>(100);
        const char *const parts[] = {"cudaErrorIllegalAddress", cases[i].says, NULL};
        LAUNCH(write_at, 1, 32, 0, CUDA_COMPUTE, x, cases[i].at);
        expect_success();
        assert_false(CUDA_OK(cudaFree(x)));
        expect_failure(parts);
        close_device(state);
        open_device(state);
    }
}

static void test_host_pointer(void **state)
{
    (void)state;
    float here[32];
    LAUNCH(fill, 1, 32, 0, CUDA_COMPUTE, 32, here);
    EXPECT_FAILURE("kernel fill", "argument 2", "points to no memory of the device");
}

__global__ void deep(float *x)
{
    volatile float much[32 << 10];
    for (int i = (32 << 10) - 1; i >= 0; i -= 512)
        much[i] = 1;
    x[threadIdx.x] = much[31];
}

static void test_stack(void **state)
{
    (void)state;
    LAUNCH(deep, 1, 32, 0, CUDA_COMPUTE, device<float>(32));
    EXPECT_FAILURE("kernel deep");
}

static void test_impossible_launches(void **state)
{
    (void)state;
    float *x = device<float>(32);
    struct error error = {};
    LAUNCH(fill, 1, 2048, 0, CUDA_COMPUTE, 32, x);
    assert_true(cuda_failed(&error));
    assert_non_null(strstr(error.text, "cudaErrorInvalidConfiguration"));
    LAUNCH(fill, 0, 32, 0, CUDA_COMPUTE, 32, x);
    assert_true(cuda_failed(&error));
    LAUNCH(fill, 1, 33, 0, CUDA_COMPUTE, 32, x); // the project's own rule
    assert_true(cuda_failed(&error));
    LAUNCH(fill, 1, 32, 64 << 10, CUDA_COMPUTE, 32, x);
    assert_true(cuda_failed(&error));
    assert_int_equal(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10), cudaSuccess);
    LAUNCH(fill, 1, 32, 64 << 10, CUDA_COMPUTE, 32, x);
    expect_success();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_divergent_barrier), TEST(test_two_barriers), TEST(test_missing_lane), TEST(test_lane_outside_mask), TEST(test_caller_not_in_mask),
        TEST(test_shared_bounds), TEST(test_device_bounds), TEST(test_device_edges), TEST(test_host_pointer), TEST(test_stack), TEST(test_impossible_launches),
    };
    return cmocka_run_group_tests_name("emulated reports", tests, NULL, NULL);
}
