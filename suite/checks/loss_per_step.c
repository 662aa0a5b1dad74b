// Claim: the losses that the ranks report for a step add up to the loss of the global batch at the subject's own parameters.
// Source: docs/protocol.md: a rank reports its share, what it differentiated over N.
// How: sum over data ranks and microbatches against float64; with a tensor axis for each tensor coordinate, with a pipeline of the last stage. Bound, relative to the sum of absolute values: exact and witness layers (n + 8) u, n values added (Higham,
//     chapter 4); calibrated layer budget times the relative noise of the whole gradient, at least 8 u: a loss is no worse conditioned
//     than its gradient under the same roundings (docs/method.md).
// Catches: Z09 Z15 Z01
// Blind to: a loss that is right while the gradient is not
#include <math.h>
#include <stdio.h>

#include "harness/judge/gradient.h"
#include "harness/judge/noise.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    bool witness = e->c->layer == LAYER_WITNESS;
    return e->c->layer != LAYER_MEASURED && (!witness || e->c->precision.compute == DTYPE_F32) && e->c->precision.loss_scale == LOSS_SCALE_NONE && program_count(e->c, VERB_STEP) > 0;
}

// Sum of the micro events that made the gradient at a label, over the data ranks of one tensor coordinate of the last stage: the n-th
// forward of the program is the n-th event of each rank. *absolute: of their magnitudes. Returns how many events are missing, of all ranks.
static int reported(const struct evidence *e, const struct program_label *l, int tensor, double *sum, double *absolute)
{
    int nth = 0, missing = 0;
    *sum = *absolute = 0;
    for (int at = 0; at < l->at; at++) {
        const struct instruction *n = &e->c->program[at];
        int cleared = program_next(e->c, VERB_ZERO_GRAD, at);
        if (n->verb != VERB_MICRO && n->verb != VERB_FORWARD)
            continue;
        for (int r = 0; (cleared < 0 || cleared > l->at) && r < e->world_size; r++) {
            const struct event *event = answer_find(&e->answers[r], EVENT_MICRO, nth);
            struct rank_place at_rank = case_place(e->c, r);
            bool counts = at_rank.tensor == tensor && at_rank.stage == e->c->sharding.pipeline - 1;
            double step, loss = 0;
            missing += !event || !event_number(event, "step", &step) || (int)step != n->step || !event_number(event, "loss", &loss);
            *sum += counts ? loss : 0;
            *absolute += counts ? fabs(loss) : 0;
        }
        nth++;
    }
    return missing;
}

// The losses of one tensor coordinate of the last stage.
static void judge_sum(const struct evidence *e, struct finding *f, const struct program_label *l, int tensor, double loss)
{
    double sum, absolute, relative = 0, u = fmax(dtype_unit_roundoff(e->c->precision.compute), 0x1p-24);
    int count = e->world_size * (int)e->c->data.micros, missing = reported(e, l, tensor, &sum, &absolute);
    if (missing > 0) {
        finding_fail(f, "Z29", "step %d: %d of %d losses were not reported (one for each rank and microbatch, in order)", l->gradient_step, missing, count);
        return;
    }
    double terms = (double)(case_data_ranks(e->c) * e->c->data.micros * e->c->global_rows) + 8;
    bool noisy = e->c->layer == LAYER_CALIBRATED && noise_relative(e, l->label, &relative);
    double bound = noisy ? fmax(e->budget * relative, 8 * u) : terms * u;
    double scale = fmax(fabs(loss), absolute), figure = sum == loss ? 0 : fabs(sum - loss) / scale;
    char name[32], which[48] = "";
    const char *named = loss != 0 ? judge_scale_name(sum / loss, e->c, name, sizeof name) : NULL;
    if (e->c->sharding.tensor > 1)
        snprintf(which, sizeof which, " of tensor coordinate %d", tensor);
    if (tensor == 0)
        judge_figure(e, l->label, "loss", figure, bound, "relative");
    finding_compare(f, figure, bound, "relative", named ? "Z01" : "", "step %d: the ranks' losses%s add up to %.9g, float64 gives %.9g%s%s%s", l->gradient_step,
                    which, sum, loss, named ? " (" : "", named ? named : "", named ? " times)" : "");
}

static void judge(const struct evidence *e, struct finding *f)
{
    for (int at = program_next(e->c, VERB_OBSERVE, 0); at >= 0; at = program_next(e->c, VERB_OBSERVE, at + 1)) {
        struct program_label l = program_label_at(e->c, at);
        const struct tensors *parameters = gradient_parameters(e, &l);
        struct tensors ignored = {0};
        struct error error = {{0}};
        double loss;
        if (!(l.what & OBSERVE_GRAD) || l.gradient_step < 0 || !parameters)
            continue;
        if (!gradient_of(e, &l, parameters, SHARE_ALL, &ignored, &loss, &error))
            finding_broken(f, "step %d: no float64 loss at the subject's parameters: %s", l.gradient_step, error.text);
        for (int t = 0; error.text[0] == 0 && t < e->c->sharding.tensor; t++)
            judge_sum(e, f, &l, t, loss);
        tensors_free(&ignored);
    }
}

const struct check check_loss_per_step = {
    .name = "loss-per-step", .number = 31, .claim = "sum over ranks of loss_r(step) = loss of the global batch", .source = "docs/protocol.md",
    .catches = "Z09 Z15", .blind = "a right loss with a wrong gradient", .applies = applies, .judge = judge};
