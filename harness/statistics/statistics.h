// Statistics of measured times: medians with nonparametric intervals, when to stop, and what two series show of each other.
//
// Nothing here assumes a distribution but what a few starts of the workers show of alpha and beta (Student's t). Source: Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015, rules 3 to 9;
// the interval of a median by order statistics: Le Boudec, Performance Evaluation of Computer and Communication Systems, section 2.2.
#ifndef HARNESS_STATISTICS_H
#define HARNESS_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

// A figure with the interval that holds it. coverage: what the interval really covers, at least what was asked for where that can be had; with
// fewer than six values the interval is that of the extremes, whose coverage is less. NAN where count is 0.
enum { STATISTICS_LEAST = 6 }; // values that an interval of 95 % needs
struct interval { double value, low, high, coverage; int count; };

// Median of values (count), which are left as they are, with the interval that covers it with at least 95 %. Not finite: a NAN interval.
struct interval statistics_median(int count, const double *values);
// The same for another coverage, 0 < level < 1.
struct interval statistics_median_at(double level, int count, const double *values);
// For a sorted sample of `count` draws: the largest d for which the d-th smallest and the d-th largest enclose the median with at least `level`, and in
// *coverage what they really cover; 1, the extremes, where no pair does. No distribution is assumed but that values do not repeat: ties cover more.
int statistics_order(double level, int count, double *coverage);
// Median of the values of several launches, one after another in `values` (counts[launches]). Values of one launch resemble each other, so the interval is
// the hull of two: that of all values, and that of the launches' medians, where there are several launches. coverage is that of the values alone.
struct interval statistics_launches(double level, int launches, const int *counts, const double *values);
// The same, its coverage the smaller of the two: for few values a launch, where what differs from launch to launch decides.
struct interval statistics_rounds(double level, int launches, const int *counts, const double *values);
// What the medians of a and of b launches cover at most, whatever is inside a launch: that all of one side lie beyond all of the other happens by chance in
// two of the C(a + b, a) ways to tell launches apart. 0 with one launch each; 95 % from four each. Source: the rank sum test (Wilcoxon 1945), its extreme case.
double statistics_launches_coverage(int a, int b);
double statistics_quantile(int count, const double *values, double p); // p in [0, 1], of the sorted values by linear interpolation
// Median of a[i] / b[i]: for things that took turns.
struct interval statistics_ratio(int count, const double *a, const double *b);
// a / b for figures measured apart: every ratio of two values that the intervals hold. Covers at least a.coverage + b.coverage - 1 (Bonferroni),
// so that two intervals of 97.5 % give one of 95 %.
struct interval statistics_quotient(const struct interval *a, const struct interval *b);
// True where the interval's half width is at most `relative` of its value and its coverage at least 95 %.
bool statistics_narrow(const struct interval *i, double relative);

// What a ratio of times says: its interval lies above 1 ("slower"), below 1 ("faster"), or holds 1 ("no difference shown"). One that covers less than 95 % says
// nothing: "one value: no interval", "too few values".
const char *statistics_word(const struct interval *ratio);
bool statistics_tells(const struct interval *i); // it covers 95 %

// Student's t with that many degrees of freedom: 95 % lie within +-t. Infinite below 1.
double statistics_student(int freedom);

// Fit of seconds = alpha + beta * bytes over the points (weights 1 / seconds^2, as errors are relative); bandwidth = 1 / beta. A point counts by its median.
// Intervals of 95 %: where every point has the same number of starts, two at least, a fit is made for each start, since samples of one start are alike, and the
// interval is Student's, mean +- t s / sqrt(starts). Of one start the raw samples of each point are resampled (bootstrap, 500 times, a fixed seed; Efron and
// Tibshirani 1993, chapter 13): that says nothing of another start. Coverage is 0 where then a point has fewer than STATISTICS_LEAST samples.
struct alpha_beta {
    struct interval alpha_s, beta_s_per_byte;
    double worst_residual; // largest |relative residual| of a point
    int starts;            // that the intervals are over; 1: over samples
};
struct fit_point { double bytes; int count; const double *seconds; int launches; const int *launch_counts; }; // of seconds, launch after launch; 0, NULL: one
bool statistics_alpha_beta(int count, const struct fit_point *points, struct alpha_beta *out); // false: fewer than 2 different sizes

// A shuffled order of 0..count-1 (Fisher and Yates), reproducible by seed.
void statistics_shuffle(int count, int *order, uint64_t seed);

#endif
