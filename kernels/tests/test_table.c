/*
 * Every row of the table, under every setting: what it declares is what it does.
 *
 * Claims: float64 kernels equal the plain loops; declared flop equals their count; declared bytes equal
 *         the elements that the kernel is seen to read and write; float32 and the 16-bit types stay
 *         within the declared budget of float64; all builds give the same bits; no kernel writes beyond.
 */
#include "kernels/tests/arrays.h"

#include "kernels/cpu/sets.h"
#include "kernels/tests/plain.h"

static void test_f64_equals_plain_loops_and_flop(void **state)
{
    (void)state;
    FOR_EACH_CASE(row, setting)
    {
        struct arrays fast = arrays_new(row, setting, DTYPE_F64, false, 1);
        struct arrays plain = arrays_new(row, setting, DTYPE_F64, false, 1);
        arrays_call(&fast, kernels_cpu(DTYPE_F64));
        arrays_call(&plain, &plain_set);
        check_results(&fast, &plain, 1, 2 * fast.work.budget + 64, dtype_unit_roundoff(DTYPE_F64));
        arrays_free(&fast);
        arrays_free(&plain);
    }
}

/* Counted where every term of the formula is present: with momentum, decay and shift, alpha = beta = 1. */
static void test_declared_flop_is_the_count(void **state)
{
    (void)state;
    struct kernel_setting setting = settings[4];
    setting.alpha = setting.beta = 1;
    for (int i = 0; i < kernel_row_count; i++) {
        struct arrays a = arrays_new(&kernel_rows[i], &setting, DTYPE_F64, false, 2);
        plain_flop = 0;
        arrays_call(&a, &plain_set);
        if (plain_flop != a.work.flop)
            fail_msg("%s: %g operations counted, %g declared", a.row->name, plain_flop, a.work.flop);
        arrays_free(&a);
    }
}

/* Calls the kernel on fresh inputs with element e of argument i replaced. */
static struct arrays call_with(const struct arrays *fresh, int i, int64_t e, double value)
{
    struct arrays a = arrays_new(fresh->row, fresh->setting, fresh->storage, true, 3);
    dtype_set(type_at(&a, i), a.at[i], e, value);
    arrays_call(&a, kernels_cpu(a.storage));
    return a;
}

/* True if some other value of the element changes some result. */
static bool is_read(const struct arrays *fresh, const struct arrays *result, int i, int64_t e)
{
    enum dtype type = type_at(fresh, i);
    double old = dtype_get(type, fresh->at[i], e);
    double next_token = (double)(((int64_t)old + 1) % (fresh->setting->V > 0 ? fresh->setting->V : 1));
    double others[] = {isnan(old) ? 1 : -old, 2 * old + 1, NAN};
    bool read = false;
    for (int k = 0; k < 3 && !read; k++) {
        struct arrays a = call_with(fresh, i, e, type == DTYPE_I32 ? next_token : others[k]);
        /* What was put there and only stayed there was not read. */
        if (kernel_kind_writes(fresh->row->arguments[i].kind))
            read = memcmp((double *)a.at[i] + e, (double *)result->at[i] + e, sizeof(double)) != 0;
        else
            read = !arrays_same_results(&a, result);
        arrays_free(&a);
    }
    return read;
}

/* True if the kernel left other bits than were there; a signalling NaN becomes quiet when it is computed
 * with, also where the value stays the same (a rotation by 0). */
static bool is_written(const struct arrays *fresh, const struct arrays *result, int i, int64_t e)
{
    uint64_t signalling = 0x7ff0000000000001, found;
    if (memcmp((double *)fresh->at[i] + e, (double *)result->at[i] + e, sizeof found) != 0)
        return true;
    struct arrays a = arrays_new(fresh->row, fresh->setting, fresh->storage, true, 3);
    memcpy((double *)a.at[i] + e, &signalling, sizeof signalling);
    arrays_call(&a, kernels_cpu(a.storage));
    memcpy(&found, (double *)a.at[i] + e, sizeof found);
    arrays_free(&a);
    return found != signalling;
}

static void check_argument(const struct arrays *fresh, const struct arrays *result, int i, double *bytes)
{
    const struct kernel_argument *argument = &fresh->row->arguments[i];
    int64_t reads = 0, writes = 0;
    for (int64_t e = 0; e < fresh->work.extent[i]; e++) {
        bool written = kernel_kind_writes(argument->kind) && is_written(fresh, result, i, e);
        writes += written;
        /* An untouched element of an updated array keeps whatever is put there: that is not a read. */
        if (written || !kernel_kind_writes(argument->kind))
            reads += is_read(fresh, result, i, e);
    }
    if (reads != fresh->work.touched[i] * kernel_kind_reads(argument->kind) ||
        writes != fresh->work.touched[i] * kernel_kind_writes(argument->kind))
        fail_msg("%s, %s: %lld elements read and %lld written, %lld declared", fresh->row->name, argument->name,
                 (long long)reads, (long long)writes, (long long)fresh->work.touched[i]);
    *bytes += (double)(reads + writes) * (double)dtype_size(type_at(fresh, i));
}

static void test_declared_bytes_are_read_and_written(void **state)
{
    (void)state;
    for (int r = 0; r < kernel_row_count; r++) {
        double bytes = 0;
        struct arrays fresh = arrays_new(&kernel_rows[r], &settings[4], DTYPE_F64, true, 3);
        struct arrays result = arrays_new(&kernel_rows[r], &settings[4], DTYPE_F64, true, 3);
        arrays_call(&result, kernels_cpu(DTYPE_F64));
        for (int i = 0; i < fresh.row->argument_count; i++)
            if (fresh.at[i] != NULL)
                check_argument(&fresh, &result, i, &bytes);
        assert_float_equal(bytes, kernel_row_bytes(fresh.row, fresh.setting, DTYPE_F64), 0);
        arrays_free(&fresh);
        arrays_free(&result);
    }
}

static void check_budget(const struct kernel_row *row, const struct kernel_setting *setting, enum dtype storage)
{
    for (uint64_t seed = 4; seed < 8; seed++) {
        struct arrays own = arrays_new(row, setting, storage, false, seed);
        struct arrays exact = arrays_new(row, setting, DTYPE_F64, false, seed);
        arrays_copy(&exact, &own);
        arrays_call(&own, kernels_cpu(storage));
        arrays_call(&exact, kernels_cpu(DTYPE_F64));
        double worst = check_results(&own, &exact, 1, own.work.budget, dtype_unit_roundoff(DTYPE_F32));
        if (getenv("KERNELS_SHOW_ERRORS") != NULL && storage == DTYPE_F32)
            printf("%-24s setting %d: %6.2f u of %g\n", row->name, (int)(setting - settings), worst, own.work.budget);
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

static void check_same_bits(const struct kernel_set *one, const struct kernel_set *other)
{
    FOR_EACH_CASE(row, setting)
    {
        struct arrays a = arrays_new(row, setting, one->storage, false, 9);
        struct arrays b = arrays_new(row, setting, one->storage, false, 9);
        arrays_call(&a, one);
        arrays_call(&b, other);
        if (!arrays_same_results(&a, &b))
            fail_msg("%s, %s: the builds differ", row->name, dtype_name(one->storage));
        arrays_free(&a);
        arrays_free(&b);
    }
}

static void test_builds_give_the_same_bits(void **state)
{
    (void)state;
#if KERNELS_HAVE_AVX2
    if (!__builtin_cpu_supports("avx2"))
        skip();
    check_same_bits(&kernels_f32_portable, &kernels_f32_avx2);
    check_same_bits(&kernels_f64_portable, &kernels_f64_avx2);
#else
    (void)check_same_bits;
    skip();
#endif
}

int main(void)
{
    kernels_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f64_equals_plain_loops_and_flop),
        cmocka_unit_test(test_declared_flop_is_the_count),
        cmocka_unit_test(test_declared_bytes_are_read_and_written),
        cmocka_unit_test(test_f32_is_within_budget),
        cmocka_unit_test(test_16_bit_types_are_within_budget),
        cmocka_unit_test(test_builds_give_the_same_bits),
    };
    int failed = cmocka_run_group_tests_name("kernels: table", tests, NULL, NULL);
    kernels_scratch_free();
    return failed;
}
