// A model of equal units, one call each, for closed forms.
#ifndef HARNESS_ADVISE_TESTS_MADE_UP_H
#define HARNESS_ADVISE_TESTS_MADE_UP_H

#include "harness/advise/model.h"

enum { MADE_UNITS = 16 };
struct made_up { struct workload_model w; struct workload_unit units[MADE_UNITS]; struct workload_call calls[MADE_UNITS]; };

// units of `elements` f32 elements in equal parts; flop of a call's forward, twice that backward.
static inline void make_up(struct made_up *m, int units, double elements, double flop)
{
    *m = (struct made_up){.w = {.unit_count = units, .call_count = units, .micros = 1, .units = m->units, .calls = m->calls, .parameter = DTYPE_F32, .compute = DTYPE_F32,
                                .reduce = DTYPE_F32, .gradient = DTYPE_F32, .state = DTYPE_F32, .states = 2, .flat = true, .sync_all = true, .tokens = 1, .flop = 3 * flop * units}};
    for (int i = 0; i < units; i++) {
        m->units[i] = (struct workload_unit){.elements = elements, .first_call = i, .last_call = i};
        m->calls[i] = (struct workload_call){1, {i}, flop, 2 * flop};
    }
}

// 1 flop a second, nothing else costs; communication goes on by itself.
static inline struct machine plain_machine(double alpha_s, double beta)
{
    return (struct machine){.tiers = {{alpha_s, beta, 0, 0}, {0, 0, 0, 0}}, .exchange = EXCHANGE_DIRECT, .flop_rate = 1, .copy_rate = INFINITY, .update_rate = INFINITY,
                            .contention = 1, .both_ways = 1, .unattended_bytes = INFINITY, .eager_bytes = INFINITY};
}

static inline double seconds_of(const struct machine *m, const struct workload_model *w, struct schedule s)
{
    struct prediction p;
    advise_predict(m, w, &s, &p);
    return p.step_s;
}

#endif
