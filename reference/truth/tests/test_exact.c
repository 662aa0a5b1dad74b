// Exact recipes: they certify, no order of any sum changes a bit in float32, the data do not depend on the rank count,
// and a case that rounds is refused.
#include "reference/truth/tests/cases.h"

#include "reference/models/pass.h"
#include "reference/truth/loss.h"

// ---- training in the case's own types, in three orders of every sum over rows ----

enum order { ROWS_UP, ROWS_DOWN, ROWS_IN_PAIRS, ORDERS };

// The k-th group of rows in that order.
static void group(enum order order, int64_t rows, int64_t k, int64_t *first, int64_t *end)
{
    if (order == ROWS_IN_PAIRS) {
        *first = 2 * k < rows ? 2 * k : rows;
        *end = *first + 2 < rows ? *first + 2 : rows;
    } else {
        *first = order == ROWS_UP ? k : rows - 1 - k;
        *end = *first + 1;
    }
}

// Gradient sum over groups of rows, scaled by N and divided by N at the end, one rounding each; SGD. Compared with the truth
// to the bit after every step.
static void train_narrow(const struct fsdp_case *c, const struct truth *t, enum order order)
{
    struct error error = {""};
    struct model m;
    struct model_pass pass;
    const int n = c->parameter_count;
    float *w[64], *g[64], *part[64];
    char label[32];
    assert_true(n <= 64 && model_create(&m, c, DTYPE_F32, &error) && model_pass_open(&pass, &m, c->global_rows, &error));
    for (int p = 0; p < n; p++) {
        size_t bytes = (size_t)c->parameters[p].count * sizeof(float);
        w[p] = memory_copy(tensors_find(&t->init, c->parameters[p].name)->data, bytes, 1);
        g[p] = memory_zeros(bytes, 1);
        part[p] = memory_zeros(bytes, 1);
    }
    const struct model_arrays arrays = {(const void *const *)w, (void *const *)part};
    for (int step = 0; step < c->data.steps; step++) {
        for (int p = 0; p < n; p++)
            memset(g[p], 0, (size_t)c->parameters[p].count * sizeof(float));
        for (int micro = 0; micro < c->data.micros; micro++)
            for (int64_t k = 0; k < c->global_rows; k++) {
                struct model_batch batch;
                int64_t first, end;
                double loss;
                group(order, c->global_rows, k, &first, &end);
                assert_true(model_batch_at(c, &t->data, step, micro, first, end, NULL, &batch, &error));
                batch.scale = c->world_size;
                model_pass_forward(&pass, &batch, &arrays, &loss);
                model_pass_backward(&pass, &batch, &arrays);
                for (int p = 0; p < n; p++) {
                    for (int64_t e = 0; e < c->parameters[p].count; e++)
                        g[p][e] += part[p][e];
                    memset(part[p], 0, (size_t)c->parameters[p].count * sizeof(float));
                }
            }
        snprintf(label, sizeof label, "s%d", step);
        for (int p = 0; p < n; p++) {
            const double *right = truth_values(t, label, "param", c->parameters[p].name);
            for (int64_t e = 0; e < c->parameters[p].count; e++) {
                w[p][e] -= (float)c->optimizer.lr * (g[p][e] / (float)c->world_size);
                assert_true(w[p][e] == right[e]);
            }
        }
    }
    for (int p = 0; p < n; p++) {
        free(w[p]);
        free(g[p]);
        free(part[p]);
    }
    model_pass_close(&pass);
    model_free(&m);
}

static void test_exact_in_every_order(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        struct fsdp_case c = mlp_case("exact", ranks, 16, 2, 2);
        struct truth t;
        c.layer = LAYER_EXACT;
        c.optimizer.lr = 0.5;
        standard_program(&c);
        make_truth(&c, &t);
        assert_true(t.exact && t.exact_gradients);
        assert_true(t.certificate_bits > 3 && t.certificate_bits <= 24);
        assert_true(t.smallest_gradient_share > 0.15);
        for (int order = 0; order < ORDERS; order++)
            train_narrow(&c, &t, (enum order)order);
        remove_truth(&t);
        case_free(&c);
    }
}

static uint64_t checksum(const struct tensors *set)
{
    uint64_t sum = 0;
    for (int i = 0; i < set->count; i++)
        for (int64_t b = 0; b < set->items[i].count * (int64_t)dtype_size(set->items[i].dtype); b++)
            sum = sum * 1099511628211u + ((const unsigned char *)set->items[i].data)[b];
    return sum;
}

static void check_data_do_not_depend_on_ranks(const char *recipe, int64_t steps, enum dtype compute)
{
    uint64_t first = 0;
    for (int ranks = 1; ranks <= 4; ranks *= 2) {
        struct fsdp_case c = mlp_case(recipe, ranks, 8, steps, 1);
        struct truth t;
        set_precision(&c, compute, DTYPE_F32);
        c.optimizer.lr = 0.5;
        standard_program(&c);
        make_truth(&c, &t);
        uint64_t sum = checksum(&t.data) + checksum(&t.init) + checksum(truth_find(&t, steps == 1 ? "s0" : "s1"));
        if (ranks == 1)
            first = sum;
        assert_true(sum == first);
        remove_truth(&t);
        case_free(&c);
    }
}

static void test_data_do_not_depend_on_ranks(void **state)
{
    (void)state;
    check_data_do_not_depend_on_ranks("exact", 2, DTYPE_F32);
    check_data_do_not_depend_on_ranks("exact", 2, DTYPE_BF16);
    check_data_do_not_depend_on_ranks("exact", 2, DTYPE_F16);
    check_data_do_not_depend_on_ranks("wide", 1, DTYPE_F32);
}

// In a 16-bit case all parameters and gradients are numbers of that type.
static void test_exact_in_16_bits(void **state)
{
    (void)state;
    const enum dtype types[] = {DTYPE_BF16, DTYPE_F16};
    for (int i = 0; i < 2; i++) {
        struct fsdp_case c = mlp_case("exact", 2, 8, 2, 1);
        struct truth t;
        set_precision(&c, types[i], types[i]);
        c.optimizer.lr = 0.5;
        standard_program(&c);
        make_truth(&c, &t);
        for (int l = 0; l < t.label_count; l++)
            for (int k = 0; k < t.labels[l].tensors.count; k++) {
                const struct tensor *x = &t.labels[l].tensors.items[k];
                for (int64_t e = 0; e < x->count; e++) {
                    uint16_t half;
                    dtype_set(types[i], &half, 0, ((double *)x->data)[e]);
                    assert_true(dtype_get(types[i], &half, 0) == ((double *)x->data)[e]);
                }
            }
        remove_truth(&t);
        case_free(&c);
    }
}

static void test_wide_needs_more_than_bf16(void **state)
{
    (void)state;
    struct fsdp_case c = mlp_case("wide", 3, 6, 1, 2);
    struct truth t;
    standard_program(&c);
    make_truth(&c, &t);
    assert_true(t.exact && t.certificate_bits > 13);
    const double *g = truth_values(&t, "s0.grad", "grad", "layers.0.weight");
    int64_t beyond = 0;
    for (int64_t e = 0; e < 30; e++)
        beyond += bf16_to_f32(bf16_from_f64(g[e])) != g[e];
    assert_true(beyond > 0);
    remove_truth(&t);
    case_free(&c);
}

static void expect_refusal(struct fsdp_case *c, const char *message)
{
    struct error error;
    struct truth t;
    if (c->program_length == 0)
        standard_program(c);
    if (try_truth(c, &t, &error))
        fail_msg("made, expected a refusal: %s", message);
    if (strstr(error.text, message) == NULL)
        fail_msg("found: %s\nexpected: %s", error.text, message);
    remove_truth(NULL);
    case_free(c);
}

static void test_what_rounds_is_refused(void **state)
{
    (void)state;
    struct fsdp_case c = mlp_case("exact", 2, 8, 2, 1);
    c.optimizer.lr = 0.3;
    expect_refusal(&c, "the update is with a rate that is no power of two: it rounds");
    c = mlp_case("exact", 2, 8, 2, 1);
    c.optimizer.kind = OPTIMIZER_ADAMW;
    expect_refusal(&c, "the update is not plain SGD: it rounds");
    c = mlp_case("exact", 2, 8, 1, 1);
    c.optimizer.momentum = 0.9;
    expect_refusal(&c, "the update is not plain SGD: it rounds");
    c = mlp_case("exact", 2, 8, 1, 1);
    c.loss = LOSS_MEAN_OF_TOKENS;
    c.data.uneven_tokens = true; // a mean over 6 rows
    expect_refusal(&c, "no exact data for this case");
    c = mlp_case("wide", 2, 8, 1, 1);
    set_precision(&c, DTYPE_F32, DTYPE_BF16);
    expect_refusal(&c, "bits, but bf16 holds 8");
    c = mlp_case("exact", 2, 8, 1, 1);
    c.clip = CLIP_L2;
    c.clip_limit = 0.5;
    expect_refusal(&c, "the update is of clipped gradients: it rounds");
    c = transformer_case(2, 4, 1, 1);
    free(c.data.recipe);
    c.data.recipe = memory_text("exact");
    expect_refusal(&c, "recipe exact with model transformer, expected an mlp");
}

// The same witness with sums that its types hold, and with such that they do not.
static void test_witness_certificate(void **state)
{
    (void)state;
    struct fsdp_case c = witness_case("values", 2, 2, 1, 1, 3);
    struct truth t;
    SET_VALUES(&c, 3, 5);
    standard_program(&c);
    make_truth(&c, &t);
    assert_true(t.exact && t.exact_gradients);
    assert_int_equal((int)truth_values(&t, "s0.grad", "grad", "u0.w")[2], 4);
    remove_truth(&t);
    set_precision(&c, DTYPE_F32, DTYPE_BF16);
    c.data.values[0] = 256;
    c.data.values[1] = 1;
    make_truth(&c, &t); // 256 + 1 rounds in bf16
    assert_false(t.exact_gradients);
    assert_non_null(strstr(t.inexact, "the sum over ranks of u0.w at N = 2: terms sum up to 257 with a lowest bit of 1"));
    remove_truth(&t);
    case_free(&c);
    c = witness_case("values", 3, 3, 1, 1, 3);
    SET_VALUES(&c, 3, 5, 5); // 13/3
    standard_program(&c);
    make_truth(&c, &t);
    assert_false(t.exact_gradients);
    remove_truth(&t);
    case_free(&c);
}

static void test_integers_are_unique_and_exact(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        struct fsdp_case c = witness_case("integers", ranks, 8, 2, 3, 37);
        struct truth t;
        c.loss = LOSS_SUM;
        standard_program(&c);
        make_truth(&c, &t);
        assert_true(t.exact);
        const struct tensor *x = tensors_find(&t.data, "x/u0.w");
        for (int64_t i = 0; i < x->count; i++)
            for (int64_t k = 0; k < i; k++)
                assert_true(((float *)x->data)[i] != ((float *)x->data)[k]);
        remove_truth(&t);
        case_free(&c);
        c = witness_case("integers", ranks, ranks, 1, 1, 37);
        standard_program(&c);
        make_truth(&c, &t);
        const double *g = truth_values(&t, "s0.grad", "grad", "u0.w");
        for (int64_t e = 1; e < 37; e++)
            assert_true(t.exact_gradients && g[e] > g[e - 1]);
        remove_truth(&t);
        case_free(&c);
    }
}

// Eight bits do not hold 300 unlike integers, but neighbours differ still.
static void test_integers_in_bf16(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        struct fsdp_case c = witness_case("integers", ranks, ranks, 1, 2, 300);
        struct truth t;
        set_precision(&c, DTYPE_BF16, DTYPE_BF16);
        standard_program(&c);
        make_truth(&c, &t);
        const double *g = truth_values(&t, "s0.grad", "grad", "u0.w");
        assert_true(t.exact_gradients);
        for (int64_t e = 1; e < 300; e++)
            assert_true(g[e] != g[e - 1]);
        remove_truth(&t);
        case_free(&c);
    }
}

// Good data spoilt by hand: the rows of rank 1 count nothing, so that its absence would not show.
static void test_a_rank_without_a_share_is_refused(void **state)
{
    (void)state;
    struct fsdp_case c = mlp_case("exact", 2, 8, 1, 1);
    struct truth t;
    struct error error = {""};
    char path[300];
    c.layer = LAYER_EXACT;
    standard_program(&c);
    make_truth(&c, &t);
    float *weight = tensors_find(&t.data, "weight")->data;
    for (int row = 4; row < 8; row++)
        weight[row] = 0;
    snprintf(path, sizeof path, "%s/data.safetensors", made_folder);
    assert_true(tensors_write(path, &t.data, &error));
    free(c.data.recipe);
    c.data.recipe = memory_text("given");
    assert_false(truth_make(&c, made_folder, &error));
    assert_non_null(strstr(error.text, "rank 1 of 2 ranks contributes nothing to the gradient of layers.0.weight"));
    remove_truth(&t);
    case_free(&c);
}

static void test_equal_data_are_refused(void **state)
{
    (void)state;
    struct fsdp_case c = witness_case("values", 2, 2, 1, 1, 3);
    SET_VALUES(&c, 4);
    expect_refusal(&c, "step 0: the data of all ranks are alike; equal data hide a missing reduction");
    c = witness_case("values", 2, 2, 1, 2, 3);
    SET_VALUES(&c, 4, 3);
    expect_refusal(&c, "step 0: the data of all microbatches are alike");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_in_every_order), cmocka_unit_test(test_data_do_not_depend_on_ranks),
        cmocka_unit_test(test_exact_in_16_bits), cmocka_unit_test(test_wide_needs_more_than_bf16),
        cmocka_unit_test(test_what_rounds_is_refused), cmocka_unit_test(test_witness_certificate),
        cmocka_unit_test(test_integers_are_unique_and_exact), cmocka_unit_test(test_integers_in_bf16), cmocka_unit_test(test_a_rank_without_a_share_is_refused),
        cmocka_unit_test(test_equal_data_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
