// Traffic of a case added up over its phases. See summary.h.
#include <string.h>

#include "harness/probes/summary.h"

bool probe_uncounted(const struct probe_case *p)
{
    int64_t unseen = 0;
    for (int i = 0; i < p->phase_count; i++)
        unseen += probe_trains(p->phases[i].name) ? p->phases[i].unseen : 0;
    return unseen > 0;
}

bool probe_traffic_whole(const struct probe_case *p) { return p->lost == 0 && !probe_uncounted(p); }
bool probe_memory_whole(const struct probe_case *p) { return p->lost == 0 && p->untracked == 0; }

// Where the parts differ in type, size or peer, the sum has none.
static void add(struct probe_traffic *sum, const struct probe_traffic *t)
{
    if (sum->calls == 0)
        sum->type = t->type, sum->size = t->size, sum->peer = t->peer;
    sum->type = sum->type == t->type ? t->type : PROBE_TYPE_OTHER;
    sum->size = sum->size == t->size ? t->size : 0;
    sum->peer = sum->peer == t->peer ? t->peer : 0;
    sum->calls += t->calls;
    sum->bytes += t->bytes;
    sum->wire += t->wire;
    sum->seconds += t->seconds;
}

// op PROBE_OP_NONE: any.
static struct probe_traffic sum(const struct probe_case *p, enum probe_kind kind, enum probe_op op, const char *phase, int first_step)
{
    struct probe_traffic out = {.kind = kind, .op = op};
    for (int i = 0; i < p->phase_count; i++) {
        const struct probe_phase *q = &p->phases[i];
        if (q->step < first_step || (phase != NULL ? strcmp(phase, q->name) != 0 : !probe_trains(q->name)))
            continue;
        for (int k = 0; k < q->traffic_count; k++)
            if (q->traffic[k].kind == kind && (op == PROBE_OP_NONE || q->traffic[k].op == op))
                add(&out, &q->traffic[k]);
    }
    return out;
}

struct probe_traffic probe_collective(const struct probe_case *p, enum probe_op op, const char *phase, int first_step)
{
    bool point = op == PROBE_OP_SEND || op == PROBE_OP_RECEIVE;
    return sum(p, point ? PROBE_POINT : PROBE_COLLECTIVE, op, phase, first_step);
}

struct probe_traffic probe_wire(const struct probe_case *p, enum probe_kind kind, const char *phase, int first_step)
{
    return sum(p, kind, PROBE_OP_NONE, phase, first_step);
}
