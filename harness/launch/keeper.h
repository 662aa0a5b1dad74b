// The keeper: ancestor of all processes of one start (see launch.h).
#ifndef HARNESS_KEEPER_H
#define HARNESS_KEEPER_H

#include <sys/types.h>

#include "harness/launch/launch.h"

struct keeper_task {
    char **argv, **envp;   // owned, NULL at the end
    char *folder;          // working directory
    char *log;             // file that takes stdout and stderr, appended
    char *end;             // file that takes how it ended, or NULL
    int channel;           // becomes descriptor KEEPER_CHANNEL of the task; 0: none
};
enum { KEEPER_LIFELINE = 3, KEEPER_CHANNEL = 3 }; // descriptors of a keeper and of a task

// Forks the keeper and gives it the tasks. Sets keeper and lifeline of the launch.
bool keeper_start(const struct keeper_task *tasks, int count, struct launch *launch, struct error *error);
void keeper_task_free(struct keeper_task *t);

// Turns a fresh fork of the harness into a keeper: a session of its own, adoptive parent, only the lifeline left above descriptor 2. Returns
// the descriptor of its signals (SIGCHLD, and what asks it to end), without waiting.
int keeper_become(int lifeline, pid_t harness);

// Forks and executes a task as leader of its own process group, bound to the life of its parent. -1 on failure.
pid_t keeper_spawn(const struct keeper_task *t);
// Writes the end file, unless the task itself has written there that it could not be executed.
void keeper_write_end(const char *path, int wait_status);

// Sends a signal (0: none) to every descendant of this process, found through /proc, except one (0: to all) and not to zombies; returns how
// many there were.
int descendants_signal(int number, pid_t except);

// Environment of a worker: the allowlist of this process's own, then pairs "NAME=VALUE", the later winning. NULL-terminated,
// owned by the caller.
char **environment_make(const char *const *const *lists, int list_count);
void environment_free(char **envp); // any list of strings with NULL at the end
// Copies strings to the end of an owned argv (NULL: a new one); NULL where memory is out.
char **argv_append(char **argv, const char *const *more);

#endif
