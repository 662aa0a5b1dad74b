// The cost model of a training step under a sharding strategy: what `fsdpmark advise` predicts. Formulas and sources: docs/advise.md.
//
// What: the reference engine's own schedule (reference/engine/pass.c, gather.c, reduce.c, update.c), call by call: gather, forward, reshard, gather
//       again, backward, reduce, update; prefetch depths; one line of communication per tier, which the collectives in flight share; one processor.
// How:  one rank is followed from event to event (a collective's phase ends, a computation ends). All ranks do the same at the same time, so
//       that 16,384 ranks cost what one does; what makes ranks differ (a slow host) is for who fills in `machine`: everybody waits for the slowest.
// Source: Thakur et al. 2005 for the steps and bytes of the collectives; Rajbhandari et al. 2020 (ZeRO) and Zhao et al. 2023 (FSDP) for the schedule.
#ifndef HARNESS_ADVISE_MODEL_H
#define HARNESS_ADVISE_MODEL_H

#include <math.h>

#include "harness/protocol/case.h"

// One tier of the interconnect as a rank meets it: alpha of one step of a collective; beta while all ranks of its group use the tier at once.
// burst: as long as the line has been idle, at most this long, its bytes pass at once (a token bucket: the emulated line of tbf); 0: a real line.
struct tier { double alpha_s, beta_s_per_byte; int ranks; double burst_s; };
enum { TIERS = 2 };
// How the library moves the parts of a collective.
//   direct  every rank sends its part to every other at once: what the reference's MPI backend asks for; 1 step
//   ring    n - 1 steps in a ring
//   tree    log2 n steps (recursive doubling and halving), near the groups first
enum exchange { EXCHANGE_DIRECT, EXCHANGE_RING, EXCHANGE_TREE, EXCHANGES };

struct machine {
    struct tier tiers[TIERS];      // [0] within a group of `ranks` ranks (0: of all), [1] between groups; ranks 0 there: no such tier
    enum exchange exchange;
    double flop_rate;              // of one rank in the model's matrix products [1/s]
    double copy_rate;              // bytes read and written by packing, unpacking, local sums and fills [1/s]; INFINITY: they cost nothing
    double update_rate;            // bytes of parameters, gradients and states that the optimizer goes through [1/s]
    double overhead_s;             // of a step: what a step with no work takes
    double contention;             // computing takes so many times as long while communication moves (1: none)
    double both_ways;              // a line that several collectives share carries so many times what it carries for one (1: as much)
    // What moves while the processor computes and calls no library. INFINITY, 0: everything, for hardware or a thread moves it.
    double unattended_bytes;       // of a collective, until the next call: what the system's buffers hold
    double eager_bytes;            // a message up to this size needs no agreement of both sides before it moves
};

// A unit's elements, and those of the largest part when it is cut over `shards` ranks.
struct unit_tensor { int64_t rows, row_count; };
struct workload_unit { double elements; bool root; int first_call, last_call; int tensor_count; struct unit_tensor *tensors; };
enum { CALL_UNITS = 8 };
struct workload_call { int unit_count, units[CALL_UNITS]; double forward_flop, backward_flop; };
struct workload_model {
    int unit_count, call_count, micros;
    struct workload_unit *units;
    struct workload_call *calls;     // flop of one microbatch of one rank
    enum dtype parameter, compute, reduce, gradient, state;
    int states;                      // of the optimizer, for each element
    bool flat;                       // layout: equal parts of the flattened unit; else chunks of rows
    bool sync_all, recompute, clips;
    double tokens;                   // of one rank in a step
    double flop;                     // of one rank in a step, recomputation left out: what MFU counts
};
struct schedule { enum strategy strategy; int replicas, shards; bool reshard_after_forward; int prefetch_forward, prefetch_backward; };

struct prediction {
    double step_s;
    double compute_s;                // of the same step where communication takes no time
    double exposed_s;                // step_s - compute_s
    double line_s;                   // collectives alone, one after another
    double sent_bytes;               // by one rank
    int collectives, events;
};
void advise_predict(const struct machine *m, const struct workload_model *w, const struct schedule *s, struct prediction *out);

// workload.c: from a case's model, wrap policy, precision, optimizer and program. rows: of a rank in a microbatch. Errors: what the model refuses.
bool workload_create(struct workload_model *w, const struct fsdp_case *c, int64_t rows, struct error *error);
void workload_free(struct workload_model *w);
double workload_elements(const struct workload_model *w);
double workload_part(const struct workload_model *w, int unit, int shards); // elements of the largest

// exchange.c: what one phase of a collective asks of the lines.
struct phase {
    double alpha_s;
    double bytes[TIERS];   // on a rank's line
    double message_bytes;  // largest one that a rank sends at once
    double cpu_s;          // of the processor, where the phase ends: the local sum
};
enum { PHASES = 4 };
// A group of n ranks, `near` of them in the same group of tier 0.
struct group { int ranks, near; };
// Ranks at a distance of `stride`: shard groups have stride 1, replicate groups the number of shards.
struct group exchange_group(const struct machine *m, int ranks, int stride);
// All-gather or reduce-scatter of `bytes` of which the largest part is `part_bytes`; of the latter without its sum.
struct phase exchange_half(const struct machine *m, struct group g, double bytes, double part_bytes);
double exchange_sent(struct group g, double bytes, double part_bytes);
double phase_seconds(const struct machine *m, const struct phase *p);  // alone on its lines

#endif
