// Student's t. See statistics.h.
#include <math.h>

#include "harness/statistics/statistics.h"

// Two-sided 95 % quantiles of 1 to 30 degrees of freedom.
// Source: NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2, column 0.975.
static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                   2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

// Beyond the table: the normal quantile z and two terms of its expansion in 1/n (Abramowitz and Stegun 26.7.5).
double statistics_student(int freedom)
{
    const double z = 1.959964, first = (pow(z, 3) + z) / 4, second = (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / 96;
    double n = freedom;
    return freedom < 1 ? INFINITY : freedom <= QUANTILES ? quantiles[freedom - 1] : z + first / n + second / (n * n);
}
