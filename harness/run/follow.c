// Waits for a case to end, for a rank to fail, or for a deadline.
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/run/engine.h"

// After one rank's failure the others get this long to report their own errors [s].
static const double GRACE_S = 1.0;
// A case that goes on writing events may take this many deadlines in all.
static const double WHOLE_CASE = 10;

static bool rank_failed(const struct service *s)
{
    for (int r = 0; r < s->world_size; r++) {
        const struct rank_end *e = &s->launch.ends[r];
        const struct rank_watch *w = &s->watch.rank[r];
        if (w->ended && w->end == EVENT_ERROR)
            return true;
        // Status 0 is an early end only where this case has not ended; any other end concerns all.
        if (e->ended && (e->status != 0 || !w->ended))
            return true;
    }
    return s->launch.over;
}

static bool all_gone(const struct service *s)
{
    if (s->launch.over)
        return true;
    for (int r = 0; r < s->world_size; r++)
        if (!s->launch.ends[r].ended)
            return false;
    return true;
}

static bool any_error(const struct watch *w)
{
    for (int r = 0; r < w->ranks; r++)
        if (w->rank[r].ended && w->rank[r].end == EVENT_ERROR)
            return true;
    return false;
}

static bool is_late(const struct service *s, double now_s, double progress_s)
{
    const struct run_settings *o = s->engine->settings;
    bool starting = s->at == 0 && watch_lines(&s->watch) == 0;
    double limit = starting ? o->start_deadline_s : o->case_deadline_s;
    return now_s - progress_s > limit || now_s - s->began_s > limit * (starting ? 1 : WHOLE_CASE);
}

static enum ending bad_ending(const struct service *s, enum ending loud, enum ending silent)
{
    return s->at == 0 && watch_lines(&s->watch) == 0 ? silent : loud;
}

enum ending follow_case(struct service *s)
{
    double progress_s = launch_now(), failed_s = INFINITY;
    s->began_s = progress_s;
    s->first_s = NAN;
    for (unsigned idle_us = 200;; usleep(idle_us)) {
        // In this order: what a rank wrote before it ended is seen before its end is acted upon.
        launch_poll(&s->launch);
        bool moved = watch_poll(&s->watch);
        double now_s = launch_now();
        if (moved) {
            progress_s = now_s;
            s->first_s = isnan(s->first_s) ? now_s : s->first_s;
            s->engine->ever_answered = true;
        }
        s->ended_s = now_s;
        idle_us = moved ? 200 : idle_us < 2000 ? idle_us + 100 : 2000;
        if (watch_ended(&s->watch) == s->world_size)
            return any_error(&s->watch) ? ENDING_FAILED : ENDING_ENDED;
        if (rank_failed(s) && failed_s > now_s)
            failed_s = now_s;
        if (now_s > failed_s + GRACE_S || all_gone(s))
            return bad_ending(s, ENDING_FAILED, ENDING_SILENT);
        if (interrupt_signal())
            return ENDING_INTERRUPTED;
        if (is_late(s, now_s, progress_s))
            return bad_ending(s, ENDING_HANG, ENDING_SILENT_HANG);
    }
}

bool follow_end(struct service *s, struct finding *finding)
{
    char text[128];
    double until_s = launch_now() + s->engine->settings->case_deadline_s;
    while (!s->launch.over && launch_now() < until_s && !interrupt_signal()) {
        launch_poll(&s->launch);
        usleep(500);
    }
    for (int r = 0; r < s->world_size; r++) {
        const struct rank_end *e = &s->launch.ends[r];
        if (e->ended && e->status == 0)
            continue;
        if (interrupt_signal())
            return true;
        snprintf(finding->ranks, sizeof finding->ranks, "%d", r);
        finding_fail(finding, e->ended ? "" : "Z29",
                     e->ended ? "rank %d ended with %s after its last case was done, expected exit status 0"
                              : "rank %d was %s after its last case was done, and was ended at the deadline",
                     r, rank_end_text(e, text, sizeof text));
        return false;
    }
    return true;
}
