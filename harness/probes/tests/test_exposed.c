// Exposed communication from phases made by hand: what is added up, what is left out, and what is not told.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "harness/probes/exposed.h"

enum { STEPS = 9, PHASES = 4, RANKS = 2 };
static struct probe_phase phases[RANKS][STEPS * PHASES];
static struct probe_case cases[RANKS];
static struct probe_traffic gather = {.kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .calls = 1};

// Step s of rank r: forward 10 ms of which s + 1 + 2 r wait, backward 20 ms with 4 of waiting, an observation that waits for 50, step 5 ms.
static int make(void **state)
{
    static const char *const names[PHASES] = {"forward", "backward", "observe", "step"};
    static const double lasts_ms[PHASES] = {10, 20, 60, 5};
    (void)state;
    memset(phases, 0, sizeof phases);
    for (int r = 0; r < RANKS; r++) {
        double now_s = 100;
        for (int i = 0; i < STEPS * PHASES; i++) {
            int step = i / PHASES, k = i % PHASES;
            const double waits_ms[PHASES] = {step + 1 + 2 * r, 4, 50, 0};
            phases[r][i] = (struct probe_phase){.name = names[k], .step = step, .begin_s = now_s, .end_s = now_s + 1e-3 * lasts_ms[k], .wait_s = 1e-3 * waits_ms[k],
                                                .waits = waits_ms[k] > 0, .process_s = 1e-2, .thread_s = 8e-3};
            now_s += 1e-3 * lasts_ms[k];
        }
        cases[r] = (struct probe_case){.rank = r, .probes = 1u << PROBE_WAITS | 1u << PROBE_HEAP, .phase_count = STEPS * PHASES, .phases = phases[r]};
    }
    return 0;
}

static void near(double a, double b) { assert_true(fabs(a - b) < 1e-9); }

// Steps 2 to 8: forward waits 3 to 9 ms on rank 0 and 5 to 11 on rank 1, so means of 4 to 10, with backward 8 to 14.
static void median_of_settled_steps(void **state)
{
    (void)state;
    struct exposed e;
    char why[256];
    assert_true(exposed_of(cases, RANKS, &e, why));
    assert_int_equal(e.steps, 7);
    near(e.waited_s.value, 0.011);
    near(e.waited_s.low, 0.008); // of seven the extremes: 2 P(B(7, 1/2) < 1) = 1.6 %, and with the second 12.5 %
    near(e.waited_s.high, 0.014);
    near(e.step_s.value, 0.035);
    near(e.share.value, 11.0 / 35);
    assert_int_equal(e.probes, 1u << PROBE_WAITS);
}

static void refused(int ranks, const char *expected)
{
    struct exposed e;
    char why[256] = "";
    if (exposed_of(cases, ranks, &e, why))
        fail_msg("found %g s, expected: %s", e.waited_s.value, expected);
    assert_string_equal(why, expected);
    assert_true(e.steps == 0 && e.waited_s.value == 0);
}

static void no_probe(void **state)
{
    (void)state;
    cases[1].probes = 1u << PROBE_HEAP;
    refused(RANKS, "rank 1: neither the wait nor the mpi probe was loaded");
}
static void no_processor_time(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS * PHASES; i++)
        phases[1][i].process_s = phases[1][i].thread_s = 0;
    refused(RANKS, "rank 1: no processor time was noted in its steps, which are too short to tell who computes");
}
static void no_mpi(void **state)
{
    (void)state;
    cases[0].probes = cases[1].probes = 1u << PROBE_MPI;
    refused(RANKS, "rank 0: no call of MPI in a step, and the wait probe was not loaded");
    for (int r = 0; r < RANKS; r++)
        phases[r][PHASES * 4].traffic = &gather, phases[r][PHASES * 4].traffic_count = 1;
    struct exposed e;
    char why[256];
    assert_true(exposed_of(cases, RANKS, &e, why));
}
static void lost(void **state)
{
    (void)state;
    cases[0].lost = 1;
    refused(RANKS, "rank 0: records were lost for want of room");
}
static void one_rank(void **state)
{
    (void)state;
    refused(1, "1 rank communicates with none");
}
static void few_steps(void **state)
{
    (void)state;
    cases[0].phase_count = cases[1].phase_count = 7 * PHASES;
    refused(RANKS, "5 steps after the first two, expected 6 or more");
}
static void no_wait(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS * PHASES; i++)
        if (strcmp(phases[1][i].name, "observe") != 0)
            phases[1][i].waits = 0, phases[1][i].wait_s = 0;
    refused(RANKS, "rank 1: no wait in any step: how it waits is not seen");
}
static void others_compute(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS * PHASES; i++)
        phases[0][i].thread_s = 4e-3;
    refused(RANKS, "rank 0: the thread that sets the marks has 40 % of the processor time: it waits for threads that compute");
}
static void on_device(void **state)
{
    (void)state;
    phases[1][PHASES * 3].on_device = true;
    refused(RANKS, "rank 1: communication runs on a device, where no thread waits for it");
}
static void a_step_is_missing(void **state)
{
    (void)state;
    cases[1].phase_count -= PHASES;
    refused(RANKS, "rank 1 did not mark every step");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, make)
    const struct CMUnitTest tests[] = {TEST(median_of_settled_steps), TEST(no_probe), TEST(no_processor_time), TEST(no_mpi), TEST(lost), TEST(one_rank), TEST(few_steps),
                                       TEST(no_wait), TEST(others_compute), TEST(on_device), TEST(a_step_is_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
