// Starts, followed to their ends. See run.h.
#include "harness/net/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/net/samples.h"
#include "harness/protocol/memory.h"

static const double PATIENCE_S = 120, GRACE_S = 2, LOOK_S = 0.05, START_S = 1.5, LEAST_S = 0.5;
enum { TAIL = 600 };

struct running { const struct net_settings *settings; const struct net_plan *plan; struct net_samples *samples; int start; double begun, told; };

static void tell(struct running *r, const char *folder, bool last)
{
    const struct net_settings *s = r->settings;
    double now = launch_now();
    bool terminal = s->progress != NULL && isatty(fileno(s->progress));
    if (s->progress == NULL || (!last && (!terminal || now - r->told < 0.5)))
        return;
    r->told = now;
    int seen = net_samples_points(folder, r->plan->count);
    fprintf(s->progress, "%sstart %d of %d: %d of %d points, %.0f of %.0f s%s", terminal ? "\r\x1b[K" : "", r->start + 1, s->starts, seen, r->plan->count,
            now - r->begun, s->seconds, terminal ? "" : "\n");
    fflush(s->progress);
}

static void log_end(const char *folder, const char *name, char out[TAIL])
{
    char *path = memory_format("%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    free(path);
    out[0] = 0;
    if (file == NULL)
        return;
    if (fseek(file, 1 - TAIL, SEEK_END) != 0)
        rewind(file);
    size_t n = fread(out, 1, TAIL - 1, file);
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
        n--;
    out[n] = 0;
    fclose(file);
    for (char *c = out; *c != 0; c++)
        if (*c == '\n')
            *c = ' ';
}

// What the first rank that failed said, else the launcher.
static bool blame(const struct launch *l, int start, const char *why, struct error *error)
{
    char name[32] = "launcher.log", said[TAIL], end[128] = "";
    for (int r = 0; r < l->ranks; r++)
        if (l->ends[r].ended && (l->ends[r].status != 0 || l->ends[r].signal != 0)) {
            snprintf(name, sizeof name, "rank%d.log", r);
            snprintf(end, sizeof end, "rank %d: ", r);
            rank_end_text(&l->ends[r], end + strlen(end), sizeof end - strlen(end));
            break;
        }
    log_end(l->folder, name, said);
    if (said[0] == 0)
        log_end(l->folder, "launcher.log", said);
    return error_set(error, "start %d: %s%s%s%s%s", start + 1, why, end[0] != 0 ? "; " : "", end, said[0] != 0 ? "; it said: " : "", said);
}

static bool ended_well(const struct launch *l)
{
    for (int r = 0; r < l->ranks; r++)
        if (!l->ends[r].ended || l->ends[r].status != 0 || l->ends[r].signal != 0)
            return false;
    return true;
}

static bool follow(struct running *r, struct launch *l, double deadline_s, struct error *error)
{
    double until = launch_now() + deadline_s;
    for (launch_poll(l); !l->over && launch_now() < until && !interrupt_signal(); launch_poll(l)) {
        tell(r, l->folder, false);
        usleep((useconds_t)(1e6 * LOOK_S));
    }
    bool hung = !l->over && !interrupt_signal();
    launch_stop(l, GRACE_S);
    tell(r, l->folder, true);
    if (interrupt_signal())
        return error_set(error, "interrupted");
    if (hung)
        return blame(l, r->start, "not over within its deadline", error);
    return ended_well(l) || blame(l, r->start, "the workers failed", error);
}

static bool launch_once(struct running *r, const char *folder, double seconds, struct error *error)
{
    const struct net_settings *s = r->settings;
    const char *const command[] = {s->worker, NULL};
    const struct launch_plan plan = {.launcher = s->launcher, .program = s->program, .command = command, .folder = folder, .ranks = s->ranks, .place = s->place};
    struct launch l;
    bool ok = launch_start(&plan, &l, error);
    ok = ok && follow(r, &l, 2 * seconds + PATIENCE_S, error);
    launch_free(&l);
    return ok;
}

static bool start(struct running *r, double seconds, struct error *error)
{
    const struct net_settings *s = r->settings;
    const struct net_job job = {.seed = s->seed, .launch = r->start, .seconds = seconds, .narrow = s->narrow, .within = s->within, .drain = s->line_rate > 0,
                                .corrupt_rank = s->corrupt_rank, .corrupt_iteration = s->corrupt_iteration, .point_count = r->plan->count,
                                .points = r->plan->points};
    char *folder = memory_format("%s/start%d", s->scratch, r->start), *path = memory_format("%s/net.json", folder);
    bool ok = mkdir(folder, 0700) == 0 || error_set(error, "%s: %m", folder);
    ok = ok && net_job_write(&job, path, error);
    bool ran = ok && launch_once(r, folder, seconds, error);
    if (ok && !net_samples_take(r->samples, folder, r->start, error))
        ran = false;
    free(folder);
    free(path);
    return ran;
}

bool net_run(const struct net_settings *s, const struct net_plan *plan, struct error *error)
{
    struct net_samples samples;
    struct running r = {s, plan, &samples, 0, launch_now(), 0};
    bool ok = true;
    double overhead = START_S;
    net_samples_open(&samples, s, plan);
    for (; ok && r.start < s->starts; r.start++) {
        double begun = launch_now(), share = (s->seconds - (begun - r.begun)) / (s->starts - r.start) - overhead;
        share = fmax(share, LEAST_S);
        ok = start(&r, share, error);
        overhead = fmax(launch_now() - begun - share, 0);
    }
    if (s->progress != NULL && isatty(fileno(s->progress)))
        fputs("\r\x1b[K", s->progress);
    bool told = net_samples_finish(&samples, error);
    net_samples_close(&samples);
    return ok && told;
}
