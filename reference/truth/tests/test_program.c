// What the serial run of a program does, against numbers computed by hand; its single answers; its files and key.
#include "reference/truth/tests/cases.h"

#include <sys/stat.h>

#include "reference/truth/random.h"

static void near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-14 * fmax(1, fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

// ---- losses and policies ----

// Two ranks with rows {1, 2 | 6, 15 (masked)}: sum 9, mean of tokens 3, mean of ranks (1.5 + 6) / 2.
static void check_policy(enum loss_kind loss, double gradient, double factor)
{
    struct fsdp_case c = witness_case("values", 2, 4, 1, 1, 2);
    struct truth t;
    c.loss = loss;
    c.data.init = 10;
    c.data.uneven_tokens = true; // row 2 of 0 .. 3 does not count
    SET_VALUES(&c, 1, 2, 15, 6);
    SET_PATTERN(&c, 1, -2);
    standard_program(&c);
    make_truth(&c, &t);
    const double *g = truth_values(&t, "s0.grad", "grad", "u0.w"), *w = truth_values(&t, "s0", "param", "u0.w");
    near(g[0], gradient);
    near(g[1], -2 * gradient);
    near(w[0], 10 - 0.25 * gradient);
    near(t.steps[0].loss, 10 * (gradient - 2 * gradient) * factor);
    near(t.steps[0].micro_losses[0], t.steps[0].loss);
    assert_true(isnan(t.steps[0].norm) && !t.steps[0].skipped && t.step_count == 1);
    remove_truth(&t);
    case_free(&c);
}

static void test_loss_kinds(void **state)
{
    (void)state;
    check_policy(LOSS_SUM, 9, 1);
    check_policy(LOSS_MEAN_OF_TOKENS, 3, 1);
    check_policy(LOSS_MEAN_OF_RANKS, (1.5 + 6) / 2, 1);
}

// Microbatches add up: mean of ranks each, 2 microbatches of 2 rows: (1 + 3) / 2 + (5 + 9) / 2.
static void test_microbatches_add_up(void **state)
{
    (void)state;
    struct fsdp_case c = witness_case("values", 2, 2, 1, 2, 1);
    struct truth t;
    SET_VALUES(&c, 1, 3, 5, 9);
    standard_program(&c);
    make_truth(&c, &t);
    near(truth_values(&t, "s0.grad", "grad", "u0.w")[0], 9);
    near(t.steps[0].micro_losses[0] + t.steps[0].micro_losses[1], t.steps[0].loss);
    near(t.steps[0].loss, 9);
    remove_truth(&t);
    case_free(&c);
}

// ---- optimizers ----

// g = 2 then 4, beta 1/2 and 1/4, eps = 1, decay 1/8, lr 1/2, w = 8.
//   t=1: w = 8 - 1/2 = 7.5; m = 1, v = 3; mhat = 2, vhat = 4; w -= 1/2 * 2/3
//   t=2: w *= 15/16; m = 2.5, v = 12.75; mhat = 2.5/(3/4), vhat = 12.75/(15/16) = 13.6
// The other element has gradient 0 in both: only decay moves it.
static void test_adamw_by_hand(void **state)
{
    (void)state;
    struct fsdp_case c = witness_case("values", 2, 2, 2, 1, 2);
    struct truth t;
    c.optimizer = (struct optimizer_spec){.kind = OPTIMIZER_ADAMW, .lr = 0.5, .beta1 = 0.5, .beta2 = 0.25, .eps = 1, .weight_decay = 0.125};
    c.data.init = 8;
    SET_VALUES(&c, 1, 3, 3, 5);
    SET_PATTERN(&c, 1, 0);
    standard_program(&c);
    make_truth(&c, &t);
    const double w1 = 7.5 - 0.5 * 2 / 3, w2 = w1 * (1 - 0.0625) - 0.5 * (2.5 / 0.75) / (sqrt(13.6) + 1);
    near(truth_values(&t, "s0", "param", "u0.w")[0], w1);
    near(truth_values(&t, "s0", "exp_avg", "u0.w")[0], 1);
    near(truth_values(&t, "s0", "exp_avg_sq", "u0.w")[0], 3);
    near(truth_values(&t, "s1", "param", "u0.w")[0], w2);
    near(truth_values(&t, "s1", "exp_avg", "u0.w")[0], 2.5);
    near(truth_values(&t, "s1", "exp_avg_sq", "u0.w")[0], 12.75);
    near(truth_values(&t, "s1", "param", "u0.w")[1], 8 * 0.9375 * 0.9375);
    remove_truth(&t);
    case_free(&c);
}

// Momentum 1/2, lr 1/4: m = 2, then 1 + 4. With no_decay a parameter named bias does not decay.
static void test_momentum_and_groups(void **state)
{
    (void)state;
    for (int no_decay = 0; no_decay < 2; no_decay++) {
        struct fsdp_case c = witness_case("values", 2, 2, 2, 1, 1);
        struct truth t;
        free(c.model.units->parameters->name);
        c.model.units->parameters->name = memory_text("bias");
        free(c.parameters->name);
        free(c.parameters->unit);
        free(c.parameters);
        add_table(&c);
        c.optimizer.momentum = 0.5;
        c.optimizer.weight_decay = 2;
        c.optimizer.no_decay = no_decay;
        c.data.init = 8;
        SET_VALUES(&c, 1, 3, 3, 5);
        standard_program(&c);
        make_truth(&c, &t);
        double w = 8, m = 0;
        for (int k = 0; k < 2; k++) {
            m = 0.5 * m + (k ? 4 : 2) + (no_decay ? 0 : 2 * w);
            w -= 0.25 * m;
        }
        near(truth_values(&t, "s1", "param", "u0.bias")[0], w);
        near(truth_values(&t, "s1", "momentum", "u0.bias")[0], m);
        remove_truth(&t);
        case_free(&c);
    }
}

// ---- clipping ----

static void check_clip(enum clip_norm norm, double limit, double expected_norm)
{
    struct fsdp_case c = witness_case("values", 2, 2, 1, 1, 3);
    struct truth t;
    c.clip = norm;
    c.clip_limit = limit;
    SET_VALUES(&c, 0.5, 1.5);
    SET_PATTERN(&c, 3, -4, 12);
    standard_program(&c);
    make_truth(&c, &t);
    const double factor = fmin(1, limit / (expected_norm + 1e-6));
    const double *g = truth_values(&t, "s0.grad", "grad", "u0.w"), *clipped = truth_values(&t, "s0.clipped", "clipped", "u0.w");
    near(t.steps[0].norm, expected_norm);
    for (int e = 0; e < 3; e++) {
        near(g[e], (double[]){3, -4, 12}[e]);
        near(clipped[e], g[e] * factor);
    }
    assert_true(factor < 1 || t.exact);
    remove_truth(&t);
    case_free(&c);
}

static void test_clipping(void **state)
{
    (void)state;
    check_clip(CLIP_L1, 1, 19);
    check_clip(CLIP_L2, 6.5, 13);
    check_clip(CLIP_LINF, 3, 12);
    check_clip(CLIP_L2, 13.5, 13);
}

// ---- programs ----

// Overflow under dynamic scaling: the step is skipped, nothing moves, the next one is step 1 of the optimizer.
static void test_overflow_is_skipped(void **state)
{
    (void)state;
    struct fsdp_case c = witness_case("values", 2, 2, 2, 1, 2);
    struct truth t;
    c.precision.loss_scale = LOSS_SCALE_DYNAMIC;
    c.optimizer.kind = OPTIMIZER_ADAMW;
    c.data.init = 1;
    SET_VALUES(&c, 1, INFINITY, 2, 4);
    standard_program(&c);
    make_truth(&c, &t);
    assert_true(t.steps[0].skipped && !t.steps[1].skipped);
    assert_true(isinf(t.steps[0].loss));
    near(truth_values(&t, "s0", "param", "u0.w")[0], 1);
    assert_null(tensors_find2(truth_find(&t, "s0"), "exp_avg", "u0.w"));
    near(truth_values(&t, "s1", "param", "u0.w")[0], 1 - 0.25 * 3 / (3 + 1e-8));
    remove_truth(&t);
    case_free(&c);
}

static void freeze(struct fsdp_case *c, enum verb verb, const char *pattern)
{
    add_verb(c, verb, 0, 0)->pattern = memory_text(pattern);
}

static void one_step(struct fsdp_case *c, int step, const char *grad, const char *after)
{
    add_verb(c, VERB_MICRO, step, 0);
    add_observe(c, grad, OBSERVE_GRAD);
    add_verb(c, VERB_STEP, step, 0);
    add_observe(c, after, OBSERVE_PARAM);
    add_verb(c, VERB_ZERO_GRAD, 0, 0);
}

static bool same(const struct truth *t, const char *a, const char *b, const char *name)
{
    return memcmp(truth_values(t, a, "param", name), truth_values(t, b, "param", name), tensors_find(&t->init, name)->count * sizeof(double)) == 0;
}

static void test_freeze_eval_unfreeze(void **state)
{
    (void)state;
    struct fsdp_case c = mlp_case("gaussian", 2, 4, 2, 1);
    struct truth t;
    add_observe(&c, "init", OBSERVE_PARAM);
    freeze(&c, VERB_FREEZE, "layers.1.*");
    one_step(&c, 0, "g0", "s0");
    add_verb(&c, VERB_EVAL, 1, 0);
    freeze(&c, VERB_UNFREEZE, "*");
    one_step(&c, 1, "g1", "s1");
    make_truth(&c, &t);
    assert_true(same(&t, "init", "s0", "layers.1.weight") && same(&t, "init", "s0", "layers.1.bias"));
    assert_false(same(&t, "init", "s0", "layers.0.weight"));
    assert_false(same(&t, "s0", "s1", "layers.1.weight"));
    assert_true(same(&t, "init", "s1", "unused.0.weight"));
    assert_null(tensors_find2(truth_find(&t, "g0"), "grad", "layers.1.weight"));
    assert_null(tensors_find2(truth_find(&t, "g0"), "grad", "unused.0.weight"));
    assert_non_null(tensors_find2(truth_find(&t, "g1"), "grad", "layers.1.weight"));
    assert_int_equal(t.eval_count, 1);
    near(t.eval_losses[0], t.steps[1].micro_losses[0]); // the same parameters
    remove_truth(&t);
    case_free(&c);
}

// forward forward backward backward = two microbatches; save, step, load goes back; a later load does so again.
static void test_slots_save_and_load(void **state)
{
    (void)state;
    struct fsdp_case plain = transformer_case(2, 4, 2, 2), c = transformer_case(2, 4, 2, 2);
    struct truth t, u;
    standard_program(&plain);
    make_truth(&plain, &t);
    char first[256];
    memcpy(first, made_folder, sizeof first);
    add_observe(&c, "init", OBSERVE_PARAM);
    add_verb(&c, VERB_FORWARD, 0, 0)->slot = 0;
    add_verb(&c, VERB_FORWARD, 0, 1)->slot = 1;
    add_verb(&c, VERB_BACKWARD, 0, 0)->slot = 1;
    add_verb(&c, VERB_BACKWARD, 0, 0)->slot = 0;
    add_observe(&c, "g", OBSERVE_GRAD);
    add_verb(&c, VERB_SAVE, 0, 0);
    add_verb(&c, VERB_STEP, 0, 0);
    add_observe(&c, "s0", OBSERVE_PARAM);
    add_verb(&c, VERB_LOAD, 0, 0);
    add_observe(&c, "loaded", OBSERVE_PARAM);
    make_truth(&c, &u);
    for (int p = 0; p < c.parameter_count; p++) {
        const struct case_parameter *row = &c.parameters[p];
        if (row->tied_to >= 0)
            continue;
        const double *a = truth_values(&t, "s0.grad", "grad", row->name), *b = truth_values(&u, "g", "grad", row->name);
        for (int64_t e = 0; e < row->count; e++)
            assert_true(fabs(a[e] - b[e]) <= 1e-15);
        assert_true(same(&u, "init", "loaded", row->name) && !same(&u, "init", "s0", row->name));
    }
    assert_null(tensors_find2(truth_find(&u, "s0"), "param", "head.weight")); // tied: under the name tied to
    near(u.steps[0].loss, t.steps[0].loss);
    remove_truth(&u);
    memcpy(made_folder, first, sizeof first);
    remove_truth(&t);
    case_free(&c);
    case_free(&plain);
}

// What another run of the family saved after step 0 is what the standard program reaches there.
static void test_load_of_another_run(void **state)
{
    (void)state;
    struct fsdp_case plain = mlp_case("gaussian", 2, 4, 2, 2), c = mlp_case("gaussian", 2, 4, 2, 2);
    struct truth t, u;
    standard_program(&plain);
    make_truth(&plain, &t);
    char first[256];
    memcpy(first, made_folder, sizeof first);
    add_verb(&c, VERB_LOAD, 0, 0);
    add_observe(&c, "loaded", OBSERVE_PARAM);
    add_verb(&c, VERB_MICRO, 1, 0);
    make_truth(&c, &u);
    for (int p = 0; p < c.parameter_count; p++)
        assert_memory_equal(truth_values(&u, "loaded", "param", c.parameters[p].name), truth_values(&t, "s0", "param", c.parameters[p].name),
                            (size_t)c.parameters[p].count * sizeof(double));
    assert_true(u.steps[0].loss == 0 && isnan(u.steps[0].micro_losses[0]) && u.steps[1].loss > 0);
    remove_truth(&u);
    memcpy(made_folder, first, sizeof first);
    remove_truth(&t);
    case_free(&c);
    case_free(&plain);
}

static void expect_error(struct fsdp_case *c, const char *message)
{
    struct error error;
    struct truth t;
    if (try_truth(c, &t, &error))
        fail_msg("made, expected an error: %s", message);
    if (strstr(error.text, message) == NULL)
        fail_msg("found: %s\nexpected: %s", error.text, message);
    char path[300];
    struct stat info;
    snprintf(path, sizeof path, "%s/truth.json", made_folder);
    assert_int_not_equal(stat(path, &info), 0);
    remove_truth(NULL);
    case_free(c);
}

static void test_undefined_programs_are_errors(void **state)
{
    (void)state;
    struct fsdp_case c = mlp_case("gaussian", 1, 2, 2, 1);
    add_verb(&c, VERB_MICRO, 0, 0);
    freeze(&c, VERB_FREEZE, "*");
    expect_error(&c, "freezing layers.0.weight while it has a gradient");
    c = mlp_case("gaussian", 1, 2, 2, 1);
    add_verb(&c, VERB_FORWARD, 0, 0)->slot = 3;
    add_verb(&c, VERB_STEP, 0, 0);
    expect_error(&c, "a step while slot 3 waits for its backward");
    c = mlp_case("gaussian", 1, 2, 2, 1);
    c.optimizer.kind = OPTIMIZER_ADAMW;
    freeze(&c, VERB_FREEZE, "*.bias");
    one_step(&c, 0, "g0", "s0");
    freeze(&c, VERB_UNFREEZE, "*");
    one_step(&c, 1, "g1", "s1");
    expect_error(&c, "adamw step 2 is update 1 of layers.0.bias");
    c = mlp_case("gaussian", 1, 2, 2, 1);
    one_step(&c, 0, "g0", "s0");
    add_verb(&c, VERB_LOAD, 0, 0);
    expect_error(&c, "a load without a save after 1 steps");
    c = witness_case("values", 2, 2, 1, 1, 1);
    c.data.uneven_tokens = false;
    expect_error(&c, "recipe values: found model witness and 0 values");
    c = witness_case("values", 3, 3, 1, 1, 1);
    SET_VALUES(&c, 1, 2, 3);
    c.data.uneven_tokens = true;
    expect_error(&c, "the loss weights of rows 2 to 2 sum to 0");
}

// ---- data ----

static void test_gaussian_data(void **state)
{
    (void)state;
    struct fsdp_case c = transformer_case(3, 6, 2, 2);
    struct truth t;
    c.divergent_init = true;
    c.data.uneven_tokens = true;
    standard_program(&c);
    make_truth(&c, &t);
    const float *norm = tensors_find(&t.init, "blocks.0.norm1.weight")->data, *bias = tensors_find(&t.init, "blocks.0.norm1.bias")->data;
    double squares = 0;
    const struct tensor *up = tensors_find(&t.init, "blocks.1.mlp.up.weight"), *weight = tensors_find(&t.data, "weight");
    for (int64_t e = 0; e < up->count; e++)
        squares += pow(((float *)up->data)[e], 2);
    assert_true(fabs(sqrt(squares / (double)up->count) - 0.1) < 0.02);
    for (int e = 0; e < 12; e++)
        assert_true(norm[e] > 0.5 && norm[e] < 1.5 && bias[e] != 0);
    int64_t masked = 0;
    for (int64_t i = 0; i < weight->count; i++)
        masked += ((float *)weight->data)[i] == 0;
    assert_true(masked > weight->count / 10 && masked < weight->count);
    char path[300];
    struct tensors other;
    struct error error = {""};
    snprintf(path, sizeof path, "%s/init.other.safetensors", made_folder);
    assert_true(tensors_read(path, &other, &error));
    for (int i = 0; i < other.count; i++)
        for (int64_t e = 0; e < other.items[i].count; e++)
            assert_true(((float *)other.items[i].data)[e] != ((float *)tensors_find(&t.init, other.items[i].name)->data)[e]);
    tensors_free(&other);
    remove_truth(&t);
    case_free(&c);
}

// Files that are there already are used, after a check.
static void test_given_data(void **state)
{
    (void)state;
    struct fsdp_case c = witness_case("integers", 2, 2, 1, 1, 4);
    struct truth t;
    struct error error = {""};
    standard_program(&c);
    make_truth(&c, &t);
    const double g = truth_values(&t, "s0.grad", "grad", "u0.w")[3];
    truth_free(&t);
    free(c.data.recipe);
    c.data.recipe = memory_text("given");
    assert_false(truth_load(&c, made_folder, &t, &error));
    assert_non_null(strstr(error.text, "it was made for another case or version"));
    error.text[0] = 0;
    assert_true(truth_make(&c, made_folder, &error) && truth_load(&c, made_folder, &t, &error));
    near(truth_values(&t, "s0.grad", "grad", "u0.w")[3], g);
    truth_free(&t);
    c.data.micros = 2;
    assert_false(truth_make(&c, made_folder, &error));
    assert_non_null(strstr(error.text, "data tensor weight: no step 0, micro 1"));
    remove_truth(NULL);
    case_free(&c);
}

static void test_key(void **state)
{
    (void)state;
    struct fsdp_case c = transformer_case(2, 4, 2, 2);
    char key[33], other[33];
    standard_program(&c);
    truth_key(&c, key);
    assert_int_equal(strlen(key), 32);
#define CHANGES(expected, change)                          \
    do {                                                   \
        struct fsdp_case d;                                \
        case_copy(&d, &c);                                 \
        change;                                            \
        truth_key(&d, other);                              \
        if ((strcmp(key, other) != 0) != (expected))       \
            fail_msg("%s", #change);                       \
        case_free(&d);                                     \
    } while (0)
    CHANGES(false, d.sharding.strategy = STRATEGY_GRAD);
    CHANGES(false, d.sharding.layout = SHARD_FLAT);
    CHANGES(false, d.sharding.prefetch_forward = 2);
    CHANGES(false, d.id[0] = 'x');
    CHANGES(false, d.program[1].sync = false);
    CHANGES(true, d.seed++);
    CHANGES(true, d.world_size++);
    CHANGES(true, d.global_rows++);
    CHANGES(true, d.model.ffn++);
    CHANGES(true, d.model.tied = false);
    CHANGES(true, d.precision.reduce = DTYPE_BF16);
    CHANGES(true, d.optimizer.lr *= 1 + 0x1p-52);
    CHANGES(true, d.loss = LOSS_SUM);
    CHANGES(true, d.clip = CLIP_L2);
    CHANGES(true, d.data.std *= 2);
    CHANGES(true, d.data.uneven_tokens = true);
    CHANGES(true, d.program[1].micro = 1);
    CHANGES(true, d.program_length--);
    case_free(&c);
}

// ---- single answers ----

// From the truth's own states, truth_gradient and truth_update give the truth's next state to the bit.
static void test_single_answers_agree(void **state)
{
    (void)state;
    struct fsdp_case c = transformer_case(3, 6, 2, 2);
    struct truth t;
    struct error error = {""};
    c.optimizer = (struct optimizer_spec){.kind = OPTIMIZER_ADAMW, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .no_decay = true};
    standard_program(&c);
    make_truth(&c, &t);
    struct tensors gradient, state_set = {0};
    double loss;
    assert_true(truth_gradient(&c, &t.data, truth_find(&t, "s0"), "param", 1, NULL, &gradient, &loss, &error));
    near(loss, t.steps[1].loss);
    const struct tensors *before = truth_find(&t, "s0");
    for (int i = 0; i < before->count; i++)
        tensors_add(&state_set, before->items[i].name, DTYPE_F64, before->items[i].dims, before->items[i].shape, before->items[i].data, true);
    assert_true(truth_update(&c, &state_set, &gradient, "grad", 2, NULL, &error));
    for (int i = 0; i < before->count; i++)
        assert_memory_equal(state_set.items[i].data, tensors_find(truth_find(&t, "s1"), before->items[i].name)->data,
                            (size_t)before->items[i].count * sizeof(double));
    for (int i = 0; i < gradient.count; i++)
        assert_memory_equal(gradient.items[i].data, tensors_find(truth_find(&t, "s1.grad"), gradient.items[i].name)->data,
                            (size_t)gradient.items[i].count * sizeof(double));
    tensors_free(&gradient);
    tensors_free(&state_set);
    remove_truth(&t);
    case_free(&c);
}

static double relative_noise(enum dtype compute, enum dtype reduce, int ranks, const char *name)
{
    struct fsdp_case c = transformer_case(ranks, 6, 1, 2);
    struct truth t;
    char full[100];
    set_precision(&c, compute, reduce);
    if (compute == DTYPE_F16) {
        c.precision.loss_scale = LOSS_SCALE_DYNAMIC;
        c.precision.scale_initial = 0x1p24; // overflows: to be halved
    }
    standard_program(&c);
    make_truth(&c, &t);
    snprintf(full, sizeof full, "s0.grad/grad/%s", name);
    const struct tensor *noise = tensors_find(&t.noise, full);
    assert_non_null(noise);
    const double *v = noise->data;
    assert_true(v[0] > 0 && v[1] > 0 && v[1] <= v[0] && v[2] > 0 && isfinite(v[0]));
    const double *g = truth_values(&t, "s0.grad", "grad", name);
    double squares = 0;
    for (int64_t e = 0; e < c.parameters[case_find_parameter(&c, name)].count; e++)
        squares += g[e] * g[e];
    near(v[2], sqrt(squares));
    double relative = v[0] / v[2];
    remove_truth(&t);
    case_free(&c);
    return relative;
}

static void test_noise_follows_the_types(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *name = (const char *[]){"blocks.0.mlp.up.weight", "embed.weight"}[i];
        double f64 = relative_noise(DTYPE_F64, DTYPE_F32, 3, name), f32 = relative_noise(DTYPE_F32, DTYPE_F32, 3, name),
               bf16 = relative_noise(DTYPE_BF16, DTYPE_F32, 3, name), both = relative_noise(DTYPE_F32, DTYPE_BF16, 3, name),
               f16 = relative_noise(DTYPE_F16, DTYPE_F32, 3, name), alone = relative_noise(DTYPE_F32, DTYPE_F32, 1, name);
        assert_true(f64 > 0x1p-27 && f64 < 0x1p-23); // the reduction alone
        assert_true(f32 > 0x1p-26 && f32 < 0x1p-20);
        assert_true(bf16 > 0x1p-10 && bf16 < 0x1p-4);
        assert_true(f16 > 0x1p-13 && f16 < bf16 / 3);
        assert_true(both > 0x1p-11 && both < 0x1p-6);
        assert_true(alone > 0x1p-26 && alone < 0x1p-20);
    }
}

static void test_random_streams(void **state)
{
    (void)state;
    struct random a = random_stream(1, "x", 0), b = random_stream(1, "x", 0), c = random_stream(1, "x", 1), d = random_stream(1, "y", 0);
    double sum = 0, squares = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = random_bits(&a);
        assert_true(bits == random_bits(&b) && bits != random_bits(&c) && bits != random_bits(&d));
        double x = random_normal(&b);
        a = b;
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / 20000) < 0.03 && fabs(squares / 20000 - 1) < 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_kinds), cmocka_unit_test(test_microbatches_add_up), cmocka_unit_test(test_adamw_by_hand),
        cmocka_unit_test(test_momentum_and_groups), cmocka_unit_test(test_clipping), cmocka_unit_test(test_overflow_is_skipped),
        cmocka_unit_test(test_freeze_eval_unfreeze), cmocka_unit_test(test_slots_save_and_load),
        cmocka_unit_test(test_load_of_another_run), cmocka_unit_test(test_undefined_programs_are_errors),
        cmocka_unit_test(test_gaussian_data), cmocka_unit_test(test_given_data), cmocka_unit_test(test_key),
        cmocka_unit_test(test_single_answers_agree), cmocka_unit_test(test_noise_follows_the_types), cmocka_unit_test(test_random_streams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
