// The table of launchers.
#include "harness/launch/launchers.h"

const struct launcher launchers[] = {
    {"local", "one process per rank on this machine, torchrun's environment", launcher_local_start},
    {"mpirun", "Open MPI's mpirun on this machine, shared memory only", launcher_mpirun_start},
    {0},
};
