// The verbs of a program, serially. See serial.h and "program" in docs/protocol.md.
//
// save and load change nothing but what they say. A load that no save precedes takes the state that another run of the
// family saved: the state after the standard program of all steps before the first one that is named after the load.
// Undefined in frameworks, and therefore errors here: freezing a parameter that has a gradient, a step while a slot
// is open, and AdamW on a parameter that missed an update (is its step count its own or the optimizer's?).
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "reference/truth/serial.h"

static bool run_one(struct serial *s, struct instruction i, struct error *error);

// ---- forward and backward ----

static void record_loss(struct serial *s, const struct instruction *i, double loss)
{
    s->steps[i->step].micro_losses[i->micro] = loss;
    s->steps[i->step].loss += loss;
}

static bool do_micro(struct serial *s, const struct instruction *i, struct error *error)
{
    double loss;
    bool ok = serial_micro(s, i->step, i->micro, i->verb != VERB_FORWARD, &loss, error);
    if (ok && i->verb != VERB_BACKWARD)
        record_loss(s, i, loss);
    if (i->verb == VERB_FORWARD) {
        s->slots[i->slot].step = i->step;
        s->slots[i->slot].micro = i->micro;
    }
    if (i->verb != VERB_MICRO)
        s->slot_open[i->slot] = i->verb == VERB_FORWARD;
    return ok;
}

static bool do_eval(struct serial *s, const struct instruction *i, struct error *error)
{
    double loss;
    if (!serial_micro(s, i->step, i->micro, false, &loss, error))
        return false;
    s->evals = memory_grow(s->evals, (size_t)s->eval_count, sizeof *s->evals);
    s->evals[s->eval_count++] = loss;
    return true;
}

// ---- clip, step, zero_grad ----

// The larger of two, NaN if either is.
static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double global_norm(const struct serial *s)
{
    const struct kernel_set *k = s->m.kernels;
    double norm = 0;
    for (int i = 0; i < s->c->parameter_count; i++) {
        const int64_t n = s->c->parameters[i].count;
        if (!s->has_gradient[i])
            continue;
        switch (s->c->clip) {
        case CLIP_L1: norm += k->norm_l1(n, s->g[i]); break;
        case CLIP_L2: norm += k->norm_l2_squared(n, s->g[i]); break;
        default: norm = larger(norm, k->norm_linf(n, s->g[i])); break;
        }
    }
    return s->c->clip == CLIP_L2 ? sqrt(norm) : norm;
}

// The factor is that of torch.nn.utils.clip_grad_norm_; the protocol allows the one without 1e-6 as well.
static void do_clip(struct serial *s, const struct instruction *i)
{
    double norm = global_norm(s), factor = s->c->clip_limit / (norm + 1e-6);
    s->steps[i->step].norm = norm;
    s->clip_factor = factor < 1 ? factor : 1;
    for (int p = 0; factor < 1 && p < s->c->parameter_count; p++)
        if (s->has_gradient[p])
            s->m.kernels->scale(s->c->parameters[p].count, factor, s->g[p]);
}

static bool overflowed(const struct serial *s)
{
    bool finite = true;
    for (int i = 0; i < s->c->parameter_count; i++)
        finite = finite && (!s->has_gradient[i] || s->m.kernels->all_finite(s->c->parameters[i].count, s->g[i]));
    return !finite;
}

static bool do_step(struct serial *s, const struct instruction *at, struct error *error)
{
    for (int slot = 0; slot < SERIAL_SLOTS; slot++)
        if (s->slot_open[slot])
            return error_set(error, "a step while slot %d waits for its backward has no defined meaning", slot);
    s->steps[at->step].skipped = s->c->precision.loss_scale == LOSS_SCALE_DYNAMIC && overflowed(s);
    if (s->steps[at->step].skipped)
        return true;
    s->now.steps++;
    for (int i = 0; i < s->c->parameter_count; i++) {
        if (!s->has_gradient[i])
            continue;
        s->now.counts[i]++;
        if (s->c->optimizer.kind == OPTIMIZER_ADAMW && s->now.counts[i] != s->now.steps)
            return error_set(error, "adamw step %lld is update %lld of %s: frameworks disagree on its bias correction; use sgd",
                             (long long)s->now.steps, (long long)s->now.counts[i], s->c->parameters[i].name);
        serial_update(&s->c->optimizer, s->c->parameters[i].decay, s->now.steps, s->c->parameters[i].count, s->now.p[i],
                      s->g[i], s->now.first[i], s->now.second[i]);
    }
    return true;
}

static void do_zero_grad(struct serial *s)
{
    for (int i = 0; i < s->c->parameter_count; i++) {
        s->has_gradient[i] = false;
        if (s->c->parameters[i].tied_to < 0)
            memset(s->g[i], 0, (size_t)s->c->parameters[i].count * sizeof **s->g);
    }
    s->clip_factor = 1;
}

// ---- freeze, save, load ----

static bool do_freeze(struct serial *s, const struct instruction *at, struct error *error)
{
    for (int i = 0; i < s->c->parameter_count; i++) {
        if (fnmatch(at->pattern, s->c->parameters[i].name, 0) != 0)
            continue;
        if (at->verb == VERB_FREEZE && s->has_gradient[i])
            return error_set(error, "freezing %s while it has a gradient has no defined meaning: zero_grad first",
                             s->c->parameters[i].name);
        s->frozen[i] = at->verb == VERB_FREEZE;
    }
    return true;
}

static void state_copy(const struct fsdp_case *c, struct serial_state *to, const struct serial_state *from)
{
    for (int i = 0; i < c->parameter_count; i++) {
        size_t bytes = c->parameters[i].tied_to < 0 ? (size_t)c->parameters[i].count * sizeof(double) : 0;
        memcpy(to->p[i], from->p[i], bytes);
        memcpy(to->first[i], from->first[i], bytes);
        memcpy(to->second[i], from->second[i], bytes);
        to->counts[i] = from->counts[i];
    }
    to->steps = from->steps;
}

// The first step of the data that an instruction from `at` on names; all steps where none does.
static int first_step_from(const struct fsdp_case *c, const struct instruction *at)
{
    for (; at < c->program + c->program_length; at++)
        if (at->verb == VERB_MICRO || at->verb == VERB_FORWARD)
            return at->step;
    return (int)c->data.steps;
}

// What another run did is no record of this one.
static void forget_steps(struct serial *s, int steps)
{
    for (int k = 0; k < steps; k++) {
        struct truth_step *step = &s->steps[k];
        *step = (struct truth_step){.norm = NAN, .micro_count = step->micro_count, .micro_losses = step->micro_losses};
        for (int m = 0; m < step->micro_count; m++)
            step->micro_losses[m] = NAN;
    }
}

static bool run_standard(struct serial *s, int steps, struct error *error)
{
    if (s->c->loss == LOSS_MEAN_OF_RANKS)
        return error_set(error, "a load without a save, with a loss that depends on the ranks of whoever saved");
    bool ok = true;
    for (int k = 0; ok && k < steps; k++) {
        for (int m = 0; ok && m < s->c->data.micros; m++)
            ok = run_one(s, (struct instruction){.verb = VERB_MICRO, .step = k, .micro = m, .sync = true}, error);
        if (s->c->clip != CLIP_OFF)
            ok = ok && run_one(s, (struct instruction){.verb = VERB_CLIP, .step = k}, error);
        ok = ok && run_one(s, (struct instruction){.verb = VERB_STEP, .step = k}, error) &&
             run_one(s, (struct instruction){.verb = VERB_ZERO_GRAD}, error);
    }
    forget_steps(s, steps);
    return ok;
}

static bool do_load(struct serial *s, const struct instruction *at, struct error *error)
{
    if (s->has_saved) {
        state_copy(s->c, &s->now, &s->saved);
        return true;
    }
    if (s->now.steps > 0)
        return error_set(error, "a load without a save after %lld steps: nobody knows what it loads", (long long)s->now.steps);
    return run_standard(s, first_step_from(s->c, at), error);
}

// ---- the program ----

static bool run_verb(struct serial *s, const struct instruction *at, const struct instruction *original,
                     struct error *error)
{
    switch (at->verb) {
    case VERB_MICRO:
    case VERB_FORWARD:
    case VERB_BACKWARD: return do_micro(s, at, error);
    case VERB_EVAL: return do_eval(s, at, error);
    case VERB_CLIP: do_clip(s, at); return true;
    case VERB_STEP: return do_step(s, at, error);
    case VERB_ZERO_GRAD: do_zero_grad(s); return true;
    case VERB_FREEZE:
    case VERB_UNFREEZE: return do_freeze(s, at, error);
    case VERB_SAVE:
        state_copy(s->c, &s->saved, &s->now);
        s->has_saved = true;
        return true;
    case VERB_LOAD: return do_load(s, original, error);
    case VERB_OBSERVE:
    case VERB_STOP: return true;
    }
    return error_set(error, "verb %d is unknown", (int)at->verb);
}

static bool run_from(struct serial *s, const struct instruction *original, struct error *error)
{
    struct instruction i = *original;
    if (i.verb == VERB_BACKWARD) {
        i.step = s->slots[i.slot].step;
        i.micro = s->slots[i.slot].micro;
    }
    return (s->hook == NULL || s->hook(s->context, s, &i, error)) && run_verb(s, &i, original, error);
}

static bool run_one(struct serial *s, struct instruction i, struct error *error)
{
    return run_from(s, &i, error);
}

bool serial_run(struct serial *s, struct error *error)
{
    for (int i = 0; i < s->c->program_length && s->c->program[i].verb != VERB_STOP; i++)
        if (!run_from(s, &s->c->program[i], error))
            return false;
    return true;
}
