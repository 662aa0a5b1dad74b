// fsdpmark-null: a worker that answers every case and trains nothing.
//
// What for: the time of a run of it is the harness's own. Its verdicts are FAIL wherever a parameter should move or should be sharded,
// and that is right: it claims to hold everything on every rank, reports losses of 0 and observes the initial
// parameters and gradients of 0 for ever. A suite that passed it would judge nothing.
// It is also the shortest whole user of libfsdpmark (fsdpmark(3)).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fsdpmark.h>

// Everything on every rank.
static void say_shards(fsdpmark *f)
{
    const struct fsdpmark_parameter *p;
    int count = 0;
    struct fsdpmark_part *parts = calloc((size_t)fsdpmark_length(f, "parameters") + 1, sizeof *parts);
    if (!parts)
        return (void)fsdpmark_fail(f, "out of memory");
    for (int i = 0; (p = fsdpmark_parameter_at(f, i)); i++)
        if (!p->tied_to)
            parts[count++] = (struct fsdpmark_part){p->name, 0, p->count};
    fsdpmark_shards(f, "parameter", parts, count, 0, -1);
    fsdpmark_shards(f, "gradient", parts, count, 0, -1);
    fsdpmark_shards(f, "optimizer", parts, count, 0, -1);
    free(parts);
}

// The initial parameter, or zeros.
static void put(fsdpmark *f, const struct fsdpmark_instruction *in, const struct fsdpmark_parameter *p, const void *zeros)
{
    for (unsigned what = FSDPMARK_PARAM; what <= FSDPMARK_MOMENTUM; what *= 2) {
        const struct fsdpmark_tensor *init = what == FSDPMARK_PARAM ? fsdpmark_init(f, p->name) : NULL;
        if (!(in->what & what))
            continue;
        fsdpmark_put(f, what, p->name, FSDPMARK_F32, init ? init->data : zeros);
        if (in->local)
            fsdpmark_put_local(f, what, p->name, FSDPMARK_F32, p->count, init ? init->data : zeros);
    }
}

static void observe(fsdpmark *f, const struct fsdpmark_instruction *in)
{
    const struct fsdpmark_parameter *p;
    for (int i = 0; (p = fsdpmark_parameter_at(f, i)); i++) {
        void *zeros = calloc((size_t)p->count, sizeof(float));
        if (!zeros)
            fsdpmark_fail(f, "out of memory");
        else if (!p->tied_to)
            put(f, in, p, zeros);
        free(zeros);
    }
    fsdpmark_observed(f, in);
}

static void obey(fsdpmark *f, const struct fsdpmark_instruction *in)
{
    switch (in->verb) {
    case FSDPMARK_MICRO:
    case FSDPMARK_FORWARD: fsdpmark_micro(f, in->step, in->micro, 0, 0, 0); break;
    case FSDPMARK_EVAL: fsdpmark_eval(f, in->step, in->micro, 0); break;
    case FSDPMARK_CLIP: fsdpmark_clip(f, in->step, 0); break;
    case FSDPMARK_STEP: fsdpmark_step(f, in->step, false, fsdpmark_number(f, "precision.loss_scale.initial"), 0); break;
    case FSDPMARK_OBSERVE: observe(f, in); break;
    default: break;
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return printf("fsdpmark-null %s\n", fsdpmark_version()) < 0;
    fsdpmark *f = fsdpmark_open("null", fsdpmark_version());
    while (fsdpmark_next(f)) {
        const struct fsdpmark_instruction *in;
        fsdpmark_configured(f, "strategy", "none");
        fsdpmark_configured(f, "trains", "nothing");
        fsdpmark_hello(f, NULL);
        say_shards(f);
        for (int i = 0; (in = fsdpmark_instruction_at(f, i)); i++)
            obey(f, in);
        fsdpmark_phase(f, "end", -1);
        fsdpmark_done(f);
    }
    if (fsdpmark_error(f))
        fprintf(stderr, "fsdpmark-null: %s\n", fsdpmark_error(f));
    return fsdpmark_close(f);
}
