// See machine.h.
#include "harness/advise/machine.h"

#include <stddef.h>

#include "harness/statistics/draw.h"

// Peak and memory: NVIDIA H100 SXM data sheet (989 Tflop/s of bf16, dense; 80 GB at 3.35 TB/s; NVLink 900 GB/s, both directions together).
// Reached in products: 60 % of the peak. Latencies: the order of nccl-tests' times of the smallest all-gathers, a step. A network card of 400 Gbit/s a rank.
struct machine machine_default(int ranks, int ranks_per_host, struct machine_facts *facts)
{
    bool several = ranks > ranks_per_host;
    *facts = (struct machine_facts){989e12, 80e9, "defaults, measured by nobody: hosts of eight H100 SXM (data sheet), a network card of 400 Gbit/s each"};
    return (struct machine){
        .tiers = {{3e-6, 1 / 450e9, several ? ranks_per_host : 0, 0}, {8e-6, 1 / 50e9, several ? (ranks + ranks_per_host - 1) / ranks_per_host : 0, 0}},
        .exchange = EXCHANGE_TREE, .flop_rate = 0.6 * facts->peak_flop_rate, .copy_rate = 0.8 * 3.35e12, .update_rate = 0.8 * 3.35e12,
        .overhead_s = 0, .contention = 1.05, .both_ways = 1, .unattended_bytes = INFINITY, .eager_bytes = INFINITY,
    };
}

// An interval of 95 % of a normal is 2 * 1.96 standard deviations wide. One that holds 0, as that of a few starts may, has only an upper half on a logarithmic scale.
double spread_of(const struct interval *i)
{
    if (i->low > 0)
        return i->high > i->low ? log(i->high / i->low) / (2 * 1.959964) : 0;
    return i->value > 0 && i->high > i->value ? log(i->high / i->value) / 1.959964 : 0;
}

// Box and Muller.
static double off(double value, double spread, uint64_t *state)
{
    double u = draw_unit(state), v = draw_unit(state);
    return value * exp(spread * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

struct machine machine_draw(const struct machine *m, const struct spread *s, uint64_t *state)
{
    struct machine d = *m;
    for (int t = 0; t < TIERS; t++) {
        d.tiers[t].alpha_s = off(m->tiers[t].alpha_s, s->alpha[t], state);
        d.tiers[t].beta_s_per_byte = off(m->tiers[t].beta_s_per_byte, s->beta[t], state);
    }
    d.flop_rate = off(m->flop_rate, s->flop_rate, state);
    d.copy_rate = off(m->copy_rate, s->copy_rate, state);
    d.update_rate = off(m->update_rate, s->update_rate, state);
    return d;
}

static const char *const names[] = {[EXCHANGE_DIRECT] = "direct", [EXCHANGE_RING] = "ring", [EXCHANGE_TREE] = "tree", NULL};
const char *exchange_name(enum exchange e) { return names[e]; }
const char *const *exchange_names(void) { return names; }
