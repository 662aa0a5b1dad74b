// The fit of latency and bandwidth against what made the times, and the shuffled order.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/statistics/draw.h"
#include "harness/statistics/statistics.h"

enum { SIZES = 12, SAMPLES = 25 };
static const double alpha = 40e-6, beta = 1 / 12.5e6; // 40 us, 100 Mbit/s

static void make(double noise, uint64_t *seed, double seconds[SIZES][SAMPLES], struct fit_point points[SIZES])
{
    for (int i = 0; i < SIZES; i++) {
        points[i] = (struct fit_point){8.0 * (1 << 2 * i), SAMPLES, seconds[i], 0, NULL};
        for (int k = 0; k < SAMPLES; k++)
            seconds[i][k] = (alpha + beta * points[i].bytes) * (1 + noise * (draw_unit(seed) - 0.5));
    }
}

static void exact_times_give_their_line(void **state)
{
    (void)state;
    double seconds[SIZES][SAMPLES];
    struct fit_point points[SIZES];
    struct alpha_beta f;
    uint64_t seed = 1;
    make(0, &seed, seconds, points);
    assert_true(statistics_alpha_beta(SIZES, points, &f));
    assert_true(fabs(f.alpha_s.value / alpha - 1) < 1e-9 && fabs(f.beta_s_per_byte.value / beta - 1) < 1e-9 && f.worst_residual < 1e-9);
    assert_true(fabs(f.alpha_s.high / f.alpha_s.low - 1) < 1e-9 && f.alpha_s.coverage == 0.95 && f.alpha_s.count == SIZES * SAMPLES);
}

// By hand: sizes 0 and 2, medians 1 and 3: the line 1 + x goes through both, whatever the weights. With a third point at 1 with the time 2.5 the weights are
// 1, 1/9 and 4/25, and the line is that of the normal equations.
static void weights_are_those_of_relative_errors(void **state)
{
    (void)state;
    double one[] = {1, 0.5, 2}, three[] = {3, 3, 3}, middle[] = {2.5};
    struct fit_point points[] = {{0, 3, one, 0, NULL}, {2, 3, three, 0, NULL}, {1, 1, middle, 0, NULL}};
    struct alpha_beta f;
    assert_true(statistics_alpha_beta(2, points, &f));
    assert_true(fabs(f.alpha_s.value - 1) < 1e-12 && fabs(f.beta_s_per_byte.value - 1) < 1e-12);
    assert_true(fabs(f.alpha_s.low - 0.5) < 1e-12 && fabs(f.alpha_s.high - 2) < 1e-12 && f.alpha_s.coverage == 0); // three samples: no coverage is claimed
    // sum w = 286/225, sum wx = 86/225, sum wy = 390/225, sum wxx = 136/225, sum wxy = 240/225
    double determinant = 286.0 * 136 - 86.0 * 86;
    assert_true(statistics_alpha_beta(3, points, &f));
    assert_true(fabs(f.beta_s_per_byte.value - (286.0 * 240 - 86.0 * 390) / determinant) < 1e-12);
    assert_true(fabs(f.alpha_s.value - (136.0 * 390 - 86.0 * 240) / determinant) < 1e-12);
    double at_one = f.alpha_s.value + f.beta_s_per_byte.value;
    assert_true(fabs(f.worst_residual - fabs(at_one / 2.5 - 1)) < 1e-12);
}

// Of 400 simulated measurements the intervals hold the truth in about 95 of 100: 380 +- 4 standard deviations of 4.4, and room for what the
// bootstrap of a median misses.
static void intervals_hold_what_made_the_times(void **state)
{
    (void)state;
    double seconds[SIZES][SAMPLES];
    struct fit_point points[SIZES];
    uint64_t seed = 42;
    int held_alpha = 0, held_beta = 0;
    for (int k = 0; k < 400; k++) {
        struct alpha_beta f;
        make(0.3, &seed, seconds, points);
        assert_true(statistics_alpha_beta(SIZES, points, &f));
        held_alpha += f.alpha_s.low <= alpha && alpha <= f.alpha_s.high;
        held_beta += f.beta_s_per_byte.low <= beta && beta <= f.beta_s_per_byte.high;
        assert_true(fabs(f.alpha_s.value / alpha - 1) < 0.1 && fabs(f.beta_s_per_byte.value / beta - 1) < 0.1);
    }
    assert_in_range(held_alpha, 360, 398);
    assert_in_range(held_beta, 360, 398);
}

// Three starts, of which the second takes twice as long whatever the size. By hand: alphas 1, 2 and 1 have mean 4/3 and s = sqrt(1/3), so that the interval
// is 4/3 +- 4.303 / 3.
static void starts_that_differ_widen_the_intervals(void **state)
{
    (void)state;
    double seconds[SIZES][SAMPLES];
    struct fit_point points[SIZES];
    struct alpha_beta all, by_start;
    static const int counts[] = {10, 8, 7};
    uint64_t seed = 5;
    make(0, &seed, seconds, points);
    for (int i = 0; i < SIZES; i++)
        for (int k = 10; k < 18; k++)
            seconds[i][k] *= 2;
    assert_true(statistics_alpha_beta(SIZES, points, &all));
    for (int i = 0; i < SIZES; i++)
        points[i].launches = 3, points[i].launch_counts = counts;
    assert_true(statistics_alpha_beta(SIZES, points, &by_start));
    assert_true(all.starts == 1 && by_start.starts == 3 && by_start.alpha_s.coverage == 0.95);
    assert_true(by_start.beta_s_per_byte.value == all.beta_s_per_byte.value);
    assert_true(fabs(by_start.alpha_s.low / alpha - (4 - 4.303) / 3) < 1e-6 && fabs(by_start.alpha_s.high / alpha - (4 + 4.303) / 3) < 1e-6);
    assert_true(fabs(by_start.beta_s_per_byte.high / beta - (4 + 4.303) / 3) < 1e-6);
    points[3].launches = 2; // a size that one start lacks: no fit of each start
    assert_true(statistics_alpha_beta(SIZES, points, &by_start));
    assert_true(by_start.starts == 1 && by_start.alpha_s.low == all.alpha_s.low);
}

// Of 400 measurements of three starts each, which differ by 5 % (sums of twelve draws, so that they are nearly normal): 380 +- 4 standard deviations of 4.4.
static void intervals_over_starts_hold_what_made_the_times(void **state)
{
    (void)state;
    double seconds[SIZES][SAMPLES];
    struct fit_point points[SIZES];
    static const int counts[] = {9, 8, 8};
    uint64_t seed = 77;
    int held_alpha = 0, held_beta = 0;
    for (int m = 0; m < 400; m++) {
        struct alpha_beta f;
        make(0.01, &seed, seconds, points);
        for (int start = 0, at = 0; start < 3; at += counts[start++]) {
            double slower = 1;
            for (int i = 0; i < 12; i++)
                slower += 0.05 * (draw_unit(&seed) - 0.5);
            for (int i = 0; i < SIZES; i++)
                for (int k = at; k < at + counts[start]; k++)
                    seconds[i][k] *= slower;
        }
        for (int i = 0; i < SIZES; i++)
            points[i].launches = 3, points[i].launch_counts = counts;
        assert_true(statistics_alpha_beta(SIZES, points, &f));
        held_alpha += f.alpha_s.low <= alpha && alpha <= f.alpha_s.high;
        held_beta += f.beta_s_per_byte.low <= beta && beta <= f.beta_s_per_byte.high;
    }
    assert_in_range(held_alpha, 362, 397);
    assert_in_range(held_beta, 362, 397);
}

static void times_off_the_line_are_told(void **state)
{
    (void)state;
    double a[] = {1}, b[] = {2}, c[] = {10};
    struct fit_point points[] = {{1, 1, a, 0, NULL}, {2, 1, b, 0, NULL}, {3, 1, c, 0, NULL}};
    struct alpha_beta f;
    assert_true(statistics_alpha_beta(3, points, &f));
    assert_true(f.worst_residual > 0.2);
}

static void no_line_is_said(void **state)
{
    (void)state;
    double good[] = {1, 2}, zero[] = {0, 1}, bad[] = {NAN};
    struct fit_point one[] = {{8, 2, good, 0, NULL}}, same[] = {{8, 2, good, 0, NULL}, {8, 2, good, 0, NULL}}, zeros[] = {{8, 2, good, 0, NULL}, {16, 2, zero, 0, NULL}}, nan[] = {{8, 2, good, 0, NULL}, {16, 1, bad, 0, NULL}},
                     empty[] = {{8, 2, good, 0, NULL}, {16, 0, good, 0, NULL}};
    struct alpha_beta f;
    assert_false(statistics_alpha_beta(0, NULL, &f));
    assert_false(statistics_alpha_beta(1, one, &f));
    assert_false(statistics_alpha_beta(2, same, &f));
    assert_false(statistics_alpha_beta(2, zeros, &f));
    assert_false(statistics_alpha_beta(2, nan, &f));
    assert_false(statistics_alpha_beta(2, empty, &f));
}

static void the_same_samples_give_the_same_intervals(void **state)
{
    (void)state;
    double seconds[SIZES][SAMPLES];
    struct fit_point points[SIZES];
    struct alpha_beta f, g;
    uint64_t seed = 3;
    make(0.2, &seed, seconds, points);
    assert_true(statistics_alpha_beta(SIZES, points, &f) && statistics_alpha_beta(SIZES, points, &g));
    assert_true(f.alpha_s.low == g.alpha_s.low && f.beta_s_per_byte.high == g.beta_s_per_byte.high && f.alpha_s.low < f.alpha_s.high);
}

static void a_shuffle_is_a_fair_permutation(void **state)
{
    (void)state;
    int order[4], seen[4][4] = {0}, again[4];
    for (uint64_t seed = 0; seed < 6000; seed++) {
        int bits = 0;
        statistics_shuffle(4, order, seed);
        for (int i = 0; i < 4; i++) {
            bits |= 1 << order[i];
            seen[i][order[i]]++;
        }
        assert_int_equal(bits, 15);
    }
    for (int i = 0; i < 16; i++)
        assert_in_range(seen[i / 4][i % 4], 1500 - 4 * 34, 1500 + 4 * 34); // standard deviation 33.5
    statistics_shuffle(4, order, 17);
    statistics_shuffle(4, again, 17);
    assert_memory_equal(order, again, sizeof order);
    statistics_shuffle(0, NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_times_give_their_line), cmocka_unit_test(weights_are_those_of_relative_errors),
        cmocka_unit_test(intervals_hold_what_made_the_times), cmocka_unit_test(times_off_the_line_are_told), cmocka_unit_test(starts_that_differ_widen_the_intervals), cmocka_unit_test(intervals_over_starts_hold_what_made_the_times), cmocka_unit_test(no_line_is_said),
        cmocka_unit_test(the_same_samples_give_the_same_intervals), cmocka_unit_test(a_shuffle_is_a_fair_permutation),
    };
    return cmocka_run_group_tests_name("latency, bandwidth and order", tests, NULL, NULL);
}
