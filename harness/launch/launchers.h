// The launchers, one file each; the table is in launchers.c.
#ifndef HARNESS_LAUNCHERS_H
#define HARNESS_LAUNCHERS_H

#include "harness/launch/launch.h"

bool launcher_local_start(const struct launch_plan *plan, struct launch *launch, struct error *error);
bool launcher_fork_start(const struct launch_plan *plan, struct launch *launch, struct error *error);
bool launcher_mpirun_start(const struct launch_plan *plan, struct launch *launch, struct error *error);
bool launcher_srun_start(const struct launch_plan *plan, struct launch *launch, struct error *error);
// "MASTER_ADDR=...": host 0 of the place, or this machine. Returns pair.
const char *launcher_master(const struct launch_plan *plan, char *pair, size_t size);
// The environment of a rank that no other launcher numbers: torchrun's names. Owned by the caller; NULL where memory is out.
char **launcher_environment(const struct launch_plan *plan, int rank, int port);
// A TCP port of 127.0.0.1 that was free a moment ago, or -1.
int launcher_free_port(void);
// The variables that put Open MPI's session folder into the job's, which is removed whole, and its shared memory into the folder of this process
// (process.h): ranks that are killed leave both.
struct launcher_mpi { char session[4300], shared[128]; const char *pairs[3]; };
const char *const *launcher_mpi_folders(const char *folder, struct launcher_mpi *out);

#endif
