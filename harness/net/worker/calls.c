// The MPI call of each operation: a row each, blocking and nonblocking, for even parts and for parts of any size.
//
// MPI's own error handler ends the program with a message: there is nothing to look at between two calls.
#include "harness/net/worker/worker.h"

static int part(const struct lane *l) { return l->counts[l->rank]; }
static int whole(const struct lane *l) { return (int)l->total; }

static void all_gather(const struct lane *l, int k)
{
    MPI_Allgather(l->send[k], part(l), l->mpi, l->recv[k], part(l), l->mpi, l->comm);
}
static void all_gather_v(const struct lane *l, int k)
{
    MPI_Allgatherv(l->send[k], part(l), l->mpi, l->recv[k], l->counts, l->starts, l->mpi, l->comm);
}
static void reduce_scatter(const struct lane *l, int k) { MPI_Reduce_scatter(l->send[k], l->recv[k], l->counts, l->mpi, MPI_SUM, l->comm); }
static void reduce_scatter_block(const struct lane *l, int k) { MPI_Reduce_scatter_block(l->send[k], l->recv[k], part(l), l->mpi, MPI_SUM, l->comm); }
static void all_reduce(const struct lane *l, int k) { MPI_Allreduce(l->send[k], l->recv[k], whole(l), l->mpi, MPI_SUM, l->comm); }
static void broadcast(const struct lane *l, int k) { MPI_Bcast(l->recv[k], whole(l), l->mpi, 0, l->comm); }
static void one_way(const struct lane *l, int k)
{
    if (l->sends)
        MPI_Send(l->send[k], whole(l), l->mpi, l->partner, 0, l->comm);
    if (l->receives)
        MPI_Recv(l->recv[k], whole(l), l->mpi, l->partner, 0, l->comm, MPI_STATUS_IGNORE);
}
static void exchange(const struct lane *l, int k)
{
    if (l->partner >= 0)
        MPI_Sendrecv(l->send[k], whole(l), l->mpi, l->partner, 0, l->recv[k], whole(l), l->mpi, l->partner, 0, l->comm, MPI_STATUS_IGNORE);
}

static void start_all_gather(const struct lane *l, int k, MPI_Request *r)
{
    MPI_Iallgather(l->send[k], part(l), l->mpi, l->recv[k], part(l), l->mpi, l->comm, r);
}
static void start_all_gather_v(const struct lane *l, int k, MPI_Request *r)
{
    MPI_Iallgatherv(l->send[k], part(l), l->mpi, l->recv[k], l->counts, l->starts, l->mpi, l->comm, r);
}
static void start_reduce_scatter_block(const struct lane *l, int k, MPI_Request *r)
{
    MPI_Ireduce_scatter_block(l->send[k], l->recv[k], part(l), l->mpi, MPI_SUM, l->comm, r);
}
static void start_reduce_scatter(const struct lane *l, int k, MPI_Request *r)
{
    MPI_Ireduce_scatter(l->send[k], l->recv[k], l->counts, l->mpi, MPI_SUM, l->comm, r);
}
static void start_all_reduce(const struct lane *l, int k, MPI_Request *r) { MPI_Iallreduce(l->send[k], l->recv[k], whole(l), l->mpi, MPI_SUM, l->comm, r); }
static void start_broadcast(const struct lane *l, int k, MPI_Request *r) { MPI_Ibcast(l->recv[k], whole(l), l->mpi, 0, l->comm, r); }

static const struct row {
    void (*blocking[2])(const struct lane *, int);              // even, uneven
    void (*start[2])(const struct lane *, int, MPI_Request *);
} rows[NET_OPS] = {
    [NET_ALL_GATHER] = {{all_gather, all_gather_v}, {start_all_gather, start_all_gather_v}},
    [NET_REDUCE_SCATTER] = {{reduce_scatter, reduce_scatter}, {start_reduce_scatter, start_reduce_scatter}},
    [NET_REDUCE_SCATTER_BLOCK] = {{reduce_scatter_block}, {start_reduce_scatter_block}},
    [NET_ALL_REDUCE] = {{all_reduce}, {start_all_reduce}},
    [NET_BROADCAST] = {{broadcast}, {start_broadcast}},
    [NET_ONE_WAY] = {{one_way}, {0}},
    [NET_EXCHANGE] = {{exchange}, {0}},
    [NET_LINK] = {{one_way}, {0}},
};

bool calls_choose(struct lane *l, enum net_how how, struct error *error)
{
    const struct row *row = &rows[l->call.op];
    int uneven = l->shape != NET_EVEN;
    l->blocking = row->blocking[uneven];
    l->start = row->start[uneven];
    bool there = how == NET_BLOCKING ? l->blocking != NULL : l->start != NULL;
    return there || error_set(error, "%s: found %s, %s; there is no such call", net_op_names[l->call.op], net_how_names[how], net_shape_names[l->shape]);
}
