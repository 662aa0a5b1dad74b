// The judgement of the model by made-up measurements: right ones pass, a wrong line and a wrong place of the change fail, nothing shown fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "harness/advise/tests/made_up.h"
#include "harness/advise/validate_output.h"
#include "harness/protocol/tests/temporary.h"

enum { ROUNDS = 20, RATES = 6, RANKS = 4 };
static const double rates[RATES] = {1e6, 2e6, 4e6, 8e6, 16e6, 32e6};
static const struct schedule NONE = {STRATEGY_NONE, RANKS, 1, true, 0, 0}, FULL = {STRATEGY_FULL, 1, RANKS, true, 0, 0};
static struct made_up m;
static double seconds[2 * RATES][ROUNDS];
static struct validate_point points[2 * RATES];
static struct validate_knowledge known;

// Without overlap full beats none above a rate (test_crossover.c). scale: of all measured times of full.
static void make(double scale)
{
    make_up(&m, 5, 2e6 / 4, 1); // 2 MB a unit
    known = (struct validate_knowledge){RANKS, plain_machine(1e-3, 1), {1e-3, 0, 1 / 0.95}};
    known.machine.update_rate = 5 * 28 * 0.5e6 / 12.0; // 12 s for all
    for (int i = 0; i < 2 * RATES; i++) {
        struct validate_point *p = &points[i];
        *p = (struct validate_point){.ranks = RANKS, .rate_bits = rates[i / 2], .name = i % 2 ? "full" : "none", .schedule = i % 2 ? FULL : NONE, .w = &m.w, .round_count = ROUNDS, .seconds = seconds[i]};
        struct machine machine = known.machine;
        machine.tiers[0] = validate_tier(&known.line, p->rate_bits);
        double truth = seconds_of(&machine, &m.w, p->schedule) * (i % 2 ? scale : 1);
        for (int r = 0; r < ROUNDS; r++)
            seconds[i][r] = truth * (1 + 0.001 * ((r * 7) % 11 - 5)) * (1 + 0.05 * (r % 3)); // noise of each, and a busy moment of both
        p->step = statistics_median(ROUNDS, seconds[i]);
    }
}

static struct validate_verdict judge(void)
{
    struct validate_verdict v;
    for (int i = 0; i < 2 * RATES; i++) {
        struct machine machine = known.machine;
        machine.tiers[0] = validate_tier(&known.line, points[i].rate_bits);
        validate_predict(&points[i], &machine);
    }
    validate_judge(2 * RATES, points, 1, &known, &v);
    return v;
}

static void a_right_model_passes(void **state)
{
    (void)state;
    make(1);
    struct validate_verdict v = judge();
    assert_int_equal(v.judged, 2 * RATES);
    assert_true(v.median_error < 0.06); // the busy moments
    assert_int_equal(v.switch_count, 1);
    assert_string_equal(v.switches[0].below, "none");
    assert_string_equal(v.switches[0].above, "full");
    double wanted = 4 * 2e6 * 8 / 0.95 / 12; // 4 gathers more of 2 MB against 12 s of update, less the latencies
    assert_true(v.switches[0].predicted_bits > 0.8 * wanted && v.switches[0].predicted_bits < 1.25 * wanted);
    assert_true(v.switches[0].factor < 1.15);
    assert_true(v.ok);
}

// A line a strategy, measured and predicted, and a stroke for each side of the change.
static void it_is_told_and_drawn(void **state)
{
    (void)state;
    make(1);
    struct validate_verdict v = judge();
    json_t *j = validate_json(2 * RATES, points, &v);
    assert_int_equal(json_array_size(json_object_get(j, "points")), 2 * RATES);
    assert_true(json_is_true(json_object_get(j, "ok")));
    json_t *change = json_array_get(json_object_get(j, "changes"), 0), *last = json_array_get(json_object_get(j, "points"), 2 * RATES - 1);
    assert_string_equal(json_string_value(json_object_get(change, "above")), "full");
    assert_true(json_real_value(json_object_get(change, "measured_bits")) == v.switches[0].measured_bits);
    assert_true(json_real_value(json_object_get(json_object_get(last, "step_seconds"), "value")) == points[2 * RATES - 1].step.value);
    json_decref(j);

    char folder[] = "/tmp/fsdpmark-test-XXXXXX", why[PLOT_WHY], path[100], line[300];
    struct error error = {""};
    assert_non_null(temporary_make(folder));
    assert_true(validate_figure(RANKS, 2 * RATES, points, &v, &(struct plot_about){.machine = "made up", .date = "2026-01-01"}, folder, why, &error));
    snprintf(path, sizeof path, "%s/validate-4.dat", folder);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int numbers = 0, names = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        double x, y;
        numbers += sscanf(line, "%lf %lf", &x, &y) == 2;
        names += strstr(line, "none = full, measured") != NULL || strstr(line, "none = full, predicted") != NULL;
    }
    fclose(f);
    assert_true(numbers >= 4 * RATES + 2 && names == 2);
}

static void a_wrong_line_fails_the_times(void **state)
{
    (void)state;
    make(1);
    known.line.beta_bits *= 1.6;
    struct validate_verdict v = judge();
    assert_false(v.times_ok);
    assert_false(v.ok);
}

static void a_wrong_place_of_the_change_fails(void **state)
{
    (void)state;
    make(1.12);
    struct validate_verdict v = judge();
    assert_true(v.times_ok);
    assert_int_equal(v.switch_count, 1);
    assert_true(v.switches[0].factor > VALIDATE_FACTOR);
    assert_false(v.switches_ok || v.ok);
}

// A strategy that is best everywhere shows nothing, and few points show too little.
static void nothing_shown_fails(void **state)
{
    (void)state;
    make(3);
    struct validate_verdict v = judge();
    assert_int_equal(v.switch_count, 0);
    assert_false(v.switches_ok || v.ok);
    make(1);
    points[3].fitted = true;
    v = judge();
    assert_int_equal(v.judged, 2 * RATES - 1);
    assert_false(v.times_ok || v.ok);
}

static void crossings(void **state)
{
    (void)state;
    const double x[] = {10, 100, 1000}, rising[] = {0.5, 1, 2}, level[] = {0.9, 0.9, 0.9}, late[] = {0.25, 0.5, 1};
    assert_float_equal(validate_crossing(3, x, rising), 100, 1e-9);
    assert_float_equal(validate_crossing(3, x, late), 1000, 1e-6);
    assert_true(isnan(validate_crossing(3, x, level)));
}

// Half of a gather's bytes pass the line of each of two ranks.
static void the_line_from_two_rates(void **state)
{
    (void)state;
    struct gather_times slow = {10e6, 2e-3, 1e6 * 0.5 * (8 / 0.95 / 10e6 + 1e-9), 1e6, 2}, fast = {1e9, 1e-3, 1e6 * 0.5 * (8 / 0.95 / 1e9 + 1e-9), 1e6, 2};
    struct validate_line l = validate_line_of(&slow, &fast);
    assert_float_equal(l.alpha_s, 1.5e-3, 1e-12);
    assert_float_equal(l.beta_bits, 1 / 0.95, 1e-6);
    assert_float_equal(l.beta_s, 1e-9, 1e-12);
    assert_float_equal(validate_rate(&l, 1 / validate_tier(&l, 123e6).beta_s_per_byte), 123e6, 1);
}

// Rates of computing from steps that the model itself made.
static void computing(void **state)
{
    (void)state;
    make(1);
    struct machine truth = plain_machine(0, 0), found = {0};
    truth.flop_rate = 7;
    truth.update_rate = 3e6;
    truth.copy_rate = 1e9;
    for (int i = 0; i < 2 * RATES; i++) {
        struct prediction p;
        advise_predict(&truth, &m.w, &points[i].schedule, &p);
        points[i].free.value = p.compute_s;
        points[i].free_update.value = 28 * 5 * 0.5e6 / truth.update_rate / points[i].schedule.shards;
    }
    assert_true(validate_computing(2 * RATES, points, truth.copy_rate, &found));
    assert_float_equal(found.flop_rate / truth.flop_rate, 1, 1e-6);
    assert_float_equal(found.update_rate / truth.update_rate, 1, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_right_model_passes), cmocka_unit_test(it_is_told_and_drawn), cmocka_unit_test(a_wrong_line_fails_the_times), cmocka_unit_test(a_wrong_place_of_the_change_fails),
                                       cmocka_unit_test(nothing_shown_fails), cmocka_unit_test(crossings), cmocka_unit_test(the_line_from_two_rates), cmocka_unit_test(computing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
