// The harness's side of a start: begin it through its launcher, follow it, end it.
#include "harness/launch/launch.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/template.h"

const struct launcher *launcher_find(const char *name)
{
    for (const struct launcher *l = launchers; l->name != NULL; l++)
        if (strcmp(l->name, name) == 0)
            return l;
    return NULL;
}

const char *launcher_names(void)
{
    static char text[64];
    size_t used = 0;
    for (const struct launcher *l = launchers; l->name != NULL && used < sizeof text; l++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", l == launchers ? "" : l[1].name != NULL ? ", " : " or ", l->name);
    return text;
}

int launch_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

bool launch_start(const struct launch_plan *plan, struct launch *out, struct error *error)
{
    const struct launcher *launcher = launcher_find(plan->launcher);
    *out = (struct launch){.keeper = -1, .lifeline = -1, .ranks = plan->ranks, .over = true};
    if (launcher == NULL)
        return error_set(error, "launcher '%s': unknown, expected %s", plan->launcher, launcher_names());
    out->folder = strdup(plan->folder);
    out->ends = calloc((size_t)plan->ranks, sizeof *out->ends);
    if (out->folder == NULL || out->ends == NULL)
        return error_set(error, "out of memory");
    if (plan->place != NULL && !fabric_place_up(plan->place))
        return error_set(error, "the process that holds the fabric %s has ended", fabric_place_fabric(plan->place)->name);
    if (!launcher->start(plan, out, error))
        return false;
    out->over = false;
    return true;
}

static void read_end(const char *path, struct rank_end *e)
{
    char word[16];
    int number;
    double at;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fscanf(file, "%15s %d %lf", word, &number, &at) == 3) {
        e->ended = true;
        e->at_s = at;
        e->status = word[1] == 'x' && word[2] == 'i' ? number : -1;
        e->signal = word[0] == 's' ? number : 0;
        e->exec_errno = word[2] == 'e' ? number : 0;
    }
    fclose(file);
}

void launch_poll(struct launch *l)
{
    char path[4200];
    if (l->template != NULL)
        template_poll(l);
    else if (!l->over && (l->keeper < 0 || waitpid(l->keeper, NULL, WNOHANG) != 0))
        l->over = true;
    for (int r = 0; r < l->ranks; r++) {
        snprintf(path, sizeof path, "%s/rank%d.end", l->folder, r);
        if (!l->ends[r].ended)
            read_end(path, &l->ends[r]);
    }
    snprintf(path, sizeof path, "%s/template.end", l->folder);
    if (l->lost && !l->template_end.ended)
        read_end(path, &l->template_end);
}

void launch_stop(struct launch *l, double grace_s)
{
    static const double patience_s = 5;
    double tenths = grace_s * 10 < 255 ? grace_s * 10 : 255;
    unsigned char byte = (unsigned char)tenths;
    if (l->template != NULL && !l->over)
        template_stop(l, grace_s);
    if (l->lifeline >= 0 && !l->over) {
        ssize_t sent = write(l->lifeline, &byte, 1);
        (void)sent; // a keeper that is gone has nothing left to end
    }
    for (double until = launch_now() + grace_s + patience_s; !l->over; usleep(1000)) {
        launch_poll(l);
        // The kernel ends the ranks with their keeper (PR_SET_PDEATHSIG).
        if (!l->over && launch_now() > until)
            kill(l->keeper, SIGKILL);
    }
    launch_poll(l);
}

void launch_free(struct launch *l)
{
    if (!l->over)
        launch_stop(l, 0);
    if (l->lifeline >= 0)
        close(l->lifeline);
    free(l->folder);
    free(l->ends);
    *l = (struct launch){.keeper = -1, .lifeline = -1, .over = true};
}

const char *rank_end_text(const struct rank_end *e, char *buffer, size_t size)
{
    if (!e->ended)
        snprintf(buffer, size, "still running");
    else if (e->exec_errno != 0)
        snprintf(buffer, size, "cannot be executed: %s", strerror(e->exec_errno));
    else if (e->signal != 0)
        snprintf(buffer, size, "signal %d (%s)", e->signal, strsignal(e->signal));
    else
        snprintf(buffer, size, "exit status %d", e->status);
    return buffer;
}
