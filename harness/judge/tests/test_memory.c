// The memory model against numbers computed by hand, and what hand-made records of probes say.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/judge/memory_hold.h"

static struct fsdp_case adam(enum strategy strategy, int replicas, int shards)
{
    struct fsdp_case c = {.id = (char *)(uintptr_t)"memory.x", .world_size = replicas * shards,
                          .sharding = {.strategy = strategy, .replicas = replicas, .shards = shards, .tensor = 1, .pipeline = 1, .reshard_after_forward = true},
                          .precision = {.parameter = DTYPE_F32, .compute = DTYPE_F32, .reduce = DTYPE_F32, .optimizer_state = DTYPE_F32},
                          .optimizer = {.kind = OPTIMIZER_ADAMW}};
    return c;
}

static double at(const struct fsdp_case *c, bool whole, enum memory_phase phase)
{
    struct memory_model m = memory_model_of(c, whole);
    return memory_share_bytes(memory_model_at(&m, phase), c->sharding.shards);
}

// float32 and Adam: w = g = 4, k = 8.
static void strategies_hold_what_they_must(void **state)
{
    (void)state;
    struct fsdp_case none = adam(STRATEGY_NONE, 4, 1), optimizer = adam(STRATEGY_OPTIMIZER, 1, 4), grad = adam(STRATEGY_GRAD, 1, 4),
                     full = adam(STRATEGY_FULL, 1, 4), hybrid = adam(STRATEGY_HYBRID, 2, 2);
    assert_true(at(&none, true, MEMORY_REST) == 16);
    assert_true(at(&optimizer, true, MEMORY_REST) == 8 + 8.0 / 4);
    assert_true(at(&grad, true, MEMORY_REST) == 4 + 12.0 / 4);
    assert_true(at(&grad, false, MEMORY_REST) == 16.0 / 4 && at(&grad, false, MEMORY_FORWARD) == 16.0 / 4 + 4);
    assert_true(at(&full, false, MEMORY_REST) == 4 && at(&full, false, MEMORY_BACKWARD) == 4);
    assert_true(at(&hybrid, false, MEMORY_REST) == 8);
    none.optimizer = (struct optimizer_spec){.kind = OPTIMIZER_SGD};
    assert_true(at(&none, true, MEMORY_REST) == 8);
    none.optimizer.momentum = 0.5;
    assert_true(at(&none, true, MEMORY_REST) == 12);
}

static void options_have_their_own_terms(void **state)
{
    (void)state;
    struct fsdp_case kept = adam(STRATEGY_FULL, 1, 2), waiting = adam(STRATEGY_FULL, 1, 2), bf16 = adam(STRATEGY_NONE, 2, 1), offload = adam(STRATEGY_FULL, 1, 2);
    struct instruction micro = {.verb = VERB_MICRO, .sync = false};
    kept.sharding.reshard_after_forward = false;
    assert_true(at(&kept, false, MEMORY_FORWARD) == 8 + 4 && at(&kept, false, MEMORY_STEP) == 8);
    waiting.program = &micro;
    waiting.program_length = 1;
    assert_true(at(&waiting, false, MEMORY_BACKWARD) == 8 + 4 && at(&waiting, false, MEMORY_REST) == 8);
    waiting.sharding.strategy = STRATEGY_NONE;
    waiting.sharding.shards = 1;
    assert_true(at(&waiting, true, MEMORY_BACKWARD) == 16);
    bf16.precision.compute = DTYPE_BF16;
    assert_true(at(&bf16, true, MEMORY_REST) == 16 + 2);
    offload.sharding.offload = OFFLOAD_CPU;
    assert_true(at(&offload, false, MEMORY_REST) == 8);
}

// Half of the parameters is frozen in the last step: their gradients may be missing, and their states where they never trained.
static void what_is_frozen_may_be_absent(void **state)
{
    (void)state;
    struct fsdp_case c = adam(STRATEGY_FULL, 1, 2);
    struct case_parameter parameters[] = {{.name = (char *)(uintptr_t)"a.w", .count = 10, .tied_to = -1}, {.name = (char *)(uintptr_t)"b.w", .count = 10, .tied_to = -1}};
    struct instruction freeze = {.verb = VERB_FREEZE, .pattern = (char *)(uintptr_t)"a.*"}, step = {.verb = VERB_STEP};
    struct instruction late[] = {step, freeze, step}, early[] = {freeze, step, step};
    c.parameters = parameters;
    c.parameter_count = 2;
    c.program = late;
    c.program_length = 3;
    struct memory_model m = memory_model_of(&c, false);
    assert_true(m.idle.shared == 2 && m.idle.whole == 0 && memory_share_bytes(memory_model_at(&m, MEMORY_REST), 2) == 8);
    assert_string_equal(memory_classes(&c), "Z27 Z13");
    c.program = early;
    m = memory_model_of(&c, false);
    assert_true(m.idle.shared == 2 + 4);
    c.program = late;
    c.program_length = 1;
    m = memory_model_of(&c, false);
    assert_true(m.idle.shared == 0);
    assert_string_equal(memory_classes(&c), "Z27");
    c.sharding.activation_checkpointing = true;
    assert_string_equal(memory_classes(&c), "Z27 Z30");
}

static void an_excess_has_a_name(void **state)
{
    (void)state;
    struct fsdp_case full = adam(STRATEGY_FULL, 1, 4);
    struct memory_model m = memory_model_of(&full, false);
    char text[MEMORY_WORDS];
    assert_string_equal(memory_model_excess(&full, &m, 6, text), " (as much as optimizer states that are not sharded)");
    assert_string_equal(memory_model_excess(&full, &m, 12, text), " (as much as everything unsharded)");
    assert_string_equal(memory_model_excess(&full, &m, 3, text), " (as much as parameters that are not sharded, or gradients that are not sharded)");
    assert_string_equal(memory_model_excess(&full, &m, 0.1, text), "");
    struct fsdp_case none = adam(STRATEGY_NONE, 4, 1);
    m = memory_model_of(&none, true);
    assert_string_equal(memory_model_excess(&none, &m, 4, text), " (as much as a second copy of whole gradients)");
}

// Steps 0 to 2 of a rank with `rest` bytes at rest and `work` more in forward; the first step makes the states late.
static void fill(struct probe_phase *phases, int64_t rest, int64_t work)
{
    for (int k = 0; k < 3; k++) {
        phases[3 * k] = (struct probe_phase){.name = "forward", .step = k, .heap = {rest, rest + work, rest + work + (k == 0 ? 9000 : 0)}};
        phases[3 * k + 1] = (struct probe_phase){.name = "step", .step = k, .heap = {rest, rest / 2, rest}}; // the part before what is observed
        phases[3 * k + 2] = (struct probe_phase){.name = "step", .step = k, .heap = {rest, rest, rest}};
    }
}

static void live_bytes_are_those_of_the_phase(void **state)
{
    (void)state;
    struct probe_phase phases[9];
    struct probe_case seen = {.probes = 1u << PROBE_HEAP, .phase_count = 9, .phases = phases};
    struct memory_claim claim = {.told = true, .rest = 700, .working = 300};
    struct error error = {""};
    double bytes;
    fill(phases, 1000, 50);
    assert_true(memory_live(&seen, NULL, MEMORY_REST, &bytes, &error) && bytes == 1000);
    assert_true(memory_live(&seen, &claim, MEMORY_REST, &bytes, &error) && bytes == 700);
    assert_true(memory_live(&seen, &claim, MEMORY_FORWARD, &bytes, &error) && bytes == 1050);
    assert_false(memory_live(&seen, NULL, MEMORY_BACKWARD, &bytes, &error));
    assert_non_null(strstr(error.text, "backward"));
}

// In one step a buffer is freed late: the least of the settled steps is what a rank holds.
static void a_step_that_frees_late_does_not_count(void **state)
{
    (void)state;
    struct probe_phase phases[12];
    struct probe_case seen = {.probes = 1u << PROBE_HEAP, .phase_count = 12, .phases = phases};
    struct error error = {""};
    double bytes;
    for (int late = 2; late < 4; late++) {
        fill(phases, 1000, 50);
        for (int i = 0; i < 3; i++) {
            phases[9 + i] = phases[6 + i];
            phases[9 + i].step = 3;
        }
        for (int i = 0; i < 3; i++)
            phases[3 * late + i].heap = (struct probe_live){1500, 1500, 1550};
        assert_true(memory_live(&seen, NULL, MEMORY_REST, &bytes, &error) && bytes == 1000);
        assert_true(memory_live(&seen, NULL, MEMORY_FORWARD, &bytes, &error) && bytes == 1050);
    }
}

// Four sizes of one case on one rank or two: `rest` bytes of a parameter, and `work` more in forward.
enum { SIZES = 4, RANKS = 2 };
struct series {
    struct case_parameter parameters[SIZES];
    struct probe_phase phases[SIZES][RANKS][9];
    struct probe_case seen[SIZES][RANKS];
    struct fsdp_case cases[SIZES];
    struct probed_case others[SIZES];
    struct answer answers[RANKS];
    struct evidence e;
};

static void make_series(struct series *s, int ranks, const int64_t counts[SIZES], int64_t rest, int64_t work)
{
    *s = (struct series){0};
    for (int i = 0; i < SIZES; i++) {
        s->parameters[i] = (struct case_parameter){.name = (char *)(uintptr_t)"w", .count = counts[i], .tied_to = -1};
        s->cases[i] = adam(STRATEGY_NONE, ranks, 1);
        s->cases[i].parameter_count = 1;
        s->cases[i].parameters = &s->parameters[i];
        for (int r = 0; r < ranks; r++) {
            fill(s->phases[i][r], 123456 + rest * counts[i], work * counts[i]);
            s->seen[i][r] = (struct probe_case){.probes = 1u << PROBE_HEAP, .rank = r, .phase_count = 9, .phases = s->phases[i][r]};
        }
        s->others[i] = (struct probed_case){&s->cases[i], s->seen[i], NULL};
    }
    s->e = (struct evidence){.c = &s->cases[SIZES - 1], .world_size = ranks, .answers = s->answers, .probes = s->seen[SIZES - 1], .probed_count = SIZES - 1,
                             .probed = s->others};
}

// 5 bytes of a parameter at rest, 2 more in forward, whatever the constant.
static void a_line_over_the_sizes(void **state)
{
    (void)state;
    struct series s;
    struct memory_line line;
    struct error error = {""};
    make_series(&s, 1, (const int64_t[]){200000, 300000, 700000, 900000}, 5, 2);
    assert_int_equal(memory_size_count(&s.e, s.e.c), SIZES);
    assert_true(memory_line(&s.e, s.e.c, MEMORY_REST, &line, &error) && fabs(line.fit.slope - 5) < 1e-9 && fabs(line.fit.intercept - 123456) < 1);
    assert_true(memory_line(&s.e, s.e.c, MEMORY_FORWARD, &line, &error) && fabs(line.fit.slope - 7) < 1e-9);
    s.cases[0].sharding.reshard_after_forward = false; // another setting: no point of this line
    assert_int_equal(memory_size_count(&s.e, s.e.c), SIZES - 1);
    assert_false(memory_line(&s.e, s.e.c, MEMORY_REST, &line, &error));
    assert_non_null(strstr(error.text, "3 parameter counts"));
}

static void a_verdict_goes_by_the_whole_interval(void **state)
{
    (void)state;
    assert_int_equal(memory_told(0.01, 0.02, 0.03, 0.1), MEMORY_WITHIN);
    assert_int_equal(memory_told(0.25, 0.1, 0.03, 0.1), MEMORY_BEYOND);
    assert_int_equal(memory_told(0.25, 0.23, 0.03, 0.1), MEMORY_UNTOLD); // may be within
    assert_int_equal(memory_told(0.01, 0.2, 0.03, 0.1), MEMORY_UNTOLD);  // may be beyond
    assert_int_equal(memory_told(0, INFINITY, 0.03, 0.1), MEMORY_UNTOLD);
    assert_int_equal(memory_told(NAN, 0, 0.03, 0.1), MEMORY_BEYOND);
    assert_int_equal(memory_told(0, NAN, 0.03, 0.1), MEMORY_UNTOLD);
}

static struct finding held(const struct series *s, double most)
{
    struct finding f = {.verdict = VERDICT_PASS};
    struct memory_model m = memory_model_of(s->e.c, true);
    memory_hold(&s->e, &f, MEMORY_FORWARD, (struct memory_bound){0, most}, &m);
    assert_true(f.emitted);
    return f;
}

// The suite's sizes, of units of 100000 parameters, 4 bytes each: whichever of them peaks a unit higher, it is never a FAIL, on either rank.
static void a_unit_more_at_some_sizes_is_not_a_fail(void **state)
{
    (void)state;
    const int64_t counts[SIZES] = {300000, 400000, 600000, 800000}, unit = 400000;
    static struct series s;
    for (int pattern = 0; pattern < 1 << SIZES; pattern++) {
        make_series(&s, RANKS, counts, 4, 0);
        for (int i = 0; i < SIZES; i++)
            s.phases[i][pattern & 1][6].heap.peak += pattern >> i & 1 ? unit : 0;
        struct finding f = held(&s, 4);
        bool steeper = pattern == 8 || pattern == 12 || pattern == 14 || pattern == 10; // as if a rank held more
        assert_int_not_equal(f.verdict, VERDICT_FAIL);
        assert_true(f.verdict == VERDICT_BROKEN ? strstr(f.message, "cannot tell") != NULL : !steeper);
    }
}

// A copy of all parameters on one rank, beside one unit in flight at one size; nothing hides behind another rank.
static void a_copy_on_one_rank_fails(void **state)
{
    (void)state;
    static struct series s;
    make_series(&s, RANKS, (const int64_t[]){200000, 400000, 600000, 800000}, 16, 0);
    for (int i = 0; i < SIZES; i++)
        s.phases[i][1][6].heap.peak += 4 * s.parameters[i].count;
    s.phases[2][0][6].heap.peak += 400000;
    struct finding f = held(&s, 16);
    assert_int_equal(f.verdict, VERDICT_FAIL);
    assert_non_null(strstr(f.message, "rank 1 holds 20 "));
    assert_string_equal(f.classes, "Z27");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_hold_what_they_must), cmocka_unit_test(options_have_their_own_terms), cmocka_unit_test(what_is_frozen_may_be_absent),
        cmocka_unit_test(an_excess_has_a_name),
        cmocka_unit_test(live_bytes_are_those_of_the_phase), cmocka_unit_test(a_step_that_frees_late_does_not_count),
        cmocka_unit_test(a_line_over_the_sizes), cmocka_unit_test(a_verdict_goes_by_the_whole_interval), cmocka_unit_test(a_unit_more_at_some_sizes_is_not_a_fail),
        cmocka_unit_test(a_copy_on_one_rank_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
