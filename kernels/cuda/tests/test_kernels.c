/*
 * Every row of the table on the device, under every setting, judged as kernels/tests/test_table.c judges the host's.
 *
 * Claims: float64 kernels equal the plain loops; float32 and the 16-bit types stay within the declared budget of float64; nothing is written beyond an array;
 *         a second run gives the same bits, and so do arrays that begin at no multiple of 16 bytes; attention in small parts stays within its budget.
 */
#include "kernels/cuda/tests/on_device.h"
#include "kernels/tests/plain.h"

extern size_t cuda_attention_limit;

/*
 * Roundings to the storage type on the way to a result, in units of its u times the largest magnitude: one, at the end. In attention's backward also those of
 * the probabilities and of the scores' gradients, which go through tensor cores in 16 bits (kernels/README.md); seen under emulation: 1.24 in all.
 */
static double roundings_of(const struct kernel_row *row)
{
    return strcmp(row->name, "attention_backward") == 0 ? 3 : 1;
}

static void check_against_plain(const struct kernel_row *row, const struct kernel_setting *setting)
{
    struct arrays fast = arrays_new(row, setting, DTYPE_F64, false, 1), plain = arrays_new(row, setting, DTYPE_F64, false, 1);
    device_call(&fast, kernels_cuda(DTYPE_F64), 0);
    arrays_call(&plain, &plain_set);
    check_results(&fast, &plain, 1, 2 * fast.work.budget + 64, dtype_unit_roundoff(DTYPE_F64));
    arrays_free(&fast);
    arrays_free(&plain);
}

static void test_f64_equals_plain_loops(void **state)
{
    (void)state;
    FOR_EACH_CASE(row, setting) check_against_plain(row, setting);
}

static void check_budget(const struct kernel_row *row, const struct kernel_setting *setting, enum dtype storage)
{
    for (uint64_t seed = 4; seed < 6; seed++) {
        struct arrays own = arrays_new(row, setting, storage, false, seed), exact = arrays_new(row, setting, DTYPE_F64, false, seed);
        arrays_copy(&exact, &own);
        device_call(&own, kernels_cuda(storage), 0);
        if (strcmp(row->returns, "void") == 0)
            arrays_call(&exact, kernels_cpu(DTYPE_F64));
        else // a norm: the same bits for the same data, in the device's own order
            device_call(&exact, kernels_cuda(DTYPE_F64), 0);
        double worst = check_results(&own, &exact, roundings_of(row), own.work.budget, dtype_unit_roundoff(DTYPE_F32));
        if (getenv("KERNELS_SHOW_ERRORS") != NULL)
            printf("%-24s %-4s setting %d: %10.2f u of %g + %g\n", row->name, dtype_name(storage), (int)(setting - settings), worst, own.work.budget,
                   storage == DTYPE_F32 ? 0 : roundings_of(row) * dtype_unit_roundoff(storage) / dtype_unit_roundoff(DTYPE_F32));
        arrays_free(&own);
        arrays_free(&exact);
    }
}

static void test_f32_is_within_budget(void **state)
{
    (void)state;
    FOR_EACH_CASE(row, setting) check_budget(row, setting, DTYPE_F32);
}

static void test_16_bit_types_are_within_budget(void **state)
{
    (void)state;
    FOR_EACH_CASE(row, setting)
    {
        check_budget(row, setting, DTYPE_BF16);
        check_budget(row, setting, DTYPE_F16);
    }
}

static void check_same_bits(const struct kernel_row *row, const struct kernel_setting *setting, enum dtype storage, size_t shift)
{
    struct arrays a = arrays_new(row, setting, storage, false, 9), b = arrays_new(row, setting, storage, false, 9);
    device_call(&a, kernels_cuda(storage), 0);
    device_call(&b, kernels_cuda(storage), shift);
    if (!arrays_same_results(&a, &b))
        fail_msg("%s, %s, setting %d: other bits, arrays shifted by %zu elements", row->name, dtype_name(storage), (int)(setting - settings), shift);
    arrays_free(&a);
    arrays_free(&b);
}

static void test_a_second_run_has_the_same_bits(void **state)
{
    (void)state;
    FOR_EACH_CASE(row, setting)
    {
        check_same_bits(row, setting, DTYPE_F32, 0);
        check_same_bits(row, setting, DTYPE_BF16, 0);
    }
}

/* cuBLAS may take another kernel for other addresses, so products are left out. */
static void test_alignment_changes_no_bit(void **state)
{
    (void)state;
    FOR_EACH_CASE(row, setting)
    {
        if (strcmp(row->name, "matmul") == 0)
            continue;
        check_same_bits(row, setting, DTYPE_F64, 1);
        check_same_bits(row, setting, DTYPE_F32, 1);
        check_same_bits(row, setting, DTYPE_F16, 3);
    }
}

/* From one position and one head at a time to all at once. */
static void test_attention_in_parts(void **state)
{
    (void)state;
    size_t usual = cuda_attention_limit;
    for (size_t limit = 1; limit < 100000; limit = limit * 17 + 1)
        FOR_EACH_CASE(row, setting)
        {
            if (strncmp(row->name, "attention", 9) != 0 || setting == settings + 6)
                continue;
            cuda_attention_limit = limit;
            check_against_plain(row, setting);
        }
    cuda_attention_limit = usual;
}

int main(void)
{
    kernels_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f64_equals_plain_loops),
        cmocka_unit_test(test_f32_is_within_budget),
        cmocka_unit_test(test_16_bit_types_are_within_budget),
        cmocka_unit_test(test_a_second_run_has_the_same_bits),
        cmocka_unit_test(test_alignment_changes_no_bit),
        cmocka_unit_test(test_attention_in_parts),
    };
    return cmocka_run_group_tests_name("kernels/cuda: table", tests, open_device, close_device);
}
