// A stand-in for NCCL for the tests of the nccl probe: it is NOT NCCL. It moves nothing, knows no GPU, and only says that a call went well.
//
// A communicator is its number of ranks and a rank. The functions and the numbers of types and results are as in nccl.h. A count of SIZE_MAX is
// refused (ncclInvalidArgument).
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct ncclComm { int ranks, rank; };
typedef struct { char internal[128]; } ncclUniqueId;
typedef struct ncclComm *ncclComm_t;
enum { ncclSuccess = 0, ncclInvalidArgument = 4 };

static int take(size_t count) { return count == SIZE_MAX ? ncclInvalidArgument : ncclSuccess; }
static int make(ncclComm_t *comm, int ranks, int rank)
{
    *comm = malloc(sizeof **comm);
    **comm = (struct ncclComm){ranks, rank};
    return ncclSuccess;
}

#define P(...) (__VA_ARGS__)
#define CALL(name, parameters) \
    int name parameters; \
    int name parameters
#define UNUSED __attribute__((unused))
#define TAKES(name, ...) CALL(name, P(__VA_ARGS__, UNUSED ncclComm_t comm, UNUSED void *stream)) { return take(count); }
#define BUFFERS UNUSED const void *from, UNUSED void *to, size_t count, UNUSED int type

TAKES(ncclAllGather, BUFFERS)
TAKES(ncclReduceScatter, BUFFERS, UNUSED int op)
TAKES(ncclAllReduce, BUFFERS, UNUSED int op)
TAKES(ncclBroadcast, BUFFERS, UNUSED int root)
CALL(ncclBcast, (void *buffer, size_t count, int type, int root, ncclComm_t comm, void *stream)) // by another call, as NCCL does
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
TAKES(ncclReduce, BUFFERS, UNUSED int op, UNUSED int root)
TAKES(ncclAlltoAll, BUFFERS)
TAKES(ncclGather, BUFFERS, UNUSED int root)
TAKES(ncclScatter, BUFFERS, UNUSED int root)
TAKES(ncclSend, UNUSED const void *from, size_t count, UNUSED int type, UNUSED int peer)
TAKES(ncclRecv, UNUSED void *to, size_t count, UNUSED int type, UNUSED int peer)
TAKES(ncclPutSignal, UNUSED const void *from, size_t count, UNUSED int type, UNUSED int peer, UNUSED void *window, UNUSED size_t at, UNUSED int signal,
      UNUSED int context, UNUSED unsigned flags)
CALL(ncclGroupStart, (void)) { return ncclSuccess; }
CALL(ncclGroupEnd, (void)) { return ncclSuccess; }
CALL(ncclCommCount, (ncclComm_t comm, int *count)) { *count = comm->ranks; return ncclSuccess; }
CALL(ncclCommUserRank, (ncclComm_t comm, int *rank)) { *rank = comm->rank; return ncclSuccess; }
// By value, as NCCL takes it: an id that arrives changed is refused.
CALL(ncclCommInitRank, (ncclComm_t *comm, int ranks, ncclUniqueId id, int rank))
{
    for (int i = 0; i < 128; i++)
        if (id.internal[i] != (char)i)
            return ncclInvalidArgument;
    return make(comm, ranks, rank);
}
CALL(ncclCommInitRankConfig, (ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, UNUSED void *config)) { return ncclCommInitRank(comm, ranks, id, rank); }
CALL(ncclCommInitRankScalable, (ncclComm_t *comm, int ranks, int rank, UNUSED int count, ncclUniqueId *ids, UNUSED void *config))
{
    return ncclCommInitRank(comm, ranks, ids[0], rank);
}
CALL(ncclCommInitAll, (ncclComm_t *comms, int count, UNUSED const int *devices))
{
    for (int i = 0; i < count; i++)
        make(&comms[i], count, i);
    return ncclSuccess;
}
// Halves: even and odd ranks.
CALL(ncclCommSplit, (ncclComm_t old, UNUSED int color, UNUSED int key, ncclComm_t *comm, UNUSED void *config))
{
    return make(comm, old->ranks / 2, old->rank / 2);
}
CALL(ncclCommShrink, (ncclComm_t old, UNUSED int *without, int count, ncclComm_t *comm, UNUSED void *config, UNUSED int flags))
{
    return make(comm, old->ranks - count, old->rank);
}
CALL(ncclCommDestroy, (ncclComm_t comm)) { free(comm); return ncclSuccess; }
CALL(ncclCommAbort, (ncclComm_t comm)) { free(comm); return ncclSuccess; }
