// `fsdpmark __rank FOLDER COMMAND...`: what a launcher that numbers its processes itself starts in place of a worker.
//
// It stays as the worker's parent for two reasons. mpirun tells only of the first rank that failed, so each rank's own end is written by this
// parent, which ignores SIGTERM, sent by mpirun to the whole process group, to be there when the worker dies of it. And on another machine a
// worker would outlive a launcher that was killed, so this parent looks whether its job is still there and ends the worker where it is not.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/launch/interface.h"
#include "harness/launch/keeper.h"

// Names of Open MPI and of Slurm beside torchrun's. A rank of mpirun in a job of Slurm has both, and Open MPI's count.
static const struct { const char *open_mpi, *slurm, *torchrun; } names[] = {
    {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"},
    {"OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", NULL, "LOCAL_WORLD_SIZE"},
};

extern char **environ;
static volatile sig_atomic_t worker;

// The worker leads a group of its own, which mpirun does not reach.
static void pass_on(int number)
{
    if (worker > 0)
        kill(-worker, number);
}

// "2(x3),1" tells of four nodes. The tasks of the node of a number, 0 where the text is none.
static int tasks_of(const char *text, int node)
{
    for (int tasks, repeats, used; sscanf(text, "%d%n", &tasks, &used) == 1; text += *text == ',') {
        text += used;
        repeats = 1;
        if (sscanf(text, "(x%d)%n", &repeats, &used) == 1)
            text = strchr(text, ')') + 1;
        if ((node -= repeats) < 0)
            return tasks;
    }
    return 0;
}

// Slurm has no variable for it.
static const char *slurm_local_size(char *text, size_t size)
{
    const char *list = getenv("SLURM_STEP_TASKS_PER_NODE"), *node = getenv("SLURM_NODEID");
    int tasks = list != NULL && node != NULL ? tasks_of(list, atoi(node)) : 0;
    snprintf(text, size, "%d", tasks);
    return tasks > 0 ? text : NULL;
}

static bool take_numbers(void)
{
    char text[16];
    bool is_slurm = getenv(names[0].open_mpi) == NULL && getenv("SLURM_PROCID") != NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = !is_slurm ? getenv(names[i].open_mpi) : names[i].slurm != NULL ? getenv(names[i].slurm) : slurm_local_size(text, sizeof text);
        if (value == NULL || setenv(names[i].torchrun, value, 1) != 0) {
            fprintf(stderr, "__rank: %s is not set, expected %s to set it\n", is_slurm ? names[i].slurm != NULL ? names[i].slurm : "SLURM_STEP_TASKS_PER_NODE" : names[i].open_mpi,
                    is_slurm ? "srun" : "mpirun");
            return false;
        }
    }
    return true;
}

// Where none is named, the one that reaches rank 0.
static void name_interfaces(void)
{
    static const char *const variables[] = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"};
    const char *master = getenv("MASTER_ADDR");
    char name[32];
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value == NULL || value[0])
            continue;
        if (master != NULL && interface_to(master, name, sizeof name))
            setenv(variables[i], name, 1);
        else
            unsetenv(variables[i]);
    }
}

// The keeper writes the launcher's end when it is over, and the harness removes the folder.
static bool job_is_over(const char *folder)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/launcher.end", folder);
    return access(path, F_OK) == 0 || access(folder, F_OK) != 0;
}

static int await_worker(const char *folder)
{
    int status = 0;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (pid_t done; (done = waitpid((pid_t)worker, &status, WNOHANG)) != worker && (done == 0 || errno == EINTR);)
        if (sigtimedwait(&child, NULL, &(struct timespec){1, 0}) < 0 && errno == EAGAIN && job_is_over(folder))
            kill(-worker, SIGKILL);
    return status;
}

int launch_rank_main(int argc, char **argv)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 3 || getppid() != parent || parent == 1) {
        fprintf(stderr, "__rank: found %d arguments, expected FOLDER COMMAND...; for the use of launchers only\n", argc - 1);
        return 2;
    }
    if (!take_numbers())
        return 2;
    if (access(argv[1], W_OK) != 0) {
        char host[64] = "";
        gethostname(host, sizeof host - 1);
        fprintf(stderr, "%s: cannot write the job folder %s: %s; expected TMPDIR to name a folder that all machines share\n", host, argv[1], strerror(errno));
        return 2;
    }
    name_interfaces();
    signal(SIGTERM, pass_on);
    signal(SIGINT, pass_on);
    struct keeper_task task = {.argv = argv + 2, .envp = environ, .folder = argv[1]};
    if (asprintf(&task.log, "%s/rank%s.log", argv[1], getenv("RANK")) < 0 ||
        asprintf(&task.end, "%s/rank%s.end", argv[1], getenv("RANK")) < 0)
        return 2;
    // Blocked before the worker is there, so that its end is not missed; keeper_spawn unblocks in the worker.
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    worker = (sig_atomic_t)keeper_spawn(&task);
    if (worker < 0)
        return 2;
    int status = await_worker(argv[1]);
    keeper_write_end(task.end, status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
