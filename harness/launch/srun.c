// The launcher `srun`: Slurm starts `fsdpmark __rank` N times on the nodes of the job, and each becomes the worker of its rank.
//
// Options and why: --distribution=arbitrary with one node name a rank in a file, so that rank r of n is on node r * nodes / n as on any other
// fabric, where Slurm would fill the first node first; --overcommit since ranks may share a core; --overlap since a step of the allocation
// (an interactive shell) may hold its cores already; --cpu-bind=none since binding would put several ranks onto one core;
// --kill-on-bad-exit=0 and --wait=0 since the harness itself sees each rank's end and ends the others. Which MPI (SLURM_MPI_TYPE) is the
// fabric's word. srun ends its step when it is told to end.
// Source: srun(1), options, and "ARBITRARY" of --distribution with SLURM_HOSTFILE.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/keeper.h"
#include "harness/launch/launchers.h"

static char **srun_argv(const struct launch_plan *plan)
{
    char ranks[32];
    snprintf(ranks, sizeof ranks, "--ntasks=%d", plan->ranks);
    const char *const head[] = {
        "srun", ranks, "--distribution=arbitrary", "--overcommit", "--overlap", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0",
        "--input=none", "--export=ALL", plan->program, "__rank", plan->folder, NULL,
    };
    return argv_append(argv_append(NULL, head), plan->command);
}

// One node name a rank.
static bool write_hosts(const struct launch_plan *plan, const char *path, struct error *error)
{
    FILE *file = fopen(path, "we");
    for (int r = 0; file != NULL && r < plan->ranks; r++)
        fprintf(file, "%s\n", fabric_place_name(plan->place, fabric_place_host(plan->place, r, plan->ranks)));
    bool ok = file != NULL && !ferror(file);
    if (file != NULL)
        ok &= fclose(file) == 0;
    return ok || error_set(error, "%s: %s", path, strerror(errno));
}

bool launcher_srun_start(const struct launch_plan *plan, struct launch *launch, struct error *error)
{
    int port = launcher_free_port();
    char address[128], master[32], job[4200], hosts[4200];
    if (plan->place == NULL || fabric_place_fabric(plan->place)->kind != FABRIC_SLURM)
        return error_set(error, "launcher srun: found fabric %s, expected slurm", plan->place != NULL ? fabric_place_fabric(plan->place)->name : "(none)");
    snprintf(master, sizeof master, "MASTER_PORT=%d", port);
    snprintf(job, sizeof job, "FSDPMARK_JOB=%s", plan->folder);
    snprintf(hosts, sizeof hosts, "SLURM_HOSTFILE=%s/nodes", plan->folder);
    const char *const pairs[] = {launcher_master(plan, address, sizeof address), master, job, hosts, NULL};
    const char *const *lists[] = {fabric_place_environment(plan->place, 0), plan->environment, pairs};
    struct keeper_task task = {srun_argv(plan), environment_make(lists, 3), strdup(plan->folder), NULL, NULL, 0};
    bool ok = task.argv != NULL && task.envp != NULL && task.folder != NULL &&
              asprintf(&task.log, "%s/launcher.log", plan->folder) > 0 &&
              asprintf(&task.end, "%s/launcher.end", plan->folder) > 0;
    ok = ok ? port > 0 || error_set(error, "no free port on 127.0.0.1") : error_set(error, "out of memory");
    ok = ok && write_hosts(plan, strchr(hosts, '=') + 1, error) && keeper_start(&task, 1, launch, error);
    keeper_task_free(&task);
    return ok;
}
