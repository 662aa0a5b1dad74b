// Phases and spans to JSON and back. See stored.h.
#include "harness/probes/stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

static const char *const kind_names[PROBE_KINDS] = {[PROBE_SEND] = "send", [PROBE_RECEIVE] = "receive", [PROBE_COLLECTIVE] = "collective",
                                                    [PROBE_POINT] = "point", [PROBE_WAIT] = "wait"};

static json_t *microseconds(double s) { return json_integer((json_int_t)llround(1e6 * s)); }

static void set_count(json_t *object, const char *key, int64_t count)
{
    if (count != 0)
        json_object_set_new(object, key, json_integer(count));
}

static void set_live(json_t *object, const char *key, const struct probe_live *l)
{
    if (l->begin != 0 || l->end != 0 || l->peak != 0)
        json_object_set_new(object, key, json_pack("[I, I, I]", (json_int_t)l->begin, (json_int_t)l->end, (json_int_t)l->peak));
}

static void set_list(json_t *object, const char *key, json_t *list)
{
    if (json_array_size(list) > 0)
        json_object_set(object, key, list);
    json_decref(list);
}

// Peers and connections of one kind become one line.
static json_t *traffic_json(const struct probe_phase *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->traffic_count; i++) {
        struct probe_traffic sum = p->traffic[i];
        bool told = kind_names[sum.kind] == NULL;
        for (int k = 0; k < p->traffic_count && !told; k++) {
            const struct probe_traffic *t = &p->traffic[k];
            if (k == i || t->kind != sum.kind || t->op != sum.op || t->type != sum.type || t->size != sum.size)
                continue;
            told = k < i;
            sum.calls += t->calls, sum.bytes += t->bytes, sum.wire += t->wire, sum.seconds += t->seconds;
        }
        if (!told)
            json_array_append_new(list, json_pack("[s, s, s, i, I, I, I, o]", kind_names[sum.kind], probe_op_name(sum.op), probe_type_name(sum.type),
                                                  sum.size, (json_int_t)sum.calls, (json_int_t)sum.bytes, (json_int_t)sum.wire, microseconds(sum.seconds)));
    }
    return list;
}

static json_t *phase_json(const struct probe_phase *p, double zero_s)
{
    json_t *o = json_pack("{s:s, s:i, s:[o, o]}", "name", p->name, "step", p->step, "us", microseconds(p->begin_s - zero_s), microseconds(p->end_s - zero_s));
    set_live(o, "heap", &p->heap);
    set_live(o, "map", &p->map);
    set_live(o, "device", &p->device);
    set_list(o, "traffic", traffic_json(p));
    set_count(o, "unseen", p->unseen);
    if (p->waits > 0)
        json_object_set_new(o, "wait", json_pack("[I, o]", (json_int_t)p->waits, microseconds(p->wait_s)));
    for (int i = 0; i < p->counter_count; i++) {
        if (p->counters[i].reason != 0)
            continue; // an event that was not available has no value
        if (json_object_get(o, "counters") == NULL)
            json_object_set_new(o, "counters", json_object());
        json_object_set_new(json_object_get(o, "counters"), p->counters[i].event, json_integer(p->counters[i].value));
    }
    return o;
}

static json_t *spans_json(const char *path, double begin_s, double end_s, double zero_s)
{
    struct probe_span *spans;
    json_t *list = json_array();
    int count = probe_spans(path, begin_s, end_s, &spans);
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_pack("[s, s, o, o, I]", kind_names[spans[i].kind], probe_op_name(spans[i].op), microseconds(spans[i].begin_s - zero_s),
                                              microseconds(spans[i].end_s - zero_s), (json_int_t)spans[i].bytes));
    free(spans);
    return list;
}

static double first_mark(const struct probe_case *by_rank, int ranks)
{
    double first = INFINITY;
    for (int r = 0; r < ranks; r++)
        if (by_rank[r].phase_count > 0)
            first = fmin(first, by_rank[r].phases[0].begin_s);
    return isfinite(first) ? first : 0;
}

json_t *probe_store(const struct probe_case *by_rank, int ranks, const char *const *paths)
{
    json_t *list = json_array();
    double zero_s = first_mark(by_rank, ranks), begin_s, end_s;
    int step = ranks > 0 ? probe_timeline_step(&by_rank[0]) : -1;
    for (int r = 0; r < ranks; r++) {
        const struct probe_case *p = &by_rank[r];
        char names[64];
        probe_set_text(p->probes, names);
        json_t *o = json_pack("{s:i, s:s}", "rank", p->rank, "probes", names), *phases = json_array();
        set_count(o, "lost", p->lost);
        set_count(o, "unseen", p->unseen);
        if (p->unseen_call != NULL)
            json_object_set_new(o, "unseen_call", json_string(p->unseen_call));
        set_count(o, "untracked", p->untracked);
        if (p->untracked_call != NULL)
            json_object_set_new(o, "untracked_call", json_string(p->untracked_call));
        for (int i = 0; i < p->phase_count; i++)
            json_array_append_new(phases, phase_json(&p->phases[i], zero_s));
        json_object_set_new(o, "phases", phases);
        if (paths != NULL && step >= 0 && probe_step_times(p, step, &begin_s, &end_s)) {
            json_object_set_new(o, "step", json_integer(step));
            set_list(o, "spans", spans_json(paths[r], begin_s, end_s, zero_s));
        }
        json_array_append_new(list, o);
    }
    return json_pack("{s:o}", "ranks", list);
}

// ---- reading back ----
static int64_t whole(json_t *list, size_t i) { return json_integer_value(json_array_get(list, i)); }
static double seconds(json_t *list, size_t i) { return 1e-6 * (double)whole(list, i); }

static int place_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; name != NULL && i < count; i++)
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static enum probe_op op_of(json_t *value)
{
    for (int i = 0; json_is_string(value) && i < PROBE_OPS; i++)
        if (strcmp(probe_op_name((enum probe_op)i), json_string_value(value)) == 0)
            return (enum probe_op)i;
    return PROBE_OP_NONE;
}

static enum probe_type type_of(json_t *value)
{
    for (int i = 0; json_is_string(value) && i < PROBE_TYPES; i++)
        if (strcmp(probe_type_name((enum probe_type)i), json_string_value(value)) == 0)
            return (enum probe_type)i;
    return PROBE_TYPE_OTHER;
}

static struct probe_live live_of(json_t *list) { return (struct probe_live){whole(list, 0), whole(list, 1), whole(list, 2)}; }

static bool read_traffic(json_t *list, struct probe_phase *out)
{
    out->traffic_count = (int)json_array_size(list);
    out->traffic = memory_zeros((size_t)out->traffic_count + 1, sizeof *out->traffic);
    for (int i = 0; i < out->traffic_count; i++) {
        json_t *t = json_array_get(list, (size_t)i);
        int kind = place_of(kind_names, PROBE_KINDS, json_string_value(json_array_get(t, 0)));
        if (kind < 0 || json_array_size(t) != 8)
            return false;
        out->traffic[i] = (struct probe_traffic){(enum probe_kind)kind, op_of(json_array_get(t, 1)), type_of(json_array_get(t, 2)), (int)whole(t, 3), 0,
                                                 whole(t, 4), whole(t, 5), whole(t, 6), seconds(t, 7), false};
    }
    return true;
}

static void read_counters(json_t *object, struct probe_phase *out)
{
    const char *event;
    json_t *value;
    out->counters = memory_zeros(json_object_size(object) + 1, sizeof *out->counters);
    json_object_foreach(object, event, value) out->counters[out->counter_count++] = (struct probe_counter){.event = event, .value = json_integer_value(value)};
}

static bool read_phase(json_t *o, struct probe_phase *out)
{
    json_t *us = json_object_get(o, "us");
    *out = (struct probe_phase){.name = json_string_value(json_object_get(o, "name")), .step = (int)json_integer_value(json_object_get(o, "step")),
                                .begin_s = seconds(us, 0), .end_s = seconds(us, 1), .heap = live_of(json_object_get(o, "heap")),
                                .map = live_of(json_object_get(o, "map")), .device = live_of(json_object_get(o, "device"))};
    out->unseen = json_integer_value(json_object_get(o, "unseen"));
    out->waits = whole(json_object_get(o, "wait"), 0);
    out->wait_s = seconds(json_object_get(o, "wait"), 1);
    read_counters(json_object_get(o, "counters"), out);
    return read_traffic(json_object_get(o, "traffic"), out) && out->name != NULL && json_array_size(us) == 2;
}

static bool read_spans(json_t *list, struct probe_span **out, int *count)
{
    *count = (int)json_array_size(list);
    *out = memory_zeros((size_t)*count + 1, sizeof **out);
    for (int i = 0; i < *count; i++) {
        json_t *s = json_array_get(list, (size_t)i);
        int kind = place_of(kind_names, PROBE_KINDS, json_string_value(json_array_get(s, 0)));
        if (kind < 0 || json_array_size(s) != 5)
            return false;
        (*out)[i] = (struct probe_span){(enum probe_kind)kind, op_of(json_array_get(s, 1)), seconds(s, 2), seconds(s, 3), whole(s, 4)};
    }
    return true;
}

static bool read_rank(json_t *o, struct probe_stored *out, int r)
{
    struct probe_case *p = &out->by_rank[r];
    const char *names = json_string_value(json_object_get(o, "probes"));
    json_t *phases = json_object_get(o, "phases");
    struct error error;
    *p = (struct probe_case){.rank = (int)json_integer_value(json_object_get(o, "rank")), .lost = json_integer_value(json_object_get(o, "lost")),
                             .unseen = json_integer_value(json_object_get(o, "unseen")),
                             .unseen_call = json_string_value(json_object_get(o, "unseen_call")),
                             .untracked = json_integer_value(json_object_get(o, "untracked")),
                             .untracked_call = json_string_value(json_object_get(o, "untracked_call"))};
    if (names == NULL || !json_is_array(phases) || (names[0] != 0 && !probe_set(names, &p->probes, &error)))
        return false;
    p->phases = memory_zeros(json_array_size(phases) + 1, sizeof *p->phases);
    while (p->phase_count < (int)json_array_size(phases)) {
        struct probe_phase *phase = &p->phases[p->phase_count++];
        if (!read_phase(json_array_get(phases, (size_t)p->phase_count - 1), phase))
            return false;
    }
    if (json_object_get(o, "step") != NULL)
        out->step = (int)json_integer_value(json_object_get(o, "step"));
    return read_spans(json_object_get(o, "spans"), &out->spans[r], &out->span_count[r]);
}

bool probe_stored_read(json_t *stored, struct probe_stored *out)
{
    json_t *list = json_object_get(stored, "ranks");
    size_t ranks = json_array_size(list);
    *out = (struct probe_stored){.ranks = (int)ranks, .step = -1};
    if (ranks == 0)
        return false;
    out->by_rank = memory_zeros(ranks, sizeof *out->by_rank);
    out->span_count = memory_zeros(ranks, sizeof *out->span_count);
    out->spans = memory_zeros(ranks, sizeof *out->spans);
    for (int r = 0; r < out->ranks; r++)
        if (!read_rank(json_array_get(list, (size_t)r), out, r)) {
            probe_stored_free(out);
            return false;
        }
    return true;
}

void probe_stored_free(struct probe_stored *s)
{
    for (int r = 0; r < s->ranks; r++) {
        for (int i = 0; i < s->by_rank[r].phase_count; i++) {
            free(s->by_rank[r].phases[i].traffic);
            free(s->by_rank[r].phases[i].counters);
        }
        free(s->by_rank[r].phases);
        free(s->spans[r]);
    }
    free(s->by_rank);
    free(s->span_count);
    free(s->spans);
    *s = (struct probe_stored){0};
}
