// Names of the calls that the probes of communication wrap. See preload/calls.h.
#include "harness/probes/preload/calls.h"

#include "harness/probes/preload/mpi_calls.h"
#include "harness/probes/preload/nccl_calls.h"
#include "harness/probes/preload/socket_calls.h"
#include "harness/probes/preload/wait_calls.h"

#define NAME(name, ...) #name,
#define MPI_COLLECTIVE(name, nonblocking, ...) "MPI_" #name, "MPI_" #nonblocking,
#define MPI_SEND(name, nonblocking, persistent) "MPI_" #name, "MPI_" #nonblocking, "MPI_" #persistent,
#define MPI_NAME(name, ...) "MPI_" #name,
static const char *const socket_names[] = {SOCKET_CALLS(NAME) SOCKET_OTHERS(NAME)};
static const char *const mpi_names[] = {MPI_COLLECTIVES(MPI_COLLECTIVE) MPI_SENDS(MPI_SEND) MPI_RECEIVES(MPI_NAME) MPI_ONE_SIDED(MPI_NAME)
                                       MPI_COMPLETIONS(MPI_NAME)};
static const char *const wait_names[] = {WAIT_CALLS(NAME) WAIT_OTHERS(NAME)};
static const char *const nccl_names[] = {NCCL_CALLS(NAME) NCCL_COMMUNICATORS(NAME) NCCL_ONE_SIDED(NAME)};

#define TABLE(first, names) {first, sizeof names / sizeof *names, names}
static const struct { unsigned first, count; const char *const *names; } tables[] = {
    TABLE(CALLS_SOCKET, socket_names), TABLE(CALLS_MPI, mpi_names), TABLE(CALLS_NCCL, nccl_names), TABLE(CALLS_WAIT, wait_names)};

const char *probe_call_name(unsigned call)
{
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
        if (call >= tables[i].first && call - tables[i].first < tables[i].count)
            return tables[i].names[call - tables[i].first];
    return "unknown call";
}
