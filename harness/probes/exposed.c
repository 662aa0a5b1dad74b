// Waits of a case, step by step. See exposed.h.
#include "harness/probes/exposed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

static const unsigned wait_bit = 1u << PROBE_WAITS, mpi_bit = 1u << PROBE_MPI;
// Of the processor time of its process: below it others compute, and the thread waits for them. See docs/probes.md for what frameworks have.
static const double least_of_thread = 0.5;

// Of one step of one rank, or of all settled ones.
struct sums { double waited_s, step_s, process_s, thread_s; int64_t waits, calls; int steps; bool on_device; };

static struct sums sums_of(const struct probe_case *c, int step)
{
    struct sums s = {0};
    for (int i = 0; i < c->phase_count; i++) {
        const struct probe_phase *p = &c->phases[i];
        if (p->step != step || !probe_of_step(p->name))
            continue;
        s.steps |= strcmp(p->name, "step") == 0;
        s.waited_s += p->wait_s;
        s.step_s += p->end_s - p->begin_s;
        s.process_s += p->process_s;
        s.thread_s += p->thread_s;
        s.waits += p->waits;
        s.on_device |= p->on_device;
        for (int t = 0; t < p->traffic_count; t++)
            s.calls += p->traffic[t].kind == PROBE_COLLECTIVE || p->traffic[t].kind == PROBE_POINT ? p->traffic[t].calls : 0;
    }
    return s;
}

static void add(struct sums *all, const struct sums *s)
{
    all->waited_s += s->waited_s;
    all->step_s += s->step_s;
    all->process_s += s->process_s;
    all->thread_s += s->thread_s;
    all->waits += s->waits;
    all->calls += s->calls;
    all->steps += s->steps;
    all->on_device |= s->on_device;
}

static int last_step(const struct probe_case *c)
{
    int last = -1;
    for (int i = 0; i < c->phase_count; i++)
        if (strcmp(c->phases[i].name, "step") == 0 && c->phases[i].step > last)
            last = c->phases[i].step;
    return last;
}

static bool unseen(char why[256], const char *format, int a, double b)
{
    snprintf(why, 256, format, a, b);
    return false;
}

static bool are_usable(const struct probe_case *by_rank, int ranks, char why[256])
{
    for (int r = 0; r < ranks; r++) {
        if (by_rank[r].lost > 0)
            return unseen(why, "rank %d: records were lost for want of room", r, 0);
        if (!(by_rank[r].probes & (wait_bit | mpi_bit)))
            return unseen(why, "rank %d: neither the wait nor the mpi probe was loaded", r, 0);
    }
    return true;
}

// Whether what was seen of a rank in the settled steps are waits for communication.
static bool is_told(const struct probe_case *c, const struct sums *s, char why[256])
{
    if (s->on_device)
        return unseen(why, "rank %d: communication runs on a device, where no thread waits for it", c->rank, 0);
    if (!(c->probes & wait_bit) && s->calls == 0)
        return unseen(why, "rank %d: no call of MPI in a step, and the wait probe was not loaded", c->rank, 0);
    if (s->waits == 0)
        return unseen(why, "rank %d: no wait in any step: how it waits is not seen", c->rank, 0);
    if (s->process_s <= 0)
        return unseen(why, "rank %d: no processor time was noted in its steps, which are too short to tell who computes", c->rank, 0);
    if (s->thread_s < least_of_thread * s->process_s)
        return unseen(why, "rank %d: the thread that sets the marks has %.0f %% of the processor time: it waits for threads that compute", c->rank,
                      100 * s->thread_s / s->process_s);
    return true;
}

bool exposed_of(const struct probe_case *by_rank, int ranks, struct exposed *out, char why[256])
{
    *out = (struct exposed){0};
    if (ranks < 2)
        return unseen(why, "%d rank communicates with none", ranks, 0);
    if (!are_usable(by_rank, ranks, why))
        return false;
    int count = last_step(&by_rank[0]) + 1 - EXPOSED_SETTLED;
    if (count < STATISTICS_LEAST)
        return unseen(why, "%d steps after the first two, expected 6 or more", count > 0 ? count : 0, 0);
    double *values[3];
    struct sums *totals = memory_zeros((size_t)ranks, sizeof *totals);
    for (int k = 0; k < 3; k++)
        values[k] = memory_zeros((size_t)count, sizeof **values);
    for (int i = 0; i < count; i++) {
        struct sums step = {0};
        for (int r = 0; r < ranks; r++) {
            struct sums own = sums_of(&by_rank[r], i + EXPOSED_SETTLED);
            add(&step, &own);
            add(&totals[r], &own);
        }
        values[0][i] = step.waited_s / ranks, values[1][i] = step.step_s / ranks;
        values[2][i] = step.step_s > 0 ? step.waited_s / step.step_s : 0;
    }
    bool told = true;
    for (int r = 0; r < ranks && told; r++)
        told = totals[r].steps == count ? is_told(&by_rank[r], &totals[r], why) : unseen(why, "rank %d did not mark every step", r, 0);
    if (told)
        *out = (struct exposed){count, statistics_median(count, values[0]), statistics_median(count, values[1]), statistics_median(count, values[2]),
                                by_rank[0].probes & (wait_bit | mpi_bit)};
    for (int k = 0; k < 3; k++)
        free(values[k]);
    free(totals);
    return told;
}
