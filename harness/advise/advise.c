// The strategies side by side. See advise.h.
#include "harness/advise/advise.h"

// The bandwidths that are looked at: from a 300th to 300 times the machine's own.
static const double RANGE = 300;

static struct candidate candidate(const struct advice_question *q, const char *name, enum strategy strategy, int replicas, int shards)
{
    const struct sharding_spec *s = &q->c->sharding;
    return (struct candidate){name, {strategy, replicas, shards, s->reshard_after_forward, s->prefetch_forward, s->prefetch_backward}, NULL};
}

static int candidates(const struct advice_question *q, struct candidate out[CANDIDATES])
{
    int count = 0, n = q->ranks;
    out[count++] = candidate(q, "none", STRATEGY_NONE, n, 1);
    out[count++] = candidate(q, "optimizer", STRATEGY_OPTIMIZER, 1, n);
    out[count++] = candidate(q, "grad", STRATEGY_GRAD, 1, n);
    out[count++] = candidate(q, "full", STRATEGY_FULL, 1, n);
    if (q->hybrid_shards > 1 && q->hybrid_shards < n)
        out[count++] = candidate(q, "hybrid", STRATEGY_HYBRID, n / q->hybrid_shards, q->hybrid_shards);
    return count;
}

static bool predict_row(const struct advice_question *q, struct advice_row *r, struct error *error)
{
    const struct schedule *s = &r->candidate.schedule;
    r->rows = q->rows > 0 ? q->rows : advise_rows_that_fit(q->c, s, q->memory_limit, error);
    r->fits = r->rows > 0;
    r->candidate.w = &r->w;
    if (r->rows < 0 || !workload_create(&r->w, q->c, r->fits ? r->rows : 1, error))
        return false;
    advise_predict(&q->machine, &r->w, s, &r->p);
    r->memory_bytes = advise_memory(q->c, &r->w, s, r->fits ? r->rows : 1, error);
    r->fits = r->fits && (q->memory_limit == 0 || r->memory_bytes <= q->memory_limit);
    r->tokens_per_s = r->w.tokens * q->ranks / r->p.step_s;
    r->mfu = q->facts.peak_flop_rate > 0 ? r->w.flop / r->p.step_s / q->facts.peak_flop_rate : NAN;
    return r->memory_bytes >= 0;
}

static int fastest(const struct advice *a)
{
    int best = -1;
    for (int i = 0; i < a->count; i++)
        if (a->rows[i].fits && (best < 0 || a->rows[i].tokens_per_s > a->rows[best].tokens_per_s))
            best = i;
    return best;
}

const struct advice_row *advice_find(const struct advice *a, enum strategy s)
{
    for (int i = 0; i < a->count; i++)
        if (a->rows[i].candidate.schedule.strategy == s)
            return &a->rows[i];
    return NULL;
}

// Where plain data parallelism does not fit, it is still compared with, at the rows of FSDP.
static void look_over_bandwidth(struct advice *a)
{
    const struct advice_question *q = a->q;
    const struct advice_row *full = advice_find(a, STRATEGY_FULL), *none = advice_find(a, STRATEGY_NONE);
    struct candidate fitting[CANDIDATES], plain = none->candidate;
    int count = 0, row_of[CANDIDATES];
    for (int i = 0; i < a->count; i++)
        if (a->rows[i].fits) {
            row_of[count] = i;
            fitting[count++] = a->rows[i].candidate;
        }
    plain.w = none->fits ? plain.w : full->candidate.w;
    a->crossing_count = crossover_scan(&q->machine, count, fitting, a->low, a->high, a->crossings);
    for (int i = 0; i < a->crossing_count; i++) {
        a->crossings[i].from = row_of[a->crossings[i].from];
        a->crossings[i].to = row_of[a->crossings[i].to];
    }
    a->pays = crossover_interval(&q->machine, &q->spread, &full->candidate, &plain, a->low, a->high);
    a->bound = crossover_interval(&q->machine, &q->spread, &full->candidate, NULL, a->low, a->high);
}

bool advise_make(const struct advice_question *q, struct advice *out, struct error *error)
{
    struct candidate c[CANDIDATES];
    *out = (struct advice){.q = q, .count = candidates(q, c), .best = -1, .low = machine_bandwidth(&q->machine) / RANGE, .high = machine_bandwidth(&q->machine) * RANGE};
    for (int i = 0; i < out->count; i++) {
        out->rows[i].candidate = c[i];
        if (!predict_row(q, &out->rows[i], error))
            return false;
    }
    out->best = fastest(out);
    if (out->best >= 0)
        look_over_bandwidth(out);
    return true;
}

void advise_free(struct advice *a)
{
    for (int i = 0; i < a->count; i++)
        workload_free(&a->rows[i].w);
    *a = (struct advice){0};
}
