// Says what went wrong in a start: which case it belongs to, which rank was first, what each rank said last.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/run/engine.h"

enum { TAIL_LINES = 12, TAIL_BYTES = 1500 };

void blame_last_events(const struct watch *w, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int r = 0; r < w->ranks && used + 1 < size; r++) {
        const struct rank_watch *k = &w->rank[r];
        int n = k->lines == 0 ? snprintf(text + used, size - used, "; rank %d wrote nothing", r)
                              : snprintf(text + used, size - used, "; last event of rank %d: %.120s", r, k->last);
        used += n > 0 ? (size_t)n : 0;
    }
}

static void append_tail(const char *path, const char *title, char *out, size_t size)
{
    char text[TAIL_BYTES + 1];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fseek(file, -TAIL_BYTES, SEEK_END) != 0)
        rewind(file);
    size_t n = fread(text, 1, TAIL_BYTES, file);
    fclose(file);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = 0;
    const char *from = text + n;
    for (int lines = 0; from > text && (from[-1] != '\n' || ++lines < TAIL_LINES); from--)
        continue;
    size_t used = strlen(out);
    if (n > 0)
        snprintf(out + used, size - used, "%s%s:\n%s", used > 0 ? "\n" : "", title, from);
}

char *blame_log_tail(const struct service *s)
{
    char *out = calloc(1, ENGINE_TAIL), path[4200], title[32];
    if (out == NULL)
        return NULL;
    for (int i = 0; i < 2; i++) {
        static const char *const others[] = {"launcher", "template"};
        snprintf(path, sizeof path, "%s/%s.log", s->folder, others[i]);
        append_tail(path, others[i], out, ENGINE_TAIL);
    }
    for (int r = 0; r < s->world_size; r++) {
        snprintf(path, sizeof path, "%s/rank%d.log", s->folder, r);
        snprintf(title, sizeof title, "rank %d", r);
        append_tail(path, title, out, ENGINE_TAIL);
    }
    if (out[0] == 0) {
        free(out);
        return NULL;
    }
    return out;
}

// The rank whose process failed first, else the one that reported an error, else -1.
static int first_failed(const struct service *s)
{
    int first = -1;
    for (int r = 0; r < s->world_size; r++) {
        const struct rank_end *e = &s->launch.ends[r];
        bool failed = e->ended && (e->status != 0 || !s->watch.rank[r].ended);
        if (failed && (first < 0 || e->at_s < s->launch.ends[first].at_s))
            first = r;
    }
    for (int r = 0; first < 0 && r < s->world_size; r++)
        if (s->watch.rank[r].ended && s->watch.rank[r].end == EVENT_ERROR)
            first = r;
    return first;
}

// The first case, from the one under way, that the rank has not ended or has ended with an error.
static int position_of(const struct service *s, int rank)
{
    int position = s->at;
    for (; position < s->count; position++) {
        struct watch w;
        char *folder = job_case_folder(s, position);
        bool ok = watch_open(&w, folder, s->world_size);
        if (ok)
            watch_poll(&w);
        bool through = ok && w.rank[rank].ended && w.rank[rank].end != EVENT_ERROR;
        watch_close(&w);
        free(folder);
        if (!through)
            break;
    }
    return position < s->count ? position : s->count - 1;
}

// Messages name files inside the job folder, not the temporary folder that is gone when they are read.
static const char *without_folder(const struct service *s, const char *text)
{
    size_t size = strlen(s->folder);
    return strncmp(text, s->folder, size) == 0 && text[size] == '/' ? text + size + 1 : text;
}

enum said { SAID_NOTHING_OF_USE, SAID_GARBAGE, SAID_ERROR };

static enum said what_rank_said(const struct service *s, int position, int rank, char *text, size_t size)
{
    char path[4200];
    struct answer a;
    struct error error = {0};
    enum said said = SAID_NOTHING_OF_USE;
    const char *id = s->engine->plan->cases[s->index[position]].c.id;
    snprintf(path, sizeof path, "%s/%s/out/rank%d.jsonl", s->folder, id, rank);
    if (access(path, F_OK) != 0)
        return said;
    if (!answer_read(path, id, rank, s->world_size, &a, &error)) {
        snprintf(text, size, "%.*s", (int)size - 1, without_folder(s, error.text));
        return SAID_GARBAGE;
    }
    if (a.ended && a.end == EVENT_ERROR) {
        const char *message = json_string_value(json_object_get(a.events[a.count - 1].fields, "message"));
        snprintf(text, size, "%s", message != NULL ? message : "(no message)");
        said = SAID_ERROR;
    }
    answer_free(&a);
    return said;
}

static bool blame_garbage(const struct service *s, int position, struct finding *finding)
{
    char text[900];
    for (int r = 0; r < s->world_size; r++)
        if (what_rank_said(s, position, r, text, sizeof text) == SAID_GARBAGE) {
            snprintf(finding->ranks, sizeof finding->ranks, "%d", r);
            finding_fail(finding, "", "%s", text);
            return true;
        }
    return false;
}

static void blame_hang(const struct service *s, struct finding *finding)
{
    char events[800];
    blame_last_events(&s->watch, events, sizeof events);
    finding_fail(finding, "Z29", "hang: no end within the deadline of %g s without an event%s",
                 s->engine->settings->case_deadline_s, events);
}

static void blame_failed(const struct service *s, int position, int rank, struct finding *finding)
{
    char text[600], events[700], end[128];
    if (rank < 0) {
        finding_fail(finding, "", "the launcher ended before the case did; rank statuses are unknown");
        return;
    }
    snprintf(finding->ranks, sizeof finding->ranks, "%d", rank);
    rank_end_text(&s->launch.ends[rank], end, sizeof end);
    const struct rank_end *e = &s->launch.ends[rank];
    // A library that sees its collectives disagree ends the process: by an error, a status or abort(3). A lone rank has nobody
    // to disagree with, and a wild pointer is not a sign of it.
    bool fits_desynchronised = s->world_size > 1 && (e->signal == 0 || e->signal == SIGABRT);
    const char *classes = fits_desynchronised ? "Z29" : "";
    if (what_rank_said(s, position, rank, text, sizeof text) == SAID_ERROR) {
        finding_fail(finding, classes, "rank %d reported an error: %s", rank, text);
        return;
    }
    blame_last_events(&s->watch, events, sizeof events);
    finding_fail(finding, classes, "%s: rank %d ended with %s before the case was done%s",
                 e->signal != 0 || e->status > 128 ? "crash" : "early end", rank, end, position == s->at ? events : "");
}

int blame_case(struct service *s, enum ending ending, struct finding *finding)
{
    int rank = ending == ENDING_FAILED ? first_failed(s) : -1;
    int position = rank >= 0 ? position_of(s, rank) : s->at;
    if (!blame_garbage(s, position, finding)) {
        if (ending == ENDING_HANG)
            blame_hang(s, finding);
        else
            blame_failed(s, position, rank, finding);
    }
    return position;
}

void blame_template(const struct service *s, struct finding *finding)
{
    char end[128] = "an unknown status";
    if (s->launch.template_end.ended)
        rank_end_text(&s->launch.template_end, end, sizeof end);
    finding_fail(finding, "", "the process that the ranks are forked from ended with %s while this case ran, twice in a row", end);
}

void blame_silence(struct service *s, enum ending ending, struct finding *finding)
{
    char end[128] = "an unknown status";
    int rank = first_failed(s);
    if (rank >= 0)
        snprintf(finding->ranks, sizeof finding->ranks, "%d", rank);
    if (ending == ENDING_SILENT_HANG)
        finding_fail(finding, "Z29", "did not start: no event of any rank within the deadline of %g s",
                     s->engine->settings->start_deadline_s);
    else if (rank >= 0)
        finding_fail(finding, "", "did not start: rank %d ended with %s before its first event", rank,
                     rank_end_text(&s->launch.ends[rank], end, sizeof end));
    else
        finding_fail(finding, "", "did not start: the launcher '%s' ended before any rank's first event", s->engine->launcher);
}
