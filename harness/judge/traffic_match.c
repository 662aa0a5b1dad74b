// The nearest of the plans that a case allows. See traffic.h.
#include <stdlib.h>

#include "harness/judge/traffic.h"
#include "harness/protocol/memory.h"

// A call that is too many or missing weighs as much as this many bytes: plans of other counts must not pass for near ones.
static const double bytes_of_a_call = 4096;

// Calls are the implementation's own where the strategy has no units: buckets, at most one for each tensor. A worker that tells its units
// is taken at its word.
static int64_t buckets_of(const struct evidence *e)
{
    enum strategy s = e->c->sharding.strategy;
    bool own = s == STRATEGY_NONE || s == STRATEGY_OPTIMIZER || s == STRATEGY_GRAD;
    return own && traffic_configured(e, "units") == NULL ? e->c->parameter_count : 0;
}

static double distance_of(const struct traffic_gap *gaps, int count)
{
    double distance = count > TRAFFIC_GAPS ? bytes_of_a_call * (count - TRAFFIC_GAPS) : 0;
    for (int i = 0; i < count && i < TRAFFIC_GAPS; i++)
        distance += (double)llabs((long long)(gaps[i].seen.bytes - gaps[i].expected.bytes)) +
                    bytes_of_a_call * ((double)llabs((long long)(gaps[i].seen.calls - gaps[i].expected.calls)) + !traffic_same_type(gaps[i].expected.type, gaps[i].seen.type));
    return distance;
}

static void add_wire(struct traffic_match *m, const struct traffic_plan *plan, const struct traffic_seen *seen)
{
    for (int i = 0; i < plan->count; i++) {
        for (int k = 0; k < plan->phases[i].count; k++) {
            const struct traffic_row *row = &plan->phases[i].rows[k];
            m->wire_expected += (double)row->bytes * (row->size - 1) / row->size * (row->op == PROBE_ALL_REDUCE ? 2 : 1);
        }
        for (int k = 0; k < seen->phases[i].count; k++)
            m->wire_seen += (double)seen->phases[i].rows[k].wire;
    }
    m->scalars += seen->scalars;
    m->barriers += seen->barriers;
    m->points += seen->points;
    m->calls += seen->collectives;
    m->most_scalars = seen->most_scalars > m->most_scalars ? seen->most_scalars : m->most_scalars;
}

// Compares one choice on all ranks; the match keeps the farthest rank. False: an error.
static bool compare(const struct evidence *e, const struct traffic_choice *choice, int64_t buckets, struct traffic_match *m, double *distance, struct error *error)
{
    double farthest = -1;
    *m = (struct traffic_match){.choice = *choice};
    *distance = 0;
    for (int r = 0; r < e->world_size; r++) {
        struct traffic_plan plan = traffic_plan(e->c, choice, r);
        struct traffic_gap gaps[TRAFFIC_GAPS];
        struct traffic_seen seen;
        bool fine = traffic_see(&plan, &e->probes[r], &seen, error);
        int count = fine ? traffic_compare(&plan, &seen, buckets, gaps) : 0;
        double own = distance_of(gaps, count);
        *distance += own;
        if (fine)
            add_wire(m, &plan, &seen);
        traffic_seen_free(&seen);
        if (!fine || own <= farthest) {
            traffic_plan_free(&plan);
            if (!fine)
                return false;
            continue;
        }
        farthest = own;
        traffic_plan_free(&m->plan);
        m->plan = plan;
        m->rank = r;
        m->gap_count = count;
        for (int i = 0; i < count && i < TRAFFIC_GAPS; i++)
            m->gaps[i] = gaps[i];
    }
    return true;
}

bool traffic_nearest(const struct evidence *e, struct traffic_match *out, struct error *error)
{
    struct traffic_choice *choices = memory_zeros(TRAFFIC_CHOICES, sizeof *choices);
    int count = traffic_choices(e->c, choices);
    int64_t buckets = buckets_of(e);
    double best = -1;
    bool fine = true;
    *out = (struct traffic_match){0};
    for (int i = 0; fine && i < count && best != 0; i++) {
        struct traffic_match m;
        double distance;
        fine = compare(e, &choices[i], buckets, &m, &distance, error);
        if (!fine || (best >= 0 && distance >= best)) {
            traffic_match_free(&m);
            continue;
        }
        traffic_match_free(out);
        *out = m;
        best = distance;
    }
    free(choices);
    return fine;
}

void traffic_match_free(struct traffic_match *m)
{
    traffic_plan_free(&m->plan);
    m->gap_count = 0;
}
