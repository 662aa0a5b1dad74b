/*
 * Claims: every 16-bit pattern converts to float exactly and back to itself; every float and double is
 *         rounded to the nearest 16-bit value, ties to even, once; names, sizes and access by type.
 *
 * How:  the 16-bit values are walked in order. Between two neighbours the midpoint must go to the even one,
 *       and the numbers just beside it to the nearer one: in float, and in double by one unit of the 53rd
 *       bit, which a detour by way of a rounded float gets wrong. Exact values come from the formats'
 *       definition (ldexp), not from the code under test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "kernels/kernels.h"

struct format {
    enum dtype type;
    int fraction_bits, bias;
    uint16_t infinity;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
    uint16_t (*narrow_double)(double);
};

static float widen_bf16(uint16_t half) { return bf16_to_f32(half); }
static float widen_f16(uint16_t half) { return f16_to_f32(half); }
static uint16_t narrow_bf16(float value) { return bf16_from_f32(value); }
static uint16_t narrow_f16(float value) { return f16_from_f32(value); }

static const struct format formats[] = {
    {DTYPE_BF16, 7, 127, 0x7f80, widen_bf16, narrow_bf16, bf16_from_f64},
    {DTYPE_F16, 10, 15, 0x7c00, widen_f16, narrow_f16, f16_from_f64},
};

/* The value of a finite, non-negative pattern; at the pattern of infinity, the number that it rounds from. */
static double defined_value(const struct format *f, uint16_t half)
{
    int exponent = half >> f->fraction_bits, fraction = half & ((1 << f->fraction_bits) - 1);
    int significand = exponent > 0 ? fraction + (1 << f->fraction_bits) : fraction;
    return ldexp(significand, (exponent > 0 ? exponent : 1) - f->bias - f->fraction_bits);
}

static void check_near(const struct format *f, uint16_t low)
{
    double midpoint = (defined_value(f, low) + defined_value(f, low + 1)) / 2;
    uint16_t even = low & 1 ? low + 1 : low, sign = 0x8000;
    assert_int_equal(f->narrow_double(midpoint), even);
    assert_int_equal(f->narrow_double(nextafter(midpoint, 0)), low);
    assert_int_equal(f->narrow_double(nextafter(midpoint, INFINITY)), low + 1);
    assert_int_equal(f->narrow_double(-nextafter(midpoint, 0)), low | sign);
    if ((double)(float)midpoint != midpoint)
        return;
    assert_int_equal(f->narrow((float)midpoint), even);
    assert_int_equal(f->narrow((float)-midpoint), even | sign);
    assert_int_equal(f->narrow(nextafterf((float)midpoint, 0)), low);
    assert_int_equal(f->narrow(nextafterf((float)midpoint, INFINITY)), low + 1);
}

static void check_pattern(const struct format *f, uint16_t half)
{
    uint16_t magnitude = half & 0x7fff;
    float value = f->widen(half);
    if (magnitude > f->infinity) {
        uint16_t quiet = half | (uint16_t)(1 << (f->fraction_bits - 1));
        assert_true(isnan(value));
        assert_int_equal(f->narrow(value), quiet);
        assert_true(isnan(f->widen(f->narrow_double(value))));
        return;
    }
    double expected = magnitude == f->infinity ? INFINITY : defined_value(f, magnitude);
    assert_true(fabs((double)value) == expected);
    assert_int_equal(signbit(value) != 0, half >> 15);
    assert_int_equal(f->narrow(value), half);
    assert_int_equal(f->narrow_double(value), half);
    if (half < f->infinity)
        check_near(f, half);
}

static void test_all_16_bit_patterns(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        for (uint32_t half = 0; half <= 0xffff; half++)
            check_pattern(&formats[k], (uint16_t)half);
}

static void test_extremes(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const struct format *f = &formats[k];
        assert_int_equal(f->narrow(3.4028235e38f), f->infinity);
        assert_int_equal(f->narrow_double(1e300), f->infinity);
        assert_int_equal(f->narrow_double(-1e300), f->infinity | 0x8000);
        assert_int_equal(f->narrow_double(1e-300), 0);
        assert_int_equal(f->narrow_double(-1e-300), 0x8000);
        assert_true(isnan(f->widen(f->narrow_double(NAN))));
    }
}

/* The loops that kernels_cast runs give what the scalar conversions give. */
static void test_cast_loops_over_all_patterns(void **state)
{
    (void)state;
    static uint16_t half[65536], back[65536];
    static float wide[65536];
    for (int i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        kernels_cast(65536, formats[k].type, half, DTYPE_F32, wide);
        for (int i = 0; i < 65536; i++)
            assert_int_equal(dtype_float_bits(wide[i]), dtype_float_bits(formats[k].widen((uint16_t)i)));
        for (int i = 0; i < 65536; i++)
            wide[i] = dtype_float_from_bits((uint32_t)i * 65521u);
        kernels_cast(65536, DTYPE_F32, wide, formats[k].type, back);
        for (int i = 0; i < 65536; i++)
            assert_int_equal(back[i], formats[k].narrow(wide[i]));
    }
}

static void test_names_and_sizes(void **state)
{
    (void)state;
    static const size_t sizes[DTYPE_COUNT] = {4, 8, 2, 2, 4, 8};
    for (int i = 0; i < DTYPE_COUNT; i++) {
        enum dtype type = i == 0 ? DTYPE_F64 : DTYPE_F32;
        assert_true(dtype_parse(dtype_name((enum dtype)i), &type));
        assert_int_equal(type, i);
        assert_int_equal(dtype_size(type), sizes[i]);
    }
    enum dtype untouched = DTYPE_F16;
    assert_false(dtype_parse("float32", &untouched));
    assert_int_equal(untouched, DTYPE_F16);
    assert_string_equal(dtype_name((enum dtype)99), "?");
    assert_int_equal(dtype_size((enum dtype)99), 0);
}

/* u is half the distance from 1 to the next number: 1 + u is a tie and goes back to 1, 1 + 3u goes up to 1 + 4u. */
static void test_unit_roundoff(void **state)
{
    (void)state;
    for (enum dtype type = DTYPE_F32; type <= DTYPE_F16; type++) {
        double u = dtype_unit_roundoff(type);
        char element[8];
        assert_true(dtype_is_float(type));
        dtype_set(type, element, 0, 1 + 2 * u);
        assert_true(dtype_get(type, element, 0) == 1 + 2 * u);
        if (type == DTYPE_F64)
            continue;
        dtype_set(type, element, 0, 1 + u);
        assert_true(dtype_get(type, element, 0) == 1);
        dtype_set(type, element, 0, 1 + 3 * u);
        assert_true(dtype_get(type, element, 0) == 1 + 4 * u);
    }
    assert_false(dtype_is_float(DTYPE_I64));
}

static void test_integers_saturate(void **state)
{
    (void)state;
    int32_t narrow;
    int64_t wide;
    static const struct {
        double value;
        int32_t narrow;
        int64_t wide;
    } cases[] = {{2.5, 2, 2}, {-3.5, -4, -4}, {NAN, 0, 0}, {1e30, INT32_MAX, INT64_MAX},
                 {-INFINITY, INT32_MIN, INT64_MIN}, {4294967296.0, INT32_MAX, 4294967296}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dtype_set(DTYPE_I32, &narrow, 0, cases[i].value);
        dtype_set(DTYPE_I64, &wide, 0, cases[i].value);
        assert_int_equal(narrow, cases[i].narrow);
        assert_true(wide == cases[i].wide);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_16_bit_patterns), cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_cast_loops_over_all_patterns), cmocka_unit_test(test_names_and_sizes),
        cmocka_unit_test(test_unit_roundoff), cmocka_unit_test(test_integers_saturate),
    };
    return cmocka_run_group_tests_name("kernels: dtype", tests, NULL, NULL);
}
