// The EMULATION's threads: barriers, shuffles, shared memory, atomics compute what CUDA says, a missing barrier shows, and a launch costs little.
#include "kernels/cuda/tests/emulation_fixture.h"

template <class T> static T read_one(const T *at)
{
    T value;
    assert_int_equal(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
}

__global__ void count_up(int64_t n, float *x)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        x[i] = (float)(i % 7);
}

template <bool barrier> __global__ void sum_blocks(int64_t n, const float *x, float *sums)
{
    SHARED_ARRAY(float, parts, WARP);
    float sum = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        sum += x[i];
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(FULL_MASK, sum, offset);
    if (threadIdx.x % WARP == 0)
        parts[threadIdx.x / WARP] = sum;
    if (barrier)
        __syncthreads();
    if (threadIdx.x < WARP) {
        sum = threadIdx.x < blockDim.x / WARP ? parts[threadIdx.x] : 0;
        for (int offset = WARP / 2; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(FULL_MASK, sum, offset);
        if (threadIdx.x == 0)
            sums[blockIdx.x] = sum;
    }
}

static void sum_of_blocks(bool barrier, float *total)
{
    const int64_t n = 100003;
    float *x = device<float>(n), *sums = device<float>(64), host[64];
    LAUNCH(count_up, launch_grid(n, 256), 256, 0, CUDA_COMPUTE, n, x);
    if (barrier)
        LAUNCH(sum_blocks<true>, 64, 256, 0, CUDA_COMPUTE, n, x, sums);
    else
        LAUNCH(sum_blocks<false>, 64, 256, 0, CUDA_COMPUTE, n, x, sums);
    expect_success();
    assert_int_equal(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    *total = 0;
    for (int i = 0; i < 64; i++)
        *total += host[i];
}

static void test_reduction(void **state)
{
    (void)state;
    float total, expected = 0;
    for (int64_t i = 0; i < 100003; i++)
        expected += (float)(i % 7);
    sum_of_blocks(true, &total);
    assert_true(total == expected);
}

static void test_missing_barrier_is_nan(void **state)
{
    (void)state;
    float total;
    sum_of_blocks(false, &total);
    assert_true(total != total); // shared memory that nobody had written is NaN
}

__global__ void neighbours(int offset, float *out)
{
    SHARED_ARRAY(float, numbers, 66);
    numbers[threadIdx.x + 1] = 1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + offset < blockDim.x ? numbers[(int)threadIdx.x + 1 + offset] : 1;
}

// Whether a thread's number is missing that comes before or behind it: some block runs the other way.
static void test_missing_barrier_both_ways(void **state)
{
    (void)state;
    enum { COUNT = 32 * 64 };
    float *out = device<float>(COUNT), host[COUNT];
    for (int offset = -1; offset <= 1; offset += 2) {
        int missing = 0;
        LAUNCH(neighbours, 32, 64, 0, CUDA_COMPUTE, offset, out);
        expect_success();
        assert_int_equal(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
        for (int i = 0; i < COUNT; i++)
            missing += host[i] != host[i];
        assert_in_range(missing, 63, COUNT - 1);
    }
}

template <class T> __global__ void shuffles(T *out)
{
    int lane = (int)threadIdx.x % WARP;
    T value = (T)(100 + lane);
    out[threadIdx.x] = __shfl_sync(FULL_MASK, value, lane + 1);
    out[64 + threadIdx.x] = __shfl_up_sync(FULL_MASK, value, 3);
    out[128 + threadIdx.x] = __shfl_down_sync(FULL_MASK, value, 3, 8);
    out[192 + threadIdx.x] = __shfl_xor_sync(FULL_MASK, value, 5);
}

template <class T> static void check_shuffles(void)
{
    T *out = device<T>(256), host[256];
    LAUNCH(shuffles<T>, 1, 64, 0, CUDA_COMPUTE, out);
    expect_success();
    assert_int_equal(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int t = 0; t < 64; t++) {
        int lane = t % WARP;
        assert_true(host[t] == (T)(100 + (lane + 1) % WARP));
        assert_true(host[64 + t] == (T)(100 + (lane < 3 ? lane : lane - 3)));
        assert_true(host[128 + t] == (T)(100 + (lane % 8 + 3 < 8 ? lane + 3 : lane)));
        assert_true(host[192 + t] == (T)(100 + (lane ^ 5)));
    }
}

static void test_shuffles(void **state)
{
    (void)state;
    check_shuffles<float>();
    check_shuffles<double>();
    check_shuffles<int>();
    check_shuffles<unsigned>();
    check_shuffles<int64_t>();
}

__global__ void votes(unsigned *out)
{
    bool odd = threadIdx.x % 2 == 1;
    unsigned ballot = __ballot_sync(FULL_MASK, odd);
    int any = __any_sync(FULL_MASK, threadIdx.x == 7), none = __any_sync(FULL_MASK, threadIdx.x == 77), all = __all_sync(FULL_MASK, threadIdx.x < 32);
    __syncwarp();
    if (threadIdx.x == 9) {
        out[0] = ballot;
        out[1] = (unsigned)(any + 2 * none + 4 * all);
    }
}

__global__ void atomics(int *sum, unsigned *largest, unsigned long long *claimed)
{
    atomicAdd(sum, (int)threadIdx.x);
    atomicMax(largest, blockIdx.x * blockDim.x + threadIdx.x);
    atomicCAS(claimed, 0ull, 1ull);
}

static void test_votes_and_atomics(void **state)
{
    (void)state;
    unsigned *out = device<unsigned>(2), *largest = device<unsigned>(1);
    int *sum = device<int>(1);
    unsigned long long *claimed = device<unsigned long long>(1);
    cudaMemset(sum, 0, sizeof *sum);
    cudaMemset(largest, 0, sizeof *largest);
    cudaMemset(claimed, 0, sizeof *claimed);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess); // lanes do not wait for the default stream
    LAUNCH(votes, 1, 32, 0, CUDA_COMPUTE, out);
    LAUNCH(atomics, 10, 64, 0, CUDA_COMPUTE, sum, largest, claimed);
    expect_success();
    assert_int_equal(read_one(out), 0xaaaaaaaau);
    assert_int_equal(read_one(out + 1), 5);
    assert_int_equal(read_one(sum), 10 * 64 * 63 / 2);
    assert_int_equal(read_one(largest), 639);
    assert_int_equal(read_one(claimed), 1);
}

__global__ void indices(unsigned *out)
{
    SHARED_DYNAMIC(unsigned, rows);
    unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    rows[t] = block;
    __syncthreads();
    out[block * 64 + t] = rows[63 - t] * 64 + t;
}

static void test_three_dimensions(void **state)
{
    (void)state;
    enum { BLOCKS = 24 };
    unsigned *out = device<unsigned>(BLOCKS * 64), host[BLOCKS * 64];
    LAUNCH(indices, dim3(2, 3, 4), dim3(8, 4, 2), 64 * sizeof(unsigned), CUDA_COMPUTE, out);
    expect_success();
    assert_int_equal(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (unsigned i = 0; i < BLOCKS * 64; i++)
        assert_int_equal(host[i], i);
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
    enum { LAUNCHES = 20 };
    const int64_t n = 64 * 256;
    float *x = device<float>(n), *sums = device<float>(64);
    double begin = seconds();
    for (int i = 0; i < LAUNCHES; i++)
        LAUNCH(count_up, 64, 256, 0, CUDA_COMPUTE, n, x);
    expect_success();
    double plain = (seconds() - begin) / LAUNCHES;
    begin = seconds();
    for (int i = 0; i < LAUNCHES; i++)
        LAUNCH(sum_blocks<true>, 64, 256, 0, CUDA_COMPUTE, n, x, sums);
    expect_success();
    double waits = (seconds() - begin) / LAUNCHES;
    print_message("# 64 blocks of 256 threads: %.2f ms without barriers, %.2f ms with 5 to 10 shuffles and a barrier\n", 1e3 * plain, 1e3 * waits);
    assert_true(plain < 0.02 && waits < 0.2); // a launch is not a process: 1 and 10 ms are usual
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reduction), TEST(test_missing_barrier_is_nan), TEST(test_missing_barrier_both_ways), TEST(test_shuffles), TEST(test_votes_and_atomics),
        TEST(test_three_dimensions), TEST(test_speed),
    };
    return cmocka_run_group_tests_name("emulated threads", tests, NULL, NULL);
}
