// See exposing.h.
#include "harness/run/exposing.h"

#include <stdio.h>

static json_t *three(const struct interval *i) { return json_pack("[f, f, f]", i->value, i->low, i->high); }

static void add(json_t *figures, const char *label, const char *by, const struct exposed *e)
{
    json_array_append_new(figures, json_pack("{ss ss ss sf sn ss sf sf sf so si}", "check", "exposed", "label", label, "tensor", by, "figure", e->waited_s.value,
                                             "bound", "unit", "s", "low", e->waited_s.low, "high", e->waited_s.high, "step", e->step_s.value, "share",
                                             three(&e->share), "steps", e->steps));
}

static void add_unseen(json_t *figures, const char *reason)
{
    json_array_append_new(figures, json_pack("{ss ss ss sn sn ss ss}", "check", "exposed", "label", "waited", "tensor", "", "figure", "bound", "unit", "s", "reason", reason));
}

// `exposed` of the event: {"steps", "step", "seconds", "low", "high", "share", "share_low", "share_high"}.
static bool told_by_worker(const struct answer *a, struct exposed *out)
{
    const struct event *event = answer_find(a, EVENT_TRAFFIC, 0);
    json_t *told = event != NULL ? json_object_get(event->fields, "exposed") : NULL;
    const struct { const char *name; double *to; } fields[] = {
        {"step", &out->step_s.value}, {"seconds", &out->waited_s.value}, {"low", &out->waited_s.low}, {"high", &out->waited_s.high},
        {"share", &out->share.value}, {"share_low", &out->share.low}, {"share_high", &out->share.high}};
    double steps = json_number_value(json_object_get(told, "steps"));
    if (!(steps >= 1 && steps < 1e9))
        return false;
    out->steps = (int)steps;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_t *value = json_object_get(told, fields[i].name);
        if (!json_is_number(value))
            return false;
        *fields[i].to = json_number_value(value);
    }
    return true;
}

void exposing_figures(const struct probe_case *ranks, int rank_count, const char *unread, const struct answer *answers, json_t *figures)
{
    struct exposed e = {0};
    char why[256], probes[64];
    if (rank_count < 2)
        return;
    if (ranks == NULL) {
        add_unseen(figures, unread != NULL ? unread : "the probes wrote no records");
    } else if (exposed_of(ranks, rank_count, &e, why)) {
        probe_set_text(e.probes, probes);
        add(figures, "waited", probes, &e);
    } else {
        add_unseen(figures, why);
    }
    e = (struct exposed){0};
    if (told_by_worker(&answers[0], &e))
        add(figures, "differenced", "worker", &e);
}
