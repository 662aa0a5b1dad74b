// fsdpmark check --counters from end to end: the reference's events equal its own traffic event, what a worker lacks is said and never 0,
// and a mistake is told before anything starts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <glob.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 300;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";
static struct command_result result;

static int set_up(void **state)
{
    (void)state;
    if (!command_folder(folder))
        return -1;
    setenv("TMPDIR", folder, 1); // where --keep leaves the answers
#ifdef __SANITIZE_ADDRESS__
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1); // the probes stand before the sanitizer's library
#endif
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void run(const char *const *words) { command_run(folder, words, LIMIT_S, &result); }

#ifdef FSDPMARK_PAPI
static void mistakes_start_nothing(void **state)
{
    (void)state;
    static const struct { const char *words[6], *error; } bad[] = {
        {{"check", "-p", "tiny", "--counters", "perf::FOO"},
         "fsdpmark check: --counters: found 'perf::FOO', expected default or an event that PAPI knows (PAPI: Event does not exist)\n"},
        {{"check", "-p", "tiny", "--counters="}, "fsdpmark check: --counters: found '', expected default or an event that PAPI knows (PAPI: no name)\n"},
        {{"check", "--counters", "default", "--probes", "none"}, "fsdpmark check: --counters: found with --probes none, expected it without: a probe counts\n"},
        {{"check", "--resume", "1", "--counters", "default"},
         "fsdpmark check: --resume: found with --counters, expected it without: the run goes on with its own arguments\n"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        run(bad[i].words);
        assert_int_equal(result.status, 2);
        assert_string_equal(result.err, bad[i].error);
        assert_string_equal(result.out, "");
    }
}

// The sum of a counter over the phases of the programs, -1 where there is none. Not `end`: what ends a case comes after what it tells.
static double counted(json_t *document, const char *event)
{
    double sum = -1;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "counters"), i, row)
        if (strcmp(json_string_value(json_object_get(row, "event")), event) == 0 && json_object_get(row, "reason") == NULL &&
            strcmp(json_string_value(json_object_get(row, "phase")), "end") != 0)
            sum = (sum < 0 ? 0 : sum) + json_number_value(json_object_get(row, "value"));
    return sum;
}

static const char *reason(json_t *document, const char *event)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "counters"), i, row)
        if (strcmp(json_string_value(json_object_get(row, "event")), event) == 0 && json_object_get(row, "reason") != NULL)
            return json_string_value(json_object_get(row, "reason"));
    return NULL;
}

static json_t *read_json(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *document = json_load_file(path, 0, NULL);
    assert_non_null(document);
    return document;
}

// Adds up member `what` of the kinds of the traffic events that the ranks wrote: {"all_gather": {"count", "bytes"}, ...}.
static double told(const char *const *kinds, const char *what, int *events)
{
    char pattern[4200], line[1 << 16];
    glob_t found;
    double sum = 0;
    *events = 0;
    snprintf(pattern, sizeof pattern, "%s/fsdpmark-kept.*/reference.*/*/out/rank*.jsonl", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "re");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            json_t *event = json_loads(line, 0, NULL);
            bool traffic = json_string_value(json_object_get(event, "event")) != NULL && strcmp(json_string_value(json_object_get(event, "event")), "traffic") == 0;
            *events += traffic;
            for (int k = 0; traffic && kinds[k] != NULL; k++)
                sum += json_number_value(json_object_get(json_object_get(event, kinds[k]), what));
            json_decref(event);
        }
        fclose(file);
    }
    globfree(&found);
    return sum;
}

// What the probe reads at the marks of all ranks, added up, is what the ranks say of themselves at the end.
static void the_references_events_equal_its_traffic(void **state)
{
    (void)state;
    static const char *const gathers[] = {"all_gather", "near_gather", NULL}, *const reduces[] = {"reduce_scatter", "all_reduce", NULL};
    static const char *const all[] = {"all_gather", "near_gather", "reduce_scatter", "all_reduce", "broadcast", "barrier", NULL};
    const char *words[] = {"check", "-i", "reference", "-p", "tiny", "-k", "exact-mlp", "--keep", "--json", "r.json", "--counters",
                           "sde:::fsdpmark::bytes_gathered,sde:::fsdpmark::bytes_reduced,sde:::fsdpmark::collectives,sde:::fsdpmark::steps", NULL};
    int events;
    run(words);
    assert_int_equal(result.status, 0);
    json_t *document = read_json("r.json");
    if (reason(document, "sde:::fsdpmark::steps") != NULL) // a build without libsde
        skip();
    double bytes = told(gathers, "bytes", &events);
    assert_true(events >= 6 && bytes > 0);
    assert_true(counted(document, "sde:::fsdpmark::bytes_gathered") == bytes);
    assert_true(counted(document, "sde:::fsdpmark::bytes_reduced") == told(reduces, "bytes", &events));
    assert_true(counted(document, "sde:::fsdpmark::collectives") == told(all, "count", &events));
    assert_true(counted(document, "sde:::fsdpmark::steps") >= 2);
    assert_non_null(strstr(result.out, "counters of reference, added up over cases and ranks\n"));
    json_decref(document);
}

// The null implementation publishes nothing, and PAPI says so; what it can count has a value or PAPI's reason, too.
static void what_is_lacking_is_said(void **state)
{
    (void)state;
    const char *words[] = {"check", "-i", "null", "-p", "tiny", "-k", "exact-mlp", "--no-gate", "--json", "n.json", "--counters",
                           "perf::TASK-CLOCK,sde:::fsdpmark::steps", NULL};
    run(words);
    assert_int_equal(result.status, 1); // it trains nothing
    json_t *document = read_json("n.json");
    assert_true(counted(document, "sde:::fsdpmark::steps") == -1);
    assert_string_equal(reason(document, "sde:::fsdpmark::steps"), "libsde API not found. No SDEs exist in this executable.");
    assert_non_null(strstr(result.out, ": sde:::fsdpmark::steps: libsde API not found. No SDEs exist in this executable.\n"));
    assert_true(counted(document, "perf::TASK-CLOCK") > 0 || reason(document, "perf::TASK-CLOCK") != NULL);
    json_decref(document);
    const char *report[] = {"report", "-o", "report", NULL};
    char line[1024];
    bool said = false;
    run(report);
    assert_int_equal(result.status, 0);
    snprintf(line, sizeof line, "%s/report/counters.csv", folder);
    FILE *csv = fopen(line, "re");
    assert_non_null(csv);
    while (fgets(line, sizeof line, csv) != NULL)
        said |= strstr(line, "\"null\",\"sde:::fsdpmark::steps\",\"\",") == line && strstr(line, "\"libsde API not found. No SDEs exist in this executable.\"") != NULL;
    fclose(csv);
    assert_true(said);
}

static void doctor_tells_of_components(void **state)
{
    (void)state;
    const char *words[] = {"doctor", "--suite", NULL, NULL};
    words[2] = getenv("FSDPMARK_SUITE");
    run(words);
    static const char *const rows[] = {"PAPI perf_event ", "PAPI sde ", "PAPI energy ", "PAPI threads ", "PAPI kernel "};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_non_null(strstr(result.out, rows[i]));
}
#else
static void a_build_without_PAPI_refuses(void **state)
{
    (void)state;
    const char *words[] = {"check", "-p", "tiny", "--counters", "default", NULL};
    run(words);
    assert_int_equal(result.status, 2);
    assert_string_equal(result.err, "fsdpmark check: --counters: this build has no PAPI (package libpapi-dev, then make)\n");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef FSDPMARK_PAPI
        cmocka_unit_test(mistakes_start_nothing), cmocka_unit_test(the_references_events_equal_its_traffic),
        cmocka_unit_test(what_is_lacking_is_said), cmocka_unit_test(doctor_tells_of_components),
#else
        cmocka_unit_test(a_build_without_PAPI_refuses),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
