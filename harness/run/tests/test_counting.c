// Counters of a case by phase, and the table that a run's counters make.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/report/counters.h"
#include "harness/run/counting.h"

// Two forwards and a step of two ranks: faults of the process, energy of the machine, a level.
static struct probe_counter of[2][3][3] = {
    {{{"perf::PAGE-FAULTS", 10, PROBE_OF_PROCESS, 0}, {"x:::ENERGY", 500, PROBE_OF_MACHINE, 0}, {"sde:::fsdpmark::unsharded_bytes_live", 64, PROBE_LEVEL, 0}},
     {{"perf::PAGE-FAULTS", 20, PROBE_OF_PROCESS, 0}, {"x:::ENERGY", 700, PROBE_OF_MACHINE, 0}, {"sde:::fsdpmark::unsharded_bytes_live", 32, PROBE_LEVEL, 0}},
     {{"perf::PAGE-FAULTS", 0, PROBE_OF_PROCESS, 0}, {"x:::ENERGY", 9, PROBE_OF_MACHINE, 0}, {"sde:::fsdpmark::unsharded_bytes_live", 0, PROBE_LEVEL, 0}}},
    {{{"perf::PAGE-FAULTS", 1, PROBE_OF_PROCESS, 0}, {"x:::ENERGY", 501, PROBE_OF_MACHINE, 0}, {"sde:::fsdpmark::unsharded_bytes_live", 96, PROBE_LEVEL, 0}},
     {{"perf::PAGE-FAULTS", 2, PROBE_OF_PROCESS, 0}, {"x:::ENERGY", 701, PROBE_OF_MACHINE, 0}, {"sde:::fsdpmark::unsharded_bytes_live", 8, PROBE_LEVEL, 0}},
     {{"perf::PAGE-FAULTS", 3, PROBE_OF_PROCESS, 0}, {"x:::ENERGY", 8, PROBE_OF_MACHINE, 0}, {"sde:::fsdpmark::unsharded_bytes_live", 0, PROBE_LEVEL, 0}}}};
static struct probe_phase phases[2][3];
static struct probe_case ranks[2];

static int set_up(void **state)
{
    (void)state;
    static const char *const names[] = {"forward", "forward", "step"};
    for (int r = 0; r < 2; r++) {
        for (int p = 0; p < 3; p++)
            phases[r][p] = (struct probe_phase){.name = names[p], .counter_count = 3, .counters = of[r][p]};
        ranks[r] = (struct probe_case){.rank = r, .phase_count = 3, .phases = phases[r]};
    }
    return 0;
}

static json_t *entry(json_t *figures, const char *event, const char *phase)
{
    size_t i;
    json_t *f;
    json_array_foreach(figures, i, f)
        if (strcmp(json_string_value(json_object_get(f, "tensor")), event) == 0 && strcmp(json_string_value(json_object_get(f, "label")), phase) == 0)
            return f;
    return NULL;
}

static void expect(json_t *figures, const char *event, const char *phase, double value, int times, const char *unit)
{
    json_t *f = entry(figures, event, phase);
    assert_non_null(f);
    assert_true(json_number_value(json_object_get(f, "figure")) == value);
    assert_int_equal(json_integer_value(json_object_get(f, "times")), times);
    assert_string_equal(json_string_value(json_object_get(f, "unit")), unit);
}

static void values_are_added_by_what_they_are_of(void **state)
{
    (void)state;
    json_t *figures = json_array();
    counting_figures("perf::PAGE-FAULTS,x:::ENERGY,sde:::fsdpmark::unsharded_bytes_live", ranks, 2, NULL, figures);
    expect(figures, "perf::PAGE-FAULTS", "forward", 33, 2, "events");
    expect(figures, "perf::PAGE-FAULTS", "step", 3, 1, "events");
    expect(figures, "x:::ENERGY", "forward", 1200, 2, "events"); // both ranks read the same meter
    expect(figures, "sde:::fsdpmark::unsharded_bytes_live", "forward", 96, 2, "bytes");
    expect(figures, "sde:::fsdpmark::unsharded_bytes_live", "step", 0, 1, "bytes"); // 0 was counted, so it is shown
    assert_int_equal(json_array_size(figures), 6);
    json_decref(figures);
}

// What was not counted has a reason and no number, whatever other ranks saw.
static void what_is_not_available_is_never_0(void **state)
{
    (void)state;
    json_t *figures = json_array();
    struct probe_counter kept = of[1][1][0];
    of[1][1][0].reason = -7;
    of[1][1][0].value = 0;
    counting_figures("perf::PAGE-FAULTS,perf::CPU-MIGRATIONS", ranks, 2, NULL, figures);
    of[1][1][0] = kept;
    assert_int_equal(json_array_size(figures), 2);
    for (int i = 0; i < 2; i++) {
        json_t *f = json_array_get(figures, (size_t)i);
        assert_true(json_is_null(json_object_get(f, "figure")));
        assert_string_equal(json_string_value(json_object_get(f, "label")), "");
        assert_true(json_string_length(json_object_get(f, "reason")) > 0);
    }
    assert_string_equal(json_string_value(json_object_get(json_array_get(figures, 1), "reason")), "the probe wrote no value of it");
    json_array_clear(figures);
    counting_figures("perf::PAGE-FAULTS", NULL, 2, "probes.rank0: No such file or directory", figures);
    assert_string_equal(json_string_value(json_object_get(json_array_get(figures, 0), "reason")), "probes.rank0: No such file or directory");
    json_decref(figures);
}

static void the_table_has_a_row_a_phase(void **state)
{
    (void)state;
    json_t *figures = json_array();
    counting_figures("perf::PAGE-FAULTS,x:::ENERGY,sde:::fsdpmark::unsharded_bytes_live,PAPI_X", ranks, 2, NULL, figures);
    struct stored_case cases[] = {{.implementation = "a", .figures = figures}, {.implementation = "a", .figures = figures}};
    struct stored_run run = {.case_count = 2, .cases = cases};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_true(report_counters(&run, out));
    fclose(out);
    assert_string_equal(text, "\n"
        "counters of a, added up over cases and ranks\n"
        "phase          times   PAGE-FAULTS        ENERGY  unsharded_bytes_live\n"
        "                            events        events                 bytes\n"
        "forward            4            66          2400                    96\n"
        "step               2             6            18                     0\n"
        "ENERGY: of the whole machine, not only of the ranks\n"
        "unsharded_bytes_live: the largest at the end of a phase\n"
        "not available in 2 cases: PAPI_X: the probe wrote no value of it\n");
    free(text);
    json_t *rows = counters_json(&run);
    assert_int_equal(json_array_size(rows), 7);
    json_decref(rows);
    json_decref(figures);
}

static void a_run_without_counters_has_no_table(void **state)
{
    (void)state;
    json_t *figures = json_pack("[{s:s, s:s, s:s, s:f, s:f}]", "check", "gradient_ratio", "label", "s0", "tensor", "w", "figure", 0.5, "bound", 1.0);
    struct stored_case cases[] = {{.implementation = "a", .figures = figures}};
    struct stored_run run = {.case_count = 1, .cases = cases};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_true(report_counters(&run, out));
    fclose(out);
    assert_string_equal(text, "");
    free(text);
    json_decref(figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_added_by_what_they_are_of),
        cmocka_unit_test(what_is_not_available_is_never_0),
        cmocka_unit_test(the_table_has_a_row_a_phase),
        cmocka_unit_test(a_run_without_counters_has_no_table),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
