// Latency and bandwidth from times at several sizes. See statistics.h.
//
// How: weighted least squares in closed form, weights 1 / seconds^2, about the weighted means so that large sizes cost no digits. A resampled median needs
//      no resampled values: how often each of the sorted samples was drawn, counted up to half. A sample is drawn as the place where it stands among the sorted ones.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/statistics/draw.h"
#include "harness/statistics/sorted.h"
#include "harness/statistics/statistics.h"

enum { RESAMPLES = 500 };
static const uint64_t seed = 20150001;

struct points { int count, most; const struct fit_point *given; const int *counts; const double *bytes; double **sorted, *seconds; int **places, *drawn; };

static bool fit(int count, const double *bytes, const double *seconds, double *alpha, double *beta)
{
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < count; i++) {
        double weight = 1 / (seconds[i] * seconds[i]);
        w += weight;
        x += weight * bytes[i];
        y += weight * seconds[i];
    }
    x /= w;
    y /= w;
    for (int i = 0; i < count; i++) {
        double weight = 1 / (seconds[i] * seconds[i]);
        xx += weight * (bytes[i] - x) * (bytes[i] - x);
        xy += weight * (bytes[i] - x) * (seconds[i] - y);
    }
    if (!(xx > 0))
        return false;
    *beta = xy / xx;
    *alpha = y - *beta * x;
    return true;
}

// Value at a place (from 0) of a sample in which sorted[i] stands drawn[i] times.
static double at_place(int place, const int *drawn, const double *sorted)
{
    int i = 0;
    for (int passed = drawn[0]; passed <= place; passed += drawn[i])
        i++;
    return sorted[i];
}

// Where each value stands, or one that is the same.
static int *places_of(int count, const double *values, const double *sorted)
{
    int *places = memory_zeros((size_t)count, sizeof *places);
    for (int i = 0; i < count; i++) {
        int low = 0, high = count - 1;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (sorted[middle] < values[i])
                low = middle + 1;
            else
                high = middle;
        }
        places[i] = low;
    }
    return places;
}

static double resampled_median(const struct points *p, int point, uint64_t *state)
{
    int n = p->counts[point];
    memset(p->drawn, 0, (size_t)n * sizeof *p->drawn);
    for (int i = 0; i < n; i++)
        p->drawn[p->places[point][draw_below(state, n)]]++;
    return (at_place((n - 1) / 2, p->drawn, p->sorted[point]) + at_place(n / 2, p->drawn, p->sorted[point])) / 2;
}

static void resample(struct points *p, double alphas[RESAMPLES], double betas[RESAMPLES])
{
    uint64_t state = seed;
    for (int k = 0; k < RESAMPLES; k++) {
        for (int i = 0; i < p->count; i++)
            p->seconds[i] = resampled_median(p, i, &state);
        fit(p->count, p->bytes, p->seconds, &alphas[k], &betas[k]);
    }
}

// Starts that all points have in common; 1 where they have not the same number.
static int common_starts(const struct points *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->given[i].launches != p->given[0].launches)
            return 1;
    return p->given[0].launches > 1 ? p->given[0].launches : 1;
}

static double median_of_start(const struct fit_point *g, int start)
{
    const double *values = g->seconds;
    for (int i = 0; i < start; i++)
        values += g->launch_counts[i];
    return statistics_median(g->launch_counts[start], values).value;
}

static void fit_starts(struct points *p, int starts, double *alphas, double *betas)
{
    for (int k = 0; k < starts; k++) {
        for (int i = 0; i < p->count; i++)
            p->seconds[i] = median_of_start(&p->given[i], k);
        fit(p->count, p->bytes, p->seconds, &alphas[k], &betas[k]);
    }
}

// The value is of all samples, the mean of the starts may lie beside it: the interval holds both.
static struct interval over_starts(double value, int starts, const double *estimates, int samples)
{
    double mean = 0, squares = 0;
    for (int k = 0; k < starts; k++)
        mean += estimates[k] / starts;
    for (int k = 0; k < starts; k++)
        squares += (estimates[k] - mean) * (estimates[k] - mean);
    double half = statistics_student(starts - 1) * sqrt(squares / (starts - 1) / starts);
    return (struct interval){value, fmin(value, mean - half), fmax(value, mean + half), 0.95, samples};
}

static struct interval middle(double value, const double resampled[RESAMPLES], int least, int samples)
{
    return (struct interval){value, statistics_quantile(RESAMPLES, resampled, 0.025), statistics_quantile(RESAMPLES, resampled, 0.975),
                             least < STATISTICS_LEAST ? 0 : 0.95, samples};
}

// Of the fit that has been made: over starts where there are several, else over samples.
static void put_intervals(struct points *p, double alpha, double beta, int least, int samples, struct alpha_beta *out)
{
    int starts = common_starts(p), room = starts > RESAMPLES ? starts : RESAMPLES;
    double *alphas = memory_zeros((size_t)room, sizeof *alphas), *betas = memory_zeros((size_t)room, sizeof *betas);
    out->starts = starts;
    if (starts > 1) {
        fit_starts(p, starts, alphas, betas);
        out->alpha_s = over_starts(alpha, starts, alphas, samples);
        out->beta_s_per_byte = over_starts(beta, starts, betas, samples);
    } else {
        resample(p, alphas, betas);
        out->alpha_s = middle(alpha, alphas, least, samples);
        out->beta_s_per_byte = middle(beta, betas, least, samples);
    }
    free(alphas);
    free(betas);
}

static bool fit_points(struct points *p, struct alpha_beta *out)
{
    double alpha, beta;
    int least = p->most, samples = 0;
    for (int i = 0; i < p->count; i++) {
        p->seconds[i] = sorted_quantile(p->counts[i], p->sorted[i], 0.5);
        samples += p->counts[i];
        least = p->counts[i] < least ? p->counts[i] : least;
    }
    if (!fit(p->count, p->bytes, p->seconds, &alpha, &beta))
        return false;
    *out = (struct alpha_beta){0};
    for (int i = 0; i < p->count; i++)
        out->worst_residual = fmax(out->worst_residual, fabs((alpha + beta * p->bytes[i]) / p->seconds[i] - 1));
    put_intervals(p, alpha, beta, least, samples, out);
    return true;
}

bool statistics_alpha_beta(int count, const struct fit_point *points, struct alpha_beta *out)
{
    size_t n = (size_t)(count > 0 ? count : 1);
    int *counts = memory_zeros(n, sizeof *counts);
    double *bytes = memory_zeros(n, sizeof *bytes);
    struct points p = {.given = points, .counts = counts, .bytes = bytes, .sorted = memory_zeros(n, sizeof *p.sorted), .seconds = memory_zeros(n, sizeof *p.seconds),
                       .places = memory_zeros(n, sizeof *p.places)};
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        counts[i] = points[i].count;
        bytes[i] = points[i].bytes;
        p.most = counts[i] > p.most ? counts[i] : p.most;
        p.sorted[p.count++] = sorted_copy(points[i].count, points[i].seconds);
        ok = isfinite(bytes[i]) && p.sorted[i] != NULL && p.sorted[i][0] > 0;
        p.places[i] = ok ? places_of(counts[i], points[i].seconds, p.sorted[i]) : NULL;
    }
    p.drawn = memory_zeros((size_t)(p.most > 0 ? p.most : 1), sizeof *p.drawn);
    ok = ok && fit_points(&p, out);
    for (int i = 0; i < p.count; i++) {
        free(p.sorted[i]);
        free(p.places[i]);
    }
    free(p.sorted);
    free(p.places);
    free(p.seconds);
    free(p.drawn);
    free(counts);
    free(bytes);
    return ok;
}
