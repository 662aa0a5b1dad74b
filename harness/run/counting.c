// Counters of a case, added up by phase. See counting.h.
#include "harness/run/counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probes/counter.h"
#include "harness/probes/counters.h"
#include "harness/protocol/memory.h"

const char *counting_scope_name(enum probe_scope scope)
{
    static const char *const names[] = {"process", "thread", "machine", "level"};
    return names[scope];
}

static const struct probe_counter *counter_of(const struct probe_phase *p, const char *key)
{
    for (int i = 0; i < p->counter_count; i++)
        if (strcmp(p->counters[i].event, key) == 0)
            return &p->counters[i];
    return NULL;
}

static void add_absent(json_t *figures, const char *event, const char *reason)
{
    json_array_append_new(figures, json_pack("{ss ss ss sn sn ss ss}", "check", "counters", "label", "", "tensor", event, "figure", "bound", "unit",
                                             counters_unit(event), "reason", reason));
}

// Why the ranks have no values of the event; false where they have.
static bool is_absent(const char *event, const struct probe_case *ranks, int rank_count, const char *unread, char *reason, size_t size)
{
    int seen = 0;
    if (ranks == NULL)
        return snprintf(reason, size, "%s", unread != NULL ? unread : "the probe wrote no records"), true;
    for (int r = 0; r < rank_count; r++)
        for (int p = 0; p < ranks[r].phase_count; p++) {
            const struct probe_counter *c = counter_of(&ranks[r].phases[p], counter_key(event));
            if (c != NULL && c->reason != 0)
                return counters_reason(event, c->reason, reason, size), true;
            seen += c != NULL;
        }
    snprintf(reason, size, "the probe wrote no value of it");
    return seen == 0;
}

struct sum { double value; int times; enum probe_scope scope; };

static struct sum sum_of(const char *event, const char *phase, const struct probe_case *ranks, int rank_count)
{
    struct sum s = {0};
    for (int r = 0; r < rank_count; r++)
        for (int p = 0; p < ranks[r].phase_count; p++) {
            const struct probe_phase *one = &ranks[r].phases[p];
            const struct probe_counter *c = strcmp(one->name, phase) == 0 ? counter_of(one, counter_key(event)) : NULL;
            if (c == NULL)
                continue;
            s.scope = c->scope;
            s.times += r == 0;
            if (c->scope == PROBE_LEVEL)
                s.value = (double)c->value > s.value ? (double)c->value : s.value;
            else if (c->scope != PROBE_OF_MACHINE || r == 0)
                s.value += (double)c->value;
        }
    return s;
}

static bool is_first_of_name(const struct probe_case *c, int phase)
{
    for (int p = 0; p < phase; p++)
        if (strcmp(c->phases[p].name, c->phases[phase].name) == 0)
            return false;
    return true;
}

static void add_event(const char *event, const struct probe_case *ranks, int rank_count, const char *unread, json_t *figures)
{
    char reason[256];
    if (is_absent(event, ranks, rank_count, unread, reason, sizeof reason)) {
        add_absent(figures, event, reason);
        return;
    }
    for (int p = 0; p < ranks[0].phase_count; p++) {
        const char *phase = ranks[0].phases[p].name;
        struct sum s = is_first_of_name(&ranks[0], p) ? sum_of(event, phase, ranks, rank_count) : (struct sum){0};
        if (s.times > 0)
            json_array_append_new(figures, json_pack("{ss ss ss sf sn ss ss si}", "check", "counters", "label", phase, "tensor", event, "figure",
                                                     s.value, "bound", "unit", counters_unit(event), "scope", counting_scope_name(s.scope), "times", s.times));
    }
}

void counting_figures(const char *events, const struct probe_case *ranks, int rank_count, const char *unread, json_t *figures)
{
    char *copy = memory_text(events), *rest = copy, *event;
    while ((event = strsep(&rest, ",")) != NULL)
        add_event(event, ranks, rank_count, unread, figures);
    free(copy);
}
