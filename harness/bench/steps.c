// What the records of one start say of its steps: durations, peak, bytes, energy. See bench.h.
//
// A step on a rank lasts as long as its phases of training: zero_grad, forward, backward, clip, step. What is observed between them is the
// harness's and left out. zero_grad counts with the step that follows.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench.h"
#include "harness/probes/counters.h"
#include "harness/protocol/memory.h"

static int last_step(const struct probe_case *c)
{
    int last = -1;
    for (int i = 0; i < c->phase_count; i++)
        if (strcmp(c->phases[i].name, "step") == 0 && c->phases[i].step > last)
            last = c->phases[i].step;
    return last;
}

static bool is_settled(const struct probe_phase *p) { return probe_trains(p->name) && p->step >= BENCH_WARM; }

int bench_timed(const struct fsdp_case *c)
{
    int steps = 0;
    for (int i = 0; i < c->program_length; i++) {
        if (c->program[i].verb == VERB_OBSERVE && (steps > 0 || (i > 0 && c->program[i - 1].verb != VERB_OBSERVE)))
            break;
        steps += c->program[i].verb == VERB_STEP;
    }
    return steps;
}

static void add_rank(const struct probe_case *c, int last, double *own)
{
    double pending = 0;
    for (int i = 0; i < c->phase_count; i++) {
        const struct probe_phase *p = &c->phases[i];
        double seconds = p->end_s - p->begin_s;
        if (!probe_trains(p->name) || p->step > last)
            continue;
        if (p->step < 0) { // zero_grad
            pending += seconds;
            continue;
        }
        own[p->step] += seconds + pending;
        pending = 0;
    }
}

int bench_steps(const struct probe_case *by_rank, int ranks, int steps, double **seconds, char why[BENCH_WHY])
{
    int seen = by_rank != NULL ? last_step(&by_rank[0]) + 1 : 0, last = steps - 1, count = steps - BENCH_WARM;
    *seconds = NULL;
    if (count < 1 || seen < steps)
        return snprintf(why, BENCH_WHY, "its marks show %d steps, expected %d, more than %d of them without observations", seen, steps, BENCH_WARM), 0;
    for (int r = 0; r < ranks; r++)
        if (by_rank[r].lost > 0 || last_step(&by_rank[r]) + 1 != seen)
            return snprintf(why, BENCH_WHY, "rank %d: %s", r, by_rank[r].lost > 0 ? "records were lost for want of room" : "its marks show another number of steps than rank 0's"), 0;
    double *own = memory_zeros((size_t)last + 1, sizeof *own), *slowest = memory_zeros((size_t)last + 1, sizeof *slowest);
    for (int r = 0; r < ranks; r++) {
        memset(own, 0, ((size_t)last + 1) * sizeof *own);
        add_rank(&by_rank[r], last, own);
        for (int k = 0; k <= last; k++)
            slowest[k] = fmax(slowest[k], own[k]);
    }
    memmove(slowest, slowest + BENCH_WARM, (size_t)count * sizeof *slowest);
    free(own);
    *seconds = slowest;
    return count;
}

static void unseen(struct bench_figure *f, const char *why)
{
    f->value = NAN;
    snprintf(f->why, sizeof f->why, "%s", why);
}

static bool usable(const struct probe_case *by_rank, int ranks, unsigned probes, struct bench_figure *f)
{
    if (by_rank == NULL)
        return unseen(f, "nothing was recorded"), false;
    for (int r = 0; r < ranks; r++) {
        if (by_rank[r].lost > 0)
            return unseen(f, "records were lost for want of room"), false;
        if (!(by_rank[r].probes & probes))
            return unseen(f, "the probe was not loaded"), false;
    }
    return true;
}

void bench_seen_peak(const struct probe_case *by_rank, int ranks, int steps, struct bench_figure *out)
{
    int64_t most = 0;
    if (!usable(by_rank, ranks, 1u << PROBE_HEAP, out))
        return;
    for (int r = 0; r < ranks; r++)
        if (!probe_memory_whole(&by_rank[r]))
            return unseen(out, "memory was held that no probe counts");
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < by_rank[r].phase_count; i++) {
            const struct probe_phase *p = &by_rank[r].phases[i];
            if (probe_trains(p->name) && p->step >= 0 && p->step < steps && p->heap.peak + p->device.peak > most)
                most = p->heap.peak + p->device.peak;
        }
    *out = (struct bench_figure){.value = (double)most};
    if (most == 0)
        unseen(out, "no allocation was seen");
}

void bench_seen_sent(const struct probe_case *by_rank, int ranks, struct bench_figure *out)
{
    double most = 0;
    if (!usable(by_rank, ranks, 1u << PROBE_MPI | 1u << PROBE_SOCKET, out))
        return;
    int steps = last_step(&by_rank[0]) + 1 - BENCH_WARM;
    if (steps < 1)
        return unseen(out, "no steps after the first two");
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < by_rank[r].phase_count; i++)
            if (is_settled(&by_rank[r].phases[i]) && by_rank[r].phases[i].unseen > 0) {
                snprintf(out->why, sizeof out->why, "rank %d: bytes of a call in %s are not counted", r, by_rank[r].phases[i].name);
                out->value = NAN;
                return;
            }
        int64_t mpi = probe_wire(&by_rank[r], PROBE_COLLECTIVE, NULL, BENCH_WARM).wire + probe_wire(&by_rank[r], PROBE_POINT, NULL, BENCH_WARM).wire;
        int64_t bytes = mpi > 0 ? mpi : probe_wire(&by_rank[r], PROBE_SEND, NULL, BENCH_WARM).bytes;
        most = fmax(most, (double)bytes / steps);
    }
    *out = (struct bench_figure){.value = most};
    if (most == 0 && ranks > 1)
        unseen(out, "neither a call of MPI nor a socket was seen to send");
}

// 0: a unit that is none of energy.
static double joules(const char *unit)
{
    static const struct { const char *name; double scale; } units[] = {{"J", 1}, {"mJ", 1e-3}, {"uJ", 1e-6}, {"nJ", 1e-9}, {"Joules", 1}, {"2^-32 Joules", 0x1p-32}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].scale;
    return 0;
}

void bench_seen_energy(const struct probe_case *by_rank, const char *events, const char *why, struct bench_figure *out)
{
    double sum = 0;
    int steps = by_rank != NULL ? last_step(&by_rank[0]) + 1 - BENCH_WARM : 0, counted = 0;
    if (events == NULL || events[0] == 0 || steps < 1)
        return unseen(out, events == NULL || events[0] == 0 ? why : "nothing was recorded");
    for (int i = 0; i < by_rank[0].phase_count; i++)
        for (int k = 0; is_settled(&by_rank[0].phases[i]) && k < by_rank[0].phases[i].counter_count; k++) {
            const struct probe_counter *c = &by_rank[0].phases[i].counters[k];
            double scale = joules(counters_unit(c->event));
            if (c->reason != 0 || c->scope != PROBE_OF_MACHINE || scale == 0)
                continue;
            sum += scale * (double)c->value;
            counted++;
        }
    *out = (struct bench_figure){.value = sum / steps};
    if (counted == 0)
        unseen(out, "PAPI counted none of its events of energy");
}
