// Claim: steps leave nothing behind: the live bytes do not grow over the steps.
// Source: every step needs what the one before it needed.
// How: the live bytes at the end of each optimizer step from the eleventh on (the first ones fill caches), of each five steps the least, for a unit that is freed late is
//     no leak; a line over the steps. Its slope is below 1/100 of the rank's share of the parameters a step: FAIL where the whole 95 % interval is above, PASS where
//     the slope is below and its interval ends below twice that, else BROKEN. Bookkeeping that fills up slowly is below it: measured with fully_shard over gloo, 1.5 KB
//     a step at first, and none after 260 steps.
// Catches: Z27
// Blind to: what fills up once; leaks below the resolution, which the message tells
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/memory_hold.h"
#include "harness/judge/program.h"
#include "suite/checks/check.h"

enum { WARM = 10, LEAST_STEPS = 30, TOGETHER = 5 };

static bool applies(const struct evidence *e) { return memory_applies(e) && program_count(e->c, VERB_STEP) >= LEAST_STEPS; }

// Live bytes after each step, the last phase of that name and number; returns how many.
static int after_steps(const struct probe_case *p, double *steps, double *bytes, int capacity)
{
    int count = 0;
    for (int i = 0; i < p->phase_count; i++) {
        const struct probe_phase *at = &p->phases[i];
        if (strcmp(at->name, "step") != 0 || at->step < WARM)
            continue;
        if (count > 0 && steps[count - 1] == at->step)
            count--;
        if (count >= capacity)
            break;
        steps[count] = at->step;
        bytes[count++] = (double)(at->heap.end + at->map.end + at->device.end);
    }
    return count;
}

// The least of each TOGETHER steps, in place; returns how many.
static int least_of_steps(int count, double *steps, double *bytes)
{
    int groups = count / TOGETHER;
    for (int i = 0; i < groups * TOGETHER; i++) {
        bool first = i % TOGETHER == 0;
        bytes[i / TOGETHER] = first ? bytes[i] : fmin(bytes[i / TOGETHER], bytes[i]);
        steps[i / TOGETHER] = first ? steps[i] : steps[i / TOGETHER];
    }
    return groups;
}

static void judge_rank(const struct evidence *e, struct finding *f, int rank, const struct slope *fit, double leak)
{
    double off = fabs(fit->slope);
    if (memory_told(off / leak, fit->slope_half / leak, 1, 2) == MEMORY_UNTOLD)
        finding_broken(f, "cannot tell: rank %d: live bytes change by %.4g +- %.2g a step (%s), a leak is %.3g. They scatter: run it again with less else on the machine",
                       rank, fit->slope, fit->slope_half, memory_probes(e), leak);
    else
        finding_compare(f, off, leak, "bytes/step", "Z27", "rank %d: live bytes change by %.4g +- %.2g a step, the least of each %d steps (%s; a leak from %.3g bytes a step on)",
                        rank, fit->slope, fit->slope_half, TOGETHER, memory_probes(e), leak);
}

static void judge(const struct evidence *e, struct finding *f)
{
    int expected = program_count(e->c, VERB_STEP) - WARM;
    if (!memory_usable(e, f))
        return;
    double *steps = calloc((size_t)expected, sizeof *steps), *bytes = calloc((size_t)expected, sizeof *bytes);
    double leak = memory_parameters(e->c) / e->c->sharding.shards * (double)dtype_size(e->c->precision.parameter) / 100;
    for (int r = 0; steps != NULL && bytes != NULL && r < e->world_size; r++) {
        struct slope fit;
        int count = after_steps(&e->probes[r], steps, bytes, expected);
        if (count < expected || !slope_fit(least_of_steps(count, steps, bytes), steps, bytes, &fit))
            finding_broken(f, "rank %d: %d of %d steps after the first %d were marked", r, count, expected, WARM);
        else
            judge_rank(e, f, r, &fit, leak);
    }
    free(steps);
    free(bytes);
}

const struct check check_memory_leak = {
    .name = "memory-leak", .number = 44, .claim = "d live / d step < 1/100 of the parameters", .source = "definition", .catches = "Z27",
    .blind = "what fills up once", .applies = applies, .judge = judge};
