// The launcher `mpirun`: Open MPI starts `fsdpmark __rank` N times, and that becomes the worker of its rank.
//
// Options and why: --oversubscribe since Open MPI counts cores, not ranks that may share one; --bind-to none since
// binding would put several ranks onto one core; self and vader (shared memory) as the only transports and lo as the only
// interface of its own control messages, so that nothing leaves the machine; vader copies through shared pages
// instead of CMA, which containers often forbid; ranks yield while they wait where there are more ranks than cores.
// plm=isolated: one machine, no remote shell looked for. On a place transports and hosts are those of its fabric, and mpirun itself runs
// on host 0.
// Source: mpirun(1) and ompi_info of Open MPI 4.1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/keeper.h"
#include "harness/launch/launchers.h"

static const char *const own_options[] = {
    "--mca", "plm", "isolated", "--mca", "pml", "ob1", "--mca", "btl", "self,vader",
    "--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "oob_tcp_if_include", "lo", NULL,
};

static char **mpirun_argv(const struct launch_plan *plan, char *const *environment)
{
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", plan->ranks);
    const char *const head[] = {
        "mpirun", "-np", ranks, "--oversubscribe", "--bind-to", "none",
        "--mca", "mpi_yield_when_idle", plan->ranks > launch_cores() ? "1" : "0",
        "--mca", "orte_abort_on_non_zero_status", "1", NULL,
    };
    const char *const tail[] = {plan->program, "__rank", plan->folder, NULL};
    char **of_place = plan->place != NULL ? fabric_place_mpirun(plan->place, plan->ranks) : NULL;
    char **argv = argv_append(argv_append(NULL, plan->place != NULL ? fabric_place_enter(plan->place, 0) : NULL), head);
    argv = argv_append(argv, of_place != NULL ? (const char *const *)of_place : own_options);
    environment_free(of_place);
    if (plan->place != NULL)
        argv = fabric_place_forward(plan->place, argv, environment);
    return argv_append(argv_append(argv, tail), plan->command);
}

bool launcher_mpirun_start(const struct launch_plan *plan, struct launch *launch, struct error *error)
{
    int port = launcher_free_port();
    char address[64], master[32], job[4200];
    struct launcher_mpi mpi;
    snprintf(master, sizeof master, "MASTER_PORT=%d", port);
    snprintf(job, sizeof job, "FSDPMARK_JOB=%s", plan->folder);
    const char *const pairs[] = {launcher_master(plan, address, sizeof address), master, job, NULL};
    const char *const *folders = launcher_mpi_folders(plan->folder, &mpi);
    // Other machines do not have this one's folder in shared memory.
    if (plan->place != NULL && fabric_place_fabric(plan->place)->kind == FABRIC_HOSTS)
        mpi.pairs[1] = NULL;
    const char *const *lists[] = {plan->place != NULL ? fabric_place_environment(plan->place, 0) : NULL, plan->environment, pairs, folders};
    char **environment = environment_make(lists, 4);
    struct keeper_task task = {environment != NULL ? mpirun_argv(plan, environment) : NULL, environment, strdup(plan->folder), NULL, NULL, 0};
    bool ok = task.argv != NULL && task.envp != NULL && task.folder != NULL &&
              asprintf(&task.log, "%s/launcher.log", plan->folder) > 0 &&
              asprintf(&task.end, "%s/launcher.end", plan->folder) > 0;
    ok = ok ? port > 0 || error_set(error, "no free port on 127.0.0.1") : error_set(error, "out of memory");
    ok = ok && keeper_start(&task, 1, launch, error);
    keeper_task_free(&task);
    return ok;
}
