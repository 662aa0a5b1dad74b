// The cost model of a training step under a sharding strategy: what `fsdpmark advise` predicts.
//
// What: the reference engine's own schedule (reference/engine/engine.h) as events: per unit gather, forward, reshard, gather again, backward, reduce;
//       prefetch depths; one channel of communication per tier, on which collectives follow each other in the order of their start; one
//       processor. A collective of B bytes over n ranks costs its steps times alpha and its bytes on the line times beta (below).
// How:  events in order of time per rank class; ranks of a class are alike, so that 16,384 ranks cost what one does.
// Source: Rabenseifner 2004 and Thakur et al. 2005 for the steps and bytes of ring, recursive doubling and halving; Rajbhandari et al. 2020
//       (ZeRO) for the volumes.
#ifndef HARNESS_ADVISE_MODEL_H
#define HARNESS_ADVISE_MODEL_H

#include "harness/protocol/case.h"

// One tier of the interconnect, as a rank meets it.
struct tier { double alpha_s, beta_s_per_byte; int ranks; };
enum { TIERS = 2 };
struct machine {
    struct tier tiers[TIERS];      // [0] within a group of ranks (or all), [1] between groups; ranks 0: no such tier
    double flop_rate;              // of one rank in the model's matrix products [1/s]
    double update_rate;            // bytes of parameters and states that the optimizer goes through [1/s]
    double overhead_s;             // of a step: what a step with no work takes
    double contention;             // slowdown of computing while communication is under way (1: none), as measured
    double both_ways;              // a gather and a reduce at once reach this share of the sum of both alone (1: full duplex)
};
struct workload_unit { double parameter_bytes, gradient_bytes, forward_flop, backward_flop; };
struct workload_model { int unit_count; const struct workload_unit *units; double update_bytes; };
struct schedule { enum strategy strategy; int replicas, shards; bool reshard_after_forward; int prefetch_forward, prefetch_backward; };

struct prediction {
    double step_s, compute_s, exposed_s; // exposed: step less compute
    double gather_s, reduce_s;           // on the line
    double sent_bytes;                   // by one rank
};
void advise_predict(const struct machine *m, const struct workload_model *w, const struct schedule *s, struct prediction *out);

#endif
