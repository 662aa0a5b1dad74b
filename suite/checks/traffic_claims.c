// Claim: what a worker says of its own traffic is what the probe saw: calls and bytes of each collective.
// Source: definition; docs/protocol.md, event `traffic`.
// How: `traffic` names NAME.count and NAME.bytes for all_gather, near_gather, reduce_scatter, all_reduce, broadcast; observations are not in it. An
//     all-reduce may be an exchange of parts and a gather, or, of few elements, a gather of all versions: so with g, s, r, b the claims and
//     G, S, R, B what was seen (an all-to-all counts as S): R <= r, G = g + (r - R), s <= S <= s + (r - R), B = b; bytes of B and, less what all-reduces take, of S.
// Catches: Z28 (collectives that the worker does not count)
// Blind to: a claim and a probe that are wrong alike; bytes of all-gathers and all-reduces, which traffic-bytes holds to the formula
#include <stdlib.h>
#include <string.h>

#include "harness/judge/traffic.h"
#include "suite/checks/check.h"

struct claims { double gathers, scatters, reductions, broadcasts, scattered_bytes, reduced_bytes, broadcast_bytes; };

static bool read_claims(const struct evidence *e, int rank, struct claims *c)
{
    const struct event *event = answer_find(&e->answers[rank], EVENT_TRAFFIC, 0);
    double near = 0;
    if (event == NULL || !event_number(event, "all_gather.count", &c->gathers) || !event_number(event, "reduce_scatter.count", &c->scatters) ||
        !event_number(event, "all_reduce.count", &c->reductions) || !event_number(event, "broadcast.count", &c->broadcasts) ||
        !event_number(event, "reduce_scatter.bytes", &c->scattered_bytes) || !event_number(event, "all_reduce.bytes", &c->reduced_bytes) ||
        !event_number(event, "broadcast.bytes", &c->broadcast_bytes))
        return false;
    if (event_number(event, "near_gather.count", &near))
        c->gathers += near;
    return true;
}

static struct claims seen_by(const struct probe_case *p)
{
    struct claims c = {0};
    for (int i = 0; i < p->phase_count; i++)
        for (int k = 0; strcmp(p->phases[i].name, "observe") != 0 && strcmp(p->phases[i].name, "end") != 0 && k < p->phases[i].traffic_count; k++) {
            const struct probe_traffic *t = &p->phases[i].traffic[k];
            bool scatter = t->op == PROBE_REDUCE_SCATTER || t->op == PROBE_ALL_TO_ALL;
            if (t->kind != PROBE_COLLECTIVE || t->size < 2)
                continue;
            c.gathers += t->op == PROBE_ALL_GATHER ? (double)t->calls : 0;
            c.scatters += scatter ? (double)t->calls : 0;
            c.scattered_bytes += scatter ? (double)t->bytes : 0;
            c.reductions += t->op == PROBE_ALL_REDUCE ? (double)t->calls : 0;
            c.broadcasts += t->op == PROBE_BROADCAST ? (double)t->calls : 0;
            c.broadcast_bytes += t->op == PROBE_BROADCAST ? (double)t->bytes : 0;
        }
    return c;
}

static bool applies(const struct evidence *e)
{
    struct claims c = {0};
    return e->probes != NULL && traffic_witness(e) == TRAFFIC_COLLECTIVES && read_claims(e, 0, &c);
}

static void outside(struct finding *f, int rank, const char *what, double seen, double least, double most, const char *unit)
{
    double off = seen < least ? least - seen : seen > most ? seen - most : 0;
    finding_compare(f, off, 0, unit, "Z28", "rank %d: the probe saw %.0f %s of %s, the worker's claims make it %.0f to %.0f", rank, seen, unit, what, least, most);
}

static void judge(const struct evidence *e, struct finding *f)
{
    if (!traffic_usable(e, f))
        return;
    for (int r = 0; r < e->world_size; r++) {
        struct claims said = {0}, seen = seen_by(&e->probes[r]);
        if (!read_claims(e, r, &said)) {
            finding_broken(f, "rank %d has no traffic event, rank 0 has one", r);
            continue;
        }
        double split = said.reductions - seen.reductions;
        outside(f, r, "all-reduces", seen.reductions, 0, said.reductions, "calls");
        outside(f, r, "all-gathers", seen.gathers, said.gathers + split, said.gathers + split, "calls");
        outside(f, r, "reduce-scatters", seen.scatters, said.scatters, said.scatters + split, "calls");
        outside(f, r, "reduce-scatters", seen.scattered_bytes, said.scattered_bytes, said.scattered_bytes + said.reduced_bytes, "bytes");
        outside(f, r, "broadcasts", seen.broadcasts, said.broadcasts, said.broadcasts, "calls");
        outside(f, r, "broadcasts", seen.broadcast_bytes, said.broadcast_bytes, said.broadcast_bytes, "bytes");
    }
    finding_pass(f, "the worker's own counts are what the probe saw");
}

const struct check check_traffic_claims = {
    .name = "traffic-claims", .number = 0, .claim = "calls and bytes of the `traffic` event = those that the probe saw", .source = "docs/protocol.md, event traffic",
    .catches = "Z28", .blind = "a claim and a probe that are wrong alike", .applies = applies, .judge = judge};
