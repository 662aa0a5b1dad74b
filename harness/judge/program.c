// Reads the program of a case forwards: what each observe instruction shows. See program.h.
#include "harness/judge/program.h"

#include <fnmatch.h>
#include <string.h>

enum { MAX_SLOTS = 64 };

// The step whose microbatches make up the gradients before instruction `at`, counting each microbatch once.
static int gradient_step(const struct fsdp_case *c, int at)
{
    int step = -1, backwards = 0, slot_step[MAX_SLOTS];
    bool mixed = false;
    memset(slot_step, -1, sizeof slot_step);
    for (int i = 0; i < at; i++) {
        const struct instruction *n = &c->program[i];
        int this_step = -1;
        if (n->verb == VERB_ZERO_GRAD)
            step = -1, backwards = 0, mixed = false;
        else if (n->verb == VERB_FORWARD && n->slot >= 0 && n->slot < MAX_SLOTS)
            slot_step[n->slot] = n->step;
        else if (n->verb == VERB_MICRO)
            this_step = n->step;
        else if (n->verb == VERB_BACKWARD && n->slot >= 0 && n->slot < MAX_SLOTS)
            this_step = slot_step[n->slot];
        if (this_step < 0)
            continue;
        mixed |= step >= 0 && this_step != step;
        step = this_step;
        backwards++;
    }
    return mixed || backwards != c->data.micros ? -1 : step;
}

// First forward of the gradients that are there at `at`.
static int first_forward(const struct fsdp_case *c, int at)
{
    int first = at;
    for (int i = at - 1; i >= 0 && c->program[i].verb != VERB_ZERO_GRAD; i--)
        if (c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_FORWARD)
            first = i;
    return first;
}

int program_state_before(const struct fsdp_case *c, int at, unsigned bit)
{
    for (int i = at - 1; i >= 0; i--) {
        if (c->program[i].verb == VERB_OBSERVE && c->program[i].what & bit)
            return i;
        if (c->program[i].verb == VERB_STEP || c->program[i].verb == VERB_LOAD)
            return -1;
    }
    return -1;
}

struct program_label program_label_at(const struct fsdp_case *c, int at)
{
    const struct instruction *n = &c->program[at];
    struct program_label l = {.at = at, .label = n->label, .what = n->what, .local = n->local, .gradient_step = -1, .parameters_at = -1};
    for (int i = 0; i < at; i++)
        l.steps_done += c->program[i].verb == VERB_STEP;
    if (n->what & (OBSERVE_GRAD | OBSERVE_CLIPPED)) {
        l.gradient_step = gradient_step(c, at);
        l.parameters_at = program_state_before(c, first_forward(c, at), OBSERVE_PARAM);
    }
    return l;
}

int program_labels(const struct fsdp_case *c, struct program_label *labels, int capacity)
{
    int count = 0;
    for (int i = 0; i < c->program_length; i++)
        if (c->program[i].verb == VERB_OBSERVE && count++ < capacity)
            labels[count - 1] = program_label_at(c, i);
    return count;
}

void program_frozen(const struct fsdp_case *c, int at, bool *frozen)
{
    memset(frozen, 0, (size_t)c->parameter_count * sizeof *frozen);
    for (int i = 0; i < at; i++) {
        const struct instruction *n = &c->program[i];
        if (n->verb != VERB_FREEZE && n->verb != VERB_UNFREEZE)
            continue;
        for (int p = 0; p < c->parameter_count; p++)
            if (fnmatch(n->pattern, c->parameters[p].name, 0) == 0)
                frozen[p] = n->verb == VERB_FREEZE;
    }
    for (int p = 0; p < c->parameter_count; p++)
        if (c->parameters[p].tied_to >= 0)
            frozen[p] = frozen[c->parameters[p].tied_to];
}

bool program_after_load(const struct fsdp_case *c, int at)
{
    for (int i = at - 1; i >= 0 && c->program[i].verb != VERB_STEP; i--)
        if (c->program[i].verb == VERB_LOAD)
            return true;
    return false;
}

int program_count(const struct fsdp_case *c, enum verb verb)
{
    int count = 0;
    for (int i = 0; i < c->program_length; i++)
        count += c->program[i].verb == verb;
    return count;
}

int program_next(const struct fsdp_case *c, enum verb verb, int from)
{
    for (int i = from; i < c->program_length; i++)
        if (c->program[i].verb == verb)
            return i;
    return -1;
}
