// The truth of a case: its data, its initial parameters, and what a serial, unsharded, float64 run
// of its program observes. Plain on purpose: it shares the models and kernels with the reference's
// FSDP engine and nothing else, so a fault of the engine cannot be in the truth.
//
// Files in a truth folder:
//   init.safetensors, init.other.safetensors (where divergent), data.safetensors  as docs/protocol.md
//   truth/<label>.safetensors      F64, for every observe of the program, same names as a worker's answer
//   truth.json                     losses, norms, skipped steps, certificate
//   noise.safetensors              calibrated layer: F64 by "<label>/grad/<name>": distances, see truth_noise
#ifndef REFERENCE_TRUTH_H
#define REFERENCE_TRUTH_H

#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"

enum { TRUTH_VERSION = 2 }; // part of the cache key: raise it when the meaning of any file changes

// Content key of a case: what data and truth depend on (model, data, seed, program, optimizer, clip,
// loss, precision, world size, rows; not sharding, id, options), hex, stable over runs and machines.
void truth_key(const struct fsdp_case *c, char hex[33]);

// Makes data by the case's recipe and the truth into a folder, which is made where it does not exist. Exact recipes
// search seeds and certify that every sum is exact in the case's dtypes; no certificate is an error ("no exact data ...").
// truth.json is written last: a folder without it is no truth. Equal data on all ranks or microbatches are an error.
// Exact data do not depend on world_size (1 to 8), so that a family reaches the same parameters at every N.
bool truth_make(const struct fsdp_case *c, const char *folder, struct error *error);

struct truth_step {
    double loss;                 // global loss, sum over the microbatches run of the step (the ranks' shares add up to it)
    double norm;                 // before clipping, NAN where the program does not clip
    bool skipped;                // overflow
    int micro_count;             // of the data
    double *micro_losses;        // by microbatch: global loss, of the latest run of it; NAN where it was not run
};
struct truth_label { char *label; struct tensors tensors; }; // param/..., grad/..., F64
struct truth {
    char *folder;
    int label_count;
    struct truth_label *labels;
    int step_count;
    struct truth_step *steps;
    int eval_count;
    double *eval_losses;         // in program order
    bool exact;                  // certified: gradients, updates and parameters are exact in the case's dtypes
    bool exact_gradients;        // certified: at least the gradients are (before clipping)
    char *inexact;               // what the certificate fails for; "" where exact
    double certificate_bits;     // largest of log2(sum |terms| / lowest bit) over all reductions; NAN without a certificate
    double smallest_gradient_share; // smallest fraction of non-zero gradient over tensors and steps; NAN without one
    struct tensors noise;
    struct tensors init, data;
};
bool truth_load(const struct fsdp_case *c, const char *folder, struct truth *out, struct error *error);
void truth_free(struct truth *t);
const struct tensors *truth_find(const struct truth *t, const char *label);

// The float64 gradient of the global loss of one step (all microbatches) at given parameters (any
// dtype, names "<prefix>/<name>", prefix e.g. "param"), frozen: bool by parameter index or NULL. Result "grad/<name>" F64.
bool truth_gradient(const struct fsdp_case *c, const struct tensors *data, const struct tensors *parameters, const char *prefix,
                    int step, const bool *frozen, struct tensors *gradient, double *loss, struct error *error);

// The noise of plain data parallelism: the gradient of a step by N ranks in the case's compute dtype, reduced in the reduce dtype
// in several orders (ascending, descending, binary tree, ring chunks, divide before and after) and with parameters moved by a last place, each compared
// with the float64 gradient at the same parameters. Result "grad/<name>": F64 (3): largest L2 distance over the
// orders, largest absolute difference of one element, L2 norm of the float64 gradient.
bool truth_noise(const struct fsdp_case *c, const struct tensors *data, const struct tensors *parameters, const char *prefix,
                 int step, const bool *frozen, struct tensors *noise, struct error *error);

// One float64 optimizer update from given state: p, g, moments by name; step_count 1-based. In place on state ("param/", "exp_avg/",
// "exp_avg_sq/", "momentum/" F64), gradient under "<prefix>/".
bool truth_update(const struct fsdp_case *c, struct tensors *state, const struct tensors *gradient, const char *prefix,
                  int step_count, const bool *frozen, struct error *error);

#endif
