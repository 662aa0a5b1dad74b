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
};

// Forks the keeper and gives it the tasks. Sets keeper and lifeline of the launch.
bool keeper_start(const struct keeper_task *tasks, int count, struct launch *launch, struct error *error);
void keeper_task_free(struct keeper_task *t);

// Forks and executes a task as leader of its own process group, bound to the life of its parent. -1 on failure.
pid_t keeper_spawn(const struct keeper_task *t);
// Writes the end file, unless the task itself has written there that it could not be executed.
void keeper_write_end(const char *path, int wait_status);

// Sends a signal to every descendant of this process, found through /proc; returns how many there were.
int descendants_signal(int number);

// Environment of a worker: the allowlist of this process's own, then pairs "NAME=VALUE", the later winning. NULL-terminated,
// owned by the caller.
char **environment_make(const char *const *const *lists, int list_count);
void environment_free(char **envp); // any list of strings with NULL at the end
// Copies strings to the end of an owned argv (NULL: a new one); NULL where memory is out.
char **argv_append(char **argv, const char *const *more);

#endif
