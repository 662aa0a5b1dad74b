// A process is known by its pid and its start time, since pids are used again.
#ifndef HARNESS_PROCESS_H
#define HARNESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

// False where there is none, or a zombie.
bool process_start(long pid, unsigned long long *ticks);
// A folder in shared memory that is this process's alone, PROCESS_SHARED/fsdpmark.<pid>.<start time>: ranks that are killed leave their
// segments there, and a later start removes it (harness/run/scratch.c). True where it has been made.
#define PROCESS_SHARED "/dev/shm"
bool process_shared(char *path, size_t size);

#endif
