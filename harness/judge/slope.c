// Least squares with intervals. See slope.h.
#include "harness/judge/slope.h"

#include <math.h>
#include <stdlib.h>

#include "harness/judge/judge.h"
#include "harness/protocol/memory.h"
#include "harness/statistics/statistics.h"

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
    out->slope_half = statistics_student(count - 2) * out->residual / sqrt(xx);
    out->intercept_half = statistics_student(count - 2) * out->residual * sqrt(1.0 / count + mx * mx / xx);
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
