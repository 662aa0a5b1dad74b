// The communication backend: collectives and memory of one kind of machine, as one struct of functions.
//
// What: nonblocking collectives on groups of ranks (the world, a shard group, a replicate group). A start
//       gives a request; test() advances it and says whether it is done. There is no blocking call: waiting,
//       with its deadline, is the engine's (engine/comm.c), once for all backends.
// How:  serial.c (one rank, no library) and mpi.c (Open MPI or any MPI 3) fill the struct for arrays of the host. Where arrays are of a device that
//       runs behind the host (cuda_mpi.c, cuda_nccl.c), a collective follows what the device was asked for before it was started, and follow()
//       makes what the device is asked for afterwards wait for it: the host does not. What lies in the host's memory (single numbers, initial values,
//       what is observed) goes by another backend of the same groups, `host`.
// Why:  no decision of sharding is taken here: which buffers, when and on which group is the engine's.
//
// Order of sums: every backend but NCCL's adds contributions in ascending order of the group's ranks, each addition
// rounded to the element type. So a result does not depend on layout, message size or timing, and all ranks
// hold the same bits. NCCL has its own order.
#ifndef REFERENCE_BACKENDS_BACKEND_H
#define REFERENCE_BACKENDS_BACKEND_H

#include "harness/protocol/error.h"
#include "kernels/device.h"

enum reduce_op { REDUCE_SUM, REDUCE_MAX }; // MAX: DTYPE_F64 only; NaN wins

struct backend_state; // private to a backend
struct backend_request;

// Ranks that communicate. rank and size are within the group.
struct backend_group {
    struct backend_state *state;
    int rank, size;
    int index; // private
};

struct backend {
    const char *name;
    const struct device *device; // whose arrays it moves
    const char *library;         // of its collectives, where that is not its name
    const struct backend *(*host)(void); // of the host's arrays; its groups have the same indices. NULL: itself
    const char *(*device_text)(void); // what computes, once it is open; NULL: the host
    bool (*emulated)(void);      // what computes is an emulation (tests only); NULL: it is not

    // Starts the library; world gets all ranks. Blocking; the launcher bounds it. deadline_s: of each wait of the host for a device that runs behind
    // it. Errors: the library's.
    bool (*open)(struct backend_group *world, double deadline_s, struct error *error);
    // Waits for all ranks; afterwards the backend cannot be opened again.
    void (*close)(struct backend_group *world);
    // The members of `parent` with the same color, ordered by key. Collective. Lives until close.
    bool (*split)(const struct backend_group *parent, int color, int key, struct backend_group *out, struct error *error);

    // recv[starts[r] ..+ counts[r]) = send of rank r. send may be its own place in recv.
    bool (*all_gather)(const struct backend_group *g, enum dtype type, const void *send, void *recv, const int64_t *counts,
                       const int64_t *starts, struct backend_request **request, struct error *error);
    // work[0 .. counts[rank]) = sum over ranks of send[starts[rank] ..]. work: size * counts[rank] elements.
    bool (*reduce_scatter)(const struct backend_group *g, enum dtype type, const void *send, void *work, const int64_t *counts,
                           const int64_t *starts, struct backend_request **request, struct error *error);
    // values = op over ranks of values. work: backend_all_reduce_work elements. One at a time in a group.
    bool (*all_reduce)(const struct backend_group *g, enum dtype type, enum reduce_op op, void *values, void *work,
                       int64_t count, struct backend_request **request, struct error *error);
    bool (*broadcast)(const struct backend_group *g, enum dtype type, void *values, int64_t count, int root,
                      struct backend_request **request, struct error *error);
    bool (*barrier)(const struct backend_group *g, struct backend_request **request, struct error *error);

    // Advances a request. *done: it has ended and is no longer valid; never where there is follow(). False: it failed.
    bool (*test)(struct backend_request *request, bool *done, struct error *error);

    // What the device is asked for from now on comes after the request, which has then ended for the host. NULL: test() until it is done.
    bool (*follow)(struct backend_request *request, struct error *error);
};

// All-reduces of up to this many elements send everything to everyone: one exchange instead of two.
enum { BACKEND_SMALL_COUNT = 256 };

static inline int64_t backend_all_reduce_work(int64_t count, int size)
{
    return size * (count <= BACKEND_SMALL_COUNT ? count : (count + size - 1) / size);
}

extern const struct backend backend_serial; // exactly one rank
extern const struct backend backend_mpi;
extern const struct backend backend_cuda_mpi;  // one GPU for any number of ranks; collectives by way of the host
extern const struct backend backend_cuda_nccl; // a GPU for each rank
extern const struct backend backend_null;   // moves nothing: what communication costs is measured against it, and nothing is ever judged on it

// The backend of the host's arrays.
static inline const struct backend *backend_host(const struct backend *b) { return b->host ? b->host() : b; }

#endif
