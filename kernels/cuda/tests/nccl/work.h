// EMULATION of NCCL: what communicators.c (communicators, groups) and operations.c (what moves) share.
#ifndef FSDPMARK_EMULATED_NCCL_WORK_H
#define FSDPMARK_EMULATED_NCCL_WORK_H

#include <mpi.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/tests/emulation/queue.h"

struct ncclComm {
    MPI_Comm mpi;           // MPI_COMM_NULL: one rank alone
    int rank, size;
    bool nonblocking, aborted;
    int in_progress;        // queries that will still be told ncclInProgress
    int64_t given, ended;   // works
    ncclResult_t error;     // of its operations, the first
    char text[256];
};

enum nccl_kind { NCCL_ALL_GATHER, NCCL_REDUCE_SCATTER, NCCL_ALL_REDUCE, NCCL_BROADCAST, NCCL_REDUCE, NCCL_SEND, NCCL_RECV };

struct nccl_operation {
    enum nccl_kind kind;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    int peer;               // root, or the other end
    char *sent, *room;      // a copy of what is sent, and what arrives: the result is made from it when it is whole
    MPI_Request request;
    bool ended;
    struct nccl_operation *next;
};

// What a stream gets: one operation, or those of a group on one communicator and stream.
struct nccl_work {
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t turn;           // among the works of the communicator
    bool begun;
    struct nccl_operation *first, **end;
    struct nccl_work *next; // in the group
};

// Gives the operation to the stream, or to the group that is open.
ncclResult_t nccl_give(ncclComm_t comm, cudaStream_t stream, const struct nccl_operation *operation);
// What a call on this communicator answers that has only begun.
ncclResult_t nccl_asynchronous(ncclComm_t comm);
// Keeps the text; returns the code.
ncclResult_t nccl_fail(ncclComm_t comm, ncclResult_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Advances a work (struct nccl_work), which is gone once it has ended.
enum emulation_step nccl_step(void *work);
// What these files call of MPI themselves: MPI_Test is theirs, and lets the streams run (progress.c).
#define NCCL_MPI_TEST PMPI_Test
// A work was given to a stream; it has ended.
void nccl_progress_begin(cudaStream_t stream);
void nccl_progress_end(void);

#endif
