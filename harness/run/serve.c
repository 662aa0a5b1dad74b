// Serves the cases of one world size: as few starts of the workers as possible, as many as needed.
//
// A start serves cases until the end, or until one of them goes wrong; that one gets its verdict and the next
// start serves the rest. Each start either decides a case or counts as a failure to start, and two of those in a row
// decide, so the loop ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/interrupt.h"
#include "harness/protocol/memory.h"
#include "harness/run/engine.h"
#include "harness/run/scratch.h"

// Grace of a start that has gone wrong, and of one whose cases are all decided [s].
static const double STOP_GRACE_S = 0.5;

const char **run_argv(const struct string_list *l)
{
    const char **out = memory_zeros((size_t)l->count + 1, sizeof *out);
    for (int i = 0; i < l->count; i++)
        out[i] = l->items[i];
    return out;
}

static void tell(const struct engine *e, const char *line)
{
    if (e->settings->tell != NULL)
        e->settings->tell(e->settings->context, line);
}

static bool start(struct service *s, struct error *error)
{
    struct engine *e = s->engine;
    double began_s = launch_now();
    if (!job_folder_make(s, error))
        return false;
    e->counts->own_s += launch_now() - began_s;
    const char **command = run_argv(&e->implementation->command), **environment = probing_environment(e, error);
    if (environment == NULL) {
        free(command);
        return false;
    }
    struct launch_plan plan = {
        .launcher = e->launcher, .program = e->settings->program, .folder = s->folder, .ranks = s->world_size,
        .command = command, .environment = environment, .template = e->settings->template, .place = e->settings->place,
    };
    s->started_s = launch_now();
    bool ok = launch_start(&plan, &s->launch, error);
    free(command);
    probing_environment_free(e, environment);
    return ok;
}

static void judge_position(struct service *s)
{
    struct finding end = {0};
    bool last = s->at == s->count - 1;
    bool well = !last || follow_end(s, &end);
    if (!well)
        launch_stop(&s->launch, STOP_GRACE_S);
    // Without the ranks' own ends the last case is not done.
    if (last && (interrupt_signal() || s->launch.lost))
        return;
    verdict_judge(s, s->at, well ? NULL : &end);
    if (s->engine->plan->cases[s->index[s->at]].is_saver)
        job_keep_answers(s, s->at);
    char *folder = job_case_folder(s, s->at);
    if (!s->engine->settings->keep)
        scratch_remove(folder);
    free(folder);
}

static void count_start(const struct service *s)
{
    struct run_counts *c = s->engine->counts;
    double seconds = s->first_s - s->started_s;
    bool first = s->launch.template != NULL ? s->launch.fresh : !s->engine->started;
    s->engine->started = true;
    c->first_starts += first;
    c->later_starts += !first;
    *(first ? &c->first_start_s : &c->later_start_s) += seconds;
}

// Follows the cases of a running start; ENDING_ENDED where all were judged.
static enum ending follow_cases(struct service *s)
{
    for (s->at = 0; s->at < s->count && !s->engine->stopped; s->at++) {
        char *folder = job_case_folder(s, s->at);
        bool ok = watch_open(&s->watch, folder, s->world_size);
        free(folder);
        enum ending ending = ok ? follow_case(s) : ENDING_INTERRUPTED;
        if (ending != ENDING_ENDED)
            return ending;
        watch_close(&s->watch);
        if (s->at == 0)
            count_start(s);
        judge_position(s);
        if (interrupt_signal())
            return ENDING_INTERRUPTED;
    }
    return ENDING_ENDED;
}

// What a start means whose template was lost under way: it says nothing of the case, unless it happens again.
static void lost(struct service *s, int *failures)
{
    struct finding finding = {0};
    int position = s->at < s->count ? s->at : s->count - 1;
    // Cases that were judged show that others are to blame than the failure before this one.
    *failures = position > 0 ? 1 : *failures + 1;
    if (*failures < 2) {
        tell(s->engine, "the process that the workers are forked from has ended; it is started once more");
        return;
    }
    blame_template(s, &finding);
    verdict_give_answer(s, position, &finding);
    *failures = 0;
}

// What a start without a single event means; *failures counts them in a row.
static void silence(struct service *s, enum ending ending, int *failures)
{
    struct finding finding = {0};
    struct engine *e = s->engine;
    blame_silence(s, ending, &finding);
    // A start that hangs costs its whole deadline: it is not tried again with the same case.
    *failures += ending == ENDING_SILENT_HANG ? 2 : 1;
    if (*failures < 2) {
        tell(e, "the workers ended before their first event; they are started once more");
        return;
    }
    // Where other starts have worked, the case is to blame; where none ever did, the rest would fare no better.
    int last = e->ever_answered ? 1 : s->count;
    for (int i = 0; i < last && !e->stopped; i++)
        verdict_give_answer(s, i, &finding);
    *failures = 0;
}

static bool place_is_lost(const struct engine *e) { return e->settings->place != NULL && !fabric_place_up(e->settings->place); }

// Without the network that was promised to them the workers have shown nothing.
static void lose_place(struct service *s)
{
    struct finding finding = {0};
    int position = s->at < s->count ? s->at : s->count - 1;
    finding_broken(&finding, "the process that holds the fabric %s has ended", fabric_place_fabric(s->engine->settings->place)->name);
    verdict_give_answer(s, position, &finding);
}

static void one_start(struct service *s, int *failures)
{
    struct engine *e = s->engine;
    struct error error = {0};
    e->counts->starts++;
    if (!start(s, &error)) {
        struct finding finding = {0};
        finding_broken(&finding, "the workers could not be started: %s", error.text);
        for (int i = 0; i < s->count && !e->stopped; i++)
            verdict_give(e, s->index[i], "answer", &finding, e->counts->starts, NULL);
        launch_free(&s->launch);
        return;
    }
    enum ending ending = follow_cases(s);
    bool is_lost = s->launch.lost; // and not by the stop that follows
    launch_stop(&s->launch, ending == ENDING_INTERRUPTED ? 1.0 : STOP_GRACE_S);
    if (s->watch.rank != NULL)
        watch_poll(&s->watch);
    if (ending != ENDING_ENDED && ending != ENDING_INTERRUPTED && place_is_lost(e)) {
        lose_place(s);
    } else if (is_lost && ending != ENDING_INTERRUPTED) {
        lost(s, failures);
    } else if (ending == ENDING_SILENT || ending == ENDING_SILENT_HANG) {
        silence(s, ending, failures);
    } else if (ending == ENDING_FAILED || ending == ENDING_HANG) {
        struct finding finding = {0};
        int position = blame_case(s, ending, &finding);
        verdict_give_answer(s, position, &finding);
        *failures = 0;
    }
    watch_close(&s->watch);
    launch_free(&s->launch);
}

// Memory of a case is compared with that of others: what a process fills once, in its first case, must be in all or in none.
static bool alone(const struct engine *e) { return e->plan->probes & (1u << PROBE_HEAP | 1u << PROBE_CUDA); }

void serve_group(struct engine *e, const int *indices, int count)
{
    int failures = 0;
    int *left = calloc((size_t)count, sizeof *left);
    while (left != NULL && !e->stopped) {
        struct service s = {.engine = e, .index = left, .world_size = e->plan->cases[indices[0]].c.world_size,
                            .launch = {.keeper = -1, .lifeline = -1, .over = true}};
        for (int i = 0; i < count; i++)
            if (!e->state[indices[i]].over && (s.count == 0 || !alone(e)))
                left[s.count++] = indices[i];
        if (s.count == 0 || interrupt_signal() ||
            asprintf(&s.folder, "%s/%s.%d", e->settings->scratch, e->implementation->name, e->counts->starts + 1) < 0)
            break;
        one_start(&s, &failures);
        if (!e->settings->keep)
            scratch_remove(s.folder);
        free(s.folder);
    }
    free(left);
}
