// Claim: the bytes of each phase are those of the strategy: payload exactly, wire bytes (n-1)/n of it for each rank of a gather or reduce-scatter
//     and twice that of an all-reduce. Over sockets, whose collectives are unseen: no fewer than the strategy needs, no more than
//     it takes with the library's algorithms.
// Source: ZeRO, section 7; Patarasuk 2009 (least bytes of a collective); docs/metrics.md, Traffic; docs/probes.md, What gloo sends.
// How: mpi and nccl: as traffic-counts, and the wire bytes that the probe worked out from the calls' own counts, added up over all ranks, which rounds at most
//     a byte a call. Sockets: bytes sent in the phases of training by all ranks, divided by N, between the least plan with the least algorithms (2 %
//     less for what a plan leaves out) and the largest plan with the library's and its headers (2 % and 16 KiB more).
// Catches: Z28 (excess communication, a type too wide), Z30 (gathered again for a recomputation)
// Blind to: over sockets: excess below 2 %, and which collective it is (traffic-slope is finer)
#include <math.h>
#include <stdlib.h>

#include "harness/judge/traffic.h"
#include "harness/protocol/memory.h"
#include "suite/checks/check.h"

static const double slack = 0.02, more = 16384;

static bool applies(const struct evidence *e)
{
    return (traffic_loaded(e) & TRAFFIC_PROBES) && traffic_unpredicted(e->c) == NULL;
}

static void judge_collectives(const struct evidence *e, struct finding *f)
{
    struct traffic_match m;
    struct error error = {""};
    char text[400];
    if (!traffic_nearest(e, &m, &error)) {
        finding_broken(f, "%s", error.text);
        return;
    }
    for (int i = 0; i < m.gap_count && i < TRAFFIC_GAPS; i++) {
        const char *classes;
        double off = (double)llabs((long long)(m.gaps[i].seen.bytes - m.gaps[i].expected.bytes));
        traffic_gap_text(e->c, &m.plan, &m.gaps[i], text, sizeof text, &classes);
        if (off > 0)
            finding_compare(f, off, 0, "bytes", classes, "rank %d, %s", m.rank, text);
    }
    finding_compare(f, fabs(m.wire_seen - m.wire_expected), (double)m.calls, "bytes", "Z28", "%.0f bytes on the wire from all ranks, the formula says %.0f%s%s",
                    m.wire_seen, m.wire_expected, *traffic_choice_text(&m.choice, text, sizeof text) ? ": " : "", text);
    traffic_match_free(&m);
}

static void judge_sockets(const struct evidence *e, struct finding *f)
{
    struct traffic_choice *choices = memory_zeros(TRAFFIC_CHOICES, sizeof *choices);
    const struct traffic_library *library = traffic_library(traffic_configured(e, "backend")), *best = traffic_library(NULL);
    double sent = traffic_socket_bytes(e->probes, e->world_size), least = INFINITY, most = 0;
    for (int i = traffic_choices(e->c, choices); i-- > 0;) {
        if (choices[i].split) // how an all-reduce is made is the library's, told by its own figures
            continue;
        least = fmin(least, traffic_sent(e->c, &choices[i], best));
        most = fmax(most, traffic_sent(e->c, &choices[i], library));
    }
    free(choices);
    const char *classes = e->c->sharding.activation_checkpointing ? "Z28 Z30" : "Z28";
    finding_compare(f, sent, most * (1 + slack) + more, "bytes", classes, "%.0f bytes sent by a rank, at most %.0f by the formula (%s: %s)", sent, most,
                    library->name, library->words);
    finding_compare(f, least * (1 - slack), sent, "bytes", "Z28", "%.0f bytes sent by a rank, the strategy needs %.0f", sent, least);
}

static void judge(const struct evidence *e, struct finding *f)
{
    enum traffic_witness witness = traffic_judged(e, f);
    if (witness == TRAFFIC_SOCKETS)
        judge_sockets(e, f);
    else if (witness == TRAFFIC_COLLECTIVES)
        judge_collectives(e, f);
}

const struct check check_traffic_bytes = {
    .name = "traffic-bytes", .number = 36, .claim = "bytes of each phase = those of the strategy: payload, and f(n) = (n-1)/n of it on the wire",
    .source = "ZeRO section 7; Patarasuk 2009", .catches = "Z28 Z30", .blind = "over sockets: which collective it is",
    .applies = applies, .judge = judge};
