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
    const struct { const char *name; double *to; } fields[] = {
        {"exposed.step", &out->step_s.value}, {"exposed.seconds", &out->waited_s.value}, {"exposed.low", &out->waited_s.low}, {"exposed.high", &out->waited_s.high},
        {"exposed.share", &out->share.value}, {"exposed.share_low", &out->share.low}, {"exposed.share_high", &out->share.high}};
    double steps;
    if (event == NULL || !event_number(event, "exposed.steps", &steps) || !(steps >= 1 && steps < 1e9))
        return false;
    out->steps = (int)steps;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!event_number(event, fields[i].name, fields[i].to))
            return false;
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
