// In the place of cuda_nccl.c where NCCL's header was not found when the program was built: choose_cuda.c asks, and never takes it.
#include "reference/backends/cuda/control.h"

static bool no_open(struct backend_group *world, double deadline_s, struct error *error)
{
    (void)world, (void)deadline_s;
    return error_set(error, "cuda + nccl: this program was built without NCCL");
}

const bool cuda_has_nccl = false;
const struct backend backend_cuda_nccl = {.name = "cuda + nccl", .library = "nccl", .device = &device_cuda, .open = no_open};
