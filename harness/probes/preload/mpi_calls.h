// The table of MPI's calls that move data between ranks, one row each: MPI 3.1, chapters 3 (point to point), 5 (collectives), 7 (neighbours)
// and 11 (one-sided); and of its calls that wait for it.
//
// Included by mpi.c, which makes a wrapper of each row, and by calls.c for the names. Expressions are of the call's parameters and of
//   n, me          ranks of the communicator, and this one
//   size, bytes    of one element, and of the payload
// A collective's blocking and nonblocking form are one row.
#ifndef HARNESS_PROBES_PRELOAD_MPI_CALLS_H
#define HARNESS_PROBES_PRELOAD_MPI_CALLS_H

// ---- collectives: X(name, nonblocking name, parameters, arguments, op, type, count of the payload, wire [bytes]) -----------------
// wire: what goes to other ranks where every part takes the shortest way once. Added up over the ranks it is what they must receive.
#define GATHER_PARAMETERS const void *s, int sn, MPI_Datatype st, void *r, int rn, MPI_Datatype rt
#define GATHERV_PARAMETERS const void *s, int sn, MPI_Datatype st, void *r, const int rn[], const int rd[], MPI_Datatype rt
#define SCATTERV_PARAMETERS const void *s, const int sn[], const int sd[], MPI_Datatype st, void *r, int rn, MPI_Datatype rt
#define ALLTOALLV_PARAMETERS const void *s, const int sn[], const int sd[], MPI_Datatype st, void *r, const int rn[], const int rd[], MPI_Datatype rt
#define ALLTOALLW_PARAMETERS(offset) \
    const void *s, const int sn[], const offset sd[], const MPI_Datatype st[], void *r, const int rn[], const offset rd[], const MPI_Datatype rt[]
#define REDUCE_PARAMETERS const void *s, void *r, int count, MPI_Datatype t, MPI_Op f

#define MPI_COLLECTIVES(X) \
    X(Allgather, Iallgather, (GATHER_PARAMETERS, MPI_Comm comm), (s, sn, st, r, rn, rt, comm), \
      ALL_GATHER, kind_of(rt), n * rn, (n - 1) * rn * size) \
    X(Allgatherv, Iallgatherv, (GATHERV_PARAMETERS, MPI_Comm comm), (s, sn, st, r, rn, rd, rt, comm), \
      ALL_GATHER, kind_of(rt), sum(rn, n), (n - 1) * rn[me] * size) \
    X(Allreduce, Iallreduce, (REDUCE_PARAMETERS, MPI_Comm comm), (s, r, count, t, f, comm), \
      ALL_REDUCE, kind_of(t), count, 2 * (n - 1) * bytes / n) \
    X(Alltoall, Ialltoall, (GATHER_PARAMETERS, MPI_Comm comm), (s, sn, st, r, rn, rt, comm), \
      ALL_TO_ALL, kind_of(rt), n * rn, (n - 1) * rn * size) \
    X(Alltoallv, Ialltoallv, (ALLTOALLV_PARAMETERS, MPI_Comm comm), (s, sn, sd, st, r, rn, rd, rt, comm), \
      ALL_TO_ALL, kind_of(s == MPI_IN_PLACE ? rt : st), sum(s == MPI_IN_PLACE ? rn : sn, n), bytes - (s == MPI_IN_PLACE ? rn : sn)[me] * size) \
    X(Alltoallw, Ialltoallw, (ALLTOALLW_PARAMETERS(int), MPI_Comm comm), (s, sn, sd, st, r, rn, rd, rt, comm), \
      ALL_TO_ALL, kind_of_bytes, s == MPI_IN_PLACE ? sum_bytes(rn, rt, n) : sum_bytes(sn, st, n), \
      bytes - (s == MPI_IN_PLACE ? bytes_of(rn[me], rt[me]) : bytes_of(sn[me], st[me]))) \
    X(Barrier, Ibarrier, (MPI_Comm comm), (comm), BARRIER, kind_of_bytes, 0, 0) \
    X(Bcast, Ibcast, (void *r, int count, MPI_Datatype t, int root, MPI_Comm comm), (r, count, t, root, comm), \
      BROADCAST, kind_of(t), count, me == root ? (n - 1) * bytes : 0) \
    X(Gather, Igather, (GATHER_PARAMETERS, int root, MPI_Comm comm), (s, sn, st, r, rn, rt, root, comm), \
      GATHER, kind_of(me == root ? rt : st), me == root ? n * rn : sn, me == root ? 0 : bytes) \
    X(Gatherv, Igatherv, (GATHERV_PARAMETERS, int root, MPI_Comm comm), (s, sn, st, r, rn, rd, rt, root, comm), \
      GATHER, kind_of(me == root ? rt : st), me == root ? sum(rn, n) : sn, me == root ? 0 : bytes) \
    X(Scatter, Iscatter, (GATHER_PARAMETERS, int root, MPI_Comm comm), (s, sn, st, r, rn, rt, root, comm), \
      SCATTER, kind_of(me == root ? st : rt), me == root ? n * sn : rn, me == root ? (n - 1) * sn * size : 0) \
    X(Scatterv, Iscatterv, (SCATTERV_PARAMETERS, int root, MPI_Comm comm), (s, sn, sd, st, r, rn, rt, root, comm), \
      SCATTER, kind_of(me == root ? st : rt), me == root ? sum(sn, n) : rn, me == root ? bytes - sn[me] * size : 0) \
    X(Reduce, Ireduce, (REDUCE_PARAMETERS, int root, MPI_Comm comm), (s, r, count, t, f, root, comm), \
      REDUCE, kind_of(t), count, me == root ? 0 : bytes) \
    X(Reduce_scatter, Ireduce_scatter, (const void *s, void *r, const int rn[], MPI_Datatype t, MPI_Op f, MPI_Comm comm), (s, r, rn, t, f, comm), \
      REDUCE_SCATTER, kind_of(t), sum(rn, n), bytes - rn[me] * size) \
    X(Reduce_scatter_block, Ireduce_scatter_block, (REDUCE_PARAMETERS, MPI_Comm comm), (s, r, count, t, f, comm), \
      REDUCE_SCATTER, kind_of(t), n * count, (n - 1) * count * size) \
    /* Prefix sums: the nearest op there is. A rank's sum goes to the next one. */ \
    X(Scan, Iscan, (REDUCE_PARAMETERS, MPI_Comm comm), (s, r, count, t, f, comm), REDUCE, kind_of(t), count, me < n - 1 ? bytes : 0) \
    X(Exscan, Iexscan, (REDUCE_PARAMETERS, MPI_Comm comm), (s, r, count, t, f, comm), REDUCE, kind_of(t), count, me < n - 1 ? bytes : 0) \
    /* Neighbours: payload as of the call's namesake, over the neighbours alone. */ \
    X(Neighbor_allgather, Ineighbor_allgather, (GATHER_PARAMETERS, MPI_Comm comm), (s, sn, st, r, rn, rt, comm), \
      ALL_GATHER, kind_of(rt), neighbours(comm).in * rn, sent_to_neighbours(comm, &sn, 0, &st, 0)) \
    X(Neighbor_allgatherv, Ineighbor_allgatherv, (GATHERV_PARAMETERS, MPI_Comm comm), (s, sn, st, r, rn, rd, rt, comm), \
      ALL_GATHER, kind_of(rt), sum(rn, neighbours(comm).in), sent_to_neighbours(comm, &sn, 0, &st, 0)) \
    X(Neighbor_alltoall, Ineighbor_alltoall, (GATHER_PARAMETERS, MPI_Comm comm), (s, sn, st, r, rn, rt, comm), \
      ALL_TO_ALL, kind_of(st), neighbours(comm).out * sn, sent_to_neighbours(comm, &sn, 0, &st, 0)) \
    X(Neighbor_alltoallv, Ineighbor_alltoallv, (ALLTOALLV_PARAMETERS, MPI_Comm comm), (s, sn, sd, st, r, rn, rd, rt, comm), \
      ALL_TO_ALL, kind_of(st), sum(sn, neighbours(comm).out), sent_to_neighbours(comm, sn, 1, &st, 0)) \
    X(Neighbor_alltoallw, Ineighbor_alltoallw, (ALLTOALLW_PARAMETERS(MPI_Aint), MPI_Comm comm), (s, sn, sd, st, r, rn, rd, rt, comm), \
      ALL_TO_ALL, kind_of_bytes, sum_bytes(sn, st, neighbours(comm).out), sent_to_neighbours(comm, sn, 1, st, 1))

// ---- point to point ------------------------------------------------------------------------------------------------------------
// X(name, nonblocking name, persistent name): all of one signature. Each is a SEND of `count`.
#define MPI_SENDS(X) X(Send, Isend, Send_init) X(Bsend, Ibsend, Bsend_init) X(Ssend, Issend, Ssend_init) X(Rsend, Irsend, Rsend_init)
// Those with a wrapper of their own. A receive that waits notes what came; one that does not, the room that it offers.
#define MPI_RECEIVES(X) X(Recv) X(Irecv) X(Mrecv) X(Imrecv) X(Recv_init) X(Sendrecv) X(Sendrecv_replace) X(Start) X(Startall)

// ---- one-sided: X(name, parameters, arguments). Noted as unseen: the target has no call that could be counted -------------------
#define TARGET_PARAMETERS int to, MPI_Aint at, int tn, MPI_Datatype tt
#define MPI_ONE_SIDED(X) \
    X(Put, (const void *o, int on, MPI_Datatype ot, TARGET_PARAMETERS, MPI_Win w), (o, on, ot, to, at, tn, tt, w)) \
    X(Get, (void *o, int on, MPI_Datatype ot, TARGET_PARAMETERS, MPI_Win w), (o, on, ot, to, at, tn, tt, w)) \
    X(Accumulate, (const void *o, int on, MPI_Datatype ot, TARGET_PARAMETERS, MPI_Op f, MPI_Win w), (o, on, ot, to, at, tn, tt, f, w)) \
    X(Get_accumulate, (const void *o, int on, MPI_Datatype ot, void *r, int rn, MPI_Datatype rt, TARGET_PARAMETERS, MPI_Op f, MPI_Win w), \
      (o, on, ot, r, rn, rt, to, at, tn, tt, f, w)) \
    X(Rput, (const void *o, int on, MPI_Datatype ot, TARGET_PARAMETERS, MPI_Win w, MPI_Request *q), (o, on, ot, to, at, tn, tt, w, q)) \
    X(Rget, (void *o, int on, MPI_Datatype ot, TARGET_PARAMETERS, MPI_Win w, MPI_Request *q), (o, on, ot, to, at, tn, tt, w, q)) \
    X(Raccumulate, (const void *o, int on, MPI_Datatype ot, TARGET_PARAMETERS, MPI_Op f, MPI_Win w, MPI_Request *q), \
      (o, on, ot, to, at, tn, tt, f, w, q)) \
    X(Rget_accumulate, (const void *o, int on, MPI_Datatype ot, void *r, int rn, MPI_Datatype rt, TARGET_PARAMETERS, MPI_Op f, MPI_Win w, \
      MPI_Request *q), (o, on, ot, r, rn, rt, to, at, tn, tt, f, w, q)) \
    X(Fetch_and_op, (const void *o, void *r, MPI_Datatype t, int to, MPI_Aint at, MPI_Op f, MPI_Win w), (o, r, t, to, at, f, w)) \
    X(Compare_and_swap, (const void *o, const void *c, void *r, MPI_Datatype t, int to, MPI_Aint at, MPI_Win w), (o, c, r, t, to, at, w))

// ---- waits: X(name, parameters, arguments, requests) --------------------------------------------------------------------------
// A request that is over has another handle afterwards (MPI_REQUEST_NULL), but for persistent ones. A test is no wait by itself; a program that
// tests until it is true waits, and each test moves data of its own rank.
#define MPI_COMPLETIONS(X) \
    X(Wait, (MPI_Request *q, MPI_Status *s), (q, s), 1) \
    X(Waitall, (int n, MPI_Request q[], MPI_Status s[]), (n, q, s), n) \
    X(Waitany, (int n, MPI_Request q[], int *i, MPI_Status *s), (n, q, i, s), n) \
    X(Waitsome, (int n, MPI_Request q[], int *found, int i[], MPI_Status s[]), (n, q, found, i, s), n) \
    X(Test, (MPI_Request *q, int *flag, MPI_Status *s), (q, flag, s), 1) \
    X(Testall, (int n, MPI_Request q[], int *flag, MPI_Status s[]), (n, q, flag, s), n) \
    X(Testany, (int n, MPI_Request q[], int *i, int *flag, MPI_Status *s), (n, q, i, flag, s), n) \
    X(Testsome, (int n, MPI_Request q[], int *found, int i[], MPI_Status s[]), (n, q, found, i, s), n) \
    X(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *s), (from, tag, comm, s), 0) \
    X(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *m, MPI_Status *s), (from, tag, comm, m, s), 0)

#endif
