// A worker that knows the truth, and misbehaves on request.
//
// It finds the truth beside the file that init.safetensors links to, and answers with it: a correct program at strategy none. The
// manifest's options tell how to misbehave (`misbehave`), in which case (`at`, a glob) and on which rank (`on`, or all). A case's option `fault` is a way
// to misbehave too, on all ranks.
#ifndef HARNESS_RUN_TESTS_ORACLE_H
#define HARNESS_RUN_TESTS_ORACLE_H

#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/job.h"
#include "harness/protocol/memory.h"
#include "harness/run/scratch.h"
#include "reference/truth/truth.h"

struct oracle {
    const struct job *job;
    struct fsdp_case c;
    struct truth truth;
    struct answer_writer answer;
    char *folder;
    const char *mode; // "" where it behaves
};

static bool oracle_is(const struct oracle *o, const char *mode)
{
    return strcmp(o->mode, mode) == 0;
}

static void oracle_say(struct oracle *o, const char *event, json_t *fields)
{
    if (!answer_event(&o->answer, event, fields))
        exit(9);
}

static void oracle_raw(struct oracle *o, const char *text)
{
    fputs(text, o->answer.file);
    fflush(o->answer.file);
}

static void oracle_hello(struct oracle *o)
{
    static const char *const kinds[] = {"parameter", "gradient", "optimizer"};
    oracle_say(o, "hello", json_pack("{ss si si ss ss ss s{ss}}", "case", oracle_is(o, "other-case") ? "another" : o->c.id, "rank", o->job->rank,
                                     "world_size", o->job->world_size, "implementation", "oracle", "version", "1", "note", "knows the truth", "configured",
                                     "strategy", strategy_name(o->c.sharding.strategy)));
    for (int k = 0; k < 3; k++) {
        json_t *parts = json_object();
        for (int i = 0; i < o->c.parameter_count; i++)
            json_object_set_new(parts, o->c.parameters[i].name, json_pack("[[iI]]", 0, (json_int_t)o->c.parameters[i].count));
        oracle_say(o, "shards", json_pack("{ss so si}", "of", kinds[k], "parts", parts, "padding", 0));
    }
}

static void oracle_tensors(struct oracle *o, const struct instruction *in, bool flat, struct tensors *out)
{
    const struct tensors *truth = truth_find(&o->truth, in->label);
    for (int i = 0; truth != NULL && i < truth->count; i++) {
        const struct tensor *from = &truth->items[i];
        int64_t shape[TENSOR_MAX_DIMS];
        bool last_label = strcmp(in->label, "s0") == 0;
        memcpy(shape, from->shape, sizeof shape);
        if (oracle_is(o, "shape") && last_label && !flat && i == 0)
            shape[0]++;
        if (oracle_is(o, "missing") && last_label && !flat && i == 0)
            continue;
        struct tensor *to = tensors_add(out, from->name, DTYPE_F32, flat ? 1 : from->dims, flat ? &from->count : shape, NULL, true);
        for (int64_t k = 0; k < from->count; k++)
            ((float *)to->data)[k] = (float)dtype_get(from->dtype, from->data, k);
        if (last_label && i == 0 && (oracle_is(o, "nan") || oracle_is(o, "wrong")))
            ((float *)to->data)[1] = oracle_is(o, "nan") ? NAN : ((float *)to->data)[1] + 1;
    }
}

static void oracle_write(struct oracle *o, const struct instruction *in, const char *suffix, bool flat)
{
    struct tensors out = {0};
    struct error error = {0};
    char *path = memory_format("%s/out/%s%s.safetensors", o->folder, in->label, suffix);
    oracle_tensors(o, in, flat, &out);
    if (!tensors_write(path, &out, &error))
        exit(9);
    tensors_free(&out);
    free(path);
}

static void oracle_observe(struct oracle *o, const struct instruction *in)
{
    char suffix[32], file[300];
    snprintf(suffix, sizeof suffix, ".rank%d", o->job->rank);
    if (o->job->rank == 0 && !oracle_is(o, "no-file"))
        oracle_write(o, in, "", false);
    if (in->local)
        oracle_write(o, in, suffix, true);
    snprintf(file, sizeof file, "%s.safetensors", in->label);
    oracle_say(o, "observed", json_pack("{ss ss}", "label", in->label, "file", file));
}

// A checkpoint of one file: what a load needs to find is that it was saved, in this run and where it looks.
static void oracle_checkpoint(struct oracle *o, bool save)
{
    char *path = memory_format("%s/saved", o->c.checkpoint);
    struct error error = {0};
    FILE *file = NULL;
    if (!save || (o->job->rank == 0 && scratch_folder(o->c.checkpoint, &error)))
        file = fopen(path, save ? "we" : "re");
    if (file != NULL)
        fclose(file);
    else if (!save || o->job->rank == 0) {
        oracle_say(o, "error", json_pack("{ss+}", "message", "no checkpoint: ", path));
        _exit(1);
    }
    free(path);
}

static void oracle_obey(struct oracle *o, const struct instruction *in)
{
    if (in->verb == VERB_SAVE || in->verb == VERB_LOAD)
        oracle_checkpoint(o, in->verb == VERB_SAVE);
    if (in->verb == VERB_EVAL)
        oracle_say(o, "eval", json_pack("{si si sf}", "step", in->step, "micro", in->micro, "loss", o->truth.eval_losses[0] / o->job->world_size));
    if (in->verb == VERB_MICRO)
        oracle_say(o, "micro", json_pack("{si si sf si sf}", "step", in->step, "micro", in->micro, "loss",
                                         o->truth.steps[in->step].micro_losses[in->micro] / o->job->world_size, "tokens", 1, "seconds", 0.0));
    else if (in->verb == VERB_STEP)
        oracle_say(o, "step", json_pack("{si sb sf sf}", "step", in->step, "skipped", 0, "loss_scale", 1.0, "seconds", 0.0));
    else if (in->verb == VERB_OBSERVE)
        oracle_observe(o, in);
}

// True once in a session: its folders are beside that of the job.
static bool oracle_first_time(const struct oracle *o)
{
    char *path = memory_format("%s/../../first-time", o->folder);
    FILE *file = fopen(path, "wxe");
    free(path);
    return file != NULL && fclose(file) == 0;
}

// After hello, before any work.
static void oracle_misbehave(struct oracle *o)
{
    // _exit and the default action: a sanitizer must not turn one end into another.
    signal(SIGSEGV, SIG_DFL);
    if (oracle_is(o, "crash"))
        raise(SIGSEGV);
    if (oracle_is(o, "exit"))
        _exit(3);
    if (oracle_is(o, "leave"))
        _exit(0);
    // The parent of a forked rank is its template.
    if (oracle_is(o, "kill-parent") || (oracle_is(o, "kill-parent-once") && oracle_first_time(o))) {
        kill(getppid(), SIGKILL);
        sleep(20); // its death ends this rank too; on a busy machine the rank would else be done before
    }
    if (oracle_is(o, "stop-parent-once") && oracle_first_time(o))
        kill(getppid(), SIGSTOP);
    while (oracle_is(o, "hang"))
        pause();
    if (oracle_is(o, "garbage"))
        oracle_raw(o, "this is no event\n");
    if (oracle_is(o, "error")) {
        oracle_say(o, "error", json_pack("{ss}", "message", "the shards do not fit"));
        _exit(1);
    }
}

static void oracle_load(struct oracle *o)
{
    struct error error = {0};
    char *path = memory_format("%s/case.json", o->folder), *init = memory_format("%s/init.safetensors", o->folder);
    char *truth = realpath(init, NULL);
    if (truth != NULL)
        *strrchr(truth, '/') = 0;
    if (truth == NULL || !case_read(path, &o->c, &error) || !truth_load(&o->c, truth, &o->truth, &error)) {
        fprintf(stderr, "oracle: %s\n", error.text);
        exit(9);
    }
    const char *at = case_option(&o->c, "at"), *on = case_option(&o->c, "on"), *mode = case_option(&o->c, "misbehave");
    bool here = mode != NULL && fnmatch(at, o->c.id, 0) == 0 && (strcmp(on, "all") == 0 || atoi(on) == o->job->rank);
    const char *fault = case_option(&o->c, "fault");
    o->mode = fault != NULL ? fault : here ? mode : "";
    free(path);
    free(init);
    free(truth);
}

static void oracle_answer(struct oracle *o)
{
    oracle_hello(o);
    if (oracle_is(o, "unsupported")) {
        oracle_say(o, "unsupported", json_pack("{ss}", "reason", "not on a Monday"));
        return;
    }
    fprintf(stderr, "rank %d works\n", o->job->rank);
    oracle_misbehave(o);
    for (int i = 0; i < o->c.program_length && o->c.program[i].verb != VERB_STOP; i++)
        oracle_obey(o, &o->c.program[i]);
    oracle_say(o, "done", json_object());
    if (oracle_is(o, "more"))
        oracle_raw(o, "{\"event\": \"done\"}\n");
}

// True where the process shall end badly after its last case.
static bool oracle_serve(const struct job *job, const char *id)
{
    struct oracle o = {.job = job, .folder = memory_format("%s/%s", job->folder, id)};
    struct error error = {0};
    oracle_load(&o);
    if (oracle_is(&o, "silent"))
        _exit(5);
    if (!oracle_is(&o, "nothing")) {
        if (!answer_open(&o.answer, o.folder, job->rank, &error))
            exit(9);
        oracle_answer(&o);
        answer_close(&o.answer);
    }
    bool bad_end = oracle_is(&o, "bad-end");
    truth_free(&o.truth);
    case_free(&o.c);
    free(o.folder);
    return bad_end;
}

static int oracle_main(void)
{
    struct job job;
    struct error error = {0};
    bool bad_end = false;
    if (!job_from_environment(&job, &error)) {
        fprintf(stderr, "oracle: %s\n", error.text);
        return 9;
    }
    for (int i = 0; i < job.case_count; i++)
        bad_end = oracle_serve(&job, job.cases[i]);
    job_free(&job);
    return bad_end ? 7 : 0;
}

#endif
