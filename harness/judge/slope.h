// A straight line through figures: bytes against parameters, against 1/N, against steps.
//
// y = intercept + slope x by least squares. Each of the two comes with the half width of its 95 % confidence interval, t s, with s its standard
// error from the residuals and t Student's quantile of count - 2 degrees of freedom. Two points leave none: their half widths are infinite.
// Source: Draper and Smith, Applied Regression Analysis, chapter 1.
#ifndef HARNESS_JUDGE_SLOPE_H
#define HARNESS_JUDGE_SLOPE_H

#include <stdbool.h>

struct slope {
    int count;
    double slope, intercept;
    double slope_half, intercept_half; // of the 95 % intervals
    double residual;                   // sqrt(sum of squared residuals / (count - 2)); 0 of two points
};

// False where the points have no line: fewer than two different x, or one that is not finite.
bool slope_fit(int count, const double *x, const double *y, struct slope *out);
// y = a + b/N: intercept a, what does not shrink; slope b, what is divided over the ranks.
bool slope_over_ranks(int count, const int *ranks, const double *y, struct slope *out);

#endif
