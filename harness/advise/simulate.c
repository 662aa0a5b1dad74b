// One step of the reference engine's schedule, as events on the clock of one rank. See model.h.
//
// Names and order are those of reference/engine: acquire and prefetch (pass.c), gather_start and gather_finish (gather.c), reduce_close and
// reduce_finish (reduce.c), update_parameters and gather_residents (update.c, gather.c). The all-gather of resident units after the update runs unit by
// unit with nothing beside it; at most one reduction is in flight, and it is waited for before the next one starts.
#include <stdlib.h>

#include "harness/advise/line.h"
#include "harness/protocol/memory.h"

// An all-reduce of up to so many elements is one exchange of everything (reference/backends/backend.h, BACKEND_SMALL_COUNT).
enum { SMALL_ELEMENTS = 256 };
// Bytes that the clip's norm or the like sends.
enum { SCALAR_BYTES = 8 };

struct step {
    const struct machine *m;
    const struct workload_model *w;
    const struct schedule *s;
    struct line line;
    struct flight *gathers;     // [units]
    bool *gathered, *gathering; // [units]
    struct flight reduction;
    int reducing;               // unit, -1: none
    int open_gradients;         // units whose full gradient takes a turn of the pool
    int turns;
    double sent;
};

static bool resident(const struct step *x)
{
    return x->s->strategy == STRATEGY_NONE || x->s->strategy == STRATEGY_OPTIMIZER || x->s->strategy == STRATEGY_GRAD ||
           (x->s->shards == 1 && x->w->parameter == x->w->compute);
}

static bool accumulates(const struct workload_model *w, const struct schedule *s)
{
    return s->strategy == STRATEGY_OPTIMIZER || (w->micros > 1 && !w->sync_all);
}

static double size(enum dtype t) { return (double)dtype_size(t); }
static double wider(enum dtype a, enum dtype b) { return fmax(size(a), size(b)); }
static double part(const struct step *x, int u) { return workload_part(x->w, u, x->s->shards); }

// Reading and writing so many bytes.
static void copy(struct step *x, double bytes) { line_compute(&x->line, bytes / x->m->copy_rate); }

static void send(struct step *x, struct flight *f, struct group g, double bytes, double part_bytes, double cpu_bytes)
{
    if (g.ranks == 1)
        return;
    f->phases[f->phase_count] = exchange_half(x->m, g, bytes, part_bytes);
    f->phases[f->phase_count++].cpu_s = cpu_bytes / x->m->copy_rate;
    x->sent += exchange_sent(g, bytes, part_bytes);
}

// ---- parameters ----

static void gather_start(struct step *x, int u)
{
    const struct workload_model *w = x->w;
    if (x->gathered[u] || x->gathering[u])
        return;
    if (w->parameter != w->compute)
        copy(x, part(x, u) * (size(w->parameter) + size(w->compute)));
    x->gathering[u] = true;
    x->gathers[u] = (struct flight){0};
    send(x, &x->gathers[u], exchange_group(x->m, x->s->shards, 1), w->units[u].elements * size(w->compute), part(x, u) * size(w->compute), 0);
    line_start(&x->line, &x->gathers[u]);
}

static void gather_finish(struct step *x, int u)
{
    if (x->gathered[u])
        return;
    gather_start(x, u);
    line_wait(&x->line, &x->gathers[u]);
    if (!x->w->flat && x->s->shards > 1)
        copy(x, 2 * x->w->units[u].elements * size(x->w->compute));
    x->gathering[u] = false;
    x->gathered[u] = true;
}

static bool reads(const struct workload_call *c, int unit)
{
    for (int i = 0; i < c->unit_count; i++)
        if (c->units[i] == unit)
            return true;
    return false;
}

static void prefetch(struct step *x, int call, int direction, int depth)
{
    const struct workload_model *w = x->w;
    int last = -1;
    for (int next = call + direction; depth > 0 && next >= 0 && next < w->call_count; next += direction)
        for (int i = 0; i < w->calls[next].unit_count && depth > 0; i++) {
            int u = w->calls[next].units[i];
            if (w->units[u].root || u == last || reads(&w->calls[call], u))
                continue;
            last = u;
            depth--;
            gather_start(x, u);
        }
}

static void acquire(struct step *x, int call, int direction, int depth)
{
    const struct workload_call *c = &x->w->calls[call];
    if (resident(x))
        return;
    for (int i = 0; i < c->unit_count; i++)
        gather_start(x, c->units[i]);
    for (int i = 0; i < c->unit_count; i++)
        gather_finish(x, c->units[i]);
    prefetch(x, call, direction, depth);
}

static void drop(struct step *x, int call, int next, int direction)
{
    const struct workload_call *c = &x->w->calls[call];
    for (int i = 0; i < c->unit_count && !resident(x); i++) {
        int u = c->units[i], last = direction > 0 ? x->w->units[u].last_call : x->w->units[u].first_call;
        if (!reads(&x->w->calls[next], u) && !(x->w->units[u].root && call != last))
            x->gathered[u] = false;
    }
}

static void gather_residents(struct step *x)
{
    bool copies = x->w->parameter != x->w->compute || x->s->shards > 1;
    for (int u = 0; u < x->w->unit_count; u++)
        x->gathered[u] = false;
    for (int u = 0; resident(x) && copies && u < x->w->unit_count; u++)
        gather_finish(x, u);
}

// ---- gradients ----

static void reduce_finish(struct step *x)
{
    const struct workload_model *w = x->w;
    if (x->reducing < 0)
        return;
    line_wait(&x->line, &x->reduction);
    copy(x, part(x, x->reducing) * (size(w->reduce) + size(w->gradient))); // the sum becomes a mean and joins the gradient at rest
    x->open_gradients -= !w->units[x->reducing].root;
    x->reducing = -1;
}

// Sum of the versions of a part by all ranks: each but the first is read, and the sum read and written.
static double sum_bytes(double part_bytes, int ranks) { return 3.0 * (ranks - 1) * part_bytes; }

static void reduce_over_replicas(struct step *x, double elements)
{
    struct group g = exchange_group(x->m, x->s->replicas, x->s->shards);
    double bytes = elements * size(x->w->reduce), chunk = bytes / g.ranks;
    if (elements <= SMALL_ELEMENTS) {
        send(x, &x->reduction, g, g.ranks * bytes, bytes, sum_bytes(bytes, g.ranks));
        return;
    }
    send(x, &x->reduction, g, bytes, chunk, sum_bytes(chunk, g.ranks));
    send(x, &x->reduction, g, bytes, chunk, 0);
}

static void reduce_start(struct step *x, int u)
{
    const struct workload_model *w = x->w;
    struct group g = exchange_group(x->m, x->s->shards, 1);
    double own = part(x, u), elements = w->units[u].elements;
    double from = accumulates(w, x->s) ? wider(w->compute, w->reduce) : size(w->compute);
    if ((!w->flat && x->s->shards > 1) || from != size(w->reduce))
        copy(x, elements * (from + size(w->reduce)));
    x->reduction = (struct flight){0};
    x->reducing = u;
    send(x, &x->reduction, g, elements * size(w->reduce), own * size(w->reduce), sum_bytes(own * size(w->reduce), g.ranks));
    if (x->s->replicas > 1)
        reduce_over_replicas(x, x->s->shards > 1 ? own : elements);
    line_start(&x->line, &x->reduction);
}

static void open_gradients(struct step *x, int call)
{
    const struct workload_model *w = x->w;
    const struct workload_call *c = &w->calls[call];
    for (int i = 0; i < c->unit_count; i++) {
        const struct workload_unit *u = &w->units[c->units[i]];
        if (u->last_call != call)
            continue;
        if (!u->root && x->open_gradients == x->turns)
            reduce_finish(x);
        x->open_gradients += !u->root;
        copy(x, u->elements * size(w->compute));
    }
}

static void close_gradients(struct step *x, int call, bool sync)
{
    const struct workload_model *w = x->w;
    const struct workload_call *c = &w->calls[call];
    for (int i = 0; i < c->unit_count; i++) {
        int u = c->units[i];
        if (w->units[u].first_call != call)
            continue;
        if (accumulates(w, x->s) && size(w->compute) != wider(w->compute, w->reduce))
            copy(x, w->units[u].elements * (size(w->compute) + 2 * wider(w->compute, w->reduce)));
        if (!sync) {
            x->open_gradients -= !w->units[u].root;
            continue;
        }
        reduce_finish(x);
        reduce_start(x, u);
        if (x->s->prefetch_backward == 0)
            reduce_finish(x);
    }
}

// ---- the step ----

static void compute(struct step *x, double flop)
{
    line_compute(&x->line, flop / x->m->flop_rate);
    line_call(&x->line);
}

static void micro(struct step *x, bool sync)
{
    const struct workload_model *w = x->w;
    int last = w->call_count - 1;
    for (int call = 0; call <= last; call++) {
        acquire(x, call, 1, x->s->prefetch_forward);
        compute(x, w->calls[call].forward_flop);
        if (x->s->reshard_after_forward && call < last)
            drop(x, call, call + 1, 1);
    }
    for (int call = last; call >= 0; call--) {
        acquire(x, call, -1, x->s->prefetch_backward);
        open_gradients(x, call);
        compute(x, w->calls[call].backward_flop + (w->recompute ? w->calls[call].forward_flop : 0));
        if (call > 0)
            drop(x, call, call - 1, -1);
        close_gradients(x, call, sync);
    }
    for (int u = 0; u < w->unit_count; u++)
        x->gathered[u] = false;
    reduce_finish(x);
}

static void clip(struct step *x, double elements)
{
    struct flight f = {0};
    copy(x, 3 * elements * size(x->w->gradient));
    send(x, &f, exchange_group(x->m, x->s->shards, 1), SCALAR_BYTES * x->s->shards, SCALAR_BYTES, 0);
    line_start(&x->line, &f);
    line_wait(&x->line, &f);
}

static void walk(struct step *x)
{
    const struct workload_model *w = x->w;
    double elements = 0, each = 2 * size(w->parameter) + size(w->gradient) + 2 * w->states * size(w->state);
    for (int u = 0; u < w->unit_count; u++)
        elements += part(x, u);
    for (int m = 0; m < w->micros; m++)
        micro(x, w->sync_all || m == w->micros - 1);
    if (w->clips)
        clip(x, elements);
    line_compute(&x->line, elements * each / x->m->update_rate);
    gather_residents(x);
}

// Turns of the pool of full gradients: what one call reads, and the reduction in flight (reference/engine/buffers.c).
static int gradient_turns(const struct workload_model *w, const struct schedule *s)
{
    int most = 1;
    for (int call = 0; call < w->call_count; call++)
        most = w->calls[call].unit_count > most ? w->calls[call].unit_count : most;
    return most + (s->prefetch_backward > 0);
}

// The bucket of a line is as full at the end of a step as at its beginning: the second of two steps.
static bool saves_up(const struct machine *m) { return m->tiers[0].burst_s > 0 || m->tiers[1].burst_s > 0; }

static double run(const struct machine *m, const struct workload_model *w, const struct schedule *s, struct prediction *out)
{
    size_t units = (size_t)w->unit_count + 1;
    struct step x = {.m = m, .w = w, .s = s, .line.m = m, .reducing = -1, .turns = gradient_turns(w, s)};
    x.gathers = memory_zeros(units, sizeof *x.gathers);
    x.gathered = memory_zeros(units, sizeof *x.gathered);
    x.gathering = memory_zeros(units, sizeof *x.gathering);
    double begun = 0;
    walk(&x);
    if (saves_up(m)) {
        begun = x.line.now;
        x.sent = x.line.line_s = 0;
        x.line.collectives = x.line.events = 0;
        walk(&x);
    }
    free(x.gathers);
    free(x.gathered);
    free(x.gathering);
    if (out != NULL)
        *out = (struct prediction){.line_s = x.line.line_s, .sent_bytes = x.sent, .collectives = x.line.collectives, .events = x.line.events};
    return x.line.now - begun + m->overhead_s;
}

void advise_predict(const struct machine *m, const struct workload_model *w, const struct schedule *s, struct prediction *out)
{
    struct machine silent = *m;
    double step = run(m, w, s, out);
    for (int t = 0; t < TIERS; t++)
        silent.tiers[t].alpha_s = silent.tiers[t].beta_s_per_byte = 0;
    out->step_s = step;
    out->compute_s = run(&silent, w, s, NULL);
    out->exposed_s = fmax(0, step - out->compute_s);
}
