// The events of a rank, in the order that the protocol asks for: hello first, one end. See fsdpmark.h.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/library/handle.h"
#include "harness/protocol/memory.h"

static bool say_hello(fsdpmark *f, const char *note)
{
    json_t *fields = json_pack("{s:s,s:i,s:i,s:s,s:s,s:O}", "case", f->id, "rank", f->job.rank, "world_size", f->job.world_size,
                               "implementation", f->implementation, "version", f->version, "configured", f->configured);
    if (note)
        json_object_set_new(fields, "note", json_string(note));
    f->stage = STAGE_TALKING;
    return handle_event(f, "hello", fields, false);
}

bool handle_event(fsdpmark *f, const char *event, json_t *fields, bool early)
{
    bool fine = f->stage == STAGE_TALKING;
    if (f->stage == STAGE_SILENT)
        fine = early ? say_hello(f, NULL) : handle_fail(f, "event %s: found it before hello, expected fsdpmark_hello first", event);
    if (!fine) {
        json_decref(fields);
        return false;
    }
    if (answer_event(&f->writer, event, fields))
        return true;
    int reason = errno;
    f->stage = STAGE_ENDED; // nothing more can be told there
    return handle_fail(f, "%s/out/rank%d.jsonl: event %s: cannot be written: %s", f->folder, f->job.rank, event, strerror(reason));
}

bool fsdpmark_configured(fsdpmark *f, const char *name, const char *format, ...)
{
    if (!handle_open(f, __func__))
        return false;
    if (f->stage == STAGE_TALKING)
        return handle_fail(f, "fsdpmark_configured: %.60s: found it after hello, expected it before", name);
    va_list arguments;
    va_start(arguments, format);
    json_t *value = json_vsprintf(format, arguments);
    va_end(arguments);
    if (!value || json_object_set_new(f->configured, name, value) != 0)
        return handle_fail(f, "fsdpmark_configured: found a name or value that is no UTF-8, expected texts");
    return true;
}

bool fsdpmark_hello(fsdpmark *f, const char *note)
{
    if (!handle_open(f, __func__))
        return false;
    return f->stage == STAGE_SILENT ? say_hello(f, note) : handle_fail(f, "fsdpmark_hello: found a second hello, expected one in a case");
}

static bool end(fsdpmark *f, const char *event, json_t *fields, bool early)
{
    bool fine = handle_event(f, event, fields, early);
    f->stage = fine ? STAGE_ENDED : f->stage;
    return fine;
}

bool fsdpmark_unsupported(fsdpmark *f, const char *format, ...)
{
    if (!handle_open(f, __func__))
        return false;
    va_list arguments;
    va_start(arguments, format);
    json_t *reason = json_vsprintf(format, arguments);
    va_end(arguments);
    return end(f, "unsupported", json_pack("{s:o}", "reason", reason ? reason : json_string("a reason that is no UTF-8")), true);
}

bool fsdpmark_done(fsdpmark *f) { return handle_open(f, __func__) && end(f, "done", NULL, false); }

bool fsdpmark_fail(fsdpmark *f, const char *format, ...)
{
    char text[sizeof f->error.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return handle_fail(f, "%s", text);
}

const struct fsdpmark_parameter *handle_parameter(fsdpmark *f, const char *function, const char *name)
{
    for (int i = 0; i < f->c.parameter_count; i++)
        if (f->c.parameters[i].tied_to < 0 && strcmp(f->c.parameters[i].name, name) == 0)
            return &f->parameters[i];
    return handle_fail(f, "%s: found parameter '%.100s', expected one of the case's table that is not tied to another", function, name), NULL;
}

static bool add_part(fsdpmark *f, json_t *parts, const struct fsdpmark_part *part)
{
    const struct fsdpmark_parameter *p = handle_parameter(f, "fsdpmark_shards", part->parameter);
    if (!p)
        return false;
    if (part->offset < 0 || part->length < 0 || part->length > p->count || part->offset > p->count - part->length)
        return handle_fail(f, "fsdpmark_shards: %.100s: found elements [%lld, +%lld), expected them inside its %lld", p->name, (long long)part->offset,
                           (long long)part->length, (long long)p->count);
    json_array_append_new(json_object_get(parts, p->name), json_pack("[I,I]", (json_int_t)part->offset, (json_int_t)part->length));
    return true;
}

bool fsdpmark_shards(fsdpmark *f, const char *of, const struct fsdpmark_part *parts, int count, int64_t padding, double padding_max)
{
    if (!handle_open(f, __func__))
        return false;
    if (strcmp(of, "parameter") != 0 && strcmp(of, "gradient") != 0 && strcmp(of, "optimizer") != 0)
        return handle_fail(f, "fsdpmark_shards: found shards of '%.40s', expected parameter, gradient or optimizer", of);
    json_t *object = json_object();
    for (int i = 0; i < f->c.parameter_count; i++) // what a rank holds nothing of has an empty list
        if (f->c.parameters[i].tied_to < 0)
            json_object_set_new(object, f->c.parameters[i].name, json_array());
    bool fine = true;
    for (int i = 0; fine && i < count; i++)
        fine = add_part(f, object, &parts[i]);
    json_t *fields = json_pack("{s:s,s:o,s:I}", "of", of, "parts", object, "padding", (json_int_t)padding);
    if (!(padding_max < 0)) // so that a NaN found there is told
        json_object_set_new(fields, "padding_max", answer_number(padding_max));
    return handle_event(f, "shards", fields, false);
}

static json_t *at_micro(int step, int micro, double loss)
{
    return json_pack("{s:i,s:i,s:o}", "step", step, "micro", micro, "loss", answer_number(loss));
}

bool fsdpmark_micro(fsdpmark *f, int step, int micro, double loss, double tokens, double seconds)
{
    if (!handle_open(f, __func__))
        return false;
    json_t *fields = at_micro(step, micro, loss);
    json_object_set_new(fields, "tokens", answer_number(tokens));
    json_object_set_new(fields, "seconds", answer_number(seconds));
    return handle_event(f, "micro", fields, false);
}

bool fsdpmark_eval(fsdpmark *f, int step, int micro, double loss)
{
    return handle_open(f, __func__) && handle_event(f, "eval", at_micro(step, micro, loss), false);
}

bool fsdpmark_clip(fsdpmark *f, int step, double norm)
{
    return handle_open(f, __func__) && handle_event(f, "clip", json_pack("{s:i,s:o}", "step", step, "norm", answer_number(norm)), false);
}

bool fsdpmark_step(fsdpmark *f, int step, bool skipped, double loss_scale, double seconds)
{
    return handle_open(f, __func__) &&
           handle_event(f, "step", json_pack("{s:i,s:b,s:o,s:o}", "step", step, "skipped", (int)skipped, "loss_scale", answer_number(loss_scale),
                                             "seconds", answer_number(seconds)), false);
}

// Whole numbers stay whole in the file.
static json_t *figure(double value)
{
    return fabs(value) < 0x1p53 && value == floor(value) ? json_integer((json_int_t)value) : answer_number(value);
}

// "group.name" goes into an object of the group.
static bool add_figures(json_t *fields, const struct fsdpmark_figure *figures, int count)
{
    for (int i = 0; i < count; i++) {
        const char *dot = strchr(figures[i].name, '.');
        char *group = dot ? memory_copy(figures[i].name, (size_t)(dot - figures[i].name) + 1, 1) : NULL;
        if (group) {
            group[dot - figures[i].name] = 0;
            if (!json_object_get(fields, group))
                json_object_set_new(fields, group, json_object());
        }
        json_t *into = group ? json_object_get(fields, group) : fields;
        int status = json_object_set_new(into, dot ? dot + 1 : figures[i].name, figure(figures[i].value));
        free(group);
        if (status != 0)
            return false;
    }
    return true;
}

static bool say_figures(fsdpmark *f, const char *event, json_t *fields, const struct fsdpmark_figure *figures, int count)
{
    if (add_figures(fields, figures, count))
        return handle_event(f, event, fields, false);
    json_decref(fields);
    return handle_fail(f, "event %s: found a name that is no UTF-8 or also a group's, expected each name once", event);
}

bool fsdpmark_memory(fsdpmark *f, const char *phase, const struct fsdpmark_figure *figures, int count)
{
    return handle_open(f, __func__) && say_figures(f, "memory", json_pack("{s:s}", "phase", phase), figures, count);
}

bool fsdpmark_traffic(fsdpmark *f, const struct fsdpmark_figure *figures, int count)
{
    return handle_open(f, __func__) && say_figures(f, "traffic", json_object(), figures, count);
}
