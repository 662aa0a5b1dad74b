// The cost model against closed forms: no overlap, all overlap, one unit, one rank, steps and bytes of the collectives, two tiers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/advise/tests/made_up.h"

static const double P = 1000, BYTES = 4000, ALPHA = 0.5, BETA = 1e-3;

static struct schedule plan(enum strategy strategy, int replicas, int shards, int prefetch)
{
    return (struct schedule){strategy, replicas, shards, true, prefetch, prefetch};
}

static void near(double got, double wanted) { assert_float_equal(got, wanted, 1e-9 * (1 + wanted)); }

// One half of an all-reduce of a unit over n ranks.
static double half(int n) { return ALPHA + (n - 1) * BYTES / n * BETA; }

// One unit: nothing to overlap with. none: forward, backward, two halves. full: gathered once (it goes straight from forward to backward).
static void one_unit(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(ALPHA, BETA);
    make_up(&m, 1, P, 10);
    for (int n = 2; n <= 8; n *= 2) {
        near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, n, 1, 1)), 30 + 2 * half(n));
        near(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, n, 1)), 30 + 2 * half(n));
        near(seconds_of(&machine, &m.w, plan(STRATEGY_GRAD, 1, n, 1)), 30 + 2 * half(n));
        near(seconds_of(&machine, &m.w, plan(STRATEGY_OPTIMIZER, 1, n, 1)), 30 + 2 * half(n));
    }
}

// Without prefetch everything is a sum: U units are gathered U times forward and U - 1 times backward, and reduced U times.
static void no_overlap_is_the_sum(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(ALPHA, BETA);
    const int units = 6, n = 4;
    make_up(&m, units, P, 10);
    near(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, n, 0)), units * 30 + (3 * units - 1) * half(n));
    near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, n, 1, 0)), units * 30 + 2 * units * half(n));
    near(seconds_of(&machine, &m.w, plan(STRATEGY_GRAD, 1, n, 0)), units * 30 + 2 * units * half(n));
    struct schedule keeps = plan(STRATEGY_FULL, 1, n, 0);
    keeps.reshard_after_forward = false;
    near(seconds_of(&machine, &m.w, keeps), units * 30 + 2 * units * half(n));
}

// Hybrid: gathers and reduce-scatters over the shards, and an all-reduce of a part over the replicas.
static void hybrid_adds_an_all_reduce(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(ALPHA, BETA);
    make_up(&m, 2, 4096, 10);
    double shard = ALPHA + 4096 * 4.0 / 2 * BETA, replica = ALPHA + 4096 * 4.0 / 2 / 2 * BETA;
    near(seconds_of(&machine, &m.w, plan(STRATEGY_HYBRID, 2, 2, 0)), 60 + 5 * shard + 2 * 2 * replica);
}

// A fast line leaves computing, a slow one is never better; with prefetch what a call can hide is hidden.
static void overlap_hides_what_fits(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(0, 10 / BYTES); // a gather over 2 ranks takes 5 s, a call forward 10 s, backward 20 s
    make_up(&m, 4, P, 10);
    near(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1)), 4 * 30 + 5 + 5); // the first gather and the last reduction
    near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 2, 1, 1)), 4 * 30 + 10);
    near(seconds_of(&machine, &m.w, plan(STRATEGY_GRAD, 1, 2, 1)), 4 * 30 + 5 + 4 * 5);
    machine = plain_machine(0, 0);
    near(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1)), 4 * 30);
}

// What moves only inside calls of the library is not hidden: one call after each computation is not enough for a message that has to be agreed on.
static void nothing_moves_unattended(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(0, BETA);
    make_up(&m, 6, P, 10);
    machine.unattended_bytes = 0;
    machine.eager_bytes = 0;
    double shut = seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1));
    near(shut, 6 * 30 + 17 * BYTES / 2 * BETA);
    machine.unattended_bytes = 500; // of 2000
    machine.eager_bytes = 1e9;
    double some = seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1));
    near(some, 6 * 30 + (17 * 2000 - 15 * 500) * BETA); // all but the first gather and the last reduction have a computation beside them
    machine.unattended_bytes = 1e9;
    assert_true(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1)) < some);
}

static void one_rank_is_computing(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(ALPHA, BETA);
    make_up(&m, 5, P, 10);
    for (int s = STRATEGY_NONE; s <= STRATEGY_FULL; s++)
        near(seconds_of(&machine, &m.w, plan((enum strategy)s, 1, 1, 1)), 150);
    machine.update_rate = 1e3; // 5 units of 1000 elements, 28 bytes each: two of parameters, one of gradients, four of states
    near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 1, 1, 1)), 150 + 5 * 28);
}

static void sharding_shares_the_update(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(0, 0);
    make_up(&m, 5, P, 10);
    machine.update_rate = 1e3;
    near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 4, 1, 1)), 150 + 5 * 28);
    near(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 4, 1)), 150 + 5 * 28 / 4.0);
    near(seconds_of(&machine, &m.w, plan(STRATEGY_HYBRID, 2, 2, 1)), 150 + 5 * 28 / 2.0);
}

static void slower_lines_never_help(void **state)
{
    (void)state;
    struct made_up m;
    make_up(&m, 8, P, 1);
    static const struct schedule all[] = {{STRATEGY_NONE, 4, 1, true, 1, 1}, {STRATEGY_OPTIMIZER, 1, 4, true, 1, 1}, {STRATEGY_GRAD, 1, 4, true, 1, 1}, {STRATEGY_FULL, 1, 4, true, 1, 1},
                                          {STRATEGY_FULL, 1, 4, true, 0, 0}, {STRATEGY_FULL, 1, 4, false, 2, 3}, {STRATEGY_HYBRID, 2, 2, true, 1, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int unattended = 0; unattended < 2; unattended++) {
            double before = 0;
            for (double beta = 1e-7; beta < 1; beta *= 1.3) {
                struct machine machine = plain_machine(1e-3, beta);
                machine.unattended_bytes = unattended ? 700 : INFINITY;
                double now = seconds_of(&machine, &m.w, all[i]);
                assert_true(now >= before * (1 - 1e-9));
                before = now;
            }
        }
}

static void steps_and_bytes(void **state)
{
    (void)state;
    struct machine machine = plain_machine(1, 1);
    struct group eight = exchange_group(&machine, 8, 1);
    assert_int_equal(eight.near, 8);
    struct phase p = exchange_half(&machine, eight, 800, 100);
    near(phase_seconds(&machine, &p), 1 + 700); // direct: one step
    machine.exchange = EXCHANGE_RING;
    p = exchange_half(&machine, eight, 800, 100);
    near(phase_seconds(&machine, &p), 7 + 700); // (n - 1) alpha + (n - 1) / n B beta
    machine.exchange = EXCHANGE_TREE;
    p = exchange_half(&machine, eight, 800, 100);
    near(phase_seconds(&machine, &p), 3 + 700);
    p = exchange_half(&machine, eight, 800, 200); // the largest part counts
    near(p.bytes[0], 1400);
    p = exchange_half(&machine, exchange_group(&machine, 1, 1), 800, 800);
    near(phase_seconds(&machine, &p), 0);
}

static void two_tiers(void **state)
{
    (void)state;
    struct machine machine = plain_machine(1, 1);
    machine.tiers[0].ranks = 4;
    machine.tiers[1] = (struct tier){10, 5, 2, 0};
    struct group all = exchange_group(&machine, 8, 1), pairs = exchange_group(&machine, 2, 4), inside = exchange_group(&machine, 4, 1);
    assert_int_equal(all.near, 4);
    assert_int_equal(pairs.near, 1);
    assert_int_equal(inside.near, 4);
    struct phase p = exchange_half(&machine, all, 800, 100);
    near(p.bytes[0], 700);
    near(p.bytes[1], 400); // to each of the four ranks of the other group
    near(p.alpha_s, 10);
    machine.exchange = EXCHANGE_TREE;
    p = exchange_half(&machine, all, 800, 100);
    near(p.bytes[0], 600);
    near(p.bytes[1], 100); // half of everything crosses, a quarter on each rank's line
    near(p.alpha_s, 2 + 10);
    p = exchange_half(&machine, pairs, 200, 100);
    near(p.bytes[0], 0);
    near(p.bytes[1], 100);
    p = exchange_half(&machine, inside, 800, 200);
    near(p.bytes[1], 0);
}

// Events, not time: one rank is followed whatever the number of ranks.
static void ranks_cost_nothing(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(1e-6, 1e-9);
    struct prediction few, many;
    make_up(&m, 16, 1e6, 1e-3);
    machine.exchange = EXCHANGE_TREE;
    advise_predict(&machine, &m.w, &(struct schedule){STRATEGY_FULL, 1, 16, true, 1, 1}, &few);
    advise_predict(&machine, &m.w, &(struct schedule){STRATEGY_FULL, 1, 16384, true, 1, 1}, &many);
    assert_int_equal(few.collectives, 3 * 16 - 1);
    assert_int_equal(many.collectives, few.collectives);
    assert_true(many.events < 20 * many.collectives);
    assert_true(many.step_s > few.step_s);
    near(many.sent_bytes, many.collectives * 16383 * ceil(1e6 / 16384) * 4); // padded to a multiple of the ranks
}

// Two collectives on a line take as long as one after the other, less where the line carries more for several.
static void lines_are_shared(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(0, 1e3);
    make_up(&m, 3, P, 1e-9);
    double once = seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1)), serial = seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 0));
    assert_float_equal(once / serial, 1, 1e-6);
    machine.both_ways = 2;
    assert_true(seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 2, 1)) < 0.95 * once);
}

// Slow between groups alone: hybrid sends the least there, a part of the gradients. As slow inside: it sends more than plain data parallelism does.
static void hybrid_wins_between_slow_groups(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(0, 1e-4);
    make_up(&m, 6, 4096, 1);
    machine.tiers[0].ranks = 2;
    for (int slow = 1; slow >= 0; slow--) {
        machine.tiers[0].beta_s_per_byte = slow ? 1e-4 : 1e-2;
        machine.tiers[1] = (struct tier){0, 1e-2, 2, 0};
        double none = seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 4, 1, 1)), grad = seconds_of(&machine, &m.w, plan(STRATEGY_GRAD, 1, 4, 1));
        double full = seconds_of(&machine, &m.w, plan(STRATEGY_FULL, 1, 4, 1)), hybrid = seconds_of(&machine, &m.w, plan(STRATEGY_HYBRID, 2, 2, 1));
        if (slow)
            assert_true(hybrid < 0.6 * none && hybrid < 0.6 * grad && hybrid < 0.6 * full);
        else
            assert_true(hybrid > none);
    }
}

// A token bucket: what it has saved while the line was idle passes at once, no more than it holds.
static void bursts_pass_at_once(void **state)
{
    (void)state;
    struct made_up m;
    struct machine machine = plain_machine(0, BETA);
    make_up(&m, 1, P, 10);
    double dry = seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 2, 1, 0)); // 30 s of computing fill the bucket
    machine.tiers[0].burst_s = 1500 * BETA;
    near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 2, 1, 0)), dry - 1500 * BETA);
    machine.tiers[0].burst_s = 1e6;
    near(seconds_of(&machine, &m.w, plan(STRATEGY_NONE, 2, 1, 0)), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_unit), cmocka_unit_test(no_overlap_is_the_sum), cmocka_unit_test(hybrid_adds_an_all_reduce), cmocka_unit_test(overlap_hides_what_fits),
        cmocka_unit_test(nothing_moves_unattended), cmocka_unit_test(one_rank_is_computing), cmocka_unit_test(sharding_shares_the_update), cmocka_unit_test(slower_lines_never_help),
        cmocka_unit_test(steps_and_bytes), cmocka_unit_test(two_tiers), cmocka_unit_test(ranks_cost_nothing), cmocka_unit_test(lines_are_shared), cmocka_unit_test(bursts_pass_at_once), cmocka_unit_test(hybrid_wins_between_slow_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
