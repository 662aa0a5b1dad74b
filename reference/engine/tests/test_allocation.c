// After the first step, steps allocate nothing: every call of malloc and its kin is counted while the engine trains.
//
// Not under AddressSanitizer, which has its own malloc. The MPI library allocates for its messages, so this is the serial backend.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/engine/tests/small_case.h"

static int64_t allocations;

#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}
#endif

static bool train_step(struct engine *e, int step, struct error *error)
{
    double loss, norm, scale;
    bool skipped;
    engine_zero_grad(e);
    for (int micro = 0; micro < SMALL_MICROS; micro++)
        if (!engine_micro(e, step, micro, micro == SMALL_MICROS - 1, &loss, error))
            return false;
    return engine_clip(e, &norm, error) && engine_step(e, &skipped, &scale, error);
}

static void check(enum shard_layout layout, bool checkpointing, enum dtype compute)
{
    static struct instruction unsynchronised = {.verb = VERB_MICRO};
    struct small small;
    struct engine e;
    struct comm_world world;
    struct error error = {""};
    assert_true(small_make(&small, 1, false, &error) && comm_world_open(&world, &backend_serial, 10, &error));
    small.c.sharding.strategy = STRATEGY_FULL;
    small.c.sharding.layout = layout;
    small.c.sharding.activation_checkpointing = checkpointing;
    small.c.precision.compute = compute;
    small.c.clip = CLIP_L2;
    small.c.clip_limit = 1;
    small.c.program = &unsynchronised;
    small.c.program_length = 1;
    assert_true(engine_open(&e, &small.c, &world, &small.data, &small.init, &error) && train_step(&e, 0, &error));
    int64_t before = allocations;
    assert_true(train_step(&e, 1, &error) && train_step(&e, 2, &error));
    assert_int_equal(allocations, before);
    engine_close(&e);
    comm_world_close(&world);
    small_free(&small);
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
#ifndef __SANITIZE_ADDRESS__
    assert_true(allocations > 0); // the count counts
#endif
    check(SHARD_FLAT, false, DTYPE_F64);
    check(SHARD_PER_PARAMETER, true, DTYPE_F64);
    check(SHARD_FLAT, false, DTYPE_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_allocate_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
