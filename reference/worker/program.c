// The verbs, one function each, in a table. See program.h and "program" in docs/protocol.md.
#include "reference/worker/program.h"

#include "reference/checkpoint/checkpoint.h"
#include "reference/engine/fault.h"
#include "reference/worker/answers.h"

struct run { fsdpmark *f; struct engine *e; struct error *error; };

static double own_tokens(const struct engine *e, const struct fsdpmark_instruction *in)
{
    return model_weight_sum(e->c, e->data, in->step, in->micro, e->rows_first, e->rows_end);
}

static bool told_micro(struct run *r, const struct fsdpmark_instruction *in, double loss, double seconds)
{
    return fsdpmark_micro(r->f, in->step, in->micro, loss, own_tokens(r->e, in), seconds);
}

static bool do_micro(struct run *r, const struct fsdpmark_instruction *in)
{
    double loss, start = comm_seconds();
    return engine_micro(r->e, in->step, in->micro, in->sync, &loss, r->error) && told_micro(r, in, loss, comm_seconds() - start);
}

static bool do_forward(struct run *r, const struct fsdpmark_instruction *in)
{
    double loss, start = comm_seconds();
    return engine_forward(r->e, in->step, in->micro, in->slot, &loss, r->error) && told_micro(r, in, loss, comm_seconds() - start);
}

static bool do_backward(struct run *r, const struct fsdpmark_instruction *in)
{
    return engine_backward(r->e, in->slot, in->sync, r->error);
}

static bool do_eval(struct run *r, const struct fsdpmark_instruction *in)
{
    double loss;
    return engine_eval(r->e, in->step, in->micro, &loss, r->error) && fsdpmark_eval(r->f, in->step, in->micro, loss);
}

static bool do_clip(struct run *r, const struct fsdpmark_instruction *in)
{
    double norm;
    return engine_clip(r->e, &norm, r->error) && fsdpmark_clip(r->f, in->step, norm);
}

static bool do_step(struct run *r, const struct fsdpmark_instruction *in)
{
    double scale, start = comm_seconds();
    bool skipped;
    if (!engine_step(r->e, &skipped, &scale, r->error) || !r->e->on->finish(r->error)) // a device runs behind: its update belongs to these seconds
        return false;
    return fsdpmark_step(r->f, in->step, skipped, scale, comm_seconds() - start);
}

static bool do_zero_grad(struct run *r, const struct fsdpmark_instruction *in)
{
    (void)in;
    engine_zero_grad(r->e);
    return true;
}

static bool do_freeze(struct run *r, const struct fsdpmark_instruction *in)
{
    engine_freeze(r->e, in->pattern, in->verb == FSDPMARK_FREEZE);
    return true;
}

static bool do_save(struct run *r, const struct fsdpmark_instruction *in)
{
    (void)in;
    return checkpoint_save(r->e, r->e->c->checkpoint, r->error);
}

static bool do_load(struct run *r, const struct fsdpmark_instruction *in)
{
    (void)in;
    return checkpoint_load(r->e, r->e->c->checkpoint, r->error);
}

static bool do_observe(struct run *r, const struct fsdpmark_instruction *in) { return answers_observe(r->f, r->e, in, r->error); }

static bool (*const verbs[])(struct run *, const struct fsdpmark_instruction *) = {
    [FSDPMARK_MICRO] = do_micro,         [FSDPMARK_FORWARD] = do_forward, [FSDPMARK_BACKWARD] = do_backward, [FSDPMARK_EVAL] = do_eval,
    [FSDPMARK_CLIP] = do_clip,           [FSDPMARK_STEP] = do_step,       [FSDPMARK_ZERO_GRAD] = do_zero_grad, [FSDPMARK_FREEZE] = do_freeze,
    [FSDPMARK_UNFREEZE] = do_freeze,     [FSDPMARK_SAVE] = do_save,       [FSDPMARK_LOAD] = do_load,         [FSDPMARK_OBSERVE] = do_observe,
};

// What a verb is called as a phase of the probes (docs/probes.md).
static const char *phase_of(enum fsdpmark_verb verb) { return verb == FSDPMARK_MICRO ? "forward" : verb_name((enum verb)verb); }

static void say_backward(void *context, int step) { fsdpmark_phase(context, "backward", step); }

// Whether a verb succeeded. A device tells late what it could not do; what the verb then says itself is a consequence of that.
static bool finished(bool ok, const struct engine *e, const struct fsdpmark_instruction *in, struct error *error)
{
    const char *verb = verb_name((enum verb)in->verb);
    struct error why = {""};
    if (e->on->failed(&why) || kernels_take_error()) {
        error->text[0] = 0;
        return error_set(error, "%s of step %d failed: %s", verb, in->step, why.text[0] ? why.text : "no memory for the kernels");
    }
    return ok || error_set(error, "%s of step %d failed", verb, in->step);
}

bool program_run(fsdpmark *f, struct engine *e, struct error *error)
{
    struct run r = {f, e, error};
    const struct fsdpmark_instruction *in;
    e->at_backward = say_backward;
    e->at_backward_context = f;
    for (int i = 0; (in = fsdpmark_instruction_at(f, i)); i++) {
        if (FAULT(rank_ends_early) && e->rank == 1 && in->verb == FSDPMARK_MICRO && in->step > 0)
            return true;
        fsdpmark_phase(f, phase_of(in->verb), in->step);
        if (!finished(verbs[in->verb](&r, in), e, in, error))
            return false;
    }
    fsdpmark_phase(f, "end", -1);
    return true;
}
