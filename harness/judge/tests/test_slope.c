// Lines through points, against examples computed by hand.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/judge/slope.h"
#include "harness/statistics/statistics.h"

static void assert_near(double a, double b) { assert_true(fabs(a - b) <= 1e-9 * (1 + fabs(b))); }

static void a_line_is_found_exactly(void **state)
{
    (void)state;
    double x[] = {100000, 500000, 2000000}, y[] = {7e6 + 16e5, 7e6 + 80e5, 7e6 + 320e5};
    struct slope s;
    assert_true(slope_fit(3, x, y, &s));
    assert_near(s.slope, 16);
    assert_near(s.intercept, 7e6);
    assert_true(s.residual < 1e-6 && s.slope_half < 1e-9 && s.count == 3);
}

// x = 1 2 3 4, y = 6 5 7 10: means 2.5 and 7, sum xy 7, sum xx 5, so 1.4 x + 3.5; residuals 1.1 -1.3 -0.7 0.9, squares 4.2,
// s = sqrt(4.2 / 2); errors s / sqrt(5) and s sqrt(1/4 + 6.25/5); t of 2 degrees of freedom is 4.303.
static void scatter_gives_an_interval(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4}, y[] = {6, 5, 7, 10};
    struct slope s;
    assert_true(slope_fit(4, x, y, &s));
    assert_near(s.slope, 1.4);
    assert_near(s.intercept, 3.5);
    assert_near(s.residual, sqrt(2.1));
    assert_near(s.slope_half, 4.303 * sqrt(2.1 / 5));
    assert_near(s.intercept_half, 4.303 * sqrt(2.1 * 1.5));
}

static void what_shrinks_is_told_from_what_stays(void **state)
{
    (void)state;
    int ranks[] = {1, 2, 3, 4, 8};
    double y[] = {16, 10, 8, 7, 5.5}; // 4 + 12/N
    struct slope s;
    assert_true(slope_over_ranks(5, ranks, y, &s));
    assert_near(s.intercept, 4);
    assert_near(s.slope, 12);
}

static void no_line_is_said(void **state)
{
    (void)state;
    double same[] = {3, 3, 3}, y[] = {1, 2, 3}, bad[] = {1, NAN, 3}, x[] = {1, 2, 3};
    struct slope s;
    assert_false(slope_fit(1, x, y, &s) || slope_fit(0, x, y, &s));
    assert_false(slope_fit(3, same, y, &s));
    assert_false(slope_fit(3, x, bad, &s) || slope_fit(3, bad, y, &s));
    assert_true(slope_fit(2, x, y, &s) && s.slope == 1 && isinf(s.slope_half) && isinf(s.intercept_half));
}

static void quantiles_fall_to_the_normal_one(void **state)
{
    (void)state;
    assert_true(isinf(statistics_student(0)) && statistics_student(1) == 12.706 && statistics_student(30) == 2.042);
    assert_true(fabs(statistics_student(40) - 2.021) < 1e-3 && fabs(statistics_student(120) - 1.980) < 1e-3);
    for (int n = 1; n < 200; n++)
        assert_true(statistics_student(n + 1) < statistics_student(n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found_exactly), cmocka_unit_test(scatter_gives_an_interval), cmocka_unit_test(what_shrinks_is_told_from_what_stays),
        cmocka_unit_test(no_line_is_said), cmocka_unit_test(quantiles_fall_to_the_normal_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
