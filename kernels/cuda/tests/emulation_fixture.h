// For the EMULATION's own tests (test_emulation_*.cpp): a fresh device for each test, memory, and expected failures.
#ifndef EMULATION_FIXTURE_H
#define EMULATION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
extern "C" {
#include <cmocka.h>
}

#include "kernels/cuda/launch.h"
#include "kernels/cuda/tests/emulation/queue.h"

static const double DEADLINE_S = 60;

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

static inline void expect_success(void)
{
    struct error error = {};
    if (!cuda_finish(&error))
        fail_msg("%s", error.text);
}

// Waits, and expects a failure whose text has all of these.
static inline void expect_failure(const char *const *parts)
{
    struct error error = {};
    assert_false(cuda_finish(&error));
    for (; *parts; parts++)
        if (strstr(error.text, *parts) == NULL)
            fail_msg("found '%s', expected it to say '%s'", error.text, *parts);
}
#define EXPECT_FAILURE(...)                                     \
    do {                                                        \
        static const char *const parts[] = {__VA_ARGS__, NULL}; \
        expect_failure(parts);                                  \
    } while (0)

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)

#endif
