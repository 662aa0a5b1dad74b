// The MPI program that measures: what its files share. See main.c.
#ifndef HARNESS_NET_WORKER_H
#define HARNESS_NET_WORKER_H

#include <mpi.h>

#include "harness/net/point.h"

// ---- values.c: what buffers are filled with ----
// Element i of rank r in iteration k is an integer of `bits` bits, drawn from a hash of (key, i); the key is one of (seed, r, k). With `bits` small enough every
// sum over the ranks is exact in the type, in any order.
uint32_t values_key(uint64_t seed, int rank, int64_t iteration, int lane);
int values_bits(enum dtype type, int ranks);
void values_fill(enum dtype type, void *to, int64_t count, uint32_t key, int64_t first, int bits);
struct mismatch { int64_t count, index; double found, expected; }; // index: of the first, in the whole buffer
// Compares with the sum over keys[0..n). Adds to out.
void values_check(enum dtype type, const void *found, int64_t count, const uint32_t *keys, int n, int64_t first, int bits, struct mismatch *out);

// ---- lane.c: a call and its buffers ----
enum { LANE_GUARD = 64, LANE_SETS = 257 };
struct lane {
    struct net_call call;
    enum net_shape shape;
    MPI_Comm comm;
    MPI_Datatype mpi;
    int rank, size, partner;   // partner: of one-way, exchange and link, -1: idle
    bool sends, receives;      // of these
    int bits, *counts, *starts;
    int64_t total;
    size_t element;
    bool in_place;
    int sets;
    char *memory;
    void *in[LANE_SETS], *out[LANE_SETS];     // where input and output are
    void *send[LANE_SETS], *recv[LANE_SETS];  // as the call is given them
    size_t in_bytes, out_bytes;
    uint32_t *keys;
    void (*blocking)(const struct lane *, int set);
    void (*start)(const struct lane *, int set, MPI_Request *request);
};
// groups: communicator by enum net_group, MPI_COMM_NULL where there is none.
bool lane_open(struct lane *l, const struct net_point *p, int which, const MPI_Comm *groups, struct error *error);
size_t lane_bytes(const struct lane *l); // of one set
bool lane_allocate(struct lane *l, int sets, int offset);
void lane_release(struct lane *l);
void lane_close(struct lane *l);
void lane_fill(struct lane *l, uint64_t seed, int which, int64_t first_iteration);
struct lane_damage { struct mismatch values, input; int64_t guards; int64_t iteration; };
// What is wrong in set `set`, which was filled for that iteration.
void lane_check(struct lane *l, uint64_t seed, int which, int set, int64_t iteration, struct lane_damage *out);
void lane_corrupt(struct lane *l, int set); // flips the lowest bit of the last output element

// ---- calls.c ----
bool calls_choose(struct lane *l, enum net_how how, struct error *error);

// ---- product.c: what a rank computes beside ----
void product_open(void);
void product_run(int slices);
void product_run_tested(int slices, int requests, MPI_Request *request, double *ended); // *ended: when completion was seen, 0: not yet
int64_t product_errors(void); // elements that are wrong, and resets them

// ---- batch.c: the timed part ----
struct batch { int lanes; struct lane *lane; int lead, samples, group, bare, slices; double clock; bool runs_ahead; enum net_product product; enum net_how how; };
enum { BATCH_SERIES = NET_CALL_BESIDE + 1 }; // what batch_run tells, in the order of enum net_series
// Times of this rank by series and sample, NAN where a series is not part of it. Ends with all calls complete.
void batch_run(const struct batch *b, MPI_Comm control, double *times /* [BATCH_SERIES][samples] */);
void batch_bare(const struct batch *b, MPI_Comm control, double *seconds /* one */);

// ---- schedule.c ----
bool schedule_run(const struct net_job *job, const char *folder, const MPI_Comm *groups, MPI_Comm control, struct error *error);

#endif
