// Where the best strategy changes, against closed forms; intervals; units of quantities; the model of a case.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/advise/advise.h"
#include "harness/advise/quantity.h"
#include "harness/advise/tests/made_up.h"
#include "harness/cases/draft.h"
#include "harness/protocol/document.h"

#include <stdlib.h>
#include <string.h>

// Without overlap and latency, U units of B bytes and an update of O seconds over n ranks:
//   full - none = (U - 1) (n - 1) / n B / bandwidth - O (n - 1) / n     so that full is faster above (U - 1) B / O
static const int UNITS = 5, RANKS = 4;
static const double ELEMENTS = 1000, UPDATE_RATE = 1e3;
static const struct schedule NONE = {STRATEGY_NONE, 4, 1, true, 0, 0}, FULL = {STRATEGY_FULL, 1, 4, true, 0, 0};

static double formula(double update_rate) { return (UNITS - 1) * 4 * ELEMENTS / (UNITS * 28 * ELEMENTS / update_rate); }

static struct machine make(struct made_up *m)
{
    struct machine machine = plain_machine(0, 1);
    make_up(m, UNITS, ELEMENTS, 10);
    machine.update_rate = UPDATE_RATE;
    return machine;
}

static void one_change(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = make(&m);
    const struct candidate c[] = {{"none", NONE, &m.w}, {"full", FULL, &m.w}};
    struct crossing out[CROSSINGS];
    assert_int_equal(crossover_scan(&machine, 2, c, 1, 1e6, out), 1);
    assert_int_equal(out[0].from, 0);
    assert_int_equal(out[0].to, 1);
    assert_float_equal(out[0].bandwidth / formula(UPDATE_RATE), 1, 2e-3);
    assert_float_equal(crossover_between(&machine, &c[1], &c[0], 1, 1e6) / formula(UPDATE_RATE), 1, 2e-3);
    assert_true(isinf(crossover_between(&machine, &c[1], &c[0], 1, 10)));       // below the change full never wins
    assert_true(crossover_between(&machine, &c[1], &c[0], 1e5, 1e6) == 0);       // above it always
    assert_int_equal(crossover_scan(&machine, 2, c, 1e5, 1e6, out), 0);
}

// exposed / step = x / (C + x) = share, x = (3 U - 1) (n - 1) / n B / bandwidth.
static void bound_by_computing(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = make(&m);
    machine.update_rate = INFINITY;
    const struct candidate full = {"full", FULL, &m.w};
    double x = 0.05 / 0.95 * UNITS * 30, wanted = (3 * UNITS - 1) * (RANKS - 1.0) / RANKS * 4 * ELEMENTS / x;
    assert_float_equal(crossover_bound(&machine, &full, 0.05, 1, 1e9) / wanted, 1, 2e-3);
    machine.tiers[0].alpha_s = 1; // 14 s of latency in 164 s
    assert_true(isinf(crossover_bound(&machine, &full, 0.05, 1, 1e9)));
}

// The change is proportional to the update's rate, so that its logarithm has the rate's deviation.
static void intervals_follow_the_doubt(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = make(&m);
    const struct candidate none = {"none", NONE, &m.w}, full = {"full", FULL, &m.w};
    struct spread exact = {0}, doubt = {.update_rate = 0.1};
    struct interval i = crossover_interval(&machine, &exact, &full, &none, 1, 1e6);
    assert_true(i.low == i.value && i.high == i.value && i.count == 0);
    i = crossover_interval(&machine, &doubt, &full, &none, 1, 1e6);
    assert_float_equal(i.value / formula(UPDATE_RATE), 1, 2e-3);
    assert_float_equal(log(i.high / i.value), 1.96 * 0.1, 0.05);
    assert_float_equal(log(i.value / i.low), 1.96 * 0.1, 0.05);
    assert_float_equal(spread_of(&(struct interval){1, exp(-0.196), exp(0.196), 0.95, 9}), 0.1, 1e-3);
    assert_float_equal(spread_of(&(struct interval){1, -0.5, exp(0.196), 0.95, 9}), 0.1, 1e-3); // holds 0
}

static void quantities(void **state)
{
    (void)state;
    static const struct { const char *text; enum quantity kind; double value; } good[] = {
        {"100Mbit/s", QUANTITY_BANDWIDTH, 12.5e6}, {"50 GB/s", QUANTITY_BANDWIDTH, 50e9}, {"1GiB/s", QUANTITY_BANDWIDTH, 1073741824.}, {"5us", QUANTITY_SECONDS, 5e-6},
        {"0.2ms", QUANTITY_SECONDS, 2e-4}, {"80GB", QUANTITY_BYTES, 80e9}, {"64GiB", QUANTITY_BYTES, 68719476736.}, {"400T", QUANTITY_FLOPS, 4e14}, {"2GB/s", QUANTITY_BYTE_RATE, 2e9}};
    static const struct { const char *text; enum quantity kind; } bad[] = {
        {"100", QUANTITY_BANDWIDTH}, {"fast", QUANTITY_BANDWIDTH}, {"-5us", QUANTITY_SECONDS}, {"0s", QUANTITY_SECONDS}, {"5", QUANTITY_SECONDS}, {"80", QUANTITY_BYTES},
        {"1XB", QUANTITY_BYTES}, {"", QUANTITY_FLOPS}, {"nan", QUANTITY_FLOPS}, {"inf", QUANTITY_FLOPS}, {"5 usec", QUANTITY_SECONDS}};
    double value;
    char text[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(quantity_read(good[i].text, good[i].kind, &value));
        assert_float_equal(value / good[i].value, 1, 1e-12);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(quantity_read(bad[i].text, bad[i].kind, &value));
    assert_string_equal(quantity_write(12.5e6, QUANTITY_BANDWIDTH, text, sizeof text), "100 Mbit/s");
    assert_string_equal(quantity_write(0.00123, QUANTITY_SECONDS, text, sizeof text), "1.23 ms");
    assert_string_equal(quantity_write(999.9e6, QUANTITY_BYTES, text, sizeof text), "1.00 GB");
    assert_string_equal(quantity_write(99.99, QUANTITY_BYTES, text, sizeof text), "100 B");
}

static void read_case(const char *text, struct fsdp_case *out)
{
    struct document doc;
    struct draft d;
    struct error error = {""};
    assert_true(document_parse(text, strlen(text), "test", &doc, &error));
    draft_start(&d);
    assert_true(draft_overlay(&d, &doc, doc.root, DRAFT_CASE, &error) && draft_finish(&d, &doc, doc.root, &error));
    case_copy(out, &d.c);
    draft_free(&d);
    document_free(&doc);
}

// Calls: embedding, blocks, head; the root is read at both ends.
static void model_of_a_case(void **state)
{
    (void)state;
    struct fsdp_case c;
    struct workload_model w;
    struct error error = {""};
    read_case("{name: x, title: x, layer: measured, model: {kind: transformer, layers: 3, dim: 8, heads: 2, ffn: 32, vocab: 16, context: 4}, micros: 2, sync: last, optimizer: {kind: adamw}, "
              "layout: per_parameter}", &c);
    assert_true(workload_create(&w, &c, 5, &error));
    assert_int_equal(w.unit_count, 4);
    assert_int_equal(w.call_count, 5);
    assert_true(w.units[0].root && w.units[0].first_call == 0 && w.units[0].last_call == 4);
    assert_float_equal(workload_elements(&w), 2 * 16 * 8 + 4 * 8 + 2 * 8 + 3 * (4 * (64 + 8) + 2 * 8 * 32 + 32 + 8 + 4 * 8), 0);
    assert_float_equal(w.tokens, 2 * 5 * 4, 0);
    assert_false(w.sync_all);
    assert_int_equal(w.states, 2);
    double products = 5 * 4 * 2.0 * (4 * 64 + 2 * 8 * 32), attention = 5 * 10 * 4.0 * 8, head = 5 * 4 * 2.0 * 16 * 8; // 10 pairs of 4 tokens
    assert_float_equal(w.flop, 2 * 3 * (3 * (products + attention) + head), 1e-6);
    double part = 0; // chunks of rows over 3 shards: 16 rows are 6, 6, 4; 8 are 3, 3, 2; 4 are 2, 2, 0
    part += 2 * 6 * 8 + 2 * 8 + 3 + 3;
    assert_float_equal(workload_part(&w, 0, 3), part, 0);
    workload_free(&w);
    case_free(&c);
}

// More ranks need less of a rank, more rows more; what fits is found exactly.
static void memory_of_a_rank(void **state)
{
    (void)state;
    struct fsdp_case c;
    struct workload_model w;
    struct error error = {""};
    read_case("{name: x, title: x, layer: measured, model: {kind: transformer, layers: 4, dim: 64, heads: 4, vocab: 512, context: 32}, optimizer: {kind: adamw}, precision: f32}", &c);
    assert_true(workload_create(&w, &c, 1, &error));
    struct schedule none = {STRATEGY_NONE, 8, 1, true, 1, 1}, grad = {STRATEGY_GRAD, 1, 8, true, 1, 1}, full = {STRATEGY_FULL, 1, 8, true, 1, 1}, more = {STRATEGY_FULL, 1, 64, true, 1, 1};
    double of_none = advise_memory(&c, &w, &none, 1, &error), of_grad = advise_memory(&c, &w, &grad, 1, &error), of_full = advise_memory(&c, &w, &full, 1, &error);
    assert_true(of_none > of_grad && of_grad > of_full && of_full > advise_memory(&c, &w, &more, 1, &error));
    assert_true(of_none - of_grad > 0.8 * 7 / 8.0 * 12 * workload_elements(&w)); // gradients and two states, an eighth of each
    int64_t rows = advise_rows_that_fit(&c, &full, 40e6, &error);
    assert_true(rows > 1 && advise_memory(&c, &w, &full, rows, &error) <= 40e6 && advise_memory(&c, &w, &full, rows + 1, &error) > 40e6);
    assert_int_equal(advise_rows_that_fit(&c, &full, 1000, &error), 0);
    workload_free(&w);
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_change), cmocka_unit_test(bound_by_computing), cmocka_unit_test(intervals_follow_the_doubt), cmocka_unit_test(quantities),
                                       cmocka_unit_test(model_of_a_case), cmocka_unit_test(memory_of_a_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
