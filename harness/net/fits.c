// Latency and bandwidth of each collective. See consistency.h.
#include <stdlib.h>
#include <string.h>

#include "harness/net/consistency.h"
#include "harness/net/plan.h"
#include "harness/protocol/memory.h"

static bool is_beyond(const struct net_row *r) { return r->burst > 0 && r->bus_bytes > r->burst; }
static bool rides(const struct net_row *r) { return r->burst > 0 && !is_beyond(r) && r->busbw > NET_FIT_SHORT * r->line_rate; }

// Plain calls of the sweep that so many starts have. Beyond the burst a median of few samples serves: nothing else tells of the line.
static bool is_wanted(const struct net_row *r, enum net_op op, int starts)
{
    const struct net_point *p = &r->point;
    bool plain = r->seconds.count > 0 && strcmp(p->measure, net_measure_names[NET_SWEEP]) == 0 && p->call_count == 1 && p->calls[0].op == op && p->how == NET_BLOCKING &&
                 p->shape == NET_EVEN && p->product == NET_IDLE && !p->in_place && p->offset == 0 && p->calls[0].group == NET_WORLD && p->label[0] == 0;
    return plain && r->launches >= starts && (r->seconds.coverage >= 0.95 || is_beyond(r));
}

static int count(const struct net_rows *rows, enum net_op op, int starts, bool beyond)
{
    int n = 0;
    for (int i = 0; i < rows->count; i++)
        n += is_wanted(&rows->items[i], op, starts) && (!beyond || is_beyond(&rows->items[i]));
    return n;
}

static int starts_of(const struct net_rows *rows)
{
    int most = 0;
    for (int i = 0; i < rows->count; i++)
        most = rows->items[i].launches > most ? rows->items[i].launches : most;
    return most;
}

// Sizes that all starts have, so that each start has a fit; any, where too few are so to make a line.
static int starts_wanted(const struct net_rows *rows, enum net_op op)
{
    int all = starts_of(rows), any = all > 0;
    bool by_line = count(rows, op, any, true) > 1;
    return count(rows, op, all, by_line) > 1 ? all : any;
}

// counts: room for the launches of all points. Where some size lacks a start, nobody knows which: then no starts are told apart.
static bool fit_one(const struct net_rows *rows, struct net_fit *f, struct fit_point *points, int *counts)
{
    int starts = starts_wanted(rows, f->op), kept = starts == starts_of(rows) ? starts : 0, beyond = count(rows, f->op, starts, true);
    for (int i = 0; i < rows->count; i++) {
        const struct net_row *r = &rows->items[i];
        if (!is_wanted(r, f->op, starts))
            continue;
        if (beyond > 1 && rides(r)) {
            f->left_out++;
            continue;
        }
        for (int k = 0; k < kept; k++)
            counts[k] = r->series->launches[k].count;
        points[f->points++] = (struct fit_point){r->bus_bytes, r->series->count, r->series->values, kept, counts};
        counts += kept;
        f->first = f->points == 1 || r->bytes < f->first ? r->bytes : f->first;
        f->last = r->bytes > f->last ? r->bytes : f->last;
        f->beyond += is_beyond(r);
        f->line_rate = r->line_rate;
        f->burst = r->burst;
    }
    return f->points > 1 && statistics_alpha_beta(f->points, points, &f->fit);
}

int net_fits(const struct net_rows *rows, struct net_fit fits[NET_FITS])
{
    struct fit_point *points = memory_zeros((size_t)rows->count + 1, sizeof *points);
    int *counts = memory_zeros((size_t)(rows->count * starts_of(rows)) + 1, sizeof *counts), found = 0;
    for (int op = NET_ALL_GATHER; op <= NET_BROADCAST; op++) {
        fits[found] = (struct net_fit){.op = (enum net_op)op};
        found += fit_one(rows, &fits[found], points, counts);
    }
    free(points);
    free(counts);
    return found;
}

double net_fit_share(const struct net_fit *f) { return f->line_rate > 0 ? 1 / (f->fit.beta_s_per_byte.value * f->line_rate) : 0; }
