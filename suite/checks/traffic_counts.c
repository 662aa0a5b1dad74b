// Claim: in each phase of every step the collectives are those of the strategy: kind, calls, dtype. At N = 1 there is none.
// Source: ZeRO, section 7 (communication analysis); FSDP, sections 3.1 and 3.3; docs/metrics.md, Traffic.
// How: what the mpi or nccl probe saw of each rank against the formula of harness/judge/traffic.h. What the strategy leaves open (the root kept from
//     forward to backward, padding, all-reduces once a step) is chosen nearest to what was seen, and named. none, optimizer and grad may go in
//     buckets, at most one a tensor, unless the worker tells its units. Collectives of a number of each rank (a norm, a count of tokens)
//     are apart: four a phase. There are no barriers, and no messages from rank to rank.
// Catches: Z28 (excess or serial communication), Z30 (gathered again for a recomputation)
// Blind to: collectives inside a framework that moves its bytes by sockets (traffic-bytes and traffic-slope see those)
#include <stdlib.h>

#include "harness/judge/traffic.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    unsigned witnesses = 1u << PROBE_MPI | 1u << PROBE_NCCL, loaded = traffic_loaded(e);
    return (loaded & witnesses) && traffic_unpredicted(e->c) == NULL &&
           traffic_witness(e) != TRAFFIC_SOCKETS;
}

static void judge_gaps(const struct evidence *e, struct finding *f, const struct traffic_match *m)
{
    for (int i = 0; i < m->gap_count && i < TRAFFIC_GAPS; i++) {
        const struct traffic_gap *g = &m->gaps[i];
        char text[400];
        const char *classes;
        bool type = g->expected.calls > 0 && g->seen.calls > 0 && !traffic_same_type(g->expected.type, g->seen.type);
        if (g->seen.calls == g->expected.calls && !type)
            continue;
        traffic_gap_text(e->c, &m->plan, g, text, sizeof text, &classes);
        if (type)
            finding_fail(f, classes, "rank %d, %s", m->rank, text);
        else
            finding_compare(f, (double)llabs((long long)(g->seen.calls - g->expected.calls)), 0, "calls", classes, "rank %d, %s", m->rank, text);
    }
}

static void judge_match(const struct evidence *e, struct finding *f)
{
    struct traffic_match m;
    struct error error = {""};
    char words[400];
    if (!traffic_nearest(e, &m, &error)) {
        finding_broken(f, "%s", error.text);
        return;
    }
    judge_gaps(e, f, &m);
    if (m.most_scalars > 4)
        finding_compare(f, (double)m.most_scalars, 4, "calls", "Z28", "%lld exchanges of a number in one phase, expected at most 4", (long long)m.most_scalars);
    if (m.barriers > 0)
        finding_compare(f, (double)m.barriers, 0, "calls", "Z28", "%lld barriers in training, expected none", (long long)m.barriers);
    if (m.points > 0)
        finding_compare(f, (double)m.points, 0, "messages", "Z28", "%lld messages from rank to rank beside the collectives, expected none", (long long)m.points);
    if (e->world_size == 1)
        finding_compare(f, (double)m.calls, 0, "calls", "Z28", "%lld collectives of one rank, expected none", (long long)m.calls);
    finding_pass(f, "%lld calls of all ranks, %d units, as the formula says%s%s", (long long)m.calls, m.plan.units,
                 *traffic_choice_text(&m.choice, words, sizeof words) ? ": " : "", words);
    traffic_match_free(&m);
}

static void judge(const struct evidence *e, struct finding *f)
{
    if (traffic_judged(e, f) == TRAFFIC_COLLECTIVES)
        judge_match(e, f);
}

const struct check check_traffic_counts = {
    .name = "traffic-counts", .number = 35, .claim = "collectives of each phase = those of the strategy: kind, calls, dtype; none at N = 1",
    .source = "ZeRO section 7; FSDP section 3.3", .catches = "Z28 Z30", .blind = "collectives inside a framework over sockets",
    .applies = applies, .judge = judge};
