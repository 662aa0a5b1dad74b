// What a bench makes of records and samples: steps from marks, figures, ratios and words, tables; by made-up numbers whose answers are known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/fit.h"
#include "harness/run/memo.h"

// ---- records ----
enum { STEPS = 5, PHASES = 4 * STEPS };
static struct probe_phase phases[2][PHASES];
static struct probe_case ranks[2];

// Steps of 4 phases; forward of step k lasts k + 1 s on rank 0 and 2 s more on rank 1; what is observed lasts 100 s.
static void make_records(void)
{
    memset(phases, 0, sizeof phases);
    for (int r = 0; r < 2; r++) {
        double now = 10;
        for (int k = 0; k < STEPS; k++) {
            const struct { const char *name; int step; double seconds; } made[4] = {{"zero_grad", -1, 0.25}, {"forward", k, k + 1 + 2 * r}, {"observe", k, 100}, {"step", k, 0.5}};
            for (int i = 0; i < 4; i++) {
                phases[r][4 * k + i] = (struct probe_phase){.name = made[i].name, .step = made[i].step, .begin_s = now, .end_s = now + made[i].seconds,
                                                            .heap = {.peak = 1000 * (k + 1) + r}};
                now += made[i].seconds;
            }
        }
        ranks[r] = (struct probe_case){.rank = r, .probes = 1u << PROBE_HEAP, .phase_count = PHASES, .phases = phases[r]};
    }
}

static void steps_are_the_slowest_rank_s(void **state)
{
    (void)state;
    double *seconds;
    char why[BENCH_WHY] = "";
    make_records();
    assert_int_equal(bench_steps(ranks, 2, 4, &seconds, why), 2); // steps 2 and 3
    assert_true(fabs(seconds[0] - 5.75) < 1e-9 && fabs(seconds[1] - 6.75) < 1e-9);
    free(seconds);
}

static void steps_that_cannot_be_told_say_why(void **state)
{
    (void)state;
    double *seconds;
    char why[BENCH_WHY] = "";
    make_records();
    assert_int_equal(bench_steps(ranks, 2, 6, &seconds, why), 0);
    assert_non_null(strstr(why, "its marks show 5 steps, expected 6"));
    assert_int_equal(bench_steps(NULL, 2, 4, &seconds, why), 0);
    ranks[1].lost = 1;
    assert_int_equal(bench_steps(ranks, 2, 4, &seconds, why), 0);
    assert_non_null(strstr(why, "rank 1: records were lost"));
    ranks[1].lost = 0;
    ranks[1].phase_count -= 4;
    assert_int_equal(bench_steps(ranks, 2, 4, &seconds, why), 0);
    assert_non_null(strstr(why, "another number of steps"));
}

static void the_peak_is_of_the_timed_steps(void **state)
{
    (void)state;
    struct bench_figure peak;
    make_records();
    bench_seen_peak(ranks, 2, 4, &peak);
    assert_true(peak.value == 4001 && peak.why[0] == 0);
    ranks[1].untracked = 1;
    bench_seen_peak(ranks, 2, 4, &peak);
    assert_true(isnan(peak.value) && strstr(peak.why, "no probe counts") != NULL);
    ranks[1].untracked = 0;
    ranks[0].probes = 0;
    bench_seen_peak(ranks, 2, 4, &peak);
    assert_true(isnan(peak.value) && strstr(peak.why, "not loaded") != NULL);
}

static void bytes_are_of_calls_or_else_of_sockets(void **state)
{
    (void)state;
    struct bench_figure sent;
    struct probe_traffic calls = {.kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .calls = 1, .bytes = 64, .wire = 32}, socket = {.kind = PROBE_SEND, .calls = 1, .bytes = 90};
    make_records();
    for (int r = 0; r < 2; r++)
        ranks[r].probes = 1u << PROBE_MPI | 1u << PROBE_SOCKET;
    bench_seen_sent(ranks, 2, &sent);
    assert_true(isnan(sent.value) && sent.why[0] != 0); // nothing at all was seen
    for (int k = 0; k < STEPS; k++) {
        phases[1][4 * k + 1].traffic = &socket;
        phases[1][4 * k + 1].traffic_count = 1;
    }
    bench_seen_sent(ranks, 2, &sent);
    assert_true(fabs(sent.value - 90) < 1e-9);
    for (int k = 0; k < STEPS; k++)
        phases[1][4 * k + 1].traffic = &calls;
    bench_seen_sent(ranks, 2, &sent);
    assert_true(fabs(sent.value - 32) < 1e-9);
    phases[1][4 * 3 + 1].unseen = 1;
    bench_seen_sent(ranks, 2, &sent);
    assert_true(isnan(sent.value) && strstr(sent.why, "rank 1") != NULL);
}

static void energy_has_its_reason(void **state)
{
    (void)state;
    struct bench_figure energy;
    make_records();
    bench_seen_energy(ranks, NULL, "no component", &energy);
    assert_true(isnan(energy.value) && strcmp(energy.why, "no component") == 0);
    bench_seen_energy(ranks, "made:::up_energy", "", &energy);
    assert_true(isnan(energy.value) && energy.why[0] != 0);
}

static void only_unobserved_steps_are_timed(void **state)
{
    (void)state;
    struct instruction program[] = {{.verb = VERB_OBSERVE}, {.verb = VERB_MICRO}, {.verb = VERB_STEP}, {.verb = VERB_ZERO_GRAD}, {.verb = VERB_MICRO}, {.verb = VERB_STEP, .step = 1},
                                    {.verb = VERB_MICRO, .step = 2}, {.verb = VERB_OBSERVE}, {.verb = VERB_STEP, .step = 2}};
    struct fsdp_case c = {.program = program, .program_length = 9};
    assert_int_equal(bench_timed(&c), 2);
    c.program++, c.program_length--;
    assert_int_equal(bench_timed(&c), 2);
    program[2].verb = VERB_OBSERVE; // before any step is over
    assert_int_equal(bench_timed(&c), 0);
}

// ---- rows ----
enum { ROUNDS = 8, SAMPLES = 5 };

static void add_rounds(struct bench_row *r, double seconds, double slope)
{
    r->launches = calloc(ROUNDS, sizeof *r->launches);
    r->launch_count = ROUNDS;
    for (int i = 0; i < ROUNDS; i++) {
        double *s = calloc(SAMPLES, sizeof *s);
        for (int k = 0; k < SAMPLES; k++)
            s[k] = seconds * (1 + slope * i) * (1 + 0.001 * ((3 * k + i) % 5));
        r->launches[i] = (struct bench_launch){i, SAMPLES, s};
    }
}

static struct bench_row new_row(const char *implementation, const char *strategy)
{
    return (struct bench_row){.implementation = implementation, .fabric = "made-up", .precision = "f32", .workload = strdup("work"), .strategy = strdup(strategy), .ranks = 2, .rows = 8, .steps = 7,
                              .parameters = 1000, .tokens = 100, .flop = 1e6, .peak_bytes = {.value = 2048}, .sent_bytes = {NAN, "the wires are blind"}, .energy_j = {NAN, "no meter"},
                              .exposed = {NAN, NAN, NAN, 0, 0}, .exposed_why = "one rank"};
}

// The machine grows slower from round to round, for all alike.
static struct bench_table make_table(void)
{
    struct bench_table t = {.count = 4, .rows = calloc(4, sizeof *t.rows), .rounds = ROUNDS, .peak_flop_rate = 1e9, .cores = 1, .ended = "all rounds are done", .seconds = 9};
    t.rows[0] = new_row("first", "full");
    t.rows[1] = new_row("second", "full");
    t.rows[2] = new_row("alike", "full");
    t.rows[3] = new_row("liar", "full");
    add_rounds(&t.rows[0], 0.010, 0.2);
    add_rounds(&t.rows[1], 0.015, 0.2);
    add_rounds(&t.rows[2], 0.010, 0.2);
    add_rounds(&t.rows[3], 0.001, 0);
    t.rows[3].state = BENCH_WRONG;
    strcpy(t.rows[3].why, "after-steps: it did not train");
    return t;
}

static void ratios_hold_while_the_machine_does_not(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    struct interval q = bench_ratio(&t.rows[1], bench_base(&t, &t.rows[1])), same = bench_ratio(&t.rows[2], bench_base(&t, &t.rows[2]));
    assert_ptr_equal(bench_base(&t, &t.rows[1]), &t.rows[0]);
    assert_true(q.low > 1.49 && q.high < 1.51 && q.count == ROUNDS);
    assert_string_equal(statistics_word(&q), "slower");
    assert_string_equal(statistics_word(&same), "no difference shown");
    struct interval step = bench_step(&t.rows[0]), tokens = bench_tokens(&t.rows[0]), mfu = bench_mfu(&t, &t.rows[0]);
    assert_true(step.low < step.value && step.value < step.high && step.high > 1.2 * step.low);
    assert_true(fabs(tokens.value * step.value - 100) < 1e-9 && tokens.low <= tokens.value && tokens.value <= tokens.high);
    assert_true(fabs(mfu.value - 1e6 / step.value / 1e9) < 1e-12);
    assert_false(bench_narrow(&t, 0.05)); // the machine's drift
    assert_true(bench_narrow(&t, 10));
    t.rows[1].launch_count = BENCH_LEAST_ROUNDS - 1;
    assert_false(bench_narrow(&t, 10));
    t.rows[1].launch_count = ROUNDS;
    bench_table_free(&t);
}

static char text[1 << 17];
static void written(bool (*write)(const struct bench_table *, FILE *), const struct bench_table *t);

static void leave_rounds(struct bench_table *t, int rounds)
{
    for (int i = 0; i < t->count; i++) {
        for (int k = rounds; k < t->rows[i].launch_count; k++)
            free(t->rows[i].launches[k].seconds);
        t->rows[i].launch_count = rounds;
    }
    t->rounds = rounds;
}

// Half as long again, but in fewer rounds than an interval takes: no word for it, in no output.
static void few_rounds_have_no_word(void **state)
{
    (void)state;
    static const struct { int rounds; const char *word; } cases[] = {{6, "slower"}, {5, "too few rounds to tell"}, {2, "too few rounds to tell"}, {1, "one round: no interval"}};
    struct bench_table t = make_table();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leave_rounds(&t, cases[i].rounds);
        struct interval q = bench_ratio(&t.rows[1], &t.rows[0]), step = bench_step(&t.rows[1]);
        assert_string_equal(bench_word(&q), cases[i].word);
        assert_int_equal(statistics_tells(&step), cases[i].rounds >= 6);
        written(bench_json, &t);
        json_t *all = json_loads(text, 0, NULL), *row = json_array_get(json_object_get(all, "rows"), 1);
        assert_string_equal(json_string_value(json_object_get(row, "word")), cases[i].word);
        assert_int_equal(json_number_value(json_object_get(json_object_get(row, "step_s"), "coverage")) >= 0.95, cases[i].rounds >= 6);
        json_decref(all);
        for (int k = 0; k < 2; k++) {
            written(k ? bench_csv : NULL, &t);
            assert_non_null(strstr(text, cases[i].word));
            assert_true((strstr(text, "slower") != NULL) == (cases[i].rounds >= 6) && strstr(text, "faster") == NULL);
            assert_true(k || (strstr(text, "* covers less than 95 %") != NULL) == (cases[i].rounds < 6));
        }
    }
    assert_non_null(strstr(text, "one round: no interval"));
    written(NULL, &t);
    assert_non_null(strstr(text, "\n1 round in 9 s: all rounds are done\n"));
    bench_table_free(&t);
}

// The largest batch that fits: each row tells its own, and a limit of the search that was reached is told.
static void batches_of_their_own_are_told(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    written(NULL, &t);
    assert_non_null(strstr(text, "; the same global batch for all: 8 rows; a rank has 100 tokens and 0.001 GFLOP a step\n"));
    t.memory_limit = 3 << 20;
    written(NULL, &t);
    assert_non_null(strstr(text, "; the largest global batch with at most 3 MiB on each rank: 8 rows; a rank has 100 tokens"));
    assert_null(strstr(text, "the largest that is tried"));
    t.rows[1].rows = 128, t.rows[1].tokens = 1600;
    t.rows[1].most_rows = true;
    written(NULL, &t);
    assert_non_null(strstr(text, "; the largest global batch with at most 3 MiB on each rank\n"));
    assert_non_null(strstr(text, "strategy, global batch"));
    assert_non_null(strstr(text, "full, 128 rows"));
    assert_non_null(strstr(text, "time of a token against the first"));
    assert_non_null(strstr(text, "second, full: a larger batch may fit: this one, of 64 rows of a rank, is the largest that is tried\n"));
    bench_table_free(&t);
}

// Half the batch in half the time is no faster.
static void rows_of_different_batches_are_compared_by_the_token(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    t.rows[1].tokens = 150, t.rows[1].rows = 12;
    struct interval q = bench_ratio(&t.rows[1], &t.rows[0]);
    assert_true(q.low > 0.99 && q.high < 1.01);
    bench_table_free(&t);
}

static void a_peak_of_other_processors_gives_no_mfu(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    strcpy(t.rows[0].mfu_why, "the peak of the GPU is unknown");
    assert_int_equal(bench_mfu(&t, &t.rows[0]).count, 0);
    assert_true(bench_mfu(&t, &t.rows[1]).count > 0);
    json_t *facts = bench_facts(&t, &t.rows[0]);
    assert_string_equal(json_string_value(json_object_get(facts, "mfu_why")), "the peak of the GPU is unknown");
    json_decref(facts);
    t.peak_flop_rate = 0;
    assert_int_equal(bench_mfu(&t, &t.rows[1]).count, 0);
    assert_true(bench_mfu_why(&t, &t.rows[1])[0] != 0);
    bench_table_free(&t);
}

static void what_is_wrong_has_no_score(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    assert_int_equal(bench_step(&t.rows[3]).count, 0);
    assert_int_equal(bench_tokens(&t.rows[3]).count, 0);
    assert_int_equal(bench_ratio(&t.rows[3], &t.rows[0]).count, 0);
    assert_int_equal(bench_status(&t), 1);
    t.rows[3].state = BENCH_BROKEN;
    assert_int_equal(bench_status(&t), 3);
    t.rows[3].state = BENCH_SKIP;
    assert_int_equal(bench_status(&t), 0);
    for (int i = 0; i < 3; i++)
        t.rows[i].state = BENCH_SKIP;
    assert_int_equal(bench_status(&t), 3); // nothing was measured
    t.rows[1].state = t.rows[3].state = BENCH_OPEN; // a wrong first one is no base either
    t.rows[0].state = BENCH_WRONG;
    assert_null(bench_base(&t, &t.rows[1]));
    bench_table_free(&t);
}

static void written(bool (*write)(const struct bench_table *, FILE *), const struct bench_table *t)
{
    FILE *f = fmemopen(text, sizeof text, "w");
    if (write != NULL)
        assert_true(write(t, f));
    else
        bench_print(t, f);
    fclose(f);
}

static void the_table_tells_all(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    written(NULL, &t);
    const char *liar = strstr(text, "  liar ");
    static const char *const parts[] = {"work on made-up: 2 ranks, f32, 1000 parameters; the same global batch for all: 8 rows; a rank has 100 tokens", "tokens/s/rank", "GFLOP/s/rank", "slower", "no difference shown", "2 KiB", "first, sent: the wires are blind",
                                        "energy: no meter", "first, exposed: one rank", "liar, WRONG: after-steps: it did not train", "2 ranks on 1 core:", "8 rounds in 9 s: all rounds are done"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("the table lacks '%s':\n%s", parts[i], text);
    assert_non_null(liar);
    char *line = strndup(liar, strcspn(liar, "\n"));
    assert_non_null(strstr(line, "WRONG"));
    assert_null(strpbrk(line, "0123456789"));
    free(line);
    bench_table_free(&t);
}

static void exports_have_numbers_and_reasons(void **state)
{
    (void)state;
    struct bench_table t = make_table();
    written(bench_json, &t);
    json_t *all = json_loads(text, 0, NULL), *rows = json_object_get(all, "rows"), *second = json_array_get(rows, 1), *liar = json_array_get(rows, 3);
    assert_string_equal(json_string_value(json_object_get(second, "word")), "slower");
    assert_string_equal(json_string_value(json_object_get(json_object_get(second, "facts"), "sent_bytes_why")), "the wires are blind");
    assert_int_equal(json_array_size(json_object_get(second, "launches")), ROUNDS);
    assert_string_equal(json_string_value(json_object_get(liar, "verdict")), "WRONG");
    assert_true(json_is_null(json_object_get(liar, "tokens_per_s_and_rank")) && json_is_null(json_object_get(liar, "ratio")));
    json_decref(all);
    written(bench_csv, &t);
    int lines = 0, commas = 0;
    for (char *c = text; *c != 0; c++)
        lines += *c == '\n', commas += *c == ',';
    assert_int_equal(lines, 5);
    assert_int_equal(commas, 5 * 33);
    assert_non_null(strstr(text, ",\"one rank\",\"\",\"the wires are blind\",\"no meter\"\n"));
    bench_table_free(&t);
}

// What the store has of a bench gives its table again.
static void a_stored_table_says_the_same(void **state)
{
    (void)state;
    enum { MOST = 4 };
    struct bench_table t = make_table(), again;
    struct stored_series items[MOST] = {{0}};
    struct stored_serieses series = {MOST, items, NULL};
    t.rows[0].exposed = (struct interval){0.25, 0.2, 0.3, 0.95, 1};
    t.rows[0].exposed_why[0] = 0;
    for (int i = 0; i < MOST; i++) {
        struct bench_row *r = &t.rows[i];
        items[i] = (struct stored_series){.tool = "bench", .fabric = r->fabric, .subject = r->implementation, .name = r->workload, .quantity = "seconds", .facts = bench_facts(&t, r),
                                          .point = json_pack("{s:i, s:i, s:s, s:s}", "ranks", r->ranks, "rows", (int)r->rows, "strategy", r->strategy, "precision", r->precision)};
        items[i].launches = calloc(ROUNDS, sizeof *items[i].launches);
        for (int k = 0; k < r->launch_count; k++) {
            items[i].launches[k].count = r->launches[k].count;
            items[i].launches[k].values = r->launches[k].seconds;
        }
        items[i].launch_count = r->launch_count;
    }
    bench_from_stored(&series, t.cores, &again);
    written(NULL, &t);
    char *first = strdup(text);
    written(NULL, &again);
    assert_string_equal(text, first);
    assert_non_null(strstr(text, "25.0 %"));
    assert_non_null(strstr(text, "8 rounds in 9 s: all rounds are done"));
    free(first);
    bench_table_free(&again);
    // Killed in its last round, which told nothing of rounds and has no launch in one row: that round was not ended.
    items[2].launch_count--;
    for (int i = 0; i < MOST; i++)
        json_object_del(items[i].facts, "ended");
    bench_from_stored(&series, t.cores, &again);
    assert_int_equal(again.rounds, ROUNDS - 1);
    for (int i = 0; i < MOST; i++) {
        json_decref(items[i].facts);
        json_decref(items[i].point);
        free(items[i].launches);
    }
    bench_table_free(&again);
    bench_table_free(&t);
}

// ---- the largest batch ----
static void rows_that_fit(void **state)
{
    (void)state;
    assert_int_equal(bench_fit_rows(100, 110, 99), 0);
    assert_int_equal(bench_fit_rows(100, 110, 100), 1);
    assert_int_equal(bench_fit_rows(100, 110, 139), 4);
    assert_int_equal(bench_fit_rows(100, 110, 140), 5);
    assert_int_equal(bench_fit_rows(100, 100, 140), BENCH_MOST_ROWS);
    assert_int_equal(bench_fit_rows(100, 101, 1e9), BENCH_MOST_ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_slowest_rank_s), cmocka_unit_test(steps_that_cannot_be_told_say_why), cmocka_unit_test(the_peak_is_of_the_timed_steps),
        cmocka_unit_test(bytes_are_of_calls_or_else_of_sockets), cmocka_unit_test(energy_has_its_reason), cmocka_unit_test(only_unobserved_steps_are_timed),
        cmocka_unit_test(ratios_hold_while_the_machine_does_not), cmocka_unit_test(rows_of_different_batches_are_compared_by_the_token),
        cmocka_unit_test(few_rounds_have_no_word), cmocka_unit_test(batches_of_their_own_are_told),
        cmocka_unit_test(a_peak_of_other_processors_gives_no_mfu), cmocka_unit_test(a_stored_table_says_the_same), cmocka_unit_test(what_is_wrong_has_no_score), cmocka_unit_test(the_table_tells_all),
        cmocka_unit_test(exports_have_numbers_and_reasons), cmocka_unit_test(rows_that_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
