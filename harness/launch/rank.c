// `fsdpmark __rank FOLDER COMMAND...`: what a launcher that numbers its processes itself starts in place of a worker.
//
// It stays as the worker's parent for one reason: mpirun tells only of the first rank that failed, so each rank's
// own end is written by this parent. It ignores SIGTERM, which mpirun sends to the whole process group, to be there when
// the worker dies of it.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/launch/keeper.h"

// Names of Open MPI beside torchrun's.
static const char *const names[][2] = {
    {"OMPI_COMM_WORLD_RANK", "RANK"},
    {"OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"},
};

extern char **environ;
static volatile sig_atomic_t worker;

// The worker leads a group of its own, which mpirun does not reach.
static void pass_on(int number)
{
    if (worker > 0)
        kill(-worker, number);
}

int launch_rank_main(int argc, char **argv)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 3 || getppid() != parent || parent == 1) {
        fprintf(stderr, "__rank: found %d arguments, expected FOLDER COMMAND...; for the use of launchers only\n", argc - 1);
        return 2;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i][0]);
        if (value == NULL || setenv(names[i][1], value, 1) != 0) {
            fprintf(stderr, "__rank: %s is not set, expected mpirun to set it\n", names[i][0]);
            return 2;
        }
    }
    signal(SIGTERM, pass_on);
    signal(SIGINT, pass_on);
    struct keeper_task task = {.argv = argv + 2, .envp = environ, .folder = argv[1]};
    if (asprintf(&task.log, "%s/rank%s.log", argv[1], getenv("RANK")) < 0 ||
        asprintf(&task.end, "%s/rank%s.end", argv[1], getenv("RANK")) < 0)
        return 2;
    int status = 0;
    worker = (sig_atomic_t)keeper_spawn(&task);
    if (worker < 0)
        return 2;
    while (waitpid((pid_t)worker, &status, 0) < 0 && errno == EINTR)
        continue;
    keeper_write_end(task.end, status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
