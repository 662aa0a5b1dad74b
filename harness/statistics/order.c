// Which order statistics enclose a median. See statistics.h.
//
// What: of n draws, the number B below the median is binomial (n, 1/2), so x(d) <= median <= x(n + 1 - d) has the probability P(d <= B <= n - d).
// How:  terms relative to the middle one, from there outwards: they sink to 0 harmlessly, where those from the end would start as an
//       underflow 2^-n. Their sum is their scale.
// Source: Le Boudec, Performance Evaluation of Computer and Communication Systems, theorem 2.1.
#include "harness/statistics/statistics.h"

// Sum of C(n, k) / C(n, n / 2) over all k, each with its twin at n - k.
static double all_terms(int n)
{
    double term = 1, sum = 0;
    for (int k = n / 2; k >= 0 && term > 0x1p-80; k--) {
        sum += k == n - k ? term : 2 * term;
        term *= (double)k / (n - k + 1);
    }
    return sum;
}

int statistics_order(double level, int count, double *coverage)
{
    double all = all_terms(count), sum = 0, term = 1;
    int d = count / 2 + 1; // an empty middle
    while (d > 1 && sum < level * all) {
        d--;
        sum += d == count - d ? term : 2 * term;
        term *= (double)d / (count - d + 1);
    }
    *coverage = count > 1 ? sum / all : 0;
    return d;
}
