// The choice of a program with CUDA. See ../choose.h.
#include "reference/backends/choose.h"

#include <stdio.h>

#include "reference/backends/cuda/control.h"

// As torchrun's names, Open MPI and MPICH tell it; all ranks, where nothing tells.
static int from_environment(const char *const *names, int otherwise)
{
    for (; *names; names++)
        if (getenv(*names))
            return atoi(getenv(*names));
    return otherwise;
}

static int ranks_here(int ranks)
{
    static const char *const names[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    int here = from_environment(names, ranks);
    return here > 0 ? here : ranks;
}

static bool first_rank(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    return from_environment(names, 0) == 0;
}

static enum chosen choose_gpu(int ranks, int collectives, const struct backend **out, struct error *error)
{
    int devices = 0, here = ranks_here(ranks);
    CUDA_OK(cudaGetDeviceCount(&devices));
    if (collectives == COLLECTIVES_NCCL && devices < here) {
        error_set(error, "FSDPMARK_COLLECTIVES=nccl: found %d device%s for %d ranks of this machine, expected one for each: NCCL refuses two ranks on one device, mpi takes them",
                  devices, devices == 1 ? "" : "s", here);
        return CHOSEN_NOT_HERE;
    }
    if (collectives == COLLECTIVES_NCCL && !cuda_has_nccl) {
        error_set(error, "FSDPMARK_COLLECTIVES=nccl: this program was built without NCCL, whose header nccl.h was not found (NCCL_HOME=FOLDER names its place)");
        return CHOSEN_NOT_HERE;
    }
    bool nccl = collectives == COLLECTIVES_NCCL || (collectives == COLLECTIVES_AUTO && cuda_has_nccl && devices >= here);
    control_choose(choose_host(ranks));
    *out = nccl ? &backend_cuda_nccl : &backend_cuda_mpi;
    return CHOSEN;
}

enum chosen choose_backend(int ranks, const struct backend **out, struct error *error)
{
    struct error why = {""};
    int device, collectives;
    if (!choose_asked(&device, &collectives, error))
        return CHOSEN_BAD;
    if (device != DEVICE_CPU && cuda_available(&why))
        return choose_gpu(ranks, collectives, out, error);
    if (device == DEVICE_CUDA) {
        error_set(error, "FSDPMARK_DEVICE=cuda: no device can be used: %s", why.text);
        return CHOSEN_NOT_HERE;
    }
    if (device == DEVICE_AUTO && first_rank())
        fprintf(stderr, "fsdp-reference-cuda: no device can be used, so it computes on the CPU: %s\n", why.text);
    *out = choose_host(ranks);
    return CHOSEN;
}

bool choose_devices(char *text, size_t size)
{
    struct error why = {""};
    int devices = 0;
    struct cudaDeviceProp first;
    if (!cuda_available(&why) || cudaGetDeviceCount(&devices) != cudaSuccess || cudaGetDeviceProperties(&first, 0) != cudaSuccess) {
        snprintf(text, size, "%s", why.text[0] ? why.text : "the devices cannot be asked");
        return false;
    }
    snprintf(text, size, "%s%d device%s, the first is %.100s", cuda_is_emulated() ? "EMULATION, no GPU: " : "", devices, devices == 1 ? "" : "s", first.name);
    return true;
}
