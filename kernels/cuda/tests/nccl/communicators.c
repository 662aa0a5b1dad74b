// EMULATION of NCCL over MPI: communicators, groups, and how a call fails. The operations are in operations.c.
//
// How:  an ncclUniqueId holds the world rank of the process that made it and a number. Ranks of a communicator tell that process their world
//       ranks, it tells all of them the list, and MPI makes a communicator of these alone. One rank alone needs no MPI.
//       With `blocking = 0` every call answers ncclInProgress first, as NCCL may, and its communicator a few more times: who does not wait is found out.
// Order: NCCL runs the operations of a communicator in the order of their calls, whatever their streams. Here the operation at the head of its stream
//       waits until all that were given to its communicator before it have ended.
#include "kernels/cuda/tests/nccl/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_RANK = 20001, TAG_LIST, TAG_GROUP, QUERIES_IN_PROGRESS = 2 };
struct id { int world_rank, number; };

static int depth;                       // of ncclGroupStart
static struct nccl_work *grouped;       // that wait for ncclGroupEnd
static char last_error[256];

ncclResult_t nccl_fail(ncclComm_t comm, ncclResult_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    if (comm)
        snprintf(comm->text, sizeof comm->text, "%s", last_error);
    return code;
}

ncclResult_t nccl_asynchronous(ncclComm_t comm)
{
    if (!comm->nonblocking)
        return ncclSuccess;
    comm->in_progress = QUERIES_IN_PROGRESS;
    return ncclInProgress;
}

static bool under_mpi(void)
{
    int initialised = 0, finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    return initialised && !finalised;
}

// ---- communicators ----

ncclResult_t ncclGetVersion(int *version)
{
    *version = 0;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int number;
    struct id own = {.number = number++};
    if (under_mpi())
        MPI_Comm_rank(MPI_COMM_WORLD, &own.world_rank);
    memset(id, 0, sizeof *id);
    memcpy(id, &own, sizeof own);
    return ncclSuccess;
}

// (size) world ranks by rank of the new communicator.
static bool exchange(struct id id, int size, int rank, int *world_ranks)
{
    int own, pair[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    if (own != id.world_rank)
        return MPI_Send((int[]){rank, own}, 2, MPI_INT, id.world_rank, TAG_RANK, MPI_COMM_WORLD) == MPI_SUCCESS &&
               MPI_Recv(world_ranks, size, MPI_INT, id.world_rank, TAG_LIST, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    world_ranks[rank] = own;
    for (int i = 1; i < size; i++) {
        if (MPI_Recv(pair, 2, MPI_INT, MPI_ANY_SOURCE, TAG_RANK, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS || pair[0] < 0 || pair[0] >= size)
            return false;
        world_ranks[pair[0]] = pair[1];
    }
    for (int i = 0; i < size; i++)
        if (i != rank && MPI_Send(world_ranks, size, MPI_INT, world_ranks[i], TAG_LIST, MPI_COMM_WORLD) != MPI_SUCCESS)
            return false;
    return true;
}

static bool connect(ncclComm_t comm, struct id id)
{
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    int *ranks = calloc((size_t)comm->size, sizeof *ranks);
    bool ok = ranks && exchange(id, comm->size, comm->rank, ranks) && MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS &&
              MPI_Group_incl(world, comm->size, ranks, &group) == MPI_SUCCESS &&
              MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG_GROUP + id.number % 4096, &comm->mpi) == MPI_SUCCESS &&
              MPI_Comm_set_errhandler(comm->mpi, MPI_ERRORS_RETURN) == MPI_SUCCESS;
    if (group != MPI_GROUP_NULL)
        MPI_Group_free(&group);
    if (world != MPI_GROUP_NULL)
        MPI_Group_free(&world);
    free(ranks);
    return ok;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId unique, int rank, ncclConfig_t *config)
{
    struct id id;
    memcpy(&id, &unique, sizeof id);
    if (!out || size < 1 || rank < 0 || rank >= size)
        return nccl_fail(NULL, ncclInvalidArgument, "rank %d of %d ranks", rank, size);
    if (size > 1 && !under_mpi())
        return nccl_fail(NULL, ncclInvalidUsage, "the stand-in makes %d ranks over MPI alone, and MPI is not initialised", size);
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm)
        return nccl_fail(NULL, ncclSystemError, "no memory for a communicator");
    *comm = (struct ncclComm){.mpi = MPI_COMM_NULL, .rank = rank, .size = size, .nonblocking = config && config->blocking == 0};
    if (size > 1 && !connect(comm, id)) {
        free(comm);
        return nccl_fail(NULL, ncclSystemError, "MPI made no communicator of %d ranks", size);
    }
    *out = comm;
    return nccl_asynchronous(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return nccl_asynchronous(comm); }

// What a stream still holds of it must not find it gone.
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm->ended != comm->given)
        return nccl_fail(comm, ncclInvalidUsage, "a communicator was destroyed with %lld operations that have not ended", (long long)(comm->given - comm->ended));
    if (comm->mpi != MPI_COMM_NULL && under_mpi())
        MPI_Comm_free(&comm->mpi);
    free(comm);
    return ncclSuccess;
}

// Its operations end without having been done; the memory stays, since streams may still hold them.
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->aborted = true;
    comm->nonblocking = false;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *code)
{
    *code = comm->error != ncclSuccess ? comm->error : comm->in_progress > 0 ? ncclInProgress : ncclSuccess;
    comm->in_progress -= comm->in_progress > 0;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->size;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const texts[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage",
                                        "remote process exited or there was a network error", "NCCL operation in progress"};
    return code >= ncclSuccess && code <= ncclInProgress ? texts[code] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) { return comm && comm->text[0] ? comm->text : last_error; }

// ---- groups ----

static ncclResult_t put(struct nccl_work *w)
{
    ncclComm_t comm = w->comm;
    w->turn = comm->given++;
    nccl_progress_begin(w->stream);
    cudaError_t code = emulation_enqueue(w->stream, "NCCL (emulated)", nccl_step, w);
    return code == cudaSuccess ? nccl_asynchronous(comm) : nccl_fail(comm, ncclUnhandledCudaError, "the stream took no operation: %s", cudaGetErrorString(code));
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t code = ncclSuccess;
    if (depth == 0)
        return nccl_fail(NULL, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--depth > 0)
        return ncclSuccess;
    for (struct nccl_work *w = grouped, *next; w; w = next) {
        next = w->next;
        ncclResult_t own = put(w);
        code = code == ncclSuccess || code == ncclInProgress ? own : code;
    }
    grouped = NULL;
    return code;
}

// The work that the group has for this communicator and stream; a new one outside a group.
static struct nccl_work *work_for(ncclComm_t comm, cudaStream_t stream)
{
    struct nccl_work **at = &grouped;
    for (; depth > 0 && *at; at = &(*at)->next)
        if ((*at)->comm == comm && (*at)->stream == stream)
            return *at;
    struct nccl_work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->comm = comm;
    w->stream = stream;
    w->end = &w->first;
    if (depth > 0)
        *at = w;
    return w;
}

ncclResult_t nccl_give(ncclComm_t comm, cudaStream_t stream, const struct nccl_operation *operation)
{
    struct nccl_work *w = work_for(comm, stream);
    struct nccl_operation *o = malloc(sizeof *o);
    if (!w || !o) {
        free(o);
        return nccl_fail(comm, ncclSystemError, "no memory for an operation");
    }
    *o = *operation;
    *w->end = o;
    w->end = &o->next;
    if (depth > 0)
        return ncclSuccess;
    return put(w);
}
