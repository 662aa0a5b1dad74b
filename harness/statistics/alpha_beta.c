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

enum { RESAMPLES = 500, LAUNCHES = 64 };
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

// Draws as many samples of a launch as it has; how many.
static int draw_launch(const struct points *p, int point, int launch, uint64_t *state)
{
    const struct fit_point *g = &p->given[point];
    const int *places = p->places[point];
    int count = g->launches > 1 ? g->launch_counts[launch] : g->count;
    for (int i = 0; i < launch && g->launches > 1; i++)
        places += g->launch_counts[i];
    for (int i = 0; i < count; i++)
        p->drawn[places[draw_below(state, count)]]++;
    return count;
}

static double resampled_median(const struct points *p, int point, const int launches[LAUNCHES], uint64_t *state)
{
    int of = p->given[point].launches > 1 ? p->given[point].launches : 1, n = 0;
    memset(p->drawn, 0, (size_t)p->counts[point] * sizeof *p->drawn);
    for (int i = 0; i < of; i++)
        n += draw_launch(p, point, launches[i % LAUNCHES] % of, state);
    return n == 0 ? NAN : (at_place((n - 1) / 2, p->drawn, p->sorted[point]) + at_place(n / 2, p->drawn, p->sorted[point])) / 2;
}

static void resample(struct points *p, double alphas[RESAMPLES], double betas[RESAMPLES])
{
    uint64_t state = seed;
    int launches[LAUNCHES], most = 1;
    for (int i = 0; i < p->count; i++)
        most = p->given[i].launches > most ? p->given[i].launches : most;
    for (int k = 0; k < RESAMPLES; k++) {
        for (int i = 0; i < LAUNCHES; i++)
            launches[i] = draw_below(&state, most);
        for (int i = 0; i < p->count; i++)
            p->seconds[i] = resampled_median(p, i, launches, &state);
        fit(p->count, p->bytes, p->seconds, &alphas[k], &betas[k]);
    }
}

static struct interval middle(double value, const double resampled[RESAMPLES], int least, int samples)
{
    return (struct interval){value, statistics_quantile(RESAMPLES, resampled, 0.025), statistics_quantile(RESAMPLES, resampled, 0.975),
                             least < STATISTICS_LEAST ? 0 : 0.95, samples};
}

static bool fit_points(struct points *p, struct alpha_beta *out)
{
    double alpha, beta, alphas[RESAMPLES], betas[RESAMPLES];
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
    resample(p, alphas, betas);
    out->alpha_s = middle(alpha, alphas, least, samples);
    out->beta_s_per_byte = middle(beta, betas, least, samples);
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
