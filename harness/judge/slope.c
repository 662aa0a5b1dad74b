// Least squares with intervals. See slope.h.
#include "harness/judge/slope.h"

#include <math.h>
#include <stdlib.h>

#include "harness/judge/judge.h"
#include "harness/protocol/memory.h"

// Two-sided 95 % quantiles of 1 to 30 degrees of freedom.
// Source: NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2, column 0.975.
static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                   2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

// Beyond the table: the normal quantile z and two terms of its expansion in 1/n (Abramowitz and Stegun 26.7.5).
double slope_quantile(int freedom)
{
    const double z = 1.959964, first = (pow(z, 3) + z) / 4, second = (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / 96;
    double n = freedom;
    return freedom < 1 ? INFINITY : freedom <= QUANTILES ? quantiles[freedom - 1] : z + first / n + second / (n * n);
}

static bool all_finite(int count, const double *values)
{
    for (int i = 0; i < count; i++)
        if (!judge_finite(values[i]))
            return false;
    return true;
}

static double mean(int count, const double *values)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

bool slope_fit(int count, const double *x, const double *y, struct slope *out)
{
    if (count < 2 || !all_finite(count, x) || !all_finite(count, y))
        return false;
    double mx = mean(count, x), my = mean(count, y), xx = 0, xy = 0, squares = 0;
    for (int i = 0; i < count; i++) { // about the means, so that large offsets cost no digits
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    if (!(xx > 0))
        return false;
    *out = (struct slope){.count = count, .slope = xy / xx, .slope_half = INFINITY, .intercept_half = INFINITY};
    out->intercept = my - out->slope * mx;
    for (int i = 0; i < count; i++) {
        double rest = (y[i] - my) - out->slope * (x[i] - mx);
        squares += rest * rest;
    }
    if (count == 2)
        return true;
    out->residual = sqrt(squares / (count - 2));
    out->slope_half = slope_quantile(count - 2) * out->residual / sqrt(xx);
    out->intercept_half = slope_quantile(count - 2) * out->residual * sqrt(1.0 / count + mx * mx / xx);
    return true;
}

bool slope_over_ranks(int count, const int *ranks, const double *y, struct slope *out)
{
    double *x = memory_zeros((size_t)(count > 0 ? count : 1), sizeof *x);
    for (int i = 0; i < count; i++)
        x[i] = 1.0 / ranks[i];
    bool fits = slope_fit(count, x, y, out);
    free(x);
    return fits;
}
