// Medians and their intervals: against values computed by hand, and against draws whose median is known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/statistics/draw.h"
#include "harness/statistics/statistics.h"

static void assert_near(double a, double b) { assert_true(fabs(a - b) <= 1e-12 * (1 + fabs(b))); }

// 2 P(B(n, 1/2) < d) by hand: n = 6: 2/64; 8: 2/256, with d = 2 18/256; 9: d = 2 20/512; 20: d = 6 2 * 21700 / 2^20.
static void order_statistics_are_the_binomial_ones(void **state)
{
    (void)state;
    const struct { int n, d; double coverage; } known[] = {
        {1, 1, 0}, {2, 1, 0.5}, {3, 1, 0.75}, {5, 1, 1 - 2 / 32.0}, {6, 1, 1 - 2 / 64.0}, {8, 1, 1 - 2 / 256.0}, {9, 2, 1 - 20 / 512.0},
        {20, 6, 1 - 2 * 21700.0 / 1048576}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double coverage;
        assert_int_equal(statistics_order(0.95, known[i].n, &coverage), known[i].d);
        assert_near(coverage, known[i].coverage);
    }
}

// The next narrower pair covers less than what was asked for, at any n: the sum is made here from the end, in long double.
static void it_is_the_narrowest_pair(void **state)
{
    (void)state;
    const double levels[] = {0.5, 0.95, 0.975, 0.99};
    for (int n = 2; n <= 1000; n++)
        for (int k = 0; k < 4; k++) {
            long double term = powl(0.5L, n), below = 0;
            int d = 1;
            below = term;                                            // P(B < 1)
            for (term *= n; 2 * (below + term) <= 1 - (long double)levels[k] && d < n / 2; d++) { // P(B < d + 1)
                below += term;
                term *= (long double)(n - d) / (d + 1);
            }
            double coverage;
            assert_int_equal(statistics_order(levels[k], n, &coverage), d);
            assert_true(fabs(coverage - (double)(1 - 2 * below)) < 1e-12);
        }
}

// For large n the pair is n / 2 - z sqrt(n) / 2, z = 1.959964, by the normal limit.
static void large_samples_do_not_underflow(void **state)
{
    (void)state;
    const int sizes[] = {2000, 20001, 1000000, 100000001, 2000000000};
    for (int k = 0; k < 5; k++) {
        int n = sizes[k];
        double coverage, expected = n / 2.0 - 1.959964 * sqrt(n) / 2;
        int d = statistics_order(0.95, n, &coverage);
        assert_true(fabs(d - expected) <= 1.5 + 1e-5 * sqrt(n));
        assert_true(coverage >= 0.95 && coverage < 0.95 + 1.0 / sqrt(n));
    }
}

static void a_median_is_that_of_the_sorted_values(void **state)
{
    (void)state;
    double odd[] = {5, 1, 4, 2, 3, 9, 7}, even[] = {4, 1, 3, 2};
    struct interval i = statistics_median(7, odd);
    assert_true(i.value == 4 && i.low == 1 && i.high == 9 && i.count == 7);
    assert_near(i.coverage, 1 - 2 / 128.0);
    i = statistics_median(4, even);
    assert_true(i.value == 2.5 && i.low == 1 && i.high == 4);
    assert_near(i.coverage, 0.875);
    i = statistics_median(1, odd);
    assert_true(i.value == 5 && i.low == 5 && i.high == 5 && i.coverage == 0 && i.count == 1);
    assert_true(odd[0] == 5 && odd[5] == 9); // as they were
}

static void what_is_no_number_has_no_median(void **state)
{
    (void)state;
    double values[] = {1, NAN, 3}, infinite[] = {1, INFINITY};
    struct interval i[] = {statistics_median(3, values), statistics_median(2, infinite), statistics_median(0, NULL), statistics_median(-1, values)};
    for (int k = 0; k < 4; k++) {
        assert_true(isnan(i[k].value) && isnan(i[k].low) && isnan(i[k].high) && i[k].coverage == 0 && i[k].count == 0);
        assert_false(statistics_narrow(&i[k], 1e9));
        assert_string_equal(statistics_word(&i[k]), "no difference shown");
    }
}

static void quantiles_are_interpolated(void **state)
{
    (void)state;
    double values[] = {40, 10, 30, 20};
    assert_near(statistics_quantile(4, values, 0), 10);
    assert_near(statistics_quantile(4, values, 1), 40);
    assert_near(statistics_quantile(4, values, 0.5), 25);
    assert_near(statistics_quantile(4, values, 0.25), 17.5);
    assert_near(statistics_quantile(1, values, 0.9), 40);
    assert_true(isnan(statistics_quantile(4, values, 1.01)) && isnan(statistics_quantile(4, values, NAN)) && isnan(statistics_quantile(0, values, 0.5)));
}

static void ratios_are_of_pairs(void **state)
{
    (void)state;
    double a[] = {2, 40, 6, 80, 10, 12, 14}, b[] = {1, 20, 3, 40, 5, 6, 7};
    struct interval i = statistics_ratio(7, a, b);
    assert_true(i.value == 2 && i.low == 2 && i.high == 2);
    assert_string_equal(statistics_word(&i), "slower");
    i = statistics_ratio(7, b, a);
    assert_string_equal(statistics_word(&i), "faster");
    b[3] = 0;
    i = statistics_ratio(7, a, b);
    assert_true(isnan(i.value));
}

static void a_word_needs_the_whole_interval(void **state)
{
    (void)state;
    struct interval touches = {1.1, 1, 1.2, 0.95, 9}, above = {1.1, 1.001, 1.2, 0.95, 9}, below = {0.9, 0.8, 0.999, 0.95, 9};
    assert_string_equal(statistics_word(&touches), "no difference shown");
    assert_string_equal(statistics_word(&above), "slower");
    assert_string_equal(statistics_word(&below), "faster");
}

// However far apart: what covers less than 95 % has no word.
static void a_word_needs_coverage(void **state)
{
    (void)state;
    double a[] = {2, 2, 2, 2, 2, 2}, b[] = {1, 1, 1, 1, 1, 1};
    for (int n = 1; n <= 6; n++) {
        struct interval i = statistics_ratio(n, a, b);
        assert_string_equal(statistics_word(&i), n == 1 ? "one value: no interval" : n < STATISTICS_LEAST ? "too few values" : "slower");
        assert_int_equal(statistics_tells(&i), n == 6);
    }
}

// The coverage of launches by hand: of the 20 ways to tell three from three, two are extreme.
static void launches_cover_what_they_can(void **state)
{
    (void)state;
    assert_near(statistics_launches_coverage(3, 3), 0.9);
    assert_near(statistics_launches_coverage(4, 4), 1 - 2 / 70.0);
    assert_near(statistics_launches_coverage(2, 5), 1 - 2 / 21.0);
    assert_near(statistics_launches_coverage(5, 2), 1 - 2 / 21.0);
    assert_true(statistics_launches_coverage(1, 1) == 0 && statistics_launches_coverage(0, 9) == 0 && statistics_launches_coverage(1000, 1000) == 1);
    double values[36];
    int counts[] = {6, 6, 6, 6, 6, 6};
    for (int i = 0; i < 36; i++)
        values[i] = i;
    for (int launches = 1; launches <= 6; launches++) {
        struct interval all = statistics_launches(0.95, launches, counts, values), rounds = statistics_rounds(0.95, launches, counts, values);
        assert_true(all.low == rounds.low && all.high == rounds.high && all.value == rounds.value && all.coverage >= 0.95);
        assert_near(rounds.coverage, launches < 6 ? 1 - 2 / pow(2, launches) : fmin(all.coverage, 1 - 2 / 64.0));
    }
}

static void narrow_needs_width_and_coverage(void **state)
{
    (void)state;
    struct interval i = {100, 98, 102, 0.96, 9};
    assert_true(statistics_narrow(&i, 0.02));
    assert_false(statistics_narrow(&i, 0.0199));
    i.coverage = 0.94;
    assert_false(statistics_narrow(&i, 0.02));
}

// Launch medians 10, 20, 30 of 21 values: the interval of the values alone is within 20 +- 1.
static void launches_that_differ_widen_the_interval(void **state)
{
    (void)state;
    double values[41];
    int counts[] = {3, 35, 3};
    for (int i = 0; i < 41; i++)
        values[i] = i < 3 ? 10 : i < 38 ? 20 + (i - 20) * 0.01 : 30;
    struct interval pooled = statistics_median(41, values), launches = statistics_launches(0.95, 3, counts, values);
    assert_true(pooled.low > 19 && pooled.high < 21);
    assert_true(launches.value == pooled.value && launches.low == 10 && launches.high == 30 && launches.count == 41);
    int one = 41, with_empty[] = {0, 41, 0};
    launches = statistics_launches(0.95, 1, &one, values);
    assert_memory_equal(&launches, &pooled, sizeof pooled);
    launches = statistics_launches(0.95, 3, with_empty, values);
    assert_memory_equal(&launches, &pooled, sizeof pooled);
    launches = statistics_launches(0.95, 0, NULL, NULL);
    assert_true(isnan(launches.value));
}

static void a_quotient_holds_every_ratio(void **state)
{
    (void)state;
    struct interval a = {6, 4, 8, 0.975, 30}, b = {2, 1, 4, 0.98, 20}, q = statistics_quotient(&a, &b);
    assert_true(q.value == 3 && q.low == 1 && q.high == 8 && q.count == 20);
    assert_near(q.coverage, 0.955);
    b.low = 0;
    q = statistics_quotient(&a, &b);
    assert_true(isnan(q.value));
    b.low = NAN;
    q = statistics_quotient(&a, &b);
    assert_true(isnan(q.value));
}

// ---- against draws ----
enum { DRAWS = 2000 };
static double exponential(uint64_t *state) { return -log(draw_unit(state)); } // median log 2

static double cauchy(uint64_t *state) { return tan(M_PI * (draw_unit(state) - 0.5)); } // median 0, no mean

// How often the interval held the median, out of DRAWS.
static int held(double (*next)(uint64_t *), double median, int n, uint64_t seed, double *covers)
{
    int count = 0;
    double *values = malloc((size_t)n * sizeof *values);
    for (int k = 0; k < DRAWS; k++) {
        for (int i = 0; i < n; i++)
            values[i] = next(&seed);
        struct interval interval = statistics_median(n, values);
        count += interval.low <= median && median <= interval.high;
        *covers = interval.coverage;
    }
    free(values);
    return count;
}

// The share that held is that of `coverage` within four standard deviations of a share of 2,000.
static void intervals_cover_what_they_say(void **state)
{
    (void)state;
    const int sizes[] = {2, 5, 6, 7, 12, 30, 101, 400};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int which = 0; which < 2; which++) {
            double says, share = held(which ? cauchy : exponential, which ? 0 : log(2), sizes[k], 7 + 2 * k + (uint64_t)which, &says) / (double)DRAWS;
            assert_true(fabs(share - says) < 4 * sqrt(says * (1 - says) / DRAWS));
        }
}

// Two samples of one distribution: "no difference shown" in at least 95 of 100.
static void no_difference_is_seldom_shown_where_there_is_none(void **state)
{
    (void)state;
    uint64_t seed = 99;
    int shown = 0, seen = 0;
    for (int k = 0; k < DRAWS; k++) {
        double a[40], b[40], c[40];
        for (int i = 0; i < 40; i++) {
            a[i] = 1 + 0.1 * exponential(&seed);
            b[i] = 1 + 0.1 * exponential(&seed);
            c[i] = b[i] * 1.15;
        }
        struct interval x = statistics_median_at(0.975, 40, a), y = statistics_median_at(0.975, 40, b), z = statistics_median_at(0.975, 40, c);
        struct interval same = statistics_quotient(&x, &y), other = statistics_quotient(&z, &x);
        assert_true(same.coverage >= 0.95);
        shown += strcmp(statistics_word(&same), "no difference shown") != 0;
        seen += strcmp(statistics_word(&other), "slower") == 0;
    }
    assert_true(shown <= 0.05 * DRAWS && seen > 0.95 * DRAWS);
}

// Launches with their own level, as starts of a process have: the hull over 12 of them covers, where the pooled interval does not.
static void launches_cover_what_pooling_does_not(void **state)
{
    (void)state;
    enum { LAUNCHES = 12, EACH = 50 };
    uint64_t seed = 5;
    int pooled_held = 0, held_by_hull = 0, counts[LAUNCHES];
    for (int k = 0; k < DRAWS; k++) {
        double values[LAUNCHES * EACH];
        for (int l = 0; l < LAUNCHES; l++) {
            double level = 10 + draw_unit(&seed) - 0.5;
            counts[l] = EACH;
            for (int i = 0; i < EACH; i++)
                values[l * EACH + i] = level + 0.1 * (draw_unit(&seed) - 0.5);
        }
        struct interval pooled = statistics_median(LAUNCHES * EACH, values), hull = statistics_launches(0.95, LAUNCHES, counts, values);
        pooled_held += pooled.low <= 10 && 10 <= pooled.high;
        held_by_hull += hull.low <= 10 && 10 <= hull.high;
    }
    assert_true(held_by_hull >= 0.95 * DRAWS && pooled_held < 0.7 * DRAWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_statistics_are_the_binomial_ones), cmocka_unit_test(it_is_the_narrowest_pair),
        cmocka_unit_test(large_samples_do_not_underflow), cmocka_unit_test(a_median_is_that_of_the_sorted_values),
        cmocka_unit_test(what_is_no_number_has_no_median), cmocka_unit_test(quantiles_are_interpolated), cmocka_unit_test(ratios_are_of_pairs),
        cmocka_unit_test(a_word_needs_the_whole_interval), cmocka_unit_test(a_word_needs_coverage), cmocka_unit_test(launches_cover_what_they_can), cmocka_unit_test(narrow_needs_width_and_coverage),
        cmocka_unit_test(launches_that_differ_widen_the_interval), cmocka_unit_test(a_quotient_holds_every_ratio),
        cmocka_unit_test(intervals_cover_what_they_say), cmocka_unit_test(no_difference_is_seldom_shown_where_there_is_none),
        cmocka_unit_test(launches_cover_what_pooling_does_not),
    };
    return cmocka_run_group_tests_name("medians and their intervals", tests, NULL, NULL);
}
