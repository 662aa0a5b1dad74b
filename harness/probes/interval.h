// The median of measured values, and the interval that holds the median of what they are drawn from with at least 95 %.
//
// By order statistics (Hoefler and Belli, SC 2015): the d-th smallest and the d-th largest of n, d the largest with 2 P(B(n, 1/2) < d) <= 5 %. Nothing
// is assumed of the distribution. With fewer than INTERVAL_LEAST values there is no such pair: the extremes.
#ifndef HARNESS_PROBES_INTERVAL_H
#define HARNESS_PROBES_INTERVAL_H

#include <math.h>
#include <stdlib.h>

enum { INTERVAL_LEAST = 6 };

struct interval { double median, low, high; };

static inline int interval_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int interval_order(int n)
{
    double term = pow(0.5, n), below = 0;
    int d = 0;
    while (below + term <= 0.025 && d < n / 2) {
        below += term;
        term = term * (n - d) / (d + 1);
        d++;
    }
    return d > 0 ? d : 1;
}

// Sorts the values; n of at least 1.
static inline struct interval interval_of(double *values, int n)
{
    int d = interval_order(n);
    qsort(values, (size_t)n, sizeof *values, interval_compare);
    return (struct interval){n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2, values[d - 1], values[n - d]};
}

#endif
