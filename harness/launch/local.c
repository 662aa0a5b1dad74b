// The launcher `local`: one process per rank on this machine, with torchrun's environment; on a place each enters its host first.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/keeper.h"
#include "harness/launch/launchers.h"
#include "harness/launch/process.h"

int launcher_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = -1;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

const char *const *launcher_mpi_folders(const char *folder, struct launcher_mpi *out)
{
    char path[64];
    bool has = process_shared(path, sizeof path);
    snprintf(out->session, sizeof out->session, "OMPI_MCA_orte_tmpdir_base=%s", folder);
    snprintf(out->shared, sizeof out->shared, "OMPI_MCA_btl_vader_backing_directory=%s", path);
    out->pairs[0] = out->session;
    out->pairs[1] = has ? out->shared : NULL;
    out->pairs[2] = NULL;
    return out->pairs;
}

const char *launcher_master(const struct launch_plan *plan, char *pair, size_t size)
{
    const char *address = plan->place != NULL ? fabric_place_address(plan->place, 0) : NULL;
    snprintf(pair, size, "MASTER_ADDR=%s", address != NULL ? address : "127.0.0.1");
    return pair;
}

// Which of the ranks of its host a rank is, and of how many.
static void count_local(const struct launch_plan *plan, int rank, int *local, int *locals)
{
    *local = *locals = 0;
    for (int r = 0; r < plan->ranks; r++) {
        bool here = plan->place == NULL || fabric_place_host(plan->place, r, plan->ranks) == fabric_place_host(plan->place, rank, plan->ranks);
        *locals += here;
        *local += here && r < rank;
    }
}

char **launcher_environment(const struct launch_plan *plan, int rank, int port)
{
    char text[8][64], job[4200], master[64];
    struct launcher_mpi mpi;
    const char *pairs[8] = {0};
    int local, locals;
    count_local(plan, rank, &local, &locals);
    const struct { const char *name; int value; } numbers[] = {
        {"RANK", rank}, {"WORLD_SIZE", plan->ranks}, {"LOCAL_RANK", local}, {"LOCAL_WORLD_SIZE", locals}, {"MASTER_PORT", port},
    };
    for (int i = 0; i < 5; i++) {
        snprintf(text[i], sizeof text[i], "%s=%d", numbers[i].name, numbers[i].value);
        pairs[i] = text[i];
    }
    snprintf(job, sizeof job, "FSDPMARK_JOB=%s", plan->folder);
    pairs[5] = launcher_master(plan, master, sizeof master);
    pairs[6] = job;
    const char *const *of_host = plan->place != NULL ? fabric_place_environment(plan->place, fabric_place_host(plan->place, rank, plan->ranks)) : NULL;
    const char *const *lists[] = {of_host, plan->environment, pairs, launcher_mpi_folders(plan->folder, &mpi)};
    return environment_make(lists, 4);
}

static bool make_task(const struct launch_plan *plan, int rank, int port, struct keeper_task *task, struct error *error)
{
    const char *const *enter = plan->place != NULL ? fabric_place_enter(plan->place, fabric_place_host(plan->place, rank, plan->ranks)) : NULL;
    task->argv = argv_append(argv_append(NULL, enter), plan->command);
    task->envp = launcher_environment(plan, rank, port);
    task->folder = strdup(plan->folder);
    if (task->argv == NULL || task->envp == NULL || task->folder == NULL ||
        asprintf(&task->log, "%s/rank%d.log", plan->folder, rank) < 0 ||
        asprintf(&task->end, "%s/rank%d.end", plan->folder, rank) < 0)
        return error_set(error, "out of memory");
    return true;
}

bool launcher_local_start(const struct launch_plan *plan, struct launch *launch, struct error *error)
{
    int port = launcher_free_port();
    if (port < 0)
        return error_set(error, "no free port on 127.0.0.1: %s", strerror(errno));
    struct keeper_task *tasks = calloc((size_t)plan->ranks, sizeof *tasks);
    bool ok = tasks != NULL || error_set(error, "out of memory");
    for (int r = 0; ok && r < plan->ranks; r++)
        ok = make_task(plan, r, port, &tasks[r], error);
    ok = ok && keeper_start(tasks, plan->ranks, launch, error);
    for (int r = 0; tasks != NULL && r < plan->ranks; r++)
        keeper_task_free(&tasks[r]);
    free(tasks);
    return ok;
}
