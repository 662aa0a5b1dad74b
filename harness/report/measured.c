// Time, memory and traffic of a case. See measured.h.
#include "harness/report/measured.h"

#include <math.h>
#include <string.h>

#include "harness/probes/stored.h"

const char *const measured_names[MEASURED_QUANTITIES] = {"seconds", "peak bytes", "rest bytes", "sent bytes"};

static void add_memory(const struct probe_case *p, double out[MEASURED_QUANTITIES]) {
    double rest = NAN;
    if (!(p->probes & (1u << PROBE_HEAP | 1u << PROBE_CUDA))) return;
    for (int i = 0; i < p->phase_count; i++) {
        const struct probe_phase *q = &p->phases[i];
        if (!probe_trains(q->name)) continue;
        out[MEASURED_PEAK] = fmax(out[MEASURED_PEAK], (double)(q->heap.peak + q->map.peak + q->device.peak)); // fmax leaves NaN out
        if (!strcmp(q->name, "step")) rest = (double)(q->heap.end + q->map.end + q->device.end);
    }
    out[MEASURED_REST] = fmax(out[MEASURED_REST], rest);
}

static void add_traffic(const struct probe_stored *s, double out[MEASURED_QUANTITIES]) {
    const unsigned calls = 1u << PROBE_MPI | 1u << PROBE_NCCL, sockets = 1u << PROBE_SOCKET;
    unsigned loaded = 0;
    int64_t by_calls = 0, by_sockets = 0;
    for (int r = 0; r < s->ranks; r++) {
        const struct probe_case *p = &s->by_rank[r];
        loaded |= p->probes;
        by_calls += probe_collective(p, PROBE_OP_NONE, NULL, 0).wire + probe_collective(p, PROBE_OP_SEND, NULL, 0).bytes;
        by_sockets += probe_wire(p, PROBE_SEND, NULL, 0).bytes;
    }
    if (loaded & (calls | sockets)) out[MEASURED_SENT] = (double)(by_calls > 0 ? by_calls : by_sockets);
}

void measured_of(const struct stored_case *c, double out[MEASURED_QUANTITIES]) {
    struct probe_stored s;
    for (int i = 0; i < MEASURED_QUANTITIES; i++) out[i] = NAN;
    if (c->seconds > 0) out[MEASURED_SECONDS] = c->seconds; // 0: its events came together with those of the next
    if (!c->probes || !probe_stored_read(c->probes, &s)) return;
    bool memory = true, traffic = true;
    for (int r = 0; r < s.ranks; r++) {
        memory &= probe_memory_whole(&s.by_rank[r]);
        traffic &= probe_traffic_whole(&s.by_rank[r]);
    }
    for (int r = 0; memory && r < s.ranks; r++) add_memory(&s.by_rank[r], out);
    if (traffic) add_traffic(&s, out);
    probe_stored_free(&s);
}
