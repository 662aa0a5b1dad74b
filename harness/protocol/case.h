// One case: a fully specified small training program, as docs/protocol.md defines it.
//
// The same struct is what the harness expands from YAML, what it writes as case.json and what a
// worker reads back. It owns all it points to; case_free releases it. Enumerations have their
// names in one table each (case_names.c), used by reader, writer and messages alike.
#ifndef FSDPMARK_CASE_H
#define FSDPMARK_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/protocol/error.h"
#include "kernels/dtype.h"

enum { CASE_PROTOCOL = 1, CASE_MAX_DIMS = 4 };

// measured: what a case costs is judged, not its numbers.
enum case_layer { LAYER_EXACT, LAYER_WITNESS, LAYER_CALIBRATED, LAYER_MEASURED };
enum model_kind { MODEL_WITNESS, MODEL_MLP, MODEL_TRANSFORMER };
enum model_norm { NORM_LAYERNORM, NORM_RMSNORM };
enum model_position { POSITION_LEARNED, POSITION_ROPE };
enum model_activation { ACTIVATION_GELU, ACTIVATION_SWIGLU };
enum strategy { STRATEGY_NONE, STRATEGY_OPTIMIZER, STRATEGY_GRAD, STRATEGY_FULL, STRATEGY_HYBRID };
enum shard_layout { SHARD_PER_PARAMETER, SHARD_FLAT, SHARD_ANY };
enum wrap_policy { WRAP_BLOCK, WRAP_ROOT, WRAP_SIZE, WRAP_PATTERN };
enum offload_kind { OFFLOAD_NONE, OFFLOAD_CPU };
enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAMW };
enum loss_scale_mode { LOSS_SCALE_NONE, LOSS_SCALE_STATIC, LOSS_SCALE_DYNAMIC };
enum loss_kind { LOSS_SUM, LOSS_MEAN_OF_TOKENS, LOSS_MEAN_OF_RANKS };
enum clip_norm { CLIP_OFF, CLIP_L1, CLIP_L2, CLIP_LINF };
enum verb {
    VERB_MICRO, VERB_FORWARD, VERB_BACKWARD, VERB_EVAL, VERB_CLIP, VERB_STEP, VERB_ZERO_GRAD,
    VERB_FREEZE, VERB_UNFREEZE, VERB_SAVE, VERB_LOAD, VERB_OBSERVE, VERB_STOP
};
enum observe_bit {
    OBSERVE_PARAM = 1, OBSERVE_GRAD = 2, OBSERVE_CLIPPED = 4,
    OBSERVE_EXP_AVG = 8, OBSERVE_EXP_AVG_SQ = 16, OBSERVE_MOMENTUM = 32
};

// A parameter of the table. count = product of shape. Tied parameters have tied_to = index of the
// parameter whose storage they share (always an earlier row), else -1.
struct case_parameter {
    char *name;
    int dims;
    int64_t shape[CASE_MAX_DIMS];
    int64_t count;
    char *unit;
    int tied_to;
    bool decay;
};

struct witness_parameter { char *name; int dims; int64_t shape[CASE_MAX_DIMS]; };
struct witness_unit { char *name; int parameter_count; struct witness_parameter *parameters; };

struct model_spec {
    enum model_kind kind;
    // witness
    int unit_count;
    struct witness_unit *units;
    // mlp: size_count-1 layers; calls: order in which the layers run
    int size_count;
    int64_t *sizes;
    int call_count;
    int *calls;
    int unused;
    // transformer
    int64_t layers, dim, heads, kv_heads, ffn, vocab, context;
    enum model_norm norm;
    enum model_position position;
    enum model_activation activation;
    bool tied;
    double norm_eps, rope_theta;
    // mlp and transformer
    bool bias;
};

struct sharding_spec {
    enum strategy strategy;
    int replicas, shards; // mesh R x S of the data ranks
    int tensor, pipeline; // T and P: N = P R S T
    enum shard_layout layout;
    bool reshard_after_forward;
    int reshard_ranks;    // k: after the forward parameters are spread over groups of k consecutive ranks; 0: over all S
    enum wrap_policy wrap;
    int64_t wrap_min_parameters;
    char *wrap_pattern;
    int prefetch_forward, prefetch_backward;
    enum offload_kind offload;
    bool activation_checkpointing;
};

struct precision_spec {
    enum dtype parameter, compute, reduce, optimizer_state;
    enum loss_scale_mode loss_scale;
    double scale_initial, scale_growth, scale_backoff;
    int scale_interval;
};

struct optimizer_spec {
    enum optimizer_kind kind;
    double lr, momentum, beta1, beta2, eps, weight_decay;
    bool no_decay;
};

struct instruction {
    enum verb verb;
    int step, micro, slot;
    bool sync;
    char *pattern;    // freeze, unfreeze
    char *label;      // observe
    unsigned what;    // observe: enum observe_bit
    bool local;       // observe
};

// How data and initial parameters are made (reference/truth makes them). Numbers of the recipe.
//   exact: the small-integer recipe; wide: one step of larger integers; gaussian: real-valued;
//   values: witness, x[row, e] = pattern[e mod pattern_count] * values[(step, micro, row) cyclic].
//   integers: witness, every element, row and microbatch another small integer; given: the files are there already.
struct data_spec {
    char *recipe;      // "exact", "wide", "gaussian", "values", "given"
    double density;    // share of non-zero inputs, exact and wide
    double std;        // gaussian: standard deviation of weights
    int64_t steps, micros;
    int64_t value_count;
    double *values;
    int64_t pattern_count;
    double *pattern;
    double init;       // values: constant initial weight; integers 1.. where NAN
    bool uneven_tokens; // rows and tokens of some ranks are masked out (weight 0)
};

struct case_option { char *name, *value; };

struct fsdp_case {
    char *id, *family;
    enum case_layer layer;
    int world_size;
    int64_t global_rows;
    uint64_t seed;
    struct model_spec model;
    int parameter_count;
    struct case_parameter *parameters;
    struct sharding_spec sharding;
    struct precision_spec precision;
    struct optimizer_spec optimizer;
    enum clip_norm clip;
    double clip_limit;
    enum loss_kind loss;
    bool divergent_init;
    struct data_spec data;
    int program_length;
    struct instruction *program;
    char *checkpoint;
    int option_count;
    struct case_option *options;
};

// Reads and validates case.json. Errors: "FILE:LINE: what was found, what was expected". Unknown
// and missing fields, wrong types, values out of range and contradictions (mesh product != world
// size, label twice, step outside the data, ...) are errors.
bool case_read(const char *path, struct fsdp_case *out, struct error *error);

// From the text of a case.json that a store kept, of this version or an earlier one: fields that it lacks stay 0. False where it is none.
bool case_read_stored(const char *text, struct fsdp_case *out);

// Writes case.json (whole or not at all). The output of case_write is read back by case_read to
// an equal case.
bool case_write(const struct fsdp_case *c, const char *path, struct error *error);

// Contradictions between fields, as case_read checks them; where names the case in the message.
bool case_validate(const struct fsdp_case *c, const char *where, struct error *error);

// Deep copy; frees nothing of what dst held before.
void case_copy(struct fsdp_case *dst, const struct fsdp_case *src);
void case_free(struct fsdp_case *c);

// Index of the parameter of that name, or -1.
int case_find_parameter(const struct fsdp_case *c, const char *name);
// Value of an option, or NULL.
const char *case_option(const struct fsdp_case *c, const char *name);
// D = N / (T P): the ranks that share the rows, R S of the mesh.
int case_data_ranks(const struct fsdp_case *c);
// Where a rank stands: r = (stage D + data) T + tensor, data = replica S + shard.
struct rank_place { int stage, data, replica, shard, tensor; };
struct rank_place case_place(const struct fsdp_case *c, int rank);
int case_rank_at(const struct fsdp_case *c, int stage, int data, int tensor);
// Rows of data rank r of n: floor(r G / n) up to, not including, floor((r + 1) G / n).
void case_rows(const struct fsdp_case *c, int r, int n, int64_t *first, int64_t *end);

// Names of enumerators as the protocol spells them.
const char *strategy_name(enum strategy s);
const char *layout_name(enum shard_layout l);
const char *model_kind_name(enum model_kind k);
const char *layer_name(enum case_layer l);
const char *wrap_name(enum wrap_policy w);
const char *loss_name(enum loss_kind l);
const char *verb_name(enum verb v);
const char *optimizer_name(enum optimizer_kind k);
const char *clip_name(enum clip_norm n);
const char *observe_name(enum observe_bit b); // "param", "grad", ...

#endif
