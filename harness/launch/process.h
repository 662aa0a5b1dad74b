// A process is known by its pid and its start time, since pids are used again.
#ifndef HARNESS_PROCESS_H
#define HARNESS_PROCESS_H

#include <stdbool.h>

// False where there is none.
bool process_start(long pid, unsigned long long *ticks);

#endif
