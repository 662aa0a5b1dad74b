// The launchers, one file each; the table is in launchers.c.
#ifndef HARNESS_LAUNCHERS_H
#define HARNESS_LAUNCHERS_H

#include "harness/launch/launch.h"

bool launcher_local_start(const struct launch_plan *plan, struct launch *launch, struct error *error);
bool launcher_mpirun_start(const struct launch_plan *plan, struct launch *launch, struct error *error);
// A TCP port of 127.0.0.1 that was free a moment ago, or -1.
int launcher_free_port(void);

#endif
