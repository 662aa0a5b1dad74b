// The table of launchers.
#include "harness/launch/launchers.h"

const struct launcher launchers[] = {
    {"fork", "one process per rank, forked from a template that has made its imports (docs/protocol.md)", launcher_fork_start},
    {"local", "one process per rank on this machine, torchrun's environment", launcher_local_start},
    {"mpirun", "Open MPI's mpirun on this machine, shared memory only", launcher_mpirun_start},
    {"srun", "Slurm's srun on the nodes of the job that this is in", launcher_srun_start},
    {0},
};
