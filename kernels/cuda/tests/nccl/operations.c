// EMULATION of NCCL over MPI: what each operation sends, and the order in which it adds.
//
// How:  an operation starts one nonblocking call of MPI and is asked at each poll of its stream. MPI sees copies alone, since device memory can be touched
//       by work of a stream only; sums are made here when everything has arrived, and the result is written at once. All-reduces send everything to everyone: buffers are small here.
// Order of sums: that of a ring, which for the part that rank r ends with begins with rank r + 1 and goes around; each addition rounded to the
//       element type (NCCL 2.28, src/device/reduce_scatter.h, runRing). So it is not the order of ascending ranks, which the other backends have.
#include "kernels/cuda/tests/nccl/work.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/dtype.h"

static bool dtype_of(ncclDataType_t type, enum dtype *out)
{
    switch (type) {
    case ncclInt32: *out = DTYPE_I32; return true;
    case ncclInt64: *out = DTYPE_I64; return true;
    case ncclFloat16: *out = DTYPE_F16; return true;
    case ncclFloat32: *out = DTYPE_F32; return true;
    case ncclFloat64: *out = DTYPE_F64; return true;
    case ncclBfloat16: *out = DTYPE_BF16; return true;
    default: return false;
    }
}

static size_t size_of(const struct nccl_operation *o)
{
    enum dtype type = DTYPE_F32;
    dtype_of(o->type, &type);
    return dtype_size(type);
}

// dst = a[last + 1] + a[last + 2] + ... + a[last], a[r] being the part of rank r: `count` elements at room + r stride.
static void add_around(const ncclComm_t comm, const struct nccl_operation *o, size_t stride, size_t start, size_t count, int last, char *dst)
{
    size_t size = size_of(o);
    enum dtype type = DTYPE_F32;
    dtype_of(o->type, &type);
    char *sum = malloc(count * size + 1);
    for (int i = 1; sum && i <= comm->size; i++) {
        const char *part = o->room + (size_t)((last + i) % comm->size) * stride + start * size;
        if (i == 1)
            memcpy(sum, part, count * size);
        for (size_t e = 0; i > 1 && e < count; e++) // in double, rounded once: what one addition in the type gives
            dtype_set(type, sum, (int64_t)e, dtype_get(type, sum, (int64_t)e) + dtype_get(type, part, (int64_t)e));
    }
    if (sum)
        memcpy(dst, sum, count * size);
    else
        comm->error = nccl_fail(comm, ncclSystemError, "no memory for a sum");
    free(sum);
}

// ---- beginning and ending ----

// Copies what is sent, and makes room for what arrives.
static bool take_room(const ncclComm_t comm, struct nccl_operation *o)
{
    size_t own = o->count * size_of(o), all = own * (size_t)comm->size;
    size_t sent = o->kind == NCCL_RECV || (o->kind == NCCL_BROADCAST && comm->rank != o->peer) ? 0 : o->kind == NCCL_REDUCE_SCATTER ? all : own;
    bool of_all = o->kind == NCCL_ALL_GATHER || o->kind == NCCL_REDUCE_SCATTER || o->kind == NCCL_ALL_REDUCE || (o->kind == NCCL_REDUCE && comm->rank == o->peer);
    o->sent = malloc(sent + 1);
    o->room = malloc((of_all ? all : own) + 1);
    if (!o->sent || !o->room)
        return false;
    memcpy(o->sent, o->send, sent);
    if (comm->size == 1 && o->kind != NCCL_RECV)
        memcpy(o->room, o->sent, own);
    return true;
}

static int begin(const ncclComm_t comm, struct nccl_operation *o)
{
    int bytes = (int)(o->count * size_of(o));
    switch (o->kind) {
    case NCCL_ALL_GATHER:
    case NCCL_ALL_REDUCE: return MPI_Iallgather(o->sent, bytes, MPI_BYTE, o->room, bytes, MPI_BYTE, comm->mpi, &o->request);
    case NCCL_REDUCE_SCATTER: return MPI_Ialltoall(o->sent, bytes, MPI_BYTE, o->room, bytes, MPI_BYTE, comm->mpi, &o->request);
    case NCCL_REDUCE: return MPI_Igather(o->sent, bytes, MPI_BYTE, o->room, bytes, MPI_BYTE, o->peer, comm->mpi, &o->request);
    case NCCL_BROADCAST: return MPI_Ibcast(comm->rank == o->peer ? o->sent : o->room, bytes, MPI_BYTE, o->peer, comm->mpi, &o->request);
    case NCCL_SEND: return MPI_Isend(o->sent, bytes, MPI_BYTE, o->peer, 0, comm->mpi, &o->request);
    default: return MPI_Irecv(o->room, bytes, MPI_BYTE, o->peer, 0, comm->mpi, &o->request);
    }
}

static void finish(const ncclComm_t comm, struct nccl_operation *o)
{
    size_t size = size_of(o), bytes = o->count * size, part = (o->count + (size_t)comm->size - 1) / (size_t)comm->size;
    switch (o->kind) {
    case NCCL_ALL_GATHER: memcpy(o->recv, o->room, bytes * (size_t)comm->size); break;
    case NCCL_REDUCE_SCATTER: add_around(comm, o, bytes, 0, o->count, comm->rank, o->recv); break;
    case NCCL_ALL_REDUCE:
        for (int r = 0; r < comm->size && (size_t)r * part < o->count; r++) {
            size_t start = (size_t)r * part, count = o->count - start < part ? o->count - start : part;
            add_around(comm, o, bytes, start, count, r, (char *)o->recv + start * size);
        }
        break;
    case NCCL_REDUCE:
        if (comm->rank == o->peer)
            add_around(comm, o, bytes, 0, o->count, comm->rank, o->recv);
        break;
    case NCCL_SEND: break;
    case NCCL_BROADCAST: memcpy(o->recv, comm->rank == o->peer ? o->sent : o->room, bytes); break;
    default: memcpy(o->recv, o->room, bytes);
    }
    o->ended = true;
}

// ---- steps ----

static bool begin_all(struct nccl_work *w)
{
    for (struct nccl_operation *o = w->first; o; o = o->next)
        if (!take_room(w->comm, o) || (w->comm->size > 1 && begin(w->comm, o) != MPI_SUCCESS)) {
            w->comm->error = nccl_fail(w->comm, ncclSystemError, "an operation of %zu elements did not start", o->count);
            return false;
        }
    return true;
}

// True: all have ended, or one has failed.
static bool all_ended(struct nccl_work *w)
{
    bool ended = true;
    for (struct nccl_operation *o = w->first; o; o = o->next) {
        int arrived = 1, code = o->ended || w->comm->size == 1 ? MPI_SUCCESS : NCCL_MPI_TEST(&o->request, &arrived, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            w->comm->error = nccl_fail(w->comm, ncclRemoteError, "MPI_Test of an operation of %zu elements failed", o->count);
            return true;
        }
        if (!o->ended && arrived)
            finish(w->comm, o);
        ended = ended && o->ended;
    }
    return ended;
}

static enum emulation_step release(struct nccl_work *w)
{
    for (struct nccl_operation *o = w->first, *next; o; o = next) {
        next = o->next;
        if (o->ended || w->comm->size == 1) { // else MPI may still read or write there
            free(o->sent);
            free(o->room);
        }
        free(o);
    }
    w->comm->ended++;
    free(w);
    nccl_progress_end();
    return EMULATION_DONE;
}

// The operations of a communicator that was aborted, or failed, end without having been done.
enum emulation_step nccl_step(void *work)
{
    struct nccl_work *w = work;
    ncclComm_t comm = w->comm;
    if (comm->aborted || comm->error != ncclSuccess)
        return release(w);
    if (w->turn != comm->ended)
        return EMULATION_AGAIN;
    if (!w->begun) {
        w->begun = true; // its result is there at a later poll at the earliest
        return begin_all(w) ? EMULATION_AGAIN : release(w);
    }
    return all_ended(w) ? release(w) : EMULATION_AGAIN;
}

// ---- calls ----

static ncclResult_t give(struct nccl_operation o, bool sums, ncclRedOp_t op, bool with_peer, ncclComm_t comm, cudaStream_t stream)
{
    enum dtype type;
    if (!comm || comm->aborted || comm->error != ncclSuccess)
        return nccl_fail(comm, ncclInvalidUsage, "an operation on a communicator that is not there any more");
    if (!dtype_of(o.type, &type) || (sums && (op != ncclSum || !dtype_is_float(type))))
        return nccl_fail(comm, ncclInvalidArgument, "the stand-in has no operation %d of type %d", (int)op, (int)o.type);
    if (with_peer && (o.peer < 0 || o.peer >= comm->size))
        return nccl_fail(comm, ncclInvalidArgument, "rank %d of %d ranks", o.peer, comm->size);
    if (o.count > (size_t)INT_MAX / 8)
        return nccl_fail(comm, ncclInvalidArgument, "%zu elements are more than the stand-in moves at once", o.count);
    return nccl_give(comm, stream, &o);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_ALL_GATHER, .send = send, .recv = recv, .count = count, .type = type}, false, ncclSum, false, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_REDUCE_SCATTER, .send = send, .recv = recv, .count = count, .type = type}, true, op, false, comm, stream);
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_ALL_REDUCE, .send = send, .recv = recv, .count = count, .type = type}, true, op, false, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_BROADCAST, .send = send, .recv = recv, .count = count, .type = type, .peer = root}, false, ncclSum, true, comm, stream);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_REDUCE, .send = send, .recv = recv, .count = count, .type = type, .peer = root}, true, op, true, comm, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_SEND, .send = send, .count = count, .type = type, .peer = peer}, false, ncclSum, true, comm, stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return give((struct nccl_operation){.kind = NCCL_RECV, .recv = recv, .count = count, .type = type, .peer = peer}, false, ncclSum, true, comm, stream);
}
