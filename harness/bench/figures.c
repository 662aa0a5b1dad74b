// The figures of a row: step time, throughput, flop rate, MFU, ratio to the first implementation. Formulas: docs/metrics.md.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench.h"
#include "harness/protocol/memory.h"

static const struct interval nothing = {NAN, NAN, NAN, 0, 0};
static const double level = 0.95;

struct interval bench_step(const struct bench_row *r)
{
    int samples = 0, used = 0;
    for (int i = 0; i < r->launch_count; i++)
        samples += r->launches[i].count;
    if (r->state != BENCH_OPEN || samples == 0)
        return nothing;
    double *values = memory_zeros((size_t)samples, sizeof *values);
    int *counts = memory_zeros((size_t)r->launch_count, sizeof *counts);
    for (int i = 0; i < r->launch_count; i++) {
        counts[i] = r->launches[i].count;
        memcpy(values + used, r->launches[i].seconds, (size_t)counts[i] * sizeof *values);
        used += counts[i];
    }
    struct interval out = statistics_rounds(level, r->launch_count, counts, values);
    free(counts);
    free(values);
    return out;
}

// amount / seconds: the interval turns round.
static struct interval rate(double amount, const struct interval *s)
{
    return s->count == 0 ? nothing : (struct interval){amount / s->value, amount / s->high, amount / s->low, s->coverage, s->count};
}

struct interval bench_tokens(const struct bench_row *r)
{
    struct interval step = bench_step(r);
    return rate(r->tokens, &step);
}

struct interval bench_flop_rate(const struct bench_row *r)
{
    struct interval step = bench_step(r);
    return rate(r->flop, &step);
}

struct interval bench_mfu(const struct bench_table *t, const struct bench_row *r)
{
    struct interval step = bench_step(r);
    return bench_mfu_why(t, r)[0] == 0 ? rate(r->flop / t->peak_flop_rate, &step) : nothing;
}

const char *bench_mfu_why(const struct bench_table *t, const struct bench_row *r)
{
    return r->mfu_why[0] != 0 || t->peak_flop_rate > 0 ? r->mfu_why : "the peak could not be measured";
}

static bool has_score(const struct bench_row *r) { return r->state == BENCH_OPEN && r->launch_count > 0; }

const struct bench_row *bench_base(const struct bench_table *t, const struct bench_row *r)
{
    const struct bench_row *base = NULL;
    const char *first = t->count > 0 ? t->rows[0].implementation : "";
    for (int i = 0; i < t->count; i++) {
        const struct bench_row *b = &t->rows[i];
        if (!has_score(b) || strcmp(b->implementation, first) || strcmp(b->workload, r->workload) || strcmp(b->fabric, r->fabric))
            continue;
        if (strcmp(b->strategy, r->strategy) == 0)
            return b;
        base = base != NULL ? base : b;
    }
    return base;
}

static double round_median(const struct bench_row *r, int round)
{
    for (int i = 0; i < r->launch_count; i++)
        if (r->launches[i].round == round)
            return statistics_median(r->launches[i].count, r->launches[i].seconds).value;
    return NAN;
}

struct interval bench_ratio(const struct bench_row *r, const struct bench_row *base)
{
    if (base == NULL || !has_score(r))
        return nothing;
    double *a = memory_zeros((size_t)r->launch_count, sizeof *a), *b = memory_zeros((size_t)r->launch_count, sizeof *b);
    int count = 0;
    for (int i = 0; i < r->launch_count; i++) {
        double own = round_median(r, r->launches[i].round), other = round_median(base, r->launches[i].round);
        if (isfinite(own) && isfinite(other))
            a[count] = own, b[count++] = other;
    }
    for (int i = 0; i < count; i++)
        a[i] *= base->tokens / r->tokens; // 1 but where each has its own batch
    struct interval out = count > 0 ? statistics_ratio(count, a, b) : nothing;
    free(a);
    free(b);
    return out;
}

const char *bench_word(const struct interval *ratio)
{
    return statistics_tells(ratio) ? statistics_word(ratio) : ratio->count == 1 ? "one round: no interval" : "too few rounds to tell";
}

bool bench_narrow(const struct bench_table *t, double relative)
{
    for (int i = 0; i < t->count; i++) {
        struct interval step = bench_step(&t->rows[i]);
        if (t->rows[i].state == BENCH_OPEN && (t->rows[i].launch_count < BENCH_LEAST_ROUNDS || !statistics_narrow(&step, relative)))
            return false;
    }
    return true;
}

int bench_status(const struct bench_table *t)
{
    int of[4] = {0}, scores = 0;
    for (int i = 0; i < t->count; i++) {
        of[t->rows[i].state]++;
        scores += has_score(&t->rows[i]);
    }
    return of[BENCH_WRONG] > 0 ? 1 : of[BENCH_BROKEN] > 0 || scores == 0 ? 3 : 0;
}

static void set_figure(json_t *facts, const char *name, const struct bench_figure *f)
{
    char *why = memory_format("%s_why", name);
    if (isfinite(f->value) && f->why[0] == 0)
        json_object_set_new(facts, name, json_real(f->value));
    else if (f->why[0])
        json_object_set_new(facts, why, json_string(f->why));
    free(why);
}

json_t *bench_facts(const struct bench_table *t, const struct bench_row *r)
{
    static const char *const verdicts[] = {"PASS", "WRONG", "SKIP", "BROKEN"};
    json_t *facts = json_pack("{sf sf sI ss si si sf ss*}", "tokens_per_step", r->tokens, "flop_per_step", r->flop, "parameters", (json_int_t)r->parameters, "verdict",
                              r->state == BENCH_OPEN && r->launch_count == 0 ? "none" : verdicts[r->state], "warm_up_steps", BENCH_WARM, "rounds", t->rounds, "rounds_s", t->seconds, "ended",
                              t->ended);
    if (r->why[0])
        json_object_set_new(facts, "why", json_string(r->why));
    if (t->peak_flop_rate > 0)
        json_object_set_new(facts, "peak_flop_rate", json_real(t->peak_flop_rate));
    if (t->memory_limit > 0)
        json_object_set_new(facts, "memory_limit", json_real(t->memory_limit));
    if (r->most_rows)
        json_object_set_new(facts, "most_rows", json_true());
    if (r->rate_bits > 0)
        json_object_set_new(facts, "rate_bits", json_real(r->rate_bits));
    if (bench_mfu_why(t, r)[0])
        json_object_set_new(facts, "mfu_why", json_string(bench_mfu_why(t, r)));
    set_figure(facts, "peak_bytes", &r->peak_bytes);
    set_figure(facts, "sent_bytes", &r->sent_bytes);
    set_figure(facts, "energy_j", &r->energy_j);
    if (r->exposed.count > 0)
        json_object_set_new(facts, "exposed_share", json_pack("[f, f, f]", r->exposed.value, r->exposed.low, r->exposed.high));
    else if (r->exposed_why[0])
        json_object_set_new(facts, "exposed_share_why", json_string(r->exposed_why));
    return facts;
}

void bench_table_free(struct bench_table *t)
{
    for (int i = 0; i < t->count; i++) {
        for (int k = 0; k < t->rows[i].launch_count; k++)
            free(t->rows[i].launches[k].seconds);
        free(t->rows[i].launches);
        free(t->rows[i].strategy);
        free(t->rows[i].workload);
    }
    free(t->rows);
    *t = (struct bench_table){0};
}
