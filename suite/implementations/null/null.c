// fsdpmark-null: a worker that answers every case and trains nothing.
//
// What for: the time of a run of it is the harness's own. Its verdicts are FAIL wherever a parameter should move or should be sharded,
// and that is right: it claims to hold everything on every rank, reports losses of 0 and observes the initial
// parameters and gradients of 0 for ever. A suite that passed it would judge nothing.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/job.h"
#include "harness/protocol/memory.h"
#include "harness/protocol/tensors.h"
#include "version.h"

struct null_case {
    const struct job *job;
    struct fsdp_case c;
    char *folder;
    struct tensors init;
    struct answer_writer answer;
};

static void say(struct null_case *n, const char *event, json_t *fields)
{
    if (!answer_event(&n->answer, event, fields))
        exit(1);
}

static void say_hello(struct null_case *n)
{
    say(n, "hello", json_pack("{ss si si ss ss s{ss ss}}", "case", n->c.id, "rank", n->job->rank, "world_size", n->job->world_size,
                              "implementation", "null", "version", FSDPMARK_VERSION, "configured", "strategy", "none", "trains", "nothing"));
    static const char *const kinds[] = {"parameter", "gradient", "optimizer"};
    for (int k = 0; k < 3; k++) {
        json_t *parts = json_object();
        for (int i = 0; i < n->c.parameter_count; i++)
            if (n->c.parameters[i].tied_to < 0)
                json_object_set_new(parts, n->c.parameters[i].name, json_pack("[[iI]]", 0, (json_int_t)n->c.parameters[i].count));
        say(n, "shards", json_pack("{ss so si}", "of", kinds[k], "parts", parts, "padding", 0));
    }
}

// The initial parameter, or zeros, in the dtype in which the case holds it.
static void add_tensor(struct null_case *n, struct tensors *out, int i, enum observe_bit what, bool flat)
{
    const struct case_parameter *p = &n->c.parameters[i];
    const struct tensor *from = tensors_find(&n->init, p->name);
    enum dtype dtype = what == OBSERVE_PARAM || what == OBSERVE_GRAD || what == OBSERVE_CLIPPED ? n->c.precision.parameter
                                                                                               : n->c.precision.optimizer_state;
    char *name = memory_format("%s/%s", observe_name(what), p->name);
    struct tensor *to = tensors_add(out, name, dtype, flat ? 1 : p->dims, flat ? &p->count : p->shape, NULL, true);
    for (int64_t k = 0; what == OBSERVE_PARAM && from != NULL && to != NULL && k < p->count; k++)
        dtype_set(dtype, to->data, k, dtype_get(from->dtype, from->data, k));
    free(name);
}

static void write_observed(struct null_case *n, const struct instruction *in, const char *suffix, bool flat)
{
    struct tensors out = {0};
    struct error error = {0};
    char *path = memory_format("%s/out/%s%s.safetensors", n->folder, in->label, suffix);
    for (int bit = OBSERVE_PARAM; bit <= OBSERVE_MOMENTUM; bit *= 2)
        for (int i = 0; (in->what & (unsigned)bit) && i < n->c.parameter_count; i++)
            if (n->c.parameters[i].tied_to < 0)
                add_tensor(n, &out, i, (enum observe_bit)bit, flat);
    if (!tensors_write(path, &out, &error)) {
        fprintf(stderr, "fsdpmark-null: %s\n", error.text);
        exit(1);
    }
    tensors_free(&out);
    free(path);
}

static void observe(struct null_case *n, const struct instruction *in)
{
    char suffix[32];
    if (n->job->rank == 0)
        write_observed(n, in, "", false);
    snprintf(suffix, sizeof suffix, ".rank%d", n->job->rank);
    if (in->local)
        write_observed(n, in, suffix, true);
    if (n->job->rank == 0 || in->local) {
        char *file = memory_format("%s%s.safetensors", in->label, n->job->rank == 0 ? "" : suffix);
        say(n, "observed", json_pack("{ss ss}", "label", in->label, "file", file));
        free(file);
    }
}

static void obey(struct null_case *n, const struct instruction *in)
{
    switch (in->verb) {
    case VERB_MICRO:
    case VERB_FORWARD:
        say(n, "micro", json_pack("{si si sf si sf}", "step", in->step, "micro", in->micro, "loss", 0.0, "tokens", 0, "seconds", 0.0));
        break;
    case VERB_EVAL:
        say(n, "eval", json_pack("{si si sf}", "step", in->step, "micro", in->micro, "loss", 0.0));
        break;
    case VERB_CLIP:
        say(n, "clip", json_pack("{si sf}", "step", in->step, "norm", 0.0));
        break;
    case VERB_STEP:
        say(n, "step", json_pack("{si sb sf sf}", "step", in->step, "skipped", 0, "loss_scale", n->c.precision.scale_initial, "seconds", 0.0));
        break;
    case VERB_OBSERVE:
        observe(n, in);
        break;
    default:
        break;
    }
}

static bool serve(const struct job *job, const char *id, struct error *error)
{
    struct null_case n = {.job = job, .folder = memory_format("%s/%s", job->folder, id)};
    char *path = memory_format("%s/case.json", n.folder), *init = memory_format("%s/init.safetensors", n.folder);
    bool ok = case_read(path, &n.c, error) && tensors_read(init, &n.init, error) && answer_open(&n.answer, n.folder, job->rank, error);
    if (ok) {
        say_hello(&n);
        for (int i = 0; i < n.c.program_length && n.c.program[i].verb != VERB_STOP; i++)
            obey(&n, &n.c.program[i]);
        say(&n, "done", json_object());
        answer_close(&n.answer);
    }
    tensors_free(&n.init);
    case_free(&n.c);
    free(n.folder);
    free(path);
    free(init);
    return ok;
}

int main(int argc, char **argv)
{
    struct job job;
    struct error error = {0};
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("fsdpmark-null %s\n", FSDPMARK_VERSION);
        return 0;
    }
    bool ok = job_from_environment(&job, &error);
    for (int i = 0; ok && i < job.case_count; i++)
        ok = serve(&job, job.cases[i], &error);
    if (!ok)
        fprintf(stderr, "fsdpmark-null: %s\n", error.text);
    else
        job_free(&job);
    return ok ? 0 : 1;
}
