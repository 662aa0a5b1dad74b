// Collectives in flight and the clock. See line.h.
#include "harness/advise/line.h"

#include <stddef.h>

// Below this a rest of bytes or of time is rounding.
static const double NOTHING = 1e-12;

// Both sides must have called the library once more before a message that is not eager moves: one call reads the request and answers it, the
// next reads the answer (reference: rendezvous of the MPI libraries).
enum { AGREEMENT_CALLS = 2 };

static void begin_phase(const struct machine *m, struct flight *f)
{
    const struct phase *p = &f->phases[f->phase];
    f->alpha_left = p->alpha_s;
    f->unattended_left = m->unattended_bytes;
    f->calls_needed = !isinf(m->unattended_bytes) && p->message_bytes > m->eager_bytes ? AGREEMENT_CALLS : 0;
    for (int t = 0; t < TIERS; t++)
        f->bytes_left[t] = m->tiers[t].beta_s_per_byte > 0 ? p->bytes[t] : 0;
}

static bool phase_over(const struct flight *f) { return f->calls_needed == 0 && f->alpha_left <= 0 && f->bytes_left[0] <= 0 && f->bytes_left[1] <= 0; }

static void begin_next(struct line *l, struct flight *f)
{
    if (++f->phase < f->phase_count)
        begin_phase(l->m, f);
    else
        f->active = false;
}

// Hardware that moves everything begins phases by itself.
static bool by_itself(const struct machine *m) { return isinf(m->unattended_bytes); }

static void settle(struct line *l)
{
    int kept = 0;
    for (int i = 0; i < l->count; i++) {
        struct flight *f = l->flights[i];
        while (by_itself(l->m) && f->active && phase_over(f))
            begin_next(l, f);
        if (f->active)
            l->flights[kept++] = f;
    }
    l->count = kept;
}

void line_start(struct line *l, struct flight *f)
{
    if (f->phase_count == 0 || l->count == FLIGHTS)
        return;
    f->active = true;
    f->phase = 0;
    begin_phase(l->m, f);
    for (int p = 0; p < f->phase_count; p++)
        l->line_s += phase_seconds(l->m, &f->phases[p]) + f->phases[p].cpu_s;
    l->collectives++;
    l->flights[l->count++] = f;
    settle(l);
}

static bool moves(const struct flight *f, bool attended)
{
    return !phase_over(f) && f->calls_needed == 0 && (attended || f->alpha_left > 0 || f->unattended_left > 0);
}

// Seconds per byte that each flight on a tier gets.
static void share_lines(const struct line *l, bool attended, double cost[TIERS], bool busy[TIERS])
{
    for (int t = 0; t < TIERS; t++) {
        int sharing = 0;
        for (int i = 0; i < l->count; i++)
            sharing += moves(l->flights[i], attended) && l->flights[i]->alpha_left <= 0 && l->flights[i]->bytes_left[t] > 0;
        busy[t] = sharing > 0;
        cost[t] = l->m->tiers[t].beta_s_per_byte * (sharing > 1 ? sharing / l->m->both_ways : 1);
    }
}

// Time until something of a flight is used up; INFINITY where it stands still.
static double until_event(const struct flight *f, bool attended, const double cost[TIERS])
{
    double soonest = INFINITY;
    if (!moves(f, attended))
        return soonest;
    if (f->alpha_left > 0)
        return f->alpha_left;
    for (int t = 0; t < TIERS; t++) {
        double bytes = attended ? f->bytes_left[t] : fmin(f->bytes_left[t], f->unattended_left);
        soonest = f->bytes_left[t] > 0 ? fmin(soonest, bytes * cost[t]) : soonest;
    }
    return soonest;
}

static void flow(const struct machine *m, struct flight *f, double seconds, bool attended, const double cost[TIERS])
{
    double most = 0;
    if (!moves(f, attended))
        return;
    if (f->alpha_left > 0) {
        f->alpha_left = f->alpha_left - seconds <= NOTHING ? 0 : f->alpha_left - seconds;
        return;
    }
    for (int t = 0; t < TIERS; t++) {
        double bytes = f->bytes_left[t] > 0 ? seconds / cost[t] : 0;
        most = fmax(most, fmin(bytes, f->bytes_left[t]));
        f->bytes_left[t] = (f->bytes_left[t] - bytes) * m->tiers[t].beta_s_per_byte <= NOTHING ? 0 : f->bytes_left[t] - bytes;
    }
    if (!attended)
        f->unattended_left = (f->unattended_left - most) * m->tiers[0].beta_s_per_byte <= NOTHING ? 0 : f->unattended_left - most;
}

// What has been saved up passes at once. False: nothing did.
static bool spend(struct line *l, bool attended)
{
    double spent = 0;
    for (int i = 0; i < l->count; i++) {
        struct flight *f = l->flights[i];
        for (int t = 0; t < TIERS && moves(f, attended) && f->alpha_left <= 0; t++) {
            double bytes = fmin(l->credit[t], attended ? f->bytes_left[t] : fmin(f->bytes_left[t], f->unattended_left));
            f->bytes_left[t] -= bytes;
            l->credit[t] -= bytes;
            f->unattended_left -= attended ? 0 : bytes;
            spent += bytes;
        }
    }
    return spent > 0;
}

// While a latency passes too, so that a collective alone on a drained line takes the larger of its latency and its bytes, not their sum.
static void save(struct line *l, double seconds, const bool busy[TIERS])
{
    for (int t = 0; t < TIERS; t++)
        if (l->m->tiers[t].burst_s > 0 && l->m->tiers[t].beta_s_per_byte > 0 && !busy[t])
            l->credit[t] = fmin(l->m->tiers[t].burst_s / l->m->tiers[t].beta_s_per_byte, l->credit[t] + seconds / l->m->tiers[t].beta_s_per_byte);
}

// Moves the clock to the next event, at most `most` seconds; what it took.
static double move(struct line *l, double most, bool attended)
{
    double cost[TIERS], step;
    bool busy[TIERS];
    if (spend(l, attended))
        most = 0; // a phase may be over now
    share_lines(l, attended, cost, busy);
    step = most;
    for (int i = 0; i < l->count; i++)
        step = fmin(step, until_event(l->flights[i], attended, cost));
    save(l, step, busy);
    for (int i = 0; i < l->count; i++)
        flow(l->m, l->flights[i], step, attended, cost);
    l->now += step;
    l->events++;
    settle(l);
    return step;
}

static bool any_moves(const struct line *l)
{
    for (int i = 0; i < l->count; i++)
        if (moves(l->flights[i], false))
            return true;
    return false;
}

void line_compute(struct line *l, double seconds)
{
    while (seconds > NOTHING) {
        double slower = any_moves(l) ? l->m->contention : 1;
        double took = move(l, seconds * slower, false);
        seconds = took >= seconds * slower ? 0 : seconds - took / slower;
    }
}

// The local sum at the end of a phase is the processor's work, in the middle of the call.
void line_call(struct line *l)
{
    double cpu = 0;
    for (int i = 0; i < l->count; i++) {
        struct flight *f = l->flights[i];
        f->unattended_left = l->m->unattended_bytes;
        if (f->calls_needed > 0)
            f->calls_needed--;
        else if (phase_over(f) && !by_itself(l->m)) {
            cpu += f->phases[f->phase].cpu_s;
            begin_next(l, f);
        }
    }
    settle(l);
    line_compute(l, cpu);
}

void line_wait(struct line *l, struct flight *f)
{
    while (f->active) {
        bool held = false;
        for (int i = 0; i < l->count; i++)
            held |= l->flights[i]->calls_needed > 0 || (phase_over(l->flights[i]) && !by_itself(l->m));
        if (held)
            line_call(l);
        else
            move(l, INFINITY, true);
    }
}
