// See turns.h.
#include "harness/advise/turns.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"
#include "harness/run/scratch.h"

static const double GRACE_S = 2, LOOK_S = 0.05;
enum { COMMAND = TURNS_MOST + 4, LINE = 512 };

static bool take_gather(json_t *j, struct turns_line *line)
{
    double bytes, seconds;
    int i = 0;
    if (json_unpack(j, "{s:F, s:F}", "gather_bytes", &bytes, "seconds", &seconds) != 0)
        return false;
    while (i < line->count && line->gathers[i].bytes != bytes)
        i++;
    if (i == TURNS_GATHERS || line->gathers[i].count == TURNS_ROUNDS)
        return false;
    line->count = i == line->count ? i + 1 : line->count;
    line->gathers[i].bytes = bytes;
    line->gathers[i].seconds[line->gathers[i].count++] = seconds;
    return true;
}

static bool take_step(json_t *j, const struct turns_plan *p, struct turns_samples *out)
{
    int at, free_, round;
    double seconds, update;
    bool ok = json_unpack(j, "{s:i, s:b, s:i, s:F, s:F}", "case", &at, "free", &free_, "round", &round, "seconds", &seconds, "update_seconds", &update) == 0 &&
              at >= 0 && at < p->count && round >= 0 && round < p->rounds;
    if (ok) {
        struct turns_samples *s = &out[at];
        *(free_ ? &s->free_s[round] : &s->seconds[round]) = seconds;
        if (free_)
            s->free_update_s[round] = update;
        s->count += !free_;
    }
    return ok;
}

enum taken { NOTHING, STEP, GATHER };
static enum taken take_line(const char *text, const struct turns_plan *p, struct turns_samples *out, struct turns_line *line)
{
    json_t *j = text[0] == '{' ? json_loads(text, 0, NULL) : NULL;
    enum taken what = j == NULL ? NOTHING : take_step(j, p, out) ? STEP : take_gather(j, line) ? GATHER : NOTHING;
    json_decref(j);
    return what;
}

// The last line that is no sample tells what went wrong.
static bool read_log(const struct turns_plan *p, const char *folder, struct turns_samples *out, struct turns_line *line_out, char said[LINE])
{
    static const char *const logs[] = {"rank0.log", "launcher.log"};
    int steps = 0;
    said[0] = 0;
    for (size_t i = 0; i < 2; i++) {
        char *path = memory_format("%s/%s", folder, logs[i]), line[LINE];
        FILE *log = fopen(path, "re");
        while (log != NULL && fgets(line, sizeof line, log) != NULL) {
            enum taken what = take_line(line, p, out, line_out);
            steps += what == STEP;
            if (what == NOTHING && (said[0] == 0 || i == 0))
                snprintf(said, LINE, "%.*s", (int)strcspn(line, "\n"), line);
        }
        if (log != NULL)
            fclose(log);
        free(path);
    }
    return steps == 2 * p->count * p->rounds;
}

static bool follow(struct launch *l, double deadline_s, struct error *error)
{
    double until = launch_now() + deadline_s;
    for (launch_poll(l); !l->over && launch_now() < until && !interrupt_signal(); launch_poll(l))
        usleep((useconds_t)(1e6 * LOOK_S));
    bool over = l->over;
    launch_stop(l, GRACE_S);
    return over || error_set(error, interrupt_signal() ? "interrupted" : "the steps were not over within %g s", deadline_s);
}

static bool start(const struct turns_plan *p, const char *folder, const char *const *command, struct turns_samples *out, struct turns_line *line, struct error *error)
{
    static const char *const environment[] = {"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", NULL};
    const struct launch_plan plan = {.launcher = "mpirun", .program = p->program, .command = command, .environment = environment, .folder = folder, .ranks = p->ranks, .place = p->place};
    struct launch l;
    char said[LINE];
    bool ok = launch_start(&plan, &l, error);
    ok = ok && follow(&l, p->deadline_s, error);
    launch_free(&l);
    return ok && (read_log(p, folder, out, line, said) || error_set(error, "the reference did not time all steps%s%s", said[0] ? "; it said: " : "", said));
}

bool turns_measure(const struct turns_plan *p, struct turns_samples *out, struct turns_line *line, struct error *error)
{
    char *folder = memory_format("%s/turns", p->scratch), rounds[16], *paths[TURNS_MOST] = {0};
    const char *command[COMMAND] = {p->worker, "--turns", rounds};
    bool ok = mkdir(folder, 0700) == 0 || error_set(error, "%s: %m", folder);
    snprintf(rounds, sizeof rounds, "%d", p->rounds);
    memset(out, 0, (size_t)p->count * sizeof *out);
    memset(line, 0, sizeof *line);
    for (int i = 0; ok && i < p->count; i++) {
        command[3 + i] = paths[i] = memory_format("%s/case%d.json", folder, i);
        ok = case_write(&p->cases[i], paths[i], error);
    }
    ok = ok && start(p, folder, command, out, line, error);
    for (int i = 0; i < p->count; i++)
        free(paths[i]);
    scratch_remove(folder);
    free(folder);
    return ok;
}
