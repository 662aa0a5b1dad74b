// The figure of a measured interconnect: bus bandwidth against size. See output.h.
//
// Drawn are the plain calls of the sweep and those at the same time: what other measures vary is not size.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/net/output.h"
#include "harness/net/plan.h"
#include "harness/protocol/memory.h"
#include "harness/report/plots.h"

struct line { char *name; int count; struct plot_point *points; };

static bool is_drawn(const struct net_row *r)
{
    const char *m = r->point.measure;
    return r->seconds.count > 0 && (strcmp(m, net_measure_names[NET_SWEEP]) == 0 || (strcmp(m, net_measure_names[NET_TOGETHER]) == 0 && r->point.call_count > 1));
}

static char *name_of(const struct net_row *r)
{
    char name[64], form[160];
    net_point_name(&r->point, name);
    net_form(r, form);
    return form[0] == 0 ? memory_text(name) : memory_format("%s, %s", name, form);
}

// Of the calls that are drawn; others may pass other lines.
static double rate_of(const struct net_rows *rows)
{
    double slowest = 0;
    for (int i = 0; i < rows->count; i++)
        if (is_drawn(&rows->items[i]) && (slowest == 0 || rows->items[i].line_rate < slowest))
            slowest = rows->items[i].line_rate;
    return slowest;
}

static struct line *line_of(struct line *lines, int *count, const struct net_row *r)
{
    char *name = name_of(r);
    for (int i = 0; i < *count; i++)
        if (strcmp(lines[i].name, name) == 0) {
            free(name);
            return &lines[i];
        }
    lines[*count] = (struct line){name, 0, NULL};
    return &lines[(*count)++];
}

static int by_size(const void *a, const void *b)
{
    const struct plot_point *x = a, *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

static int by_name(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int collect(const struct net_rows *rows, struct line *lines)
{
    int count = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct net_row *r = &rows->items[i];
        if (!is_drawn(r))
            continue;
        struct line *l = line_of(lines, &count, r);
        l->points = memory_grow(l->points, (size_t)l->count, sizeof *l->points);
        const struct interval *s = &r->seconds; // the slower end is the lower bandwidth
        l->points[l->count++] = (struct plot_point){(double)r->bytes, {r->busbw, r->bus_bytes / s->high, r->bus_bytes / s->low, s->coverage, s->count}};
    }
    for (int i = 0; i < count; i++)
        qsort(lines[i].points, (size_t)lines[i].count, sizeof *lines[i].points, by_size);
    if (count > 1)
        qsort(lines, (size_t)count, sizeof *lines, by_name); // points were measured in shuffled order
    return count;
}

bool net_figures(const struct net_rows *rows, const struct stored_run *run, const char *folder, char why[256], struct error *error)
{
    struct line *lines = memory_zeros((size_t)rows->count + 1, sizeof *lines);
    int count = collect(rows, lines), ranks = rows->count > 0 ? rows->items[0].ranks : 0, hosts = rows->count > 0 ? rows->items[0].hosts : 0;
    struct plot_series *series = memory_zeros((size_t)count + 1, sizeof *series);
    for (int i = 0; i < count; i++)
        series[i] = (struct plot_series){lines[i].name, false, lines[i].count, lines[i].points};
    const char *what = json_string_value(json_object_get(json_object_get(run->environment, "fabric"), "title"));
    char *title = memory_format("Bus bandwidth, %d ranks on %s", ranks, rows->fabric), *machine = plot_machine(run->environment),
         *versions = plot_versions(run->environment, NULL), *fabric = memory_format("%s, %s; %d host%s", rows->fabric, what != NULL ? what : "?", hosts, hosts == 1 ? "" : "s");
    char *note = memory_format("busbw: bytes that pass the line of a rank over the seconds of the slowest rank. %lld wrong buffers", (long long)rows->errors);
    struct plot_busbw p = {{.name = "busbw", .title = title, .machine = machine, .fabric = fabric, .versions = versions, .date = run->started, .note = note},
                           rate_of(rows), count, series};
    bool ok = plot_busbw(&p, folder, why, error);
    for (int i = 0; i < count; i++) {
        free(lines[i].name);
        free(lines[i].points);
    }
    free(lines);
    free(series);
    free(title);
    free(machine);
    free(versions);
    free(fabric);
    free(note);
    return ok;
}
