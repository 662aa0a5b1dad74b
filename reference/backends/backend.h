// The communication backend: collectives and memory of one kind of machine, as one struct of functions.
//
// What: nonblocking collectives on groups of ranks (the world, a shard group, a replicate group). A start
//       gives a request; test() advances it and says whether it is done. There is no blocking call: waiting,
//       with its deadline, is the engine's (engine/comm.c), once for all backends.
// How:  serial.c (one rank, no library) and mpi.c (Open MPI or any MPI 3) fill the struct. A backend for CUDA
//       with NCCL is one more file: `allocate` gives device memory, `copy` moves across the bus, `kernels`
//       are those of the device, a group holds an ncclComm_t and a stream, a request an event that test()
//       queries; ncclReduceScatter needs neither `work` nor the order below. Nothing else would change.
// Why:  no decision of sharding is taken here: which buffers, when and on which group is the engine's.
//
// Order of sums: every backend here adds contributions in ascending order of the group's ranks, each addition
// rounded to the element type. So a result does not depend on layout, message size or timing, and all ranks
// hold the same bits.
#ifndef REFERENCE_BACKENDS_BACKEND_H
#define REFERENCE_BACKENDS_BACKEND_H

#include "harness/protocol/error.h"
#include "kernels/kernels.h"

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
    const struct kernel_set *(*kernels)(enum dtype storage); // for arrays in this backend's memory

    // Starts the library; world gets all ranks. Blocking; the launcher bounds it. Errors: the library's.
    bool (*open)(struct backend_group *world, struct error *error);
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

    // Advances a request. *done: it has ended and is no longer valid. False: it failed.
    bool (*test)(struct backend_request *request, bool *done, struct error *error);

    void *(*allocate)(size_t bytes); // 64-byte aligned, zeroed; NULL where there is none
    void (*release)(void *memory);
    void (*copy)(void *dst, const void *src, size_t bytes); // between this memory and the host's, either way
};

// All-reduces of up to this many elements send everything to everyone: one exchange instead of two.
enum { BACKEND_SMALL_COUNT = 256 };

static inline int64_t backend_all_reduce_work(int64_t count, int size)
{
    return size * (count <= BACKEND_SMALL_COUNT ? count : (count + size - 1) / size);
}

extern const struct backend backend_serial; // exactly one rank
extern const struct backend backend_mpi;
extern const struct backend backend_null;   // moves nothing: what communication costs is measured against it, and nothing is ever judged on it

// What `allocate`, `release` and `copy` are where the memory is the host's.
void *backend_host_allocate(size_t bytes);
void backend_host_release(void *memory);
void backend_host_copy(void *dst, const void *src, size_t bytes);

#endif
