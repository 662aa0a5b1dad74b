/*
 * Arrays of a test on the device and back, so that a CUDA kernel is called and judged as the host's are.
 *
 * How:  each array goes up with its two fences and comes back with them, so whatever is written next to it is seen. With a shift the arrays begin that many
 *       elements later, at addresses that are not multiples of 16.
 */
#ifndef KERNELS_CUDA_TESTS_ON_DEVICE_H
#define KERNELS_CUDA_TESTS_ON_DEVICE_H

#include "kernels/cuda/cuda.h"
#include "kernels/tests/arrays.h"

static inline void device_must_work(void)
{
    struct error error = {.text = ""};
    if (device_cuda.failed(&error))
        fail_msg("%s", error.text);
}

static inline int open_device(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    if (cuda_open(0, 60, NULL, &error)) {
        printf("device: %s\n", cuda_device_text());
        return 0;
    }
    fprintf(stderr, "%s\n", error.text);
    return 1;
}

static inline int close_device(void **state)
{
    (void)state;
    cuda_close();
    kernels_scratch_free();
    return 0;
}

/* A copy of the host's memory, with room before it; give the result to device_cuda.release minus that room. */
static inline char *to_device(const void *host, size_t bytes, size_t room)
{
    char *memory = device_cuda.allocate(bytes + room);
    assert_non_null(memory);
    device_cuda.upload(memory + room, host, bytes);
    return memory + room;
}

/* arrays_call() on the device; shift: elements by which all arrays are moved. */
static inline void device_call(struct arrays *a, const struct kernel_set *set, size_t shift)
{
    struct arrays d = *a;
    for (int i = 0; i < a->row->argument_count; i++)
        if (a->at[i] != NULL)
            d.at[i] = to_device((char *)a->at[i] - FENCE_BYTES, bytes_at(a, i) + 2 * FENCE_BYTES, shift * dtype_size(type_at(a, i))) + FENCE_BYTES;
    a->returned = a->row->call(set, a->setting, d.at);
    for (int i = 0; i < a->row->argument_count; i++)
        if (a->at[i] != NULL) {
            device_cuda.download((char *)a->at[i] - FENCE_BYTES, (char *)d.at[i] - FENCE_BYTES, bytes_at(a, i) + 2 * FENCE_BYTES);
            device_cuda.release((char *)d.at[i] - FENCE_BYTES - shift * dtype_size(type_at(a, i)));
        }
    device_must_work();
    arrays_check_fences(a);
}

#endif
