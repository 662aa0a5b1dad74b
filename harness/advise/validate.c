// See validate.h.
#include "harness/advise/validate.h"

#include <stdlib.h>

// A gather of B bytes over n ranks puts (n - 1) / n B on the line.
static double per_byte(const struct gather_times *g) { return g->large_s / g->large_bytes * g->ranks / (g->ranks - 1.0); }

// Where the two rates contradict a cost for each byte beside the line's, there is none.
struct validate_line validate_line_of(const struct gather_times *a, const struct gather_times *b)
{
    double x1 = 8 / a->rate_bits, x2 = 8 / b->rate_bits, y1 = per_byte(a), y2 = per_byte(b);
    struct validate_line l = {.alpha_s = (a->small_s + b->small_s) / 2, .beta_bits = (y2 - y1) / (x2 - x1)};
    l.beta_s = y1 - l.beta_bits * x1;
    if (l.beta_s < 0 || l.beta_bits <= 0) {
        l.beta_s = 0;
        l.beta_bits = (y1 / x1 + y2 / x2) / 2;
    }
    return l;
}

struct tier validate_tier(const struct validate_line *l, double rate_bits)
{
    return (struct tier){l->alpha_s, l->beta_s + l->beta_bits * 8 / rate_bits, 0, 0};
}

double validate_rate(const struct validate_line *l, double bandwidth)
{
    double left = 1 / bandwidth - l->beta_s;
    return left > 0 ? 8 * l->beta_bits / left : INFINITY;
}

// Flop, bytes of copies and bytes of the update of a step are what a machine with one rate finite and the others infinite takes.
static double seconds_at(const struct validate_point *p, double flop_rate, double copy_rate, double update_rate)
{
    struct machine m = {.flop_rate = flop_rate, .copy_rate = copy_rate, .update_rate = update_rate, .contention = 1, .both_ways = 1, .unattended_bytes = INFINITY, .eager_bytes = INFINITY};
    struct prediction out;
    advise_predict(&m, p->w, &p->schedule, &out);
    return out.compute_s;
}

// flop rate: mean over the strategies of flop / (step less update less copies); update rate: of plain data parallelism, which updates most.
bool validate_computing(int count, const struct validate_point *points, double copy_rate, struct machine *m)
{
    double per_flop = 0, most = 0;
    int used = 0;
    m->copy_rate = copy_rate;
    m->update_rate = INFINITY;
    for (int i = 0; i < count; i++) {
        double bytes = seconds_at(&points[i], INFINITY, INFINITY, 1), flop = seconds_at(&points[i], 1, INFINITY, INFINITY);
        double products = points[i].free.value - points[i].free_update.value - seconds_at(&points[i], INFINITY, copy_rate, INFINITY);
        if (points[i].schedule.strategy == STRATEGY_NONE && bytes > most && points[i].free_update.value > 0) {
            most = bytes;
            m->update_rate = bytes / points[i].free_update.value;
        }
        if (products > 0) {
            per_flop += products / flop;
            used++;
        }
    }
    m->flop_rate = used > 0 ? used / per_flop : 0;
    return used > 0;
}

void validate_predict(struct validate_point *p, const struct machine *m)
{
    struct prediction out;
    advise_predict(m, p->w, &p->schedule, &out);
    p->predicted_s = out.step_s;
    p->error = fabs(out.step_s / p->step.value - 1);
}

double validate_crossing(int count, const double *rates, const double *quotients)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < count; i++) {
        x += log(rates[i]) / count;
        y += log(quotients[i]) / count;
    }
    for (int i = 0; i < count; i++) {
        xx += (log(rates[i]) - x) * (log(rates[i]) - x);
        xy += (log(rates[i]) - x) * (log(quotients[i]) - y);
    }
    return xy > 0 ? exp(x - y * xx / xy) : NAN;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int rates_of(int count, const struct validate_point *p, int ranks, double rates[VALIDATE_RATES])
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        bool known = p[i].ranks != ranks;
        for (int r = 0; r < found && !known; r++)
            known = rates[r] == p[i].rate_bits;
        if (!known && found < VALIDATE_RATES)
            rates[found++] = p[i].rate_bits;
    }
    qsort(rates, (size_t)found, sizeof *rates, compare);
    return found;
}

static const struct validate_point *at(int count, const struct validate_point *p, int ranks, double rate, enum strategy s)
{
    for (int i = 0; i < count; i++)
        if (p[i].ranks == ranks && p[i].rate_bits == rate && p[i].schedule.strategy == s)
            return &p[i];
    return NULL;
}

// At each rate the quotient of a's time over b's, and whether no strategy is shown to be faster than a, or than b.
struct pair { int count; double rates[VALIDATE_RATES]; struct interval quotient[VALIDATE_RATES]; bool a_best[VALIDATE_RATES], b_best[VALIDATE_RATES]; };

static struct interval quotient(const struct validate_point *a, const struct validate_point *b) { return statistics_ratio(a->round_count, a->seconds, b->seconds); }

static bool unbeaten(int count, const struct validate_point *p, const struct validate_point *of)
{
    for (int i = 0; i < count; i++)
        if (&p[i] != of && p[i].ranks == of->ranks && p[i].rate_bits == of->rate_bits && quotient(of, &p[i]).low > 1)
            return false;
    return true;
}

static bool make_pair(int count, const struct validate_point *p, int ranks, enum strategy a, enum strategy b, struct pair *out)
{
    out->count = rates_of(count, p, ranks, out->rates);
    for (int i = 0; i < out->count; i++) {
        const struct validate_point *of_a = at(count, p, ranks, out->rates[i], a), *of_b = at(count, p, ranks, out->rates[i], b);
        if (of_a == NULL || of_b == NULL || of_a->round_count != of_b->round_count)
            return false;
        out->quotient[i] = quotient(of_a, of_b);
        out->a_best[i] = unbeaten(count, p, of_a);
        out->b_best[i] = unbeaten(count, p, of_b);
    }
    return true;
}

// The measured rate of the change from a to b, or NAN where there is none.
static double change(const struct pair *x)
{
    int from = -1, to = -1;
    double quotients[VALIDATE_RATES];
    for (int i = 0; i < x->count; i++) {
        quotients[i] = x->quotient[i].value;
        if (x->quotient[i].high < 1 && x->a_best[i])
            from = i;
        if (to < 0 && from >= 0 && x->quotient[i].low > 1 && x->b_best[i])
            to = i;
    }
    return from >= 0 && to > from ? validate_crossing(to - from + 1, x->rates + from, quotients + from) : NAN;
}

static double predicted(const struct validate_knowledge *k, const struct candidate *below, const struct candidate *above, double low_bits, double high_bits)
{
    double low = 1 / validate_tier(&k->line, low_bits).beta_s_per_byte, high = 1 / validate_tier(&k->line, high_bits).beta_s_per_byte;
    double bandwidth = crossover_between(&k->machine, above, below, low, high);
    return bandwidth > 0 ? validate_rate(&k->line, bandwidth) : 0;
}

static void judge_switches(int count, const struct validate_point *p, const struct validate_knowledge *known, struct validate_verdict *v)
{
    int ranks = known->ranks;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count && v->switch_count < VALIDATE_SWITCHES; j++) {
            struct pair pair;
            bool first = p[i].ranks == ranks && p[j].ranks == ranks && p[i].rate_bits == p[j].rate_bits && i != j;
            for (int k = 0; k < i; k++)
                first &= p[k].ranks != ranks || p[k].schedule.strategy != p[i].schedule.strategy; // each pair once
            if (!first || !make_pair(count, p, ranks, p[i].schedule.strategy, p[j].schedule.strategy, &pair) || isnan(change(&pair)))
                continue;
            const struct candidate below = {p[i].name, p[i].schedule, p[i].w}, above = {p[j].name, p[j].schedule, p[j].w};
            struct validate_switch *s = &v->switches[v->switch_count++];
            *s = (struct validate_switch){.ranks = ranks, .below = below.name, .above = above.name, .measured_bits = change(&pair)};
            s->predicted_bits = predicted(known, &below, &above, pair.rates[0] / 100, pair.rates[pair.count - 1] * 100);
            s->factor = exp(fabs(log(s->predicted_bits / s->measured_bits)));
            s->ok = s->factor <= VALIDATE_FACTOR;
            v->switches_ok &= s->ok;
        }
}

static void judge_times(int count, const struct validate_point *p, struct validate_verdict *v)
{
    double errors[VALIDATE_POINTS];
    for (int i = 0; i < count; i++)
        if (!p[i].fitted && v->judged < VALIDATE_POINTS) {
            errors[v->judged++] = p[i].error;
            v->worst_error = fmax(v->worst_error, p[i].error);
        }
    v->median_error = statistics_quantile(v->judged, errors, 0.5);
    v->times_ok = v->judged >= VALIDATE_LEAST && v->median_error <= VALIDATE_ERROR;
}

void validate_judge(int count, const struct validate_point *p, int known_count, const struct validate_knowledge *known, struct validate_verdict *out)
{
    *out = (struct validate_verdict){.switches_ok = true};
    judge_times(count, p, out);
    for (int i = 0; i < known_count; i++)
        judge_switches(count, p, &known[i], out);
    out->switches_ok &= out->switch_count > 0; // a range of rates over which nothing changes shows nothing
    out->ok = out->times_ok && out->switches_ok;
}
