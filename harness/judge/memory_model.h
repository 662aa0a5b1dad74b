// What a strategy's memory must be, from the case alone: bytes of a parameter on a rank, at rest and at the peak of each phase.
//
// Each kind of tensor is either whole on every rank or cut over the S shards of the mesh, so that a rank holds
//     bytes(P, S) = P (whole + shared / S)
// with w, c, r the bytes of an element of parameters, of the compute type, of the reduction; g = max(w, r) of gradients at rest; k of the
// optimizer's states (AdamW 2, SGD with momentum 1, else 0, times the bytes of optimizer_state):
//     strategy       whole        shared
//     none           w + g + k    0            (+ c where parameters are computed with in another type: a copy may be kept)
//     optimizer      w + g        k
//     grad           w            g + k        (or 0, w + g + k: parameters that are sharded between steps too, FSDP's SHARD_GRAD_OP)
//     full, hybrid   0            w + g + k
// On top of that, in forward and backward: + c whole where nothing is dropped after the forward; + max(c, r) whole while gradients wait for a
// synchronisation. Units that are gathered one at a time do not count: with their size fixed they are the intercept of a slope over P.
// What a rank holds at rest is a claim of the worker's `shards` events; only strategy grad has a choice by them.
// Source: Rajbhandari et al. 2020 (arXiv:1910.02054), sections 3 and 5; Zhao et al. 2023 (arXiv:2304.11277), section 4.
#ifndef HARNESS_JUDGE_MEMORY_MODEL_H
#define HARNESS_JUDGE_MEMORY_MODEL_H

#include "harness/protocol/case.h"

enum { MEMORY_WORDS = 320 };
enum memory_phase { MEMORY_REST, MEMORY_FORWARD, MEMORY_BACKWARD, MEMORY_STEP, MEMORY_PHASES };
const char *memory_phase_name(enum memory_phase p); // "rest", and the phases of the probes: "forward", ...

struct memory_share { double whole, shared; }; // bytes of a parameter
// What a rank may hold at rest, and need not: copy; idle, the gradients of what is frozen in the last step, and the states of what never trained.
struct memory_model { struct memory_share parameter, copy, gradient, state, gathered, waiting, idle; };

// whole_parameters: ranks hold all parameters between steps (asked by strategy grad alone).
struct memory_model memory_model_of(const struct fsdp_case *c, bool whole_parameters);
struct memory_share memory_model_at(const struct memory_model *m, enum memory_phase phase);
double memory_share_bytes(struct memory_share s, int shards); // whole + shared / S
// P: elements of all parameters, tied ones once.
double memory_parameters(const struct fsdp_case *c);

// What an excess of `bytes` of a parameter over the model may be, in words: " (as much as optimizer states that are not sharded)"; all that fit within
// a tenth, for bytes alone do not tell one from another of the same size. Empty where nothing fits. Returns text.
const char *memory_model_excess(const struct fsdp_case *c, const struct memory_model *m, double bytes, char text[MEMORY_WORDS]);

#endif
