// The job and its cases: opening, going on, closing, and the one failure that a handle keeps. See fsdpmark.h.
//
// A case's answer file is opened before anything else of it, so that whatever is wrong with the case can be told there.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/library/handle.h"
#include "harness/protocol/memory.h"

const char *fsdpmark_version(void) { return FSDPMARK_VERSION; }

fsdpmark *fsdpmark_open(const char *implementation, const char *version)
{
    fsdpmark *f = memory_zeros(1, sizeof *f);
    f->implementation = memory_text(implementation);
    f->version = memory_text(version);
    json_t *name = json_pack("[s,s]", implementation, version);
    if (!name)
        error_set(&f->error, "fsdpmark_open: found no name or version in UTF-8, expected both");
    else
        job_from_environment(&f->job, &f->error);
    json_decref(name);
    f->status = f->error.text[0] ? 2 : 0;
    *(void **)&f->mark = dlsym(RTLD_DEFAULT, "fsdpmark_mark");
    return f;
}

const char *fsdpmark_error(const fsdpmark *f) { return f->error.text[0] ? f->error.text : NULL; }

int fsdpmark_rank(const fsdpmark *f) { return f->job.rank; }
int fsdpmark_size(const fsdpmark *f) { return f->job.world_size; }
int fsdpmark_local_rank(const fsdpmark *f) { return f->job.local_rank; }

void fsdpmark_phase(fsdpmark *f, const char *phase, int step)
{
    if (f->mark)
        f->mark(phase, step);
}

bool handle_fail(fsdpmark *f, const char *format, ...)
{
    char text[sizeof f->error.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (f->error.text[0])
        return false;
    error_set(&f->error, "%s", text[0] ? text : "found a failure without a reason, expected one");
    json_t *message = json_string(f->error.text);
    if (f->stage == STAGE_SILENT || f->stage == STAGE_TALKING)
        handle_event(f, "error", json_pack("{s:O}", "message", message ? message : json_null()), true);
    json_decref(message);
    f->stage = f->stage == STAGE_CLOSED ? STAGE_CLOSED : STAGE_ENDED;
    f->status = f->status ? f->status : 1;
    return false;
}

bool handle_open(fsdpmark *f, const char *function)
{
    if (f->error.text[0])
        return false;
    if (f->stage == STAGE_CLOSED)
        return handle_fail(f, "%s: found no open case, expected fsdpmark_next before it", function);
    return f->stage != STAGE_ENDED || handle_fail(f, "%s: case %s: found it ended, expected fsdpmark_next before it", function, f->id);
}

static void close_case(fsdpmark *f)
{
    handle_drop(f);
    json_decref(f->configured);
    f->configured = NULL;
    answer_close(&f->writer);
    tensors_free(&f->init);
    tensors_free(&f->data);
    case_free(&f->c);
    document_free(&f->document);
    free(f->parameters);
    free(f->program);
    free(f->views);
    free(f->folder);
    free(f->where);
    f->parameters = NULL;
    f->program = NULL;
    f->views = NULL;
    f->folder = f->where = NULL;
    f->stage = STAGE_CLOSED;
}

static void make_tables(fsdpmark *f)
{
    const struct fsdp_case *c = &f->c;
    f->parameters = memory_zeros((size_t)c->parameter_count, sizeof *f->parameters);
    for (int i = 0; i < c->parameter_count; i++) {
        const struct case_parameter *p = &c->parameters[i];
        f->parameters[i] = (struct fsdpmark_parameter){.name = p->name, .dims = p->dims, .count = p->count, .unit = p->unit, .decay = p->decay,
                                                       .tied_to = p->tied_to < 0 ? NULL : c->parameters[p->tied_to].name};
        memcpy(f->parameters[i].shape, p->shape, sizeof p->shape);
    }
    f->program = memory_zeros((size_t)c->program_length, sizeof *f->program);
    for (f->program_length = 0; f->program_length < c->program_length; f->program_length++) {
        const struct instruction *in = &c->program[f->program_length];
        if (in->verb == VERB_STOP)
            break;
        f->program[f->program_length] = (struct fsdpmark_instruction){
            .verb = (enum fsdpmark_verb)in->verb, .step = in->step, .micro = in->micro, .slot = in->slot, .sync = in->sync,
            .pattern = in->pattern, .label = in->label, .what = in->what, .local = in->local};
    }
    f->views = memory_zeros((size_t)(2 * f->data.count + f->init.count), sizeof *f->views);
}

static bool read_case(fsdpmark *f, struct error *error)
{
    bool other;
    if (!case_read_kept(f->where, &f->c, &f->document, error))
        return false;
    if (f->c.world_size != f->job.world_size)
        return error_set(error, "%s: found %d ranks, expected as many as the job has, %d", f->where, f->c.world_size, f->job.world_size);
    other = f->c.divergent_init && f->job.rank > 0;
    char *init = memory_format("%s/init%s.safetensors", f->folder, other ? ".other" : "");
    char *data = memory_format("%s/data.safetensors", f->folder);
    bool fine = tensors_read(data, &f->data, error) && tensors_read(init, &f->init, error);
    free(init);
    free(data);
    return fine;
}

bool fsdpmark_next(fsdpmark *f)
{
    struct error error = {""};
    if (f->error.text[0])
        return false;
    if (f->stage == STAGE_SILENT || f->stage == STAGE_TALKING)
        return handle_fail(f, "fsdpmark_next: case %s: found it open, expected fsdpmark_done or fsdpmark_unsupported before it", f->id);
    close_case(f);
    if (f->next == f->job.case_count)
        return false;
    f->id = f->job.cases[f->next++];
    f->folder = memory_format("%s/%s", f->job.folder, f->id);
    f->where = memory_format("%s/case.json", f->folder);
    f->configured = json_object();
    if (!answer_open(&f->writer, f->folder, f->job.rank, &error))
        return handle_fail(f, "%s", error.text);
    f->stage = STAGE_SILENT;
    if (!read_case(f, &error))
        return handle_fail(f, "%s", error.text);
    make_tables(f);
    fsdpmark_phase(f, "case", f->next - 1);
    return true;
}

int fsdpmark_close(fsdpmark *f)
{
    if (f->stage == STAGE_SILENT || f->stage == STAGE_TALKING)
        handle_fail(f, "fsdpmark_close: case %s: found it open, expected fsdpmark_done or fsdpmark_unsupported before it", f->id);
    int status = f->status;
    close_case(f);
    job_free(&f->job);
    free(f->implementation);
    free(f->version);
    free(f);
    return status;
}
