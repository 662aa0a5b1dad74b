// PAPI as the harness asks it: names, units, reasons, components. What is asserted holds on any machine that has PAPI.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/probes/counter.h"
#include "harness/probes/counters.h"

static void keys_are_the_ends_of_long_names(void **state)
{
    (void)state;
    assert_string_equal(counter_key("PAPI_TOT_CYC"), "PAPI_TOT_CYC");
    const char *name = "nvml:::A_Device_With_A_Long_Name:device_0:total_energy";
    assert_int_equal(strlen(counter_key(name)), COUNTER_NAME_BYTES - 1);
    assert_string_equal(counter_key(name) + strlen(counter_key(name)) - 12, "total_energy");
#define FITS(event, unit, scope, what) assert_string_equal(counter_key("sde:::fsdpmark::" #event), "sde:::fsdpmark::" #event);
    SOFTWARE_EVENTS(FITS)
}

static void units_are_known(void **state)
{
    (void)state;
    assert_string_equal(counters_unit("sde:::fsdpmark::bytes_gathered"), "bytes");
    assert_string_equal(counters_unit("sde:::fsdpmark::steps"), "steps");
    assert_string_equal(counters_unit("perf::TASK-CLOCK"), "ns");
    assert_string_equal(counters_unit("PAPI_TOT_CYC"), "events");
    assert_int_equal(counter_fact("sde:::fsdpmark::unsharded_bytes_live")->scope, PROBE_LEVEL);
    assert_null(counter_fact("perf::PAGE-FAULTS"));
}

#ifdef FSDPMARK_PAPI
static void names_are_resolved(void **state)
{
    (void)state;
    struct error error = {0};
    char *events;
    assert_true(counters_resolve("perf::PAGE-FAULTS,sde:::fsdpmark::steps,perf::PAGE-FAULTS", &events, &error));
    assert_string_equal(events, "perf::PAGE-FAULTS,sde:::fsdpmark::steps"); // each once
    free(events);
    assert_true(counters_resolve("PAPI_TOT_CYC,sde:::other::event", &events, &error)); // known, available or not; the worker's own
    assert_string_equal(events, "PAPI_TOT_CYC,sde:::other::event");
    free(events);
    assert_true(counters_resolve("default", &events, &error));
    assert_non_null(strstr(events, "perf::TASK-CLOCK"));
    assert_non_null(strstr(events, "PAPI_TOT_INS"));
    free(events);
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    static const struct { const char *words, *error; } bad[] = {
        {"perf::FOO", "--counters: found 'perf::FOO', expected default or an event that PAPI knows (PAPI: Event does not exist)"},
        {"default,", "--counters: found '', expected default or an event that PAPI knows (PAPI: no name)"},
        {"", "--counters: found '', expected default or an event that PAPI knows (PAPI: no name)"},
        {"sde:::fsdpmark::stepz", "--counters: found 'sde:::fsdpmark::stepz', which the reference does not publish (docs/probes.md lists those)"},
        {"sde:::a234567890123456789012345678901234567890,sde:::b234567890123456789012345678901234567890",
         "--counters: found 'sde:::b234567890123456789012345678901234567890' beside one that ends in the same 39 characters, expected one of them"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error error = {0};
        char *events;
        assert_false(counters_resolve(bad[i].words, &events, &error));
        assert_string_equal(error.text, bad[i].error);
        assert_null(events);
    }
    char many[2000] = "";
    for (int i = 0; i <= COUNTERS_MAX; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%ssde:::x::e%d", i ? "," : "", i);
    struct error error = {0};
    char *events;
    assert_false(counters_resolve(many, &events, &error));
    assert_non_null(strstr(error.text, "found more than 32 events"));
}

static void a_reason_is_PAPIs_own(void **state)
{
    (void)state;
    char text[200];
    counters_reason("PAPI_TOT_CYC", -7, text, sizeof text);
    assert_string_equal(text, "Event does not exist");
    counters_reason("sde:::fsdpmark::steps", -7, text, sizeof text); // the worker has such events, but not this one
    assert_string_equal(text, "Event does not exist");
    counters_reason("sde:::fsdpmark::steps", -4, text, sizeof text); // the worker has none at all: the component's words
    assert_string_equal(text, "libsde API not found. No SDEs exist in this executable.");
}

static void look(void *context, const struct counters_component *c)
{
    bool *seen = context;
    *seen |= strcmp(c->name, "perf_event") == 0;
    assert_non_null(c->reason);
    if (strcmp(c->name, "sde") == 0) // this program publishes nothing
        assert_true(c->reason[0] != 0);
}

static void components_are_listed(void **state)
{
    (void)state;
    bool seen = false;
    char why[200];
    assert_true(counters_components(look, &seen, why, sizeof why) > 0);
    assert_true(seen);
}
#else
static void a_build_without_PAPI_says_so(void **state)
{
    (void)state;
    struct error error = {0};
    char *events, why[200];
    assert_false(counters_resolve("default", &events, &error));
    assert_non_null(strstr(error.text, "this build has no PAPI"));
    assert_int_equal(counters_components(NULL, NULL, why, sizeof why), 0);
    assert_non_null(strstr(why, "this build has no PAPI"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_the_ends_of_long_names), cmocka_unit_test(units_are_known),
#ifdef FSDPMARK_PAPI
        cmocka_unit_test(names_are_resolved), cmocka_unit_test(unknown_names_are_refused), cmocka_unit_test(a_reason_is_PAPIs_own),
        cmocka_unit_test(components_are_listed),
#else
        cmocka_unit_test(a_build_without_PAPI_says_so),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
