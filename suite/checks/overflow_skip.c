// Claim: an overflow on one rank makes all ranks skip the step: state bitwise unchanged, same loss scale on all ranks.
// Source: Micikevicius, section 3.2: a step with infinite gradients is skipped and the scale reduced.
// How: the step events of all ranks against each other and against the truth's skipped steps; state of the labels around a skipped step.
// Catches: Z21
// Blind to: overflow that every rank sees by itself
#include <string.h>

#include "harness/judge/update.h"
#include "suite/checks/check.h"

enum { MAX_UPDATES = 256 };

static bool applies(const struct evidence *e) { return e->c->precision.loss_scale == LOSS_SCALE_DYNAMIC; }

static void judge_events(const struct evidence *e, struct finding *f, int step, bool expected)
{
    double scale0 = 0, scale = 0;
    for (int r = 0; r < e->world_size; r++) {
        const struct event *event = answer_find(&e->answers[r], EVENT_STEP, step);
        if (!event || !event_number(event, "loss_scale", r == 0 ? &scale0 : &scale)) {
            finding_fail(f, "Z29", "rank %d reported no step %d", r, step);
            return;
        }
        bool skipped = json_is_true(json_object_get(event->fields, "skipped"));
        if (skipped != expected)
            finding_fail(f, "Z21", "rank %d %s step %d, the truth %s it", r, skipped ? "skipped" : "took", step, expected ? "skips" : "takes");
        if (r > 0 && !judge_compare(scale > scale0 ? scale - scale0 : scale0 - scale, 0))
            finding_fail(f, "Z21", "after step %d the loss scale is %g on rank 0 and %g on rank %d", step, scale0, scale, r);
    }
}

static void judge_state(const struct evidence *e, struct finding *f, const struct update *u, int step)
{
    (void)e;
    for (int i = 0; i < u->before->full.count; i++) {
        const struct tensor *a = &u->before->full.items[i], *b = tensors_find(&u->after->full, a->name);
        if (strncmp(a->name, "grad/", 5) == 0 || strncmp(a->name, "clipped/", 8) == 0 || !b)
            continue;
        if (a->dtype != b->dtype || a->count != b->count || memcmp(a->data, b->data, (size_t)a->count * dtype_size(a->dtype)) != 0)
            finding_fail(f, "Z21", "step %d was skipped, but %s changed", step, a->name);
    }
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct update updates[MAX_UPDATES];
    int count = update_list(e, updates, MAX_UPDATES), skipped = 0;
    for (int k = 0; k < count && k < MAX_UPDATES && k < e->truth->step_count; k++) {
        bool expected = e->truth->steps[k].skipped;
        skipped += expected;
        judge_events(e, f, k, expected);
        if (expected && updates[k].before && updates[k].after)
            judge_state(e, f, &updates[k], k);
    }
    if (skipped == 0)
        finding_broken(f, "no step of the truth overflows: there is nothing to skip");
    else
        finding_pass(f, "all ranks skip %d of %d steps and keep their state", skipped, count);
}

const struct check check_overflow_skip = {
    .name = "overflow-skip", .number = 12, .claim = "overflow on one rank: every rank skips, state unchanged, scales equal",
    .source = "Micikevicius 2018, section 3.2", .catches = "Z21", .blind = "overflow on all ranks at once", .applies = applies, .judge = judge};
