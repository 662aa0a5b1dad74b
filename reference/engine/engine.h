// The FSDP engine: trains a model whose parameters, gradients and optimizer state are spread over ranks.
//
// One set of rules covers the five strategies, because each is a mesh of R replicas x S shards and two choices:
//
//   strategy   mesh   full parameters      full gradients
//   none       N x 1  always               of one unit at a time, then all-reduced
//   optimizer  1 x N  always               always; reduce-scattered once, at the synchronising microbatch
//   grad       1 x N  always               of one unit at a time, then reduce-scattered
//   full       1 x N  of a unit in use     of one unit at a time, then reduce-scattered
//   hybrid     R x S  of a unit in use     reduce-scattered over S, then all-reduced over R
//
// A unit (sharding/wrapping.h) is what is gathered, freed and reduced together. Its life in a step:
//   at rest    shard: this rank's part, in the parameter type; what the optimizer updates
//   gather     cast to the compute type, all-gather over the shard group            (gather.c)
//   compute    the model's calls read the full parameters                           (pass.c)
//   reshard    the full parameters are dropped, after forward and after backward; with reshard_ranks k each rank keeps one part
//              of k of them from forward to backward, and the backward gathers among k consecutive ranks
//   reduce     full gradients, cast to the reduce type, summed over S then R, / N   (reduce.c)
//   update     clip by the global norm (clip.c), optimizer on the own part          (update.c)
//
// Types: parameters at rest `parameter`; gathered parameters, activations and their gradients `compute`; sums over ranks
// `reduce`; gradients at rest the wider of parameter and reduce; unsynchronised accumulation the wider of compute and reduce.
#ifndef REFERENCE_ENGINE_ENGINE_H
#define REFERENCE_ENGINE_ENGINE_H

#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"
#include "reference/engine/arena.h"
#include "reference/engine/comm.h"
#include "reference/engine/fault.h"
#include "reference/models/model.h"
#include "reference/sharding/layout.h"
#include "reference/sharding/wrapping.h"

enum { ENGINE_STATES = 2, ENGINE_CALL_UNITS = 8 };

enum unit_state { UNIT_RESHARDED, UNIT_NEAR, UNIT_GATHERING, UNIT_GATHERED };

struct unit {
    const char *name;          // "" for the root
    int index;
    bool root;
    bool resident;             // the full parameters are always there
    bool aliased;              // the shard is a part of the full parameters
    struct layout layout;
    int member_count;
    const int *members;        // indices of the parameter table, in table order
    int first_call, last_call; // of the model, that read this unit; first_call > last_call: none does
    bool scattered;            // calls between them do not read it

    // at rest: count = layout.counts[shard]
    int64_t count;
    void *shard;               // (count) parameter type
    void *gradient;            // (count) gradient type
    void *states[ENGINE_STATES]; // (count) state type: exp_avg and exp_avg_sq, or momentum
    void *accumulated;         // (full_count) accumulation type, or NULL: gradients that wait for a synchronisation
    bool has_gradient;         // `gradient` holds something since zero_grad
    bool has_accumulated;

    // while in use
    enum unit_state state;
    void *full;                // (full_count) compute type
    void *concatenated;        // (full_count) all shards one after another; `full` itself where that is the same
    struct comm_request gather;
    void *near;                // (near_counts[rank in the near group]) compute type, or NULL: this rank's part while UNIT_NEAR
    int64_t *near_counts, *near_starts; // [k] parts of the concatenated shards: of S / k shards each; NULL without reshard_ranks
    void *full_gradient;       // (full_count) compute type, or NULL
    int parameter_slot, gradient_slot; // in the pools, -1: none or its own buffer
    void *own_full, *own_concatenated, *own_full_gradient; // where it does not share a pool
};

// Buffers that units take turns in, each as large as the largest of them.
struct pool { int count; void **full, **concatenated; bool *used; };

// One microbatch between its forward and its backward.
struct activation {
    void **outs;               // [call_count] output of a call; input of the next
    void **saved;              // [call_count] what backward needs; one shared with activation checkpointing
    const float **x;           // [parameter_count] see model_batch_at
    struct model_batch batch;
    void *batch_memory;        // the batch on a device that is not the host, else NULL
    double share;              // the rank's loss counted in the global loss, for each unit of weighted loss
    bool pending;              // a forward waits for its backward
};

// The reduction in flight.
struct reduction {
    struct unit *unit;         // NULL: none
    enum { REDUCE_SCATTERING, REDUCE_REPLICATING, REDUCE_SUMMED } stage;
    struct comm_request request;
    void *result;              // this rank's part of the sum
    void *packed;              // (largest full_count) reduce type: what is sent where the gradients cannot be sent as they are
    void *work;                // (largest S * part) reduce type
    void *replica_work;        // all-reduce's
    void *staging;             // (largest part) host memory, with offload
};

struct loss_scale { double value; int good_steps; };

struct engine {
    const struct fsdp_case *c;
    const struct tensors *data;
    const struct device *on, *home; // where arrays in use lie, and those at rest: the host with offload
    struct comm comm;
    struct mesh mesh;
    int rank, ranks;
    enum shard_layout layout;  // SHARD_ANY resolved
    bool offload;
    enum dtype parameter, compute, reduce, gradient, accumulation, state_type;
    int state_count;

    // Called where the forward of a microbatch ends and its backward begins; NULL: nobody wants to know.
    void (*at_backward)(void *context, int step);
    void *at_backward_context;

    struct model model;
    struct wrapping wrapping;
    struct unit *units;
    int unit_count;
    int *call_unit_count;      // [call_count] units that a call reads
    int (*call_units)[ENGINE_CALL_UNITS];

    struct arena device, host; // host: shards, gradients and states with offload
    struct pool parameter_pool, gradient_pool;
    void *gather_buffer;       // (largest full_count) compute type: where resident units are gathered
    void *cast_staging;        // (largest part) compute type, host memory: with offload to a device, where a shard is cast before it goes there
    struct reduction reduction;

    int64_t rows_first, rows_end; // of the global batch
    int activation_count;
    struct activation *activations;
    void *ping, *pong;         // gradients of activations, and outputs in eval
    void *recomputed;          // outputs in recomputation
    void *scratch;
    double *loss;              // [2] on the device: of the forward, and of a recomputation, which nobody reads
    const void **parameters;   // [parameter_count] what the model reads
    void **gradients;          // [parameter_count] what it adds to

    bool *frozen;              // [parameter_count]
    bool *used;                // [parameter_count] some call reads it
    bool *has_gradient;        // [parameter_count] since zero_grad
    int64_t *updates;          // [parameter_count] optimizer steps so far
    int64_t steps;             // of the program so far, skipped ones too
    struct loss_scale scale;
    bool own_overflow;         // this rank's own gradients, before the reduction: only a seeded fault looks
    int tokens_step;           // step of `tokens`, -1: none
    double tokens;             // W of that step
};

// Plans, allocates, synchronises the initial parameters (full, F32, by name) from rank 0 and shards them. Collective.
// Everything passed is borrowed until engine_close. Errors: unsupported combinations (see engine_unsupported), memory, collectives.
bool engine_open(struct engine *e, const struct fsdp_case *c, struct comm_world *world, const struct tensors *data,
                 const struct tensors *init, struct error *error);
void engine_close(struct engine *e);
// Why this engine cannot run a case, or NULL. The same on all ranks.
const char *engine_unsupported(const struct fsdp_case *c);

// The verbs of a program. loss: this rank's share of the global loss. Collective unless said otherwise.
bool engine_forward(struct engine *e, int step, int micro, int slot, double *loss, struct error *error);
bool engine_backward(struct engine *e, int slot, bool sync, struct error *error);
bool engine_micro(struct engine *e, int step, int micro, bool sync, double *loss, struct error *error);
bool engine_eval(struct engine *e, int step, int micro, double *loss, struct error *error);
bool engine_clip(struct engine *e, double *norm, struct error *error);
bool engine_step(struct engine *e, bool *skipped, double *loss_scale, struct error *error);
void engine_zero_grad(struct engine *e);                                          // local
void engine_freeze(struct engine *e, const char *pattern, bool frozen);           // local

// ---- between the engine's files ----

// gather.c
bool gather_start(struct engine *e, struct unit *u, struct error *error);
bool gather_finish(struct engine *e, struct unit *u, struct error *error);
// near: a backward follows, for which the near group keeps its parts.
void gather_drop(struct engine *e, struct unit *u, bool near);
bool gather_residents(struct engine *e, struct error *error); // after shards have changed
// reduce.c
bool reduce_open(struct engine *e, struct unit *u, struct error *error);             // full_gradient, zeroed
bool reduce_close(struct engine *e, struct unit *u, bool sync, struct error *error); // accumulates, or starts the reduction
bool reduce_progress(struct engine *e, bool computed, struct error *error);
bool reduce_finish(struct engine *e, struct error *error);
// loss.c
bool loss_prepare(struct engine *e, int step, int micro, struct activation *a, struct error *error);
// loss_scale.c
bool loss_scale_overflow(struct engine *e, bool *overflow, struct error *error);
void loss_scale_update(struct engine *e, bool overflow);
// update.c
bool update_parameters(struct engine *e, struct error *error);
// predict.c
void predict_memory(const struct engine *e, struct arena_plan *device, struct arena_plan *host);
// precision.c
enum dtype precision_wider(enum dtype a, enum dtype b);
// units.c
bool units_create(struct engine *e, struct error *error);
void units_free(struct engine *e);

// True where the optimizer changes the parameter: it has a gradient and is not frozen.
static inline bool engine_trains(const struct engine *e, int parameter)
{
    return e->has_gradient[parameter] && (!e->frozen[parameter] || FAULT(frozen_still_trains));
}
static inline void *engine_at(const void *array, enum dtype type, int64_t element)
{
    return (char *)(uintptr_t)array + (size_t)element * dtype_size(type);
}

#endif
