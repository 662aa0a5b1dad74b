// The table of NCCL's calls that move data between ranks, one row each: nccl.h of version 2.30; older ones have fewer.
//
// Included by nccl.c, which makes a wrapper of each row, and by calls.c for the names. Expressions are of the call's parameters and of
//   n, me          ranks of the communicator, and this one
//   size, bytes    of one element, and of the payload
#ifndef HARNESS_PROBES_PRELOAD_NCCL_CALLS_H
#define HARNESS_PROBES_PRELOAD_NCCL_CALLS_H

// X(name, parameters, arguments, kind, op, reduction, count of the payload, wire [bytes], peer); each begins in a pointer and ends in a
// communicator and a stream.
#define NCCL_CALLS(X) \
    X(ncclAllGather, (const void *s, void *r, size_t c, nccl_type t, nccl_comm comm, nccl_stream q), (s, r, c, t, comm, q), \
      COLLECTIVE, ALL_GATHER, no_reduction, n * count, (n - 1) * count * size, no_peer) \
    X(ncclReduceScatter, (const void *s, void *r, size_t c, nccl_type t, nccl_op f, nccl_comm comm, nccl_stream q), (s, r, c, t, f, comm, q), \
      COLLECTIVE, REDUCE_SCATTER, f, n * count, (n - 1) * count * size, no_peer) \
    X(ncclAllReduce, (const void *s, void *r, size_t c, nccl_type t, nccl_op f, nccl_comm comm, nccl_stream q), (s, r, c, t, f, comm, q), \
      COLLECTIVE, ALL_REDUCE, f, count, 2 * (n - 1) * bytes / n, no_peer) \
    X(ncclBroadcast, (const void *s, void *r, size_t c, nccl_type t, int root, nccl_comm comm, nccl_stream q), (s, r, c, t, root, comm, q), \
      COLLECTIVE, BROADCAST, no_reduction, count, me == root ? (n - 1) * bytes : 0, no_peer) \
    X(ncclBcast, (void *b, size_t c, nccl_type t, int root, nccl_comm comm, nccl_stream q), (b, c, t, root, comm, q), \
      COLLECTIVE, BROADCAST, no_reduction, count, me == root ? (n - 1) * bytes : 0, no_peer) \
    X(ncclReduce, (const void *s, void *r, size_t c, nccl_type t, nccl_op f, int root, nccl_comm comm, nccl_stream q), \
      (s, r, c, t, f, root, comm, q), COLLECTIVE, REDUCE, f, count, me == root ? 0 : bytes, no_peer) \
    X(ncclAlltoAll, (const void *s, void *r, size_t c, nccl_type t, nccl_comm comm, nccl_stream q), (s, r, c, t, comm, q), \
      COLLECTIVE, ALL_TO_ALL, no_reduction, n * count, (n - 1) * count * size, no_peer) \
    X(ncclGather, (const void *s, void *r, size_t c, nccl_type t, int root, nccl_comm comm, nccl_stream q), (s, r, c, t, root, comm, q), \
      COLLECTIVE, GATHER, no_reduction, me == root ? n * count : count, me == root ? 0 : bytes, no_peer) \
    X(ncclScatter, (const void *s, void *r, size_t c, nccl_type t, int root, nccl_comm comm, nccl_stream q), (s, r, c, t, root, comm, q), \
      COLLECTIVE, SCATTER, no_reduction, me == root ? n * count : count, me == root ? (n - 1) * count * size : 0, no_peer) \
    X(ncclSend, (const void *s, size_t c, nccl_type t, int to, nccl_comm comm, nccl_stream q), (s, c, t, to, comm, q), \
      POINT, OP_SEND, no_reduction, count, to == me ? 0 : bytes, to) \
    X(ncclRecv, (void *r, size_t c, nccl_type t, int from, nccl_comm comm, nccl_stream q), (r, c, t, from, comm, q), \
      POINT, OP_RECEIVE, no_reduction, count, 0, from)

// Those with a wrapper of their own: what makes and ends communicators.
#define NCCL_COMMUNICATORS(X) \
    X(ncclCommInitRank) X(ncclCommInitRankConfig) X(ncclCommInitRankScalable) X(ncclCommInitAll) X(ncclCommSplit) X(ncclCommShrink) \
    X(ncclCommDestroy) X(ncclCommAbort)

// Noted as unseen: the target has no call that could be counted.
#define NCCL_ONE_SIDED(X) X(ncclPutSignal)

#endif
