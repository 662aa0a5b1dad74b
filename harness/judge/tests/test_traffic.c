// The formulas of traffic against counts made by hand, and the checks on hand-made records.
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
#include "suite/checks/check.h"

extern const struct check check_traffic_counts, check_traffic_bytes, check_traffic_slope;

enum { LAYER = 2, PROGRAM = 8, ENTRIES = 16 };

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

// ---- hand-made records ----

struct records {
    struct probe_phase phases[PROGRAM];
    struct probe_traffic traffic[PROGRAM][ENTRIES];
    struct probe_case probes[2];
    struct answer answers[2];
    struct evidence e;
};

static void phase(struct records *r, const char *name, int step)
{
    int at = r->probes[0].phase_count++;
    r->phases[at] = (struct probe_phase){.name = name, .step = step, .traffic = r->traffic[at]};
}

static void moves(struct records *r, enum probe_op op, enum probe_type type, int64_t calls, int64_t bytes)
{
    struct probe_phase *p = &r->phases[r->probes[0].phase_count - 1];
    p->traffic[p->traffic_count++] = (struct probe_traffic){.kind = PROBE_COLLECTIVE, .op = op, .type = type, .size = 2, .calls = calls, .bytes = bytes,
                                                            .wire = op == PROBE_ALL_REDUCE ? bytes : bytes / 2};
}

static void begin(struct records *r, const struct fsdp_case *c, unsigned probes)
{
    *r = (struct records){.e = {.c = c, .world_size = 2, .answers = r->answers, .probes = r->probes}};
    r->probes[0] = (struct probe_case){.probes = probes, .phases = r->phases};
    phase(r, "case", 0);
    phase(r, "forward", 0);
}

static struct finding verdict(struct records *r, const struct check *check)
{
    struct finding f = {0};
    r->probes[1] = r->probes[0];
    r->probes[1].rank = 1;
    assert_true(check->applies(&r->e));
    check->judge(&r->e, &f);
    assert_true(f.emitted);
    return f;
}

static void right(struct records *r, const struct fsdp_case *c)
{
    begin(r, c, 1u << PROBE_MPI);
    moves(r, PROBE_ALL_GATHER, PROBE_F32, 2, 232);
    moves(r, PROBE_ALL_GATHER, PROBE_F64, 1, 16); // tokens
    phase(r, "backward", 0);
    moves(r, PROBE_ALL_GATHER, PROBE_F32, 1, 120);
    moves(r, PROBE_ALL_TO_ALL, PROBE_F32, 2, 232);
}

static void test_right(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 2, 1, true, 1);
    struct records r;
    right(&r, &c);
    phase(&r, "observe", 0);
    moves(&r, PROBE_ALL_GATHER, PROBE_F32, 9, 9999); // no matter
    phase(&r, "step", 0);
    struct finding f = verdict(&r, &check_traffic_counts);
    assert_int_equal(f.verdict, VERDICT_PASS);
    assert_non_null(strstr(f.message, "the last unit stays gathered"));
    assert_int_equal(verdict(&r, &check_traffic_bytes).verdict, VERDICT_PASS);
    r.phases[2].traffic[1].wire -= 40; // less on the wire than its payload needs
    assert_int_equal(verdict(&r, &check_traffic_bytes).verdict, VERDICT_FAIL);
}

static void test_recomputation(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 2, 1, true, 1);
    struct records r;
    c.sharding.activation_checkpointing = true;
    right(&r, &c);
    r.phases[2].traffic[0] = (struct probe_traffic){.kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .type = PROBE_F32, .size = 2, .calls = 4, .bytes = 464, .wire = 232};
    phase(&r, "step", 0);
    struct finding f = verdict(&r, &check_traffic_counts);
    assert_int_equal(f.verdict, VERDICT_FAIL);
    assert_float_equal(f.figure, 2, 0);
    assert_string_equal(f.classes, "Z30 Z28");
    assert_non_null(strstr(f.message, "gathered again for the recomputation"));
    f = verdict(&r, &check_traffic_bytes);
    assert_int_equal(f.verdict, VERDICT_FAIL);
    assert_float_equal(f.figure, 232, 0);
}

static void test_wrong(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_GRAD, 1, 2, 1, true, 1);
    struct records r;
    struct finding f;
    begin(&r, &c, 1u << PROBE_NCCL); // an all-reduce where a reduce-scatter does
    phase(&r, "backward", 0);
    moves(&r, PROBE_ALL_REDUCE, PROBE_F32, 2, 232);
    phase(&r, "step", 0);
    moves(&r, PROBE_ALL_GATHER, PROBE_F32, 2, 232);
    f = verdict(&r, &check_traffic_counts);
    assert_int_equal(f.verdict, VERDICT_FAIL);
    begin(&r, &c, 1u << PROBE_NCCL); // a gather is missing
    phase(&r, "backward", 0);
    moves(&r, PROBE_REDUCE_SCATTER, PROBE_F32, 2, 232);
    phase(&r, "step", 0);
    f = verdict(&r, &check_traffic_counts);
    assert_int_equal(f.verdict, VERDICT_FAIL);
    assert_non_null(strstr(f.message, "it is missing"));
    begin(&r, &c, 1u << PROBE_NCCL); // another dtype of the same width
    phase(&r, "backward", 0);
    moves(&r, PROBE_REDUCE_SCATTER, PROBE_I32, 2, 232);
    phase(&r, "step", 0);
    moves(&r, PROBE_ALL_GATHER, PROBE_F32, 2, 232);
    assert_int_equal(verdict(&r, &check_traffic_counts).verdict, VERDICT_FAIL);
}

static void test_unseen(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 2, 1, true, 1);
    struct records r;
    begin(&r, &c, 1u << PROBE_MPI | 1u << PROBE_SOCKET);
    phase(&r, "backward", 0);
    phase(&r, "step", 0);
    assert_int_equal(verdict(&r, &check_traffic_counts).verdict, VERDICT_BROKEN);
    assert_int_equal(verdict(&r, &check_traffic_bytes).verdict, VERDICT_BROKEN);
    r.probes[0].unseen = 3;
    r.probes[0].unseen_call = "io_uring_enter";
    assert_int_equal(verdict(&r, &check_traffic_counts).verdict, VERDICT_SKIP);
    right(&r, &c);
    phase(&r, "step", 0);
    r.probes[0].lost = 1;
    assert_int_equal(verdict(&r, &check_traffic_counts).verdict, VERDICT_BROKEN);
    right(&r, &c);
    phase(&r, "clip", 0); // the program has a step there
    assert_int_equal(verdict(&r, &check_traffic_bytes).verdict, VERDICT_BROKEN);
    struct evidence e = {.c = &c, .world_size = 2, .probe_error = "no file"};
    struct finding f = {0};
    assert_true(check_traffic_counts.applies(&e));
    check_traffic_counts.judge(&e, &f);
    assert_int_equal(f.verdict, VERDICT_BROKEN);
}

static void test_unmarked_backward(void **state)
{
    (void)state;
    struct model_of_two m;
    struct fsdp_case c = mlp(&m, STRATEGY_FULL, 1, 2, 1, true, 1);
    struct records r;
    begin(&r, &c, 1u << PROBE_MPI);
    moves(&r, PROBE_ALL_GATHER, PROBE_F32, 4, 464);
    moves(&r, PROBE_REDUCE_SCATTER, PROBE_F32, 2, 232);
    phase(&r, "step", 0);
    assert_int_equal(verdict(&r, &check_traffic_counts).verdict, VERDICT_PASS);
}

// Bytes of three sizes: `times` the plan's of the minimum, and 500 whatever the size.
static struct finding slope_of(double times, bool checkpointing)
{
    enum { SIZES = 3 };
    static struct model_of_two models[SIZES];
    static struct fsdp_case cases[SIZES];
    static struct records r[SIZES];
    struct probed_case others[SIZES - 1];
    struct traffic_choice x = {0};
    for (int i = 0; i < SIZES; i++) {
        cases[i] = mlp(&models[i], STRATEGY_FULL, 1, 2, 1, true, 100 * (i + 1));
        cases[i].sharding.activation_checkpointing = checkpointing;
        begin(&r[i], &cases[i], 1u << PROBE_SOCKET);
        double sent = times * traffic_sent(&cases[i], &x, traffic_library(NULL)) + 500;
        r[i].traffic[1][0] = (struct probe_traffic){.kind = PROBE_SEND, .calls = 1, .bytes = (int64_t)sent};
        r[i].phases[1].traffic_count = 1;
        phase(&r[i], "backward", 0);
        phase(&r[i], "step", 0);
        r[i].probes[1] = r[i].probes[0];
        if (i < SIZES - 1)
            others[i] = (struct probed_case){.c = &cases[i], .probes = r[i].probes};
    }
    r[SIZES - 1].e.probed = others;
    r[SIZES - 1].e.probed_count = SIZES - 2;
    assert_false(check_traffic_slope.applies(&r[SIZES - 1].e)); // two sizes
    r[SIZES - 1].e.probed_count = SIZES - 1;
    return verdict(&r[SIZES - 1], &check_traffic_slope);
}

static void test_slope(void **state)
{
    (void)state;
    struct finding f = slope_of(1, false);
    assert_int_equal(f.verdict, VERDICT_PASS);
    assert_true(f.figure < 1e-3);
    assert_non_null(strstr(f.message, "6.000")); // 12 bytes f(2)
    f = slope_of(4.0 / 3, true); // a third gather of four bytes
    assert_int_equal(f.verdict, VERDICT_FAIL);
    assert_non_null(strstr(f.message, "1.00 gathers"));
    assert_string_equal(f.classes, "Z30 Z28");
    assert_int_equal(slope_of(1.03, false).verdict, VERDICT_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full), cmocka_unit_test(test_padding), cmocka_unit_test(test_types), cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_hybrid), cmocka_unit_test(test_alone), cmocka_unit_test(test_right), cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_wrong), cmocka_unit_test(test_unseen), cmocka_unit_test(test_unmarked_backward), cmocka_unit_test(test_slope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
