// Medians, quantiles and what they say. See statistics.h.
#include "harness/statistics/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/statistics/sorted.h"

static const struct interval none = {NAN, NAN, NAN, 0, 0};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double *sorted_copy(int count, const double *values)
{
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return NULL;
    if (count < 1)
        return NULL;
    double *out = memory_zeros((size_t)count, sizeof *out);
    memcpy(out, values, (size_t)count * sizeof *out);
    qsort(out, (size_t)count, sizeof *out, compare);
    return out;
}

double sorted_quantile(int count, const double *sorted, double p)
{
    double place = p * (count - 1);
    int below = (int)place;
    if (below >= count - 1)
        return sorted[count - 1];
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

struct interval statistics_median_at(double level, int count, const double *values)
{
    double *sorted = sorted_copy(count, values);
    if (sorted == NULL)
        return none;
    struct interval out = {.count = count, .value = sorted_quantile(count, sorted, 0.5)};
    int d = statistics_order(level, count, &out.coverage);
    out.low = sorted[d - 1];
    out.high = sorted[count - d];
    free(sorted);
    return out;
}

struct interval statistics_median(int count, const double *values) { return statistics_median_at(0.95, count, values); }

double statistics_quantile(int count, const double *values, double p)
{
    double *sorted = p >= 0 && p <= 1 ? sorted_copy(count, values) : NULL, out = sorted != NULL ? sorted_quantile(count, sorted, p) : NAN;
    free(sorted);
    return out;
}

static struct interval hull(double level, int launches, const int *counts, const double *values, double *between_coverage)
{
    double *medians = memory_zeros((size_t)(launches > 0 ? launches : 1), sizeof *medians);
    int all = 0, used = 0;
    for (int i = 0; i < launches; all += counts[i++])
        if (counts[i] > 0)
            medians[used++] = statistics_median(counts[i], values + all).value;
    struct interval out = statistics_median_at(level, all, values), between = statistics_median_at(level, used, medians);
    free(medians);
    if (used > 1 && out.count > 0) {
        out.low = fmin(out.low, between.low);
        out.high = fmax(out.high, between.high);
    }
    *between_coverage = between.coverage;
    return out;
}

struct interval statistics_launches(double level, int launches, const int *counts, const double *values)
{
    double between;
    return hull(level, launches, counts, values, &between);
}

struct interval statistics_rounds(double level, int launches, const int *counts, const double *values)
{
    double between;
    struct interval out = hull(level, launches, counts, values, &between);
    out.coverage = fmin(out.coverage, between);
    return out;
}

double statistics_launches_coverage(int a, int b)
{
    double ways = 1;
    for (int i = 1; i <= a; i++)
        ways *= (double)(b + i) / i;
    return a < 1 || b < 1 ? 0 : fmax(0, 1 - 2 / ways);
}

struct interval statistics_ratio(int count, const double *a, const double *b)
{
    double *ratios = memory_zeros((size_t)(count > 0 ? count : 1), sizeof *ratios);
    for (int i = 0; i < count; i++)
        ratios[i] = a[i] / b[i];
    struct interval out = statistics_median(count, ratios);
    free(ratios);
    return out;
}

struct interval statistics_quotient(const struct interval *a, const struct interval *b)
{
    if (!(a->low > 0 && b->low > 0)) // also of what is no number: a ratio needs figures above 0
        return none;
    return (struct interval){a->value / b->value, a->low / b->high, a->high / b->low, fmax(a->coverage + b->coverage - 1, 0),
                             a->count < b->count ? a->count : b->count};
}

bool statistics_tells(const struct interval *i) { return i->coverage >= 0.95; }

bool statistics_narrow(const struct interval *i, double relative)
{
    return statistics_tells(i) && (i->high - i->low) / 2 <= relative * fabs(i->value);
}

const char *statistics_word(const struct interval *ratio)
{
    if (ratio->count > 0 && !statistics_tells(ratio))
        return ratio->count == 1 ? "one value: no interval" : "too few values";
    return ratio->low > 1 ? "slower" : ratio->high < 1 ? "faster" : "no difference shown";
}
