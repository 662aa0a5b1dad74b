// The machine that `advise` reckons with: documented defaults, overlaid by what was given.
#include <stdio.h>
#include <string.h>

#include "harness/advise/quantity.h"
#include "harness/cli/advise.h"

static bool take(const char *option, const char *text, enum quantity kind, double *out, bool *given, struct error *error)
{
    if (text == NULL)
        return true;
    *given = true;
    return quantity_read(text, kind, out) || error_set(error, "--%s: found '%s', expected %s", option, text, quantity_example(kind));
}

static bool take_exchange(const char *text, enum exchange *out, struct error *error)
{
    for (int e = 0; text != NULL && e < EXCHANGES; e++)
        if (strcmp(text, exchange_name((enum exchange)e)) == 0)
            return *out = (enum exchange)e, true;
    return text == NULL || error_set(error, "--exchange: found '%s', expected direct, ring or tree", text);
}

static bool take_tiers(const struct advise_options *o, struct machine *m, bool *given, struct error *error)
{
    int outer = m->tiers[1].ranks > 0;
    double bandwidth = 1 / m->tiers[outer].beta_s_per_byte, inner = 1 / m->tiers[0].beta_s_per_byte;
    if ((o->inner_alpha != NULL || o->inner_bandwidth != NULL) && !outer)
        return error_set(error, "--inner-...: found one tier, expected more ranks than a host holds: --ranks, --hosts");
    if (!take("inner-alpha", o->inner_alpha, QUANTITY_SECONDS, &m->tiers[0].alpha_s, given, error) ||
        !take("inner-bandwidth", o->inner_bandwidth, QUANTITY_BANDWIDTH, &inner, given, error))
        return false;
    m->tiers[0].beta_s_per_byte = 1 / inner;
    if (!take("alpha", o->alpha, QUANTITY_SECONDS, &m->tiers[outer].alpha_s, given, error) || !take("bandwidth", o->bandwidth, QUANTITY_BANDWIDTH, &bandwidth, given, error))
        return false;
    m->tiers[outer].beta_s_per_byte = 1 / (outer || o->bandwidth ? bandwidth : inner);
    return true;
}

static bool take_rates(const struct advise_options *o, struct advice_question *q, bool *given, struct error *error)
{
    struct machine *m = &q->machine;
    double peak = q->facts.peak_flop_rate;
    bool has_peak = false, has_flops = o->flops != NULL;
    if (!take("flops", o->flops, QUANTITY_FLOPS, &m->flop_rate, given, error) || !take("peak", o->peak, QUANTITY_FLOPS, &peak, &has_peak, error) ||
        !take("copy-rate", o->copy_rate, QUANTITY_BYTE_RATE, &m->copy_rate, given, error) || !take("update-rate", o->update_rate, QUANTITY_BYTE_RATE, &m->update_rate, given, error) ||
        !take("memory", o->memory, QUANTITY_BYTES, &q->memory_limit, given, error))
        return false;
    q->facts.peak_flop_rate = has_peak || !has_flops ? peak : 0; // another processor than the default's has another peak
    if (has_peak && peak < m->flop_rate) {
        char reached[32];
        return error_set(error, "--peak: found '%s', expected at least the %s that a rank reaches in matrix products (--flops)", o->peak,
                         quantity_write(m->flop_rate, QUANTITY_FLOPS, reached, sizeof reached));
    }
    m->both_ways = o->both_ways > 0 ? o->both_ways : m->both_ways;
    m->contention = o->contention > 0 ? o->contention : m->contention;
    return true;
}

// The mesh of hybrid: a host's ranks where there are several hosts, else the one nearest a square, as `mesh: auto`.
static int hybrid_shards(int ranks, int near)
{
    int shards = near;
    for (int r = 1; (near == 1 || near == ranks) && r * r <= ranks; r++)
        shards = ranks % r == 0 ? ranks / r : shards;
    return shards;
}

static void say_source(bool measured, bool given, struct advice_question *q)
{
    static char text[512];
    static const char rest[] = "what was neither is a default that nobody measured (an accelerator of the kind of an H100 SXM, a network card of 400 Gbit/s each)";
    if (measured && given)
        snprintf(text, sizeof text, "%s; as given where options say so; %s", q->facts.source, rest);
    else if (measured || given)
        snprintf(text, sizeof text, "%s; %s", measured ? q->facts.source : "as given", rest);
    if (measured || given)
        q->facts.source = text;
}

// Ranks of a host: a group of tier 0. They are spread over the hosts evenly. What was measured has its own.
static bool spread_ranks(const struct advise_options *o, bool measured, int ranks, int *near, struct error *error)
{
    int hosts = o->hosts > 0 ? (int)o->hosts : (ranks + MACHINE_DEFAULT_HOST - 1) / MACHINE_DEFAULT_HOST;
    *near = measured ? ranks : ranks / hosts;
    if (measured || ranks % hosts == 0)
        return true;
    if (o->hosts > 0)
        return error_set(error, "--hosts: found %lld for %d ranks, expected a divisor", (long long)o->hosts, ranks);
    return error_set(error, "--ranks: found %d, which %d hosts of at most %d ranks do not share evenly, expected a number that they do, or --hosts", ranks, hosts, MACHINE_DEFAULT_HOST);
}

// What options give goes above what was measured, and that above the defaults.
bool advise_machine(const struct cli *cli, const struct advise_options *o, struct advice_question *q, struct error *error)
{
    bool given = false, measured = o->fabric != NULL || o->from != NULL;
    int near;
    if (!spread_ranks(o, measured, q->ranks, &near, error))
        return false;
    q->machine = machine_default(q->ranks, near, &q->facts);
    q->memory_limit = q->facts.memory_bytes;
    if (measured) {
        q->memory_limit = q->facts.peak_flop_rate = 0;
        if (!advise_measured(cli, o, q->c, q, error))
            return false;
        near = q->machine.tiers[1].ranks > 0 ? q->machine.tiers[0].ranks : q->ranks;
    }
    if (!take_tiers(o, &q->machine, &given, error) || !take_rates(o, q, &given, error) || !take_exchange(o->exchange, &q->machine.exchange, error))
        return false;
    q->hybrid_shards = hybrid_shards(q->ranks, near);
    q->rows = q->rows == 0 && q->memory_limit == 0 ? 1 : q->rows;
    say_source(measured, given, q);
    return true;
}
