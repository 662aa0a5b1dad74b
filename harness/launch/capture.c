// Runs a short command of a manifest (is it installed, which versions) under a keeper and returns what it printed.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/launch/keeper.h"

static void read_some(const char *path, char *output, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t n = file == NULL ? 0 : fread(output, 1, size - 1, file);
    output[n] = 0;
    if (file != NULL)
        fclose(file);
}

static bool await(struct launch *l, double deadline_s, const char *name, struct error *error)
{
    double until = launch_now() + deadline_s;
    for (launch_poll(l); !l->ends[0].ended && !l->over && launch_now() < until && !interrupt_signal(); launch_poll(l))
        usleep(2000);
    bool in_time = l->ends[0].ended;
    // What the command left running in the background is of no interest.
    launch_stop(l, 0.2);
    if (!in_time && interrupt_signal())
        return error_set(error, "interrupted");
    if (!in_time)
        return error_set(error, "'%s' did not end within %g s", name, deadline_s);
    if (l->ends[0].exec_errno != 0)
        return error_set(error, "'%s' cannot be executed: %s", name, strerror(l->ends[0].exec_errno));
    return true;
}

bool launch_capture(const char *const *command, const char *const *environment, const char *folder, double deadline_s,
                    char *output, size_t size, int *status, struct error *error)
{
    char work[4000];
    const char *temporary = getenv("TMPDIR");
    // The pid lets a later run know the folder of a killed one (harness/run/scratch.c).
    snprintf(work, sizeof work, "%s/fsdpmark.capture.%ld.XXXXXX", temporary != NULL && temporary[0] == '/' ? temporary : "/tmp", (long)getpid());
    const char *const *lists[] = {environment};
    if (mkdtemp(work) == NULL)
        return error_set(error, "%s: %s", work, strerror(errno));
    struct keeper_task task = {argv_append(NULL, command), environment_make(lists, 1), strdup(folder), NULL, NULL, 0};
    struct rank_end end = {0};
    struct launch l = {.keeper = -1, .lifeline = -1, .ranks = 1, .folder = strdup(work), .ends = calloc(1, sizeof end)};
    bool ok = asprintf(&task.log, "%s/rank0.log", work) > 0 && asprintf(&task.end, "%s/rank0.end", work) > 0 &&
              task.argv != NULL && task.envp != NULL && task.folder != NULL && l.folder != NULL && l.ends != NULL;
    ok = ok || error_set(error, "out of memory");
    ok = ok && keeper_start(&task, 1, &l, error) && await(&l, deadline_s, command[0], error);
    if (ok) {
        read_some(task.log, output, size);
        *status = l.ends[0].signal != 0 ? 128 + l.ends[0].signal : l.ends[0].status;
    }
    l.over = l.over || l.keeper < 0;
    launch_free(&l);
    unlink(task.log);
    unlink(task.end);
    rmdir(work);
    keeper_task_free(&task);
    return ok;
}
