// The verbs, one function each, in a table. See program.h and "program" in docs/protocol.md.
#include "reference/worker/program.h"

#include <dlfcn.h>
#include <math.h>

#include "reference/checkpoint/checkpoint.h"
#include "reference/engine/fault.h"
#include "reference/worker/answers.h"

struct run { struct engine *e; struct answer_writer *w; struct error *error; void (*mark)(const char *, int); };

static json_t *at_micro(const struct instruction *in, double loss)
{
    return json_pack("{s:i,s:i,s:o}", "step", in->step, "micro", in->micro, "loss", answer_number(loss));
}

static double own_tokens(const struct engine *e, const struct instruction *in)
{
    return model_weight_sum(e->c, e->data, in->step, in->micro, e->rows_first, e->rows_end);
}

static bool told_micro(struct run *r, const struct instruction *in, double loss, double seconds)
{
    json_t *o = at_micro(in, loss);
    json_object_set_new(o, "tokens", answer_number(own_tokens(r->e, in)));
    json_object_set_new(o, "seconds", answer_number(seconds));
    return answer_event(r->w, "micro", o);
}

static bool do_micro(struct run *r, const struct instruction *in)
{
    double loss, start = comm_seconds();
    return engine_micro(r->e, in->step, in->micro, in->sync, &loss, r->error) && told_micro(r, in, loss, comm_seconds() - start);
}

static bool do_forward(struct run *r, const struct instruction *in)
{
    double loss, start = comm_seconds();
    return engine_forward(r->e, in->step, in->micro, in->slot, &loss, r->error) && told_micro(r, in, loss, comm_seconds() - start);
}

static bool do_backward(struct run *r, const struct instruction *in)
{
    return engine_backward(r->e, in->slot, in->sync, r->error);
}

static bool do_eval(struct run *r, const struct instruction *in)
{
    double loss;
    return engine_eval(r->e, in->step, in->micro, &loss, r->error) && answer_event(r->w, "eval", at_micro(in, loss));
}

static bool do_clip(struct run *r, const struct instruction *in)
{
    double norm;
    return engine_clip(r->e, &norm, r->error) &&
           answer_event(r->w, "clip", json_pack("{s:i,s:o}", "step", in->step, "norm", answer_number(norm)));
}

static bool do_step(struct run *r, const struct instruction *in)
{
    double scale, start = comm_seconds();
    bool skipped;
    if (!engine_step(r->e, &skipped, &scale, r->error))
        return false;
    if (r->mark)
        r->mark("step", in->step);
    return answer_event(r->w, "step", json_pack("{s:i,s:b,s:o,s:o}", "step", in->step, "skipped", skipped, "loss_scale",
                                                answer_number(scale), "seconds", answer_number(comm_seconds() - start)));
}

static bool do_zero_grad(struct run *r, const struct instruction *in)
{
    (void)in;
    engine_zero_grad(r->e);
    return true;
}

static bool do_freeze(struct run *r, const struct instruction *in)
{
    engine_freeze(r->e, in->pattern, in->verb == VERB_FREEZE);
    return true;
}

static bool do_save(struct run *r, const struct instruction *in)
{
    (void)in;
    return checkpoint_save(r->e, r->e->c->checkpoint, r->error);
}

static bool do_load(struct run *r, const struct instruction *in)
{
    (void)in;
    return checkpoint_load(r->e, r->e->c->checkpoint, r->error);
}

static bool do_observe(struct run *r, const struct instruction *in) { return answers_observe(r->w, r->e, in, r->error); }

static bool (*const verbs[])(struct run *, const struct instruction *) = {
    [VERB_MICRO] = do_micro,         [VERB_FORWARD] = do_forward, [VERB_BACKWARD] = do_backward, [VERB_EVAL] = do_eval,
    [VERB_CLIP] = do_clip,           [VERB_STEP] = do_step,       [VERB_ZERO_GRAD] = do_zero_grad, [VERB_FREEZE] = do_freeze,
    [VERB_UNFREEZE] = do_freeze,     [VERB_SAVE] = do_save,       [VERB_LOAD] = do_load,         [VERB_OBSERVE] = do_observe,
};

bool program_run(struct engine *e, struct answer_writer *w, struct error *error)
{
    struct run r = {e, w, error, NULL};
    *(void **)&r.mark = dlsym(RTLD_DEFAULT, "fsdpmark_mark");
    for (int i = 0; i < e->c->program_length; i++) {
        const struct instruction *in = &e->c->program[i];
        if (in->verb == VERB_STOP || (FAULT(rank_ends_early) && e->rank == 1 && in->verb == VERB_MICRO && in->step > 0))
            return true;
        if (!verbs[in->verb](&r, in) || kernels_take_error())
            return error_set(error, "%s of step %d failed: no memory for the kernels", verb_name(in->verb), in->step);
    }
    return true;
}
