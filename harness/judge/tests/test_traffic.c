// The formulas of traffic against counts made by hand; suite/checks/tests/test_probes.c has the checks.
//
// The case is an MLP of sizes 4, 6, 4: unit 0 has 6 x 4 + 6 = 30 elements, unit 1 has 4 x 6 + 4 = 28; together 58, in float32 232 bytes.
// One step of one or several microbatches. Every expected number below is worked out in the comment beside it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/traffic.h"
#include "harness/protocol/memory.h"

enum { LAYER = 2, PROGRAM = 8 };

struct model_of_two { struct case_parameter parameters[2 * LAYER]; struct instruction program[PROGRAM]; int64_t sizes[3]; int calls[2]; };

static void parameter(struct case_parameter *p, char *name, char *unit, int64_t rows, int64_t columns)
{
    *p = (struct case_parameter){.name = name, .unit = unit, .dims = columns > 0 ? 2 : 1, .shape = {rows, columns}, .count = columns > 0 ? rows * columns : rows, .tied_to = -1};
}

// scale: of the hidden size 6, so that there are several sizes.
static struct fsdp_case mlp(struct model_of_two *m, enum strategy strategy, int replicas, int shards, int micros, bool sync_all, int64_t scale)
{
    int64_t hidden = 6 * scale;
    *m = (struct model_of_two){.sizes = {4, hidden, 4}, .calls = {0, 1}};
    parameter(&m->parameters[0], "layers.0.weight", "layers.0", hidden, 4);
    parameter(&m->parameters[1], "layers.0.bias", "layers.0", hidden, 0);
    parameter(&m->parameters[2], "layers.1.weight", "layers.1", 4, hidden);
    parameter(&m->parameters[3], "layers.1.bias", "layers.1", 4, 0);
    for (int i = 0; i < micros; i++)
        m->program[i] = (struct instruction){.verb = VERB_MICRO, .micro = i, .sync = sync_all || i == micros - 1};
    m->program[micros] = (struct instruction){.verb = VERB_STEP};
    struct fsdp_case c = {.id = "c", .world_size = replicas * shards, .parameter_count = 4, .parameters = m->parameters, .program_length = micros + 1, .program = m->program,
                          .model = {.kind = MODEL_MLP, .size_count = 3, .sizes = m->sizes, .call_count = 2, .calls = m->calls}, .data = {.steps = 1, .micros = micros},
                          .sharding = {.strategy = strategy, .replicas = replicas, .shards = shards, .tensor = 1, .pipeline = 1, .layout = SHARD_ANY, .reshard_after_forward = true},
                          .precision = {.parameter = DTYPE_F32, .compute = DTYPE_F32, .reduce = DTYPE_F32}};
    return c;
}

static void expect(const struct traffic_phase *p, int row, enum probe_op op, int size, enum probe_type type, int64_t calls, int64_t bytes)
{
    assert_true(row < p->count);
    assert_int_equal(p->rows[row].op, op);
    assert_int_equal(p->rows[row].size, size);
    assert_int_equal(p->rows[row].type, type);
    assert_int_equal(p->rows[row].calls, calls);
    assert_int_equal(p->rows[row].bytes, bytes);
}

static void test_full(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 2, 1, true, 1);
    struct traffic_choice x = {0}, kept = {.last_kept = true};
    struct traffic_plan p = traffic_plan(&c, &x, 0);
    assert_int_equal(p.count, 3); // forward, backward, step
    assert_int_equal(p.units, 2);
    expect(&p.phases[0], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 2, 232);
    expect(&p.phases[1], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 2, 232);
    expect(&p.phases[1], 1, PROBE_REDUCE_SCATTER, 2, PROBE_F32, 2, 232);
    assert_int_equal(p.phases[2].count, 0);
    traffic_plan_free(&p);
    p = traffic_plan(&c, &kept, 0);
    expect(&p.phases[1], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 1, 120); // unit 0 alone
    traffic_plan_free(&p);
    kept.kept_later = true;
    p = traffic_plan(&c, &kept, 0);
    expect(&p.phases[1], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 2, 232); // the first backward gathers both
    traffic_plan_free(&p);
    struct fsdp_case three = mlp(&m, STRATEGY_FULL, 1, 2, 3, false, 1);
    p = traffic_plan(&three, &kept, 0);
    expect(&p.phases[1], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 2, 232);
    expect(&p.phases[3], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 1, 120);
    expect(&p.phases[5], 0, PROBE_ALL_GATHER, 2, PROBE_F32, 1, 120);
    traffic_plan_free(&p);
    c = mlp(&m, STRATEGY_FULL, 1, 2, 1, true, 1);
    // gathers 2 x 232 and reductions 232, times f(2) = 1/2; gloo reduces twice, heads each of 4 gathers by 288 and of 2 reductions by 576
    assert_float_equal(traffic_sent(&c, &x, traffic_library(NULL)), 348, 1e-9);
    assert_float_equal(traffic_sent(&c, &x, traffic_library("gloo")), 464 + 4 * 288 + 2 * 576, 1e-9);
}

static void test_padding(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 4, 1, true, 1);
    struct traffic_choice chunks = {.padding = TRAFFIC_CHUNKS}, flat = {.padding = TRAFFIC_FLAT};
    struct traffic_plan p = traffic_plan(&c, &chunks, 0);
    expect(&p.phases[0], 0, PROBE_ALL_GATHER, 4, PROBE_F32, 2, 4 * (8 * 4 + 8 + 4 * 6 + 4)); // 6 rows become 4 chunks of 2
    traffic_plan_free(&p);
    p = traffic_plan(&c, &flat, 0);
    expect(&p.phases[0], 0, PROBE_ALL_GATHER, 4, PROBE_F32, 2, 4 * (32 + 28)); // 30 becomes 32, 28 stays
    traffic_plan_free(&p);
}

static void test_types(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_GRAD, 1, 2, 1, true, 1);
    struct traffic_choice x = {0};
    c.precision.compute = DTYPE_BF16;
    struct traffic_plan p = traffic_plan(&c, &x, 0);
    assert_int_equal(p.phases[0].count, 0);
    expect(&p.phases[1], 0, PROBE_REDUCE_SCATTER, 2, PROBE_F32, 2, 232);
    expect(&p.phases[2], 0, PROBE_ALL_GATHER, 2, PROBE_BF16, 2, 116); // after the update, 2 bytes each
    traffic_plan_free(&p);
}

static void test_accumulation(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 2, 3, false, 1);
    struct traffic_choice x = {0}, kept = {.kept_unsynced = true};
    struct traffic_plan p = traffic_plan(&c, &x, 0);
    assert_int_equal(p.count, 7);
    assert_int_equal(p.phases[1].count, 1); // no reduction before the last
    assert_int_equal(p.phases[3].count, 1);
    assert_int_equal(p.phases[5].count, 2);
    traffic_plan_free(&p);
    c.sharding.reshard_after_forward = false;
    p = traffic_plan(&c, &kept, 0);
    assert_int_equal(p.phases[0].count, 1);
    assert_int_equal(p.phases[2].count, 0); // still there
    assert_int_equal(p.phases[5].count, 1);
    traffic_plan_free(&p);
}

static void test_hybrid(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_HYBRID, 2, 4, 1, true, 1);
    struct traffic_choice x = {0};
    struct traffic_plan first = traffic_plan(&c, &x, 0), last = traffic_plan(&c, &x, 3);
    expect(&first.phases[1], 1, PROBE_REDUCE_SCATTER, 4, PROBE_F32, 2, 232);
    // shard 0 has 2 of 6 rows of 4 and 2 of the bias, and 1 of 4 rows of 6 and 1: 10 + 7; shard 3 has none of the 6 rows: 0 + 7
    expect(&first.phases[1], 2, PROBE_ALL_REDUCE, 2, PROBE_F32, 2, 4 * 17);
    expect(&last.phases[1], 2, PROBE_ALL_REDUCE, 2, PROBE_F32, 2, 4 * 7);
    traffic_plan_free(&first);
    traffic_plan_free(&last);
}

static void test_alone(void **state)
{
    (void)state;
    struct model_of_two m;
    for (enum strategy s = STRATEGY_NONE; s <= STRATEGY_HYBRID; s++) {
        struct fsdp_case c = mlp(&m, s, 1, 1, 1, true, 1);
        struct traffic_choice x = {0};
        struct traffic_plan p = traffic_plan(&c, &x, 0);
        for (int i = 0; i < p.count; i++)
            assert_int_equal(p.phases[i].count, 0);
        traffic_plan_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full), cmocka_unit_test(test_padding), cmocka_unit_test(test_types), cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_hybrid), cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
