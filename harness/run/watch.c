// See watch.h. The full validation is answer_read's, once, at the end; this only has to know when the end has come and what
// was said last.
#include "harness/run/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_LIMIT = 64 << 20 };

bool watch_open(struct watch *w, const char *case_folder, int ranks)
{
    *w = (struct watch){ranks, calloc((size_t)ranks, sizeof *w->rank)};
    for (int r = 0; w->rank != NULL && r < ranks; r++) {
        w->rank[r].fd = -1;
        if (asprintf(&w->rank[r].path, "%s/out/rank%d.jsonl", case_folder, r) < 0)
            return false;
    }
    return w->rank != NULL;
}

static void see_line(struct rank_watch *r, const char *line, size_t size)
{
    static const struct { const char *name; enum event_kind kind; } ends[] = {
        {"done", EVENT_DONE}, {"unsupported", EVENT_UNSUPPORTED}, {"error", EVENT_ERROR}};
    size_t kept = size < WATCH_LINE - 1 ? size : WATCH_LINE - 1;
    memcpy(r->last, line, kept);
    r->last[kept] = 0;
    r->lines++;
    json_t *event = json_loadb(line, size, 0, NULL);
    const char *name = json_string_value(json_object_get(event, "event"));
    if (name == NULL)
        r->garbage = true;
    for (int i = 0; i < 3 && name != NULL; i++)
        if (strcmp(name, ends[i].name) == 0) {
            r->ended = true;
            r->end = ends[i].kind;
        }
    json_decref(event);
}

static void see_bytes(struct rank_watch *r)
{
    char *at = r->partial, *end = r->partial + r->partial_size, *newline;
    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        see_line(r, at, (size_t)(newline - at));
        at = newline + 1;
    }
    r->partial_size = (size_t)(end - at);
    memmove(r->partial, at, r->partial_size);
}

static bool poll_rank(struct rank_watch *r)
{
    bool moved = false;
    if (r->fd < 0 && (r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return false;
    for (;;) {
        if (r->partial_size > LINE_LIMIT) {
            r->garbage = true; // no event is that long
            return false;
        }
        if (r->partial_capacity - r->partial_size < 4096) {
            char *grown = realloc(r->partial, r->partial_capacity * 2 + 8192);
            if (grown == NULL)
                return moved;
            r->partial = grown;
            r->partial_capacity = r->partial_capacity * 2 + 8192;
        }
        ssize_t n = read(r->fd, r->partial + r->partial_size, r->partial_capacity - r->partial_size);
        if (n <= 0)
            return moved;
        moved = true;
        r->partial_size += (size_t)n;
        see_bytes(r);
    }
}

bool watch_poll(struct watch *w)
{
    bool moved = false;
    for (int r = 0; r < w->ranks; r++)
        if (!w->rank[r].ended)
            moved |= poll_rank(&w->rank[r]);
    return moved;
}

int watch_ended(const struct watch *w)
{
    int n = 0;
    for (int r = 0; r < w->ranks; r++)
        n += w->rank[r].ended;
    return n;
}

int watch_lines(const struct watch *w)
{
    int n = 0;
    for (int r = 0; r < w->ranks; r++)
        n += w->rank[r].lines;
    return n;
}

void watch_close(struct watch *w)
{
    for (int r = 0; w->rank != NULL && r < w->ranks; r++) {
        if (w->rank[r].fd >= 0)
            close(w->rank[r].fd);
        free(w->rank[r].path);
        free(w->rank[r].partial);
    }
    free(w->rank);
    *w = (struct watch){0};
}
