// The table of memory_model.h as sums.
#include "harness/judge/memory_model.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/judge/program.h"
#include "harness/protocol/memory.h"

const char *memory_phase_name(enum memory_phase p)
{
    static const char *const names[MEMORY_PHASES] = {"rest", "forward", "backward", "step"};
    return names[p];
}

static double wider(enum dtype a, enum dtype b) { return fmax((double)dtype_size(a), (double)dtype_size(b)); }

static struct memory_share cut(double bytes, bool whole)
{
    return whole ? (struct memory_share){bytes, 0} : (struct memory_share){0, bytes};
}

static double state_bytes(const struct fsdp_case *c)
{
    int states = c->optimizer.kind == OPTIMIZER_ADAMW ? 2 : c->optimizer.momentum != 0;
    return states * (double)dtype_size(c->precision.optimizer_state);
}

// A microbatch whose gradients are not communicated.
static bool waits(const struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length; i++)
        if ((c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_BACKWARD) && !c->program[i].sync)
            return true;
    return false;
}

// Of the last optimizer step: the share of the parameters that it finds frozen. ever: that all steps do.
static double frozen_share(const struct fsdp_case *c, bool ever)
{
    double frozen = 0;
    int last = -1;
    for (int i = 0; i < c->program_length; i++)
        last = c->program[i].verb == VERB_STEP ? i : last;
    bool *now = memory_zeros((size_t)c->parameter_count + 1, sizeof *now), *all = memory_zeros((size_t)c->parameter_count + 1, sizeof *all);
    program_frozen(c, last < 0 ? 0 : last, all);
    for (int i = 0; ever && i < last; i++) {
        program_frozen(c, i, now);
        for (int p = 0; c->program[i].verb == VERB_STEP && p < c->parameter_count; p++)
            all[p] &= now[p];
    }
    for (int p = 0; p < c->parameter_count; p++)
        frozen += all[p] && c->parameters[p].tied_to < 0 ? (double)c->parameters[p].count : 0;
    free(now);
    free(all);
    return frozen > 0 ? frozen / memory_parameters(c) : 0;
}

static struct memory_share times(double factor, struct memory_share s) { return (struct memory_share){factor * s.whole, factor * s.shared}; }

static struct memory_share add(struct memory_share a, struct memory_share b)
{
    return (struct memory_share){a.whole + b.whole, a.shared + b.shared};
}

struct memory_model memory_model_of(const struct fsdp_case *c, bool whole_parameters)
{
    const struct precision_spec *p = &c->precision;
    enum strategy s = c->sharding.strategy;
    bool replicated = s == STRATEGY_NONE || s == STRATEGY_OPTIMIZER, resident = replicated || (s == STRATEGY_GRAD && whole_parameters);
    bool copies = p->compute != p->parameter || c->sharding.offload != OFFLOAD_NONE;
    bool keeps = !resident && (s == STRATEGY_GRAD || !c->sharding.reshard_after_forward);
    double w = (double)dtype_size(p->parameter), compute = (double)dtype_size(p->compute);
    struct memory_model m = {.gradient = cut(wider(p->parameter, p->reduce), replicated), .state = cut(state_bytes(c), s == STRATEGY_NONE)};
    m.parameter = cut(w, resident);
    if (s == STRATEGY_NONE)
        m.copy = cut(copies ? compute : 0, true); // or cast for each use
    else if (resident && copies)
        m.parameter = (struct memory_share){compute, w}; // what is computed with, beside what is updated
    m.gathered = cut(keeps ? compute : 0, true);
    // a gradient that waits whole is the gradient at rest where that is whole too
    m.waiting = cut(waits(c) && !replicated ? wider(p->compute, p->reduce) : 0, true);
    m.idle = add(times(frozen_share(c, false), m.gradient), times(frozen_share(c, true), m.state));
    return m;
}

struct memory_share memory_model_at(const struct memory_model *m, enum memory_phase phase)
{
    struct memory_share rest = add(add(add(m->parameter, m->copy), m->gradient), m->state);
    return phase == MEMORY_FORWARD || phase == MEMORY_BACKWARD ? add(add(rest, m->gathered), m->waiting) : rest;
}

double memory_share_bytes(struct memory_share s, int shards) { return s.whole + s.shared / shards; }

double memory_parameters(const struct fsdp_case *c)
{
    double count = 0;
    for (int i = 0; i < c->parameter_count; i++)
        count += c->parameters[i].tied_to < 0 ? (double)c->parameters[i].count : 0;
    return count;
}

const char *memory_model_excess(const struct fsdp_case *c, const struct memory_model *m, double bytes, char text[MEMORY_WORDS])
{
    double rest = 1 - 1.0 / c->sharding.shards, w = m->parameter.shared * rest, g = m->gradient.shared * rest, k = m->state.shared * rest;
    double compute = m->parameter.shared > 0 ? (double)dtype_size(c->precision.compute) : 0, gradient = m->gradient.shared + m->gradient.whole;
    const struct { double bytes; const char *is; } known[] = {
        {w, "parameters that are not sharded"},
        {g, "gradients that are not sharded"},
        {k, "optimizer states that are not sharded"},
        {compute, "gathered parameters that are kept"},
        {gradient, "a second copy of whole gradients"},
        {w + g + k, "everything unsharded"},
    };
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].bytes > 0 && fabs(bytes - known[i].bytes) <= 0.1 * known[i].bytes)
            used += (size_t)snprintf(text + used, MEMORY_WORDS - used, "%s%s", used == 0 ? " (as much as " : ", or ", known[i].is);
    if (used > 0)
        snprintf(text + used, MEMORY_WORDS - used, ")");
    return text;
}
