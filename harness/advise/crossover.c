// See crossover.h. A grid of bandwidths finds the changes, bisection of their logarithm places each within 0.1 %.
#include "harness/advise/crossover.h"

enum { GRID = 48 };

static int outermost(const struct machine *m) { return m->tiers[1].ranks > 0; }
double machine_bandwidth(const struct machine *m) { return 1 / m->tiers[outermost(m)].beta_s_per_byte; }

struct machine machine_with_bandwidth(const struct machine *m, double bandwidth)
{
    struct machine other = *m;
    other.tiers[outermost(m)].beta_s_per_byte = 1 / bandwidth;
    return other;
}

static double seconds_a_token(const struct machine *m, const struct candidate *c)
{
    struct prediction p;
    advise_predict(m, c->w, &c->schedule, &p);
    return p.step_s / c->w->tokens;
}

int crossover_best(const struct machine *m, int count, const struct candidate *c)
{
    int best = 0;
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        double s = seconds_a_token(m, &c[i]);
        best = s < least ? i : best;
        least = fmin(least, s);
    }
    return best;
}

static double grid(double low, double high, int i) { return low * pow(high / low, (double)i / GRID); }

// The change between two bandwidths whose best differ; another one in between may be met instead, which the grid would not have seen.
static struct crossing refine(const struct machine *m, int count, const struct candidate *c, double low, double high, int from, int to)
{
    while (high / low > 1.001) {
        double middle = sqrt(low * high);
        struct machine at = machine_with_bandwidth(m, middle);
        int best = crossover_best(&at, count, c);
        if (best == from) {
            low = middle;
        } else {
            high = middle;
            to = best;
        }
    }
    return (struct crossing){sqrt(low * high), from, to};
}

int crossover_scan(const struct machine *m, int count, const struct candidate *c, double low, double high, struct crossing out[CROSSINGS])
{
    int found = 0, before = -1;
    for (int i = 0; i <= GRID && found < CROSSINGS; i++) {
        struct machine at = machine_with_bandwidth(m, grid(low, high, i));
        int best = crossover_best(&at, count, c);
        if (before >= 0 && best != before)
            out[found++] = refine(m, count, c, grid(low, high, i - 1), grid(low, high, i), before, best);
        before = best;
    }
    return found;
}

// True at bandwidths that are wide enough.
struct question { const struct machine *m; const struct candidate *a, *b; double share; };

static bool enough(const struct question *q, double bandwidth)
{
    struct machine at = machine_with_bandwidth(q->m, bandwidth);
    struct prediction p;
    if (q->b != NULL)
        return seconds_a_token(&at, q->a) < seconds_a_token(&at, q->b);
    advise_predict(&at, q->a->w, &q->a->schedule, &p);
    return p.exposed_s <= q->share * p.step_s;
}

static double threshold(const struct question *q, double low, double high)
{
    int i = GRID;
    while (i >= 0 && enough(q, grid(low, high, i)))
        i--;
    if (i == GRID || i < 0)
        return i < 0 ? 0 : INFINITY;
    double below = grid(low, high, i), above = grid(low, high, i + 1);
    while (above / below > 1.001) {
        double middle = sqrt(above * below);
        *(enough(q, middle) ? &above : &below) = middle;
    }
    return sqrt(above * below);
}

double crossover_between(const struct machine *m, const struct candidate *a, const struct candidate *b, double low, double high)
{
    return threshold(&(struct question){m, a, b, 0}, low, high);
}

double crossover_bound(const struct machine *m, const struct candidate *c, double share, double low, double high)
{
    return threshold(&(struct question){m, c, NULL, share}, low, high);
}

static bool certain(const struct spread *s)
{
    double all = s->flop_rate + s->copy_rate + s->update_rate;
    for (int t = 0; t < TIERS; t++)
        all += s->alpha[t] + s->beta[t];
    return all == 0;
}

// "Nowhere" as a number that can be sorted and interpolated.
static const double FAR = 1e300;
static double unless_far(double bandwidth, double high) { return bandwidth > high ? INFINITY : bandwidth; }

struct interval crossover_interval(const struct machine *m, const struct spread *spread, const struct candidate *a, const struct candidate *b, double low, double high)
{
    double values[CROSSOVER_DRAWS];
    uint64_t state = 1;
    struct interval out = {.value = threshold(&(struct question){m, a, b, CROSSOVER_COMPUTE_BOUND}, low, high)};
    out.low = out.high = out.value;
    if (certain(spread))
        return out;
    for (int i = 0; i < CROSSOVER_DRAWS; i++) {
        struct machine drawn = machine_draw(m, spread, &state);
        values[i] = fmin(FAR, threshold(&(struct question){&drawn, a, b, CROSSOVER_COMPUTE_BOUND}, low, high));
    }
    out.low = unless_far(statistics_quantile(CROSSOVER_DRAWS, values, 0.025), high);
    out.high = unless_far(statistics_quantile(CROSSOVER_DRAWS, values, 0.975), high);
    out.coverage = 0.95;
    out.count = CROSSOVER_DRAWS;
    return out;
}
