// Starts the workers of an implementation, knows how each rank ended, and leaves none behind.
//
// Every start has a keeper: a process in a session of its own that is the ancestor, and by
// PR_SET_CHILD_SUBREAPER the adoptive parent, of everything that the start brings to life. The harness holds the
// write end of a pipe, the lifeline. One byte asks the keeper to end the tree; the end of file, which the kernel
// delivers however the harness dies, asks the same. So kill -9 of the harness leaves no worker, no
// helper of mpirun and no grandchild of a script. Each rank also asks for SIGKILL at the death of its own parent
// (PR_SET_PDEATHSIG), which covers the death of the keeper. With the launcher `fork` one keeper serves many starts (template.h).
// Source: prctl(2), PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG.
#ifndef HARNESS_LAUNCH_H
#define HARNESS_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "harness/protocol/error.h"

struct template;
struct fabric_place;

struct launch_plan {
    const char *launcher;           // a name of launchers[]
    const char *program;            // path of fsdpmark: mpirun starts it as the wrapper of each rank
    const char *const *command;     // argv of a worker, NULL at the end
    const char *const *environment; // "NAME=VALUE", NULL at the end, or NULL
    const char *folder;             // the job folder, absolute; holds rank<R>.log and rank<R>.end
    int ranks;
    struct template *template;      // whose process the launcher `fork` asks for ranks (template.h); others need none
    const struct fabric_place *place; // where ranks live and what they talk over (harness/fabric/fabric.h); NULL: this machine, the launcher's own choice
};

// How the process of a rank ended. In rank<R>.end as "exit 3 12.5", "signal 9 12.5" or "exec 2 12.5".
struct rank_end {
    bool ended;
    int status;      // exit status, -1 where a signal or a failed exec ended it
    int signal;      // 0 where none
    int exec_errno;  // 0 unless the command could not be executed
    double at_s;     // launch_now() at the end: tells who was first
};

struct launch {
    pid_t keeper;
    int lifeline;
    int ranks;
    char *folder;
    bool over;              // nothing of this start is alive
    struct rank_end *ends;  // (ranks)
    struct template *template;    // borrowed; NULL with launchers that have none
    bool fresh;                   // the template was made for this start
    bool lost;                    // over since the template was gone: the ranks were ended for no reason of their own
    struct rank_end template_end; // where lost and known
};

struct launcher {
    const char *name, *title;
    // Fills the keeper's tasks; see keeper.h.
    bool (*start)(const struct launch_plan *plan, struct launch *launch, struct error *error);
};
extern const struct launcher launchers[]; // name NULL at the end
const struct launcher *launcher_find(const char *name);

// The names of all, "fork, local, mpirun or srun".
const char *launcher_names(void);

// Starts. Errors: unknown launcher, no port, no process. The launch must be stopped and freed.
bool launch_start(const struct launch_plan *plan, struct launch *out, struct error *error);
// Looks, without waiting, which ranks have ended and whether all is over.
void launch_poll(struct launch *l);
// Ends the whole tree: SIGTERM, after the grace [s] SIGKILL; returns when nothing is left.
void launch_stop(struct launch *l, double grace_s);
void launch_free(struct launch *l);
// "exit status 3", "signal 11 (Segmentation fault)", "cannot be executed: No such file or directory", "still running".
const char *rank_end_text(const struct rank_end *e, char *buffer, size_t size);

// Runs a command to its end with a deadline [s] and the same care; its first `size` bytes of output (stdout and stderr)
// go to output. False, with the reason, where it could not run or passed the deadline; its exit status
// (128 + signal) otherwise in *status.
bool launch_capture(const char *const *command, const char *const *environment, const char *folder, double deadline_s,
                    char *output, size_t size, int *status, struct error *error);

// The hidden mode `fsdpmark __rank FOLDER COMMAND...` that mpirun and srun start: takes rank and size from
// OMPI_COMM_WORLD_* or SLURM_*, sets torchrun's names, captures the output, runs the command and ends as it ended.
int launch_rank_main(int argc, char **argv);

// CLOCK_MONOTONIC [s].
double launch_now(void);
// Cores that this process may use.
int launch_cores(void);

#endif
