// Communication as the engine sees it: collectives that are counted, overlapped and bounded in time.
//
// What: starts collectives of a backend on the groups of a mesh, counts them and their payloads, advances all that are in
//       flight between computations, and waits with a deadline. A wait past it is an error that names rank, collective,
//       elements and seconds; the worker then ends, because the others cannot be told.
// How:  comm_progress() is called after each computation of the model. A collective counts as overlapped if the model has computed
//       between its start and the moment that its result was needed: a count of the schedule, not of the clock.
//       Groups of one rank communicate nothing and count nothing.
// Payload: bytes of the whole buffer (all ranks' parts) of an all-gather or reduce-scatter; of the buffer for the others.
#ifndef REFERENCE_ENGINE_COMM_H
#define REFERENCE_ENGINE_COMM_H

#include "reference/backends/backend.h"
#include "reference/sharding/mesh.h"

enum comm_kind { COMM_ALL_GATHER, COMM_NEAR_GATHER, COMM_REDUCE_SCATTER, COMM_ALL_REDUCE, COMM_BROADCAST, COMM_BARRIER, COMM_KINDS };
enum { COMM_IN_FLIGHT = 32, COMM_MESHES = 16, COMM_SCALARS = 8 };

struct comm_count { int64_t calls, bytes, overlapped; };

// All ranks, and the groups of every mesh that was asked for so far: one for each process.
struct comm_world {
    const struct backend *backend;
    struct backend_group all;
    double deadline_s;
    int mesh_count;
    struct comm_groups { struct mesh mesh; struct backend_group shard, replicate; } meshes[COMM_MESHES];
    double *scalar_work;      // (COMM_SCALARS * N)
};

struct comm_request {
    struct backend_request *request;
    const struct backend *backend;
    enum comm_kind kind;
    int64_t count;
    bool active;              // started and not yet ended
    bool unneeded;            // started and not yet waited for
    int64_t computations;     // of the model before its start
};

struct comm {
    struct comm_world *world;
    const struct comm_groups *groups;
    const struct backend_group *near; // k consecutive ranks of the shard group, or NULL: comm_open_near
    struct comm_count counts[COMM_KINDS];
    int64_t computations;     // of the model so far
    int in_flight;
    struct comm_request *requests[COMM_IN_FLIGHT];
};

// "all_gather" ...
const char *comm_kind_name(enum comm_kind kind);

// Opens the backend. deadline_s: of each wait.
bool comm_world_open(struct comm_world *w, const struct backend *backend, double deadline_s, struct error *error);
void comm_world_close(struct comm_world *w);
// Makes or finds the groups of a mesh. Collective. Errors: too many meshes, the backend's.
bool comm_open(struct comm *c, struct comm_world *w, int replicas, int shards, struct error *error);

// Makes or finds the groups of `ranks` consecutive ranks, a divisor of the shards. Collective. Errors: as comm_open.
bool comm_open_near(struct comm *c, int ranks, struct error *error);

// Starts; the request must stay where it is until it has ended. Buffers as in backend.h.
bool comm_all_gather(struct comm *c, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts,
                     struct comm_request *r, struct error *error);     // on the shard group
bool comm_near_gather(struct comm *c, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts,
                      struct comm_request *r, struct error *error);    // on the near group
bool comm_reduce_scatter(struct comm *c, enum dtype type, const void *send, void *work, const int64_t *counts,
                         const int64_t *starts, struct comm_request *r, struct error *error); // on the shard group
bool comm_all_reduce(struct comm *c, enum dtype type, void *values, void *work, int64_t count, struct comm_request *r,
                     struct error *error);                             // sum, on the replicate group

// Tests everything in flight once; computed: a computation has passed since the last call.
bool comm_progress(struct comm *c, bool computed, struct error *error);
// Until it has ended; where arrays are a device's, for the device: what it is asked for from now on comes after.
bool comm_wait(struct comm *c, struct comm_request *r, struct error *error);

// Blocking, of arrays in the host's memory: for a few numbers (at most COMM_SCALARS), the setup and observations.
bool comm_scalars(struct comm *c, const struct backend_group *g, enum reduce_op op, double *values, int count, struct error *error);
bool comm_broadcast(struct comm *c, enum dtype type, void *values, int64_t count, struct error *error); // from rank 0, all ranks
bool comm_gather_hosts(struct comm *c, enum dtype type, const void *send, void *recv, const int64_t *counts, const int64_t *starts, struct error *error); // on the shard group
// As comm_broadcast, of an array of that device.
bool comm_broadcast_on(struct comm *c, const struct device *device, enum dtype type, void *values, int64_t count, struct error *error);
bool comm_barrier(struct comm *c, struct error *error);

double comm_seconds(void); // monotonic clock [s]

#endif
