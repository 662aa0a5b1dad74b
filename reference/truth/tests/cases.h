// Small cases for the truth's tests, made in place: a model, a program of standard steps, and a folder of its own.
#ifndef REFERENCE_TRUTH_TESTS_CASES_H
#define REFERENCE_TRUTH_TESTS_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/protocol/tests/temporary.h"
#include "harness/protocol/memory.h"
#include "reference/models/model.h"
#include "reference/truth/truth.h"

static inline struct instruction *add_verb(struct fsdp_case *c, enum verb verb, int step, int micro)
{
    c->program = memory_grow(c->program, (size_t)c->program_length, sizeof *c->program);
    c->program[c->program_length] = (struct instruction){.verb = verb, .step = step, .micro = micro, .sync = true};
    return &c->program[c->program_length++];
}

static inline void add_observe(struct fsdp_case *c, const char *label, unsigned what)
{
    struct instruction *i = add_verb(c, VERB_OBSERVE, 0, 0);
    i->label = memory_text(label);
    i->what = what;
}

// init, and for each step: microbatches, grad, clip, step, state, zero_grad.
static inline void standard_program(struct fsdp_case *c)
{
    char label[32];
    const bool adam = c->optimizer.kind == OPTIMIZER_ADAMW;
    add_observe(c, "init", OBSERVE_PARAM);
    for (int k = 0; k < c->data.steps; k++) {
        for (int m = 0; m < c->data.micros; m++)
            add_verb(c, VERB_MICRO, k, m);
        snprintf(label, sizeof label, "s%d.grad", k);
        add_observe(c, label, OBSERVE_GRAD);
        if (c->clip != CLIP_OFF) {
            add_verb(c, VERB_CLIP, k, 0);
            snprintf(label, sizeof label, "s%d.clipped", k);
            add_observe(c, label, OBSERVE_CLIPPED);
        }
        add_verb(c, VERB_STEP, k, 0);
        snprintf(label, sizeof label, "s%d", k);
        add_observe(c, label, OBSERVE_PARAM | (adam ? OBSERVE_EXP_AVG | OBSERVE_EXP_AVG_SQ : c->optimizer.momentum != 0 ? OBSERVE_MOMENTUM : 0));
        add_verb(c, VERB_ZERO_GRAD, 0, 0);
    }
    add_verb(c, VERB_STOP, 0, 0);
}

static inline struct fsdp_case empty_case(const char *recipe, int ranks, int64_t rows, int64_t steps, int64_t micros)
{
    return (struct fsdp_case){
        .id = memory_text("test"), .family = memory_text("test"), .layer = LAYER_WITNESS, .world_size = ranks, .global_rows = rows,
        .seed = 7, .sharding = {.strategy = STRATEGY_FULL, .replicas = 1, .shards = ranks, .tensor = 1, .pipeline = 1, .wrap_pattern = memory_text("")},
        .precision = {.scale_initial = 1, .scale_growth = 2, .scale_backoff = 0.5, .scale_interval = 2000},
        .optimizer = {.kind = OPTIMIZER_SGD, .lr = 0.25, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .data = {.recipe = memory_text(recipe), .density = 0.6, .std = 0.1, .steps = steps, .micros = micros, .init = NAN},
        .checkpoint = memory_text("/nowhere")};
}

static inline void set_precision(struct fsdp_case *c, enum dtype compute, enum dtype reduce)
{
    c->precision.compute = compute;
    c->precision.reduce = reduce;
}

static inline void add_table(struct fsdp_case *c)
{
    struct error error = {""};
    if (!model_parameter_table(c, &error))
        fail_msg("%s", error.text);
}

static inline struct fsdp_case mlp_case(const char *recipe, int ranks, int64_t rows, int64_t steps, int64_t micros)
{
    struct fsdp_case c = empty_case(recipe, ranks, rows, steps, micros);
    c.model = (struct model_spec){.kind = MODEL_MLP, .size_count = 4, .sizes = memory_copy((int64_t[]){6, 5, 5, 3}, 4, sizeof(int64_t)),
                                  .call_count = 4, .calls = memory_copy((int[]){0, 1, 1, 2}, 4, sizeof(int)), .bias = true, .unused = 1};
    add_table(&c);
    return c;
}

// One unit u0 with one parameter w of that many elements.
static inline struct fsdp_case witness_case(const char *recipe, int ranks, int64_t rows, int64_t steps, int64_t micros, int64_t elements)
{
    struct fsdp_case c = empty_case(recipe, ranks, rows, steps, micros);
    c.loss = LOSS_MEAN_OF_RANKS;
    struct witness_unit *unit = memory_zeros(1, sizeof *unit);
    *unit = (struct witness_unit){memory_text("u0"), 1, memory_zeros(1, sizeof *unit->parameters)};
    *unit->parameters = (struct witness_parameter){memory_text("w"), 1, {elements}};
    c.model = (struct model_spec){.kind = MODEL_WITNESS, .unit_count = 1, .units = unit};
    add_table(&c);
    return c;
}

static inline struct fsdp_case transformer_case(int ranks, int64_t rows, int64_t steps, int64_t micros)
{
    struct fsdp_case c = empty_case("gaussian", ranks, rows, steps, micros);
    c.layer = LAYER_CALIBRATED;
    c.loss = LOSS_MEAN_OF_TOKENS;
    c.model = (struct model_spec){.kind = MODEL_TRANSFORMER, .layers = 2, .dim = 12, .heads = 2, .kv_heads = 1, .ffn = 20, .vocab = 23,
                                  .context = 7, .position = POSITION_ROPE, .bias = true, .tied = true, .norm_eps = 1e-5, .rope_theta = 10000};
    add_table(&c);
    return c;
}

static inline void set_numbers(double **list, int64_t *count, int64_t n, const double *numbers)
{
    *list = memory_copy(numbers, (size_t)n, sizeof *numbers);
    *count = n;
}
#define SET_VALUES(c, ...) set_numbers(&(c)->data.values, &(c)->data.value_count, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})
#define SET_PATTERN(c, ...) set_numbers(&(c)->data.pattern, &(c)->data.pattern_count, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static char made_folder[256];

// Makes and loads; the folder stays in made_folder until remove_truth.
static inline bool try_truth(const struct fsdp_case *c, struct truth *t, struct error *error)
{
    snprintf(made_folder, sizeof made_folder, "/tmp/fsdpmark-truth-XXXXXX");
    assert_non_null(temporary_make(made_folder));
    *error = (struct error){""};
    return truth_make(c, made_folder, error) && truth_load(c, made_folder, t, error);
}

static inline void remove_truth(struct truth *t)
{
    char command[300];
    if (t != NULL)
        truth_free(t);
    snprintf(command, sizeof command, "rm -rf '%s'", made_folder);
    assert_int_equal(system(command), 0);
}

static inline void make_truth(const struct fsdp_case *c, struct truth *t)
{
    struct error error;
    if (!try_truth(c, t, &error))
        fail_msg("%s", error.text);
}

static inline const double *truth_values(const struct truth *t, const char *label, const char *what, const char *name)
{
    const struct tensors *set = truth_find(t, label);
    assert_non_null(set);
    const struct tensor *found = tensors_find2(set, what, name);
    if (found == NULL)
        fail_msg("%s has no %s/%s", label, what, name);
    return found->data;
}

#endif
