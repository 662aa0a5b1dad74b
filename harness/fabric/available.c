// Whether a fabric can be had on this machine, by trying or asking, never by assuming; and which launchers can start ranks on it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/fabric/place.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"

static const double TOOL_DEADLINE_S = 20;

// Runs a tool; true where it succeeds. text: the first line of what it printed, or why it did not run.
static bool asks(const char *const *command, char *text, size_t size)
{
    struct error error = {0};
    int status = 1;
    bool ran = launch_capture(command, NULL, "/", TOOL_DEADLINE_S, text, size, &status, &error);
    if (!ran)
        snprintf(text, size, "%s", error.text);
    text[strcspn(text, "\n")] = 0;
    return ran && status == 0;
}

static char *no_mpirun(void)
{
    static const char *const command[] = {"mpirun", "--version", NULL};
    char text[400];
    return asks(command, text, sizeof text) ? NULL : memory_format("%s; remedy: make setup (package openmpi-bin)", text);
}

// The smallest place, made and removed.
static char *no_namespaces(const struct fabric *f)
{
    struct fabric small = *f;
    struct fabric_place *place;
    struct error error = {0};
    small.slow_host = -1;
    small.group = 0;
    if (!fabric_open(&small, 1, "/proc/self/exe", &place, &error))
        return memory_format("%s; remedy: run as root or allow user namespaces (sysctl user.max_user_namespaces), with package iproute2", error.text);
    fabric_close(place);
    return NULL;
}

static char *no_hosts(const struct fabric *f)
{
    if (f->hostfile == NULL)
        return memory_text("no host file is named; remedy: --hostfile FILE");
    if (access(f->hostfile, R_OK) != 0)
        return memory_format("%s cannot be read; remedy: --hostfile FILE", f->hostfile);
    return no_mpirun();
}

static char *no_gpu(void)
{
    static const char *const command[] = {"nvidia-smi", "-L", NULL};
    char text[400];
    if (asks(command, text, sizeof text) && strncmp(text, "GPU", 3) == 0)
        return NULL;
    return memory_format("no GPU: %s; remedy: a machine with NVIDIA GPUs and their driver", text[0] ? text : "nvidia-smi lists none");
}

// Whether Open MPI has UCX is told by the list of its components.
static char *no_ucx(void)
{
    static const char *const command[] = {"ompi_info", "--parsable", "--param", "pml", "ucx", "--level", "9", NULL};
    char text[400];
    bool ran = asks(command, text, sizeof text);
    if (ran && strncmp(text, "mca:pml:ucx:", 12) == 0)
        return NULL;
    return memory_format("%s; remedy: an Open MPI that was built with UCX", ran ? "this Open MPI has no UCX" : text);
}

char *fabric_unavailable(const struct fabric *f)
{
    switch (f->kind) {
    case FABRIC_SHM: return no_mpirun();
    case FABRIC_VIRTUAL: return no_namespaces(f);
    case FABRIC_HOSTS: return no_hosts(f);
    case FABRIC_SLURM: return slurm_unavailable();
    case FABRIC_NCCL: return no_gpu();
    case FABRIC_UCX: return no_ucx();
    default: return NULL;
    }
}

const char *fabric_refuses(const struct fabric *f, const char *launcher)
{
    bool is_mpirun = strcmp(launcher, "mpirun") == 0, is_srun = strcmp(launcher, "srun") == 0;
    switch (f->kind) {
    case FABRIC_SHM: return is_mpirun ? NULL : "mpirun, since it is Open MPI's shared memory";
    case FABRIC_UCX: return is_mpirun ? NULL : "mpirun, since it is a transport of Open MPI";
    case FABRIC_HOSTS: return is_mpirun ? NULL : "mpirun, which reaches other machines";
    case FABRIC_SLURM: return is_srun ? NULL : "srun, which reaches the nodes of the job";
    default: return is_srun ? "a launcher of this machine, since srun is that of the fabric slurm" : NULL;
    }
}
