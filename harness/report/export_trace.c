// Timelines as a Chrome trace and as Chakra-style execution traces. See export.h.
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/json.h"
#include "harness/report/timeline.h"

// ---- which cases ----
static bool asked(const char *pattern, const char *id) { return !fnmatch(pattern, id, 0) || strstr(id, pattern); }

void timelines_make(const struct export *e, struct timelines *out) {
    *out = (struct timelines){0};
    view_make(e->run, &out->view);
    probed_make(&out->view, &out->probed);
    out->sources = memory_zeros((size_t)out->probed.source_count + 1, sizeof *out->sources);
    for (int i = 0; !e->pattern && i < out->probed.implementations.count; i++) {
        const struct probed_source *s = probed_timeline(&out->probed, i);
        if (s) out->sources[out->count++] = s;
    }
    for (int i = 0; e->pattern && i < out->probed.source_count; i++)
        if (probed_has_timeline(&out->probed.sources[i]) && asked(e->pattern, out->probed.sources[i].c->case_id)) out->sources[out->count++] = &out->probed.sources[i];
}

void timelines_free(struct timelines *t) {
    free(t->sources);
    probed_free(&t->probed);
    view_free(&t->view);
}

int export_timelines(const struct export *e) {
    struct timelines t;
    timelines_make(e, &t);
    int count = t.count;
    timelines_free(&t);
    return count;
}

int64_t timeline_us(double seconds) { return seconds > 0 ? llround(1e6 * seconds) : 0; }

// ---- Trace Event Format ----
enum { RANKS_APART = 1000 };
enum lane { LANE_PHASES = 1, LANE_CALLS, LANE_SENT, LANE_RECEIVED, LANE_WAITS, LANES };
static const char *const lane_names[LANES] = {NULL, "phases", "communication", "sockets: sent", "sockets: received", "waits"};

struct writer { FILE *out; bool any, ok; };
static void put_event(struct writer *w, json_t *event) {
    w->ok = w->ok && event && fputs(w->any ? ",\n" : "\n", w->out) >= 0 && !json_dumpf(event, w->out, JSON_COMPACT);
    w->any = true;
    json_decref(event);
}

static void put_names(struct writer *w, const struct stored_case *c, int pid, int rank) {
    char *name = memory_format("%s, %s, rank %d", c->implementation, c->case_id, rank);
    put_event(w, json_pack("{s:s, s:s, s:i, s:{s:o}}", "ph", "M", "name", "process_name", "pid", pid, "args", "name", json_text(name)));
    put_event(w, json_pack("{s:s, s:s, s:i, s:{s:i}}", "ph", "M", "name", "process_sort_index", "pid", pid, "args", "sort_index", pid));
    for (int lane = 1; lane < LANES; lane++)
        put_event(w, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", "thread_name", "pid", pid, "tid", lane, "args", "name", lane_names[lane]));
    free(name);
}

static void put_phase(struct writer *w, const struct probe_phase *p, int pid) {
    int64_t from = timeline_us(p->begin_s), to = timeline_us(p->end_s);
    put_event(w, json_pack("{s:s, s:o, s:s, s:i, s:i, s:I, s:I, s:{s:i}}", "ph", "X", "name", json_text(p->name), "cat", "phase", "pid", pid, "tid", LANE_PHASES, "ts", (json_int_t)from,
                           "dur", (json_int_t)(to > from ? to - from : 0), "args", "step", p->step));
    if (p->heap.peak || p->map.peak || p->device.peak)
        put_event(w, json_pack("{s:s, s:s, s:i, s:i, s:I, s:{s:I, s:I, s:I}}", "ph", "C", "name", "live bytes", "pid", pid, "tid", 0, "ts", (json_int_t)to, "args", "heap",
                               (json_int_t)p->heap.end, "mappings", (json_int_t)p->map.end, "device", (json_int_t)p->device.end));
}

static const char *span_name(const struct probe_span *s) {
    if (s->kind == PROBE_SEND) return "send";
    if (s->kind == PROBE_WAIT) return "wait";
    return s->kind == PROBE_RECEIVE ? "receive" : probe_op_name(s->op);
}

static void put_span(struct writer *w, const struct probe_span *s, int step, int pid) {
    enum lane lane = s->kind == PROBE_SEND ? LANE_SENT : s->kind == PROBE_RECEIVE ? LANE_RECEIVED : s->kind == PROBE_WAIT ? LANE_WAITS : LANE_CALLS;
    const char *category = s->kind == PROBE_COLLECTIVE ? "collective" : s->kind == PROBE_WAIT ? "wait" : "point to point";
    int64_t from = timeline_us(s->begin_s), to = timeline_us(s->end_s);
    put_event(w, json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:{s:I, s:i}}", "ph", "X", "name", span_name(s), "cat", category,
                           "pid", pid, "tid", lane, "ts", (json_int_t)from, "dur", (json_int_t)(to > from ? to - from : 0), "args", "bytes", (json_int_t)s->bytes, "step", step));
}

bool export_trace(const struct export *e, FILE *out) {
    struct timelines t;
    struct writer w = {out, false, true};
    timelines_make(e, &t);
    json_t *about = json_pack("{s:I, s:o, s:o, s:O?, s:s}", "run", (json_int_t)e->run->id, "command", json_text(e->run->command), "started", json_text(e->run->started), "environment",
                              e->run->environment, "note", "phases of all steps; communication of one step only, neighbours of one kind with less than 1/500 of it between them joined");
    w.ok = fputs("{\"displayTimeUnit\": \"ms\",\n\"otherData\": ", out) >= 0 && !json_dumpf(about, out, JSON_COMPACT) && fputs(",\n\"traceEvents\": [", out) >= 0;
    json_decref(about);
    for (int i = 0; i < t.count; i++)
        for (int r = 0; r < t.sources[i]->seen.ranks; r++) {
            const struct probe_stored *seen = &t.sources[i]->seen;
            int pid = i * RANKS_APART + r + 1;
            put_names(&w, t.sources[i]->c, pid, seen->by_rank[r].rank);
            for (int k = 0; k < seen->by_rank[r].phase_count; k++) put_phase(&w, &seen->by_rank[r].phases[k], pid);
            for (int k = 0; k < seen->span_count[r]; k++) put_span(&w, &seen->spans[r][k], seen->step, pid);
        }
    timelines_free(&t);
    return w.ok && fputs("\n]}\n", out) >= 0 && !fflush(out);
}

// ---- Chakra ----
// CollectiveCommType of the schema by op; -1: it has none.
static int comm_type(enum probe_op op) {
    static const int types[PROBE_OPS] = {[PROBE_ALL_REDUCE] = 0, [PROBE_REDUCE] = 1, [PROBE_ALL_GATHER] = 2, [PROBE_GATHER] = 3, [PROBE_SCATTER] = 4, [PROBE_BROADCAST] = 5,
                                         [PROBE_ALL_TO_ALL] = 6, [PROBE_REDUCE_SCATTER] = 7, [PROBE_BARRIER] = 9};
    return op == PROBE_OP_NONE || op == PROBE_OP_SEND || op == PROBE_OP_RECEIVE ? -1 : types[op];
}

static json_t *node(int64_t id, const char *name, const char *type, json_t *ctrl_deps, double begin_s, double end_s) {
    int64_t from = timeline_us(begin_s), to = timeline_us(end_s);
    return json_pack("{s:I, s:o, s:s, s:o, s:[], s:I, s:I, s:[{s:s, s:b}]}", "id", (json_int_t)id, "name", json_text(name), "type", type, "ctrl_deps", ctrl_deps, "data_deps",
                     "start_time_micros", (json_int_t)from, "duration_micros", (json_int_t)(to > from ? to - from : 0), "attr", "name", "is_cpu_op", "bool_val", 1);
}

static json_t *comm_node(int64_t id, const struct probe_span *s, int64_t phase) {
    bool sends = s->kind == PROBE_SEND || s->op == PROBE_OP_SEND, receives = s->kind == PROBE_RECEIVE || s->op == PROBE_OP_RECEIVE;
    const char *type = sends ? "COMM_SEND_NODE" : receives ? "COMM_RECV_NODE" : "COMM_COLL_NODE";
    json_t *out = node(id, span_name(s), type, phase < 0 ? json_array() : json_pack("[I]", (json_int_t)phase), s->begin_s, s->end_s), *attr = json_object_get(out, "attr");
    if (!sends && !receives && comm_type(s->op) >= 0) json_array_append_new(attr, json_pack("{s:s, s:i}", "name", "comm_type", "int64_val", comm_type(s->op)));
    json_array_append_new(attr, json_pack("{s:s, s:I}", "name", "comm_size", "int64_val", (json_int_t)s->bytes));
    return out;
}

// The phases of the step, each after the one before it; then its communication, without the waits, each after the phase in which it began.
static json_t *nodes_of(const struct probe_stored *seen, int r) {
    const struct probe_case *p = &seen->by_rank[r];
    json_t *nodes = json_array();
    int64_t *ids = memory_zeros((size_t)p->phase_count + 1, sizeof *ids), id = 0;
    for (int i = 0; i < p->phase_count; i++) {
        const struct probe_phase *q = &p->phases[i];
        ids[i] = -1;
        if (q->step != seen->step || !probe_trains(q->name)) continue;
        ids[i] = id;
        json_array_append_new(nodes, node(id, q->name, "COMP_NODE", id ? json_pack("[I]", (json_int_t)(id - 1)) : json_array(), q->begin_s, q->end_s));
        id++;
    }
    for (int k = 0; k < seen->span_count[r]; k++) {
        int64_t within = -1;
        if (seen->spans[r][k].kind == PROBE_WAIT) continue; // the schema has no node for it
        for (int i = 0; i < p->phase_count; i++)
            if (ids[i] >= 0 && p->phases[i].begin_s <= seen->spans[r][k].begin_s) within = ids[i];
        json_array_append_new(nodes, comm_node(id++, &seen->spans[r][k], within));
    }
    free(ids);
    return nodes;
}

bool export_chakra(const struct export *e, FILE *out) {
    struct timelines t;
    struct writer w = {out, false, true};
    timelines_make(e, &t);
    w.ok = fputs("{\"traces\": [", out) >= 0;
    for (int i = 0; i < t.count; i++)
        for (int r = 0; r < t.sources[i]->seen.ranks; r++) {
            const struct stored_case *c = t.sources[i]->c;
            put_event(&w, json_pack("{s:o, s:o, s:i, s:{s:s, s:[{s:s, s:o}, {s:s, s:i}, {s:s, s:i}]}, s:o}", "implementation", json_text(c->implementation), "case", json_text(c->case_id),
                                    "rank", t.sources[i]->seen.by_rank[r].rank, "global_metadata", "version", "0.0.4", "attr", "name", "case", "string_val", json_text(c->case_id), "name", "rank",
                                    "int32_val", t.sources[i]->seen.by_rank[r].rank, "name", "step", "int32_val", t.sources[i]->seen.step, "nodes", nodes_of(&t.sources[i]->seen, r)));
        }
    timelines_free(&t);
    return w.ok && fputs("\n]}\n", out) >= 0 && !fflush(out);
}
