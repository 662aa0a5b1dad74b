// The EMULATION's streams, events and memory: what is ordered is right under every order, and what is not shows as a wrong number.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/tests/emulation_fixture.h"

enum { N = 1000, SEEDS = 20 };
static const char *const orders[] = {"random", "latest-first", "first-stream-last", "queued"};

__global__ void set_all(int64_t n, float value, float *x)
{
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = value;
}

__global__ void add_to(int64_t n, const float *x, float *y)
{
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        y[i] += x[i];
}

static float first_of(const float *x)
{
    float value = 0;
    assert_int_equal(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
}

// ---- order between streams ----

// A gather writes x, the computation adds it to y: 3 + 4 = 7 where it comes after. Reused for the next layer: y is then 7 + 5.
static float two_layers(bool wait_for_gather, bool wait_for_use)
{
    float *x = device<float>(N), *y = device<float>(N);
    LAUNCH(set_all, 1, 64, 0, CUDA_COMPUTE, N, 3, y);
    LAUNCH(set_all, 1, 64, 0, CUDA_GATHER, N, 4, x);
    if (wait_for_gather)
        cuda_order(CUDA_GATHER, CUDA_COMPUTE);
    LAUNCH(add_to, 1, 64, 0, CUDA_COMPUTE, N, x, y);
    if (wait_for_use)
        cuda_order(CUDA_COMPUTE, CUDA_GATHER);
    LAUNCH(set_all, 1, 64, 0, CUDA_GATHER, N, 5, x);
    if (wait_for_gather)
        cuda_order(CUDA_GATHER, CUDA_COMPUTE);
    LAUNCH(add_to, 1, 64, 0, CUDA_COMPUTE, N, x, y);
    expect_success();
    float value = first_of(y);
    cudaFree(x);
    cudaFree(y);
    return value;
}

static int wrong_of(bool wait_for_gather, bool wait_for_use, int tries)
{
    int wrong = 0;
    for (int i = 0; i < tries; i++)
        wrong += two_layers(wait_for_gather, wait_for_use) != 12;
    return wrong;
}

static void test_missing_event_shows(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        setenv("FSDPMARK_EMULATION_ORDER", orders[i], 1);
        assert_int_equal(wrong_of(true, true, SEEDS), 0);
    }
    setenv("FSDPMARK_EMULATION_ORDER", "random", 1);
    assert_true(wrong_of(false, true, SEEDS) > 0); // read before it is there
    assert_true(wrong_of(true, false, SEEDS) > 0); // overwritten before it is read
    setenv("FSDPMARK_EMULATION_ORDER", "latest-first", 1);
    assert_int_equal(wrong_of(true, false, 1), 1);
    setenv("FSDPMARK_EMULATION_ORDER", "first-stream-last", 1);
    assert_int_equal(wrong_of(true, false, 1), 1);
    setenv("FSDPMARK_EMULATION_ORDER", "queued", 1);
    assert_int_equal(wrong_of(false, false, SEEDS), 0); // that is what this order is for
}

// The order is the seed's, and the same at each run.
static void order_of_seed(const char *seed, char *order)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("FSDPMARK_EMULATION_SEED", seed, 1);
        for (int i = 0; i < 32; i++)
            order[i] = (char)('a' + queue_random(26));
        _exit(write(ends[1], order, 32) == 32 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(read(ends[0], order, 32), 32);
    close(ends[0]);
    close(ends[1]);
}

static void test_seed(void **state)
{
    char first[32], again[32], other[32];
    (void)state;
    order_of_seed("7", first);
    order_of_seed("7", again);
    order_of_seed("8", other);
    assert_memory_equal(first, again, sizeof first);
    assert_true(memcmp(first, other, sizeof first) != 0);
}

// ---- the default stream, queries ----

static void test_default_stream(void **state)
{
    (void)state;
    cudaStream_t blocking;
    float *x = device<float>(N), *y = device<float>(N);
    assert_int_equal(cudaStreamCreate(&blocking), cudaSuccess);
    for (int i = 0; i < SEEDS; i++) {
        cudaMemset(x, 0, N * sizeof *x);
        cudaMemcpyAsync(y, x, N * sizeof *x, cudaMemcpyDeviceToDevice, blocking);
        cudaMemset(x, 0xff, N * sizeof *x);
        assert_true(first_of(y) == 0);
    }
    assert_int_equal(cudaStreamDestroy(blocking), cudaSuccess);
    assert_int_equal(cudaStreamQuery(blocking), cudaErrorInvalidResourceHandle);
}

static void test_events(void **state)
{
    (void)state;
    cudaEvent_t event, later;
    float ms = -1, *x = device<float>(N);
    assert_int_equal(cudaEventCreate(&event), cudaSuccess);
    assert_int_equal(cudaEventCreate(&later), cudaSuccess);
    assert_int_equal(cudaEventQuery(event), cudaSuccess); // never recorded
    LAUNCH(set_all, 1, 64, 0, CUDA_COMPUTE, N, 1, x);
    cudaEventRecord(event, cuda_stream(CUDA_COMPUTE));
    LAUNCH(set_all, 1, 64, 0, CUDA_COMPUTE, N, 2, x);
    cudaEventRecord(later, cuda_stream(CUDA_COMPUTE));
    assert_int_equal(cudaEventElapsedTime(&ms, event, later), cudaErrorNotReady);
    assert_int_equal(cudaEventSynchronize(event), cudaSuccess);
    assert_int_equal(cudaStreamQuery(cuda_stream(CUDA_GATHER)), cudaSuccess);
    assert_true(cuda_wait(later, "the later one"));
    assert_int_equal(cudaEventElapsedTime(&ms, event, later), cudaSuccess);
    assert_true(ms >= 0);
    assert_true(first_of(x) == 2);
    cudaEventDestroy(event);
    cudaEventDestroy(later);
}

static enum emulation_step count_down(void *context) { return --*(int *)context > 0 ? EMULATION_AGAIN : EMULATION_DONE; }
static enum emulation_step never(void *context) { return (void)context, EMULATION_AGAIN; }
static enum emulation_step broken(void *context)
{
    emulation_fail(cudaErrorUnknown, "rank %d is gone", *(int *)context);
    return EMULATION_FAILED;
}
static int late_calls;
static bool is_over(bool late, struct error *error) { return late || error_set(error, "the other rank has died"); }
static bool is_late(bool late, struct error *error) { return (void)error, late_calls += late, true; }

static void test_work_of_others(void **state)
{
    (void)state;
    int polls = 100, rank = 3;
    struct error error = {};
    float *x = device<float>(N);
    LAUNCH(set_all, 1, 64, 0, CUDA_COMPUTE, N, 1, x);
    emulation_enqueue(cuda_stream(CUDA_GATHER), "a collective", count_down, &polls);
    cuda_order(CUDA_GATHER, CUDA_COMPUTE);
    LAUNCH(set_all, 1, 64, 0, CUDA_COMPUTE, N, 2, x);
    assert_int_equal(polls, 100);
    assert_true(cuda_wait_lane(CUDA_COMPUTE, "both"));
    assert_int_equal(polls, 0);
    emulation_enqueue(cuda_stream(CUDA_REDUCE), "one that hangs", never, NULL);
    assert_true(cuda_wait_lane(CUDA_COMPUTE, "what does not hang"));
    assert_int_equal(cudaStreamQuery(cuda_stream(CUDA_REDUCE)), cudaErrorNotReady);
    cuda_close();
    cudaDeviceReset();
    assert_true(cuda_open(0, 0.1, is_late, &error));
    emulation_enqueue(cuda_stream(CUDA_REDUCE), "one that hangs", never, NULL);
    assert_true(cuda_wait_lane(CUDA_COMPUTE, "what does not hang"));
    assert_int_equal(late_calls, 0);
    EXPECT_FAILURE("reduce has not ended within 0.1 s");
    assert_true(late_calls > 0); // whoever watches is told that the deadline has passed
    cuda_close();
    cudaDeviceReset();
    assert_true(cuda_open(0, DEADLINE_S, is_over, &error));
    emulation_enqueue(cuda_stream(CUDA_REDUCE), "one that hangs", never, NULL);
    EXPECT_FAILURE("while waiting for reduce: the other rank has died");
    close_device(state);
    open_device(state);
    emulation_enqueue(cuda_stream(CUDA_REDUCE), "one that fails", broken, &rank);
    EXPECT_FAILURE("rank 3 is gone");
}

// ---- memory ----

static void test_fresh_memory_is_nan(void **state)
{
    (void)state;
    float *x = device<float>(N), host[N];
    assert_int_equal(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < N; i++)
        assert_true(host[i] != host[i]);
}

// The host may change pageable memory at once, pinned memory only once the copy has run.
static void test_uploads(void **state)
{
    (void)state;
    float pageable = 1, *x = device<float>(2), *pinned = (float *)cuda_host_allocate(sizeof *pinned);
    *pinned = 1;
    cudaMemcpyAsync(x, &pageable, sizeof *x, cudaMemcpyHostToDevice, cuda_stream(CUDA_COMPUTE));
    cudaMemcpyAsync(x + 1, pinned, sizeof *x, cudaMemcpyHostToDevice, cuda_stream(CUDA_COMPUTE));
    pageable = *pinned = 2;
    expect_success();
    assert_true(first_of(x) == 1);
    assert_true(first_of(x + 1) == 2);
    *pinned = 0;
    cudaMemcpyAsync(pinned, x, sizeof *x, cudaMemcpyDeviceToHost, cuda_stream(CUDA_COMPUTE));
    assert_true(*pinned == 0); // behind the host
    expect_success();
    assert_true(*pinned == 1);
    cuda_host_release(pinned);
}

static void test_wrong_copies(void **state)
{
    (void)state;
    float host[4] = {0}, *x = device<float>(3);
    assert_int_equal(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);     // too long
    assert_int_equal(cudaMemcpy(host, x, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);               // the other way
    assert_int_equal(cudaMemcpy(x, host, 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(x + 2, 0, 8), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(x + 1), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, x, 12, cudaMemcpyDefault), cudaSuccess);
    assert_int_equal(cudaFree(x), cudaSuccess);
    assert_int_equal(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue); // given back
    assert_int_equal(cudaMalloc(&x, (size_t)1 << 50), cudaErrorMemoryAllocation);
}

static void test_host_touches_device(void **state)
{
    (void)state;
    int ends[2], status;
    char text[512] = {0};
    float *x = device<float>(N);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        device<float>(1);
        _exit(*(volatile float *)x == 0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_non_null(strstr(text, "the host touched device memory (byte 0 of a region of 4000 bytes"));
}

static void test_no_device(void **state)
{
    (void)state;
    struct error why = {};
    setenv("FSDPMARK_EMULATION_DEVICES", "0", 1);
    assert_false(cuda_available(&why));
    assert_string_equal(why.text, "CUDA: no driver is installed");
    unsetenv("FSDPMARK_EMULATION_DEVICES");
    assert_true(cuda_available(&why));
    assert_true(cuda_is_emulated());
    assert_string_equal(cuda_device_text(), "EMULATION of a CUDA device, no GPU");
}

// Mistyped, a variable is no default.
static void test_bad_variables(void **state)
{
    struct error why = {};
    LAUNCH(set_all, 1, 64, 0, CUDA_COMPUTE, N, 1, device<float>(N));
    setenv("FSDPMARK_EMULATION_ORDER", "latest", 1);
    EXPECT_FAILURE("FSDPMARK_EMULATION_ORDER: found 'latest', expected random");
    close_device(state);
    setenv("FSDPMARK_EMULATION_DEVICES", "two", 1);
    assert_false(cuda_available(&why));
    assert_non_null(strstr(why.text, "FSDPMARK_EMULATION_DEVICES: found 'two', expected a number"));
    unsetenv("FSDPMARK_EMULATION_DEVICES");
    cudaDeviceReset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed), // first: it forks before the seed has been read
        TEST(test_missing_event_shows), TEST(test_default_stream), TEST(test_events), TEST(test_work_of_others), TEST(test_fresh_memory_is_nan),
        TEST(test_uploads), TEST(test_wrong_copies), TEST(test_host_touches_device), TEST(test_no_device),
        TEST(test_bad_variables),
    };
    return cmocka_run_group_tests_name("emulated streams", tests, NULL, NULL);
}
