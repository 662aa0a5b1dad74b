// fsdpmark advise as a command: thousands of ranks, what it prints, bad input.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static struct command_result result;
static char folder[] = "/tmp/fsdpmark-advise-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}
static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static json_t *ask(const char *ranks, const char *bandwidth)
{
    const char *words[] = {"advise", "--ranks", ranks, "--bandwidth", bandwidth, "--rows", "1", "--memory", "1TB", "--json", NULL};
    command_run(folder, words, 30, &result);
    assert_int_equal(result.status, 0);
    json_t *j = json_loads(result.out, 0, NULL);
    assert_non_null(j);
    return j;
}

static json_t *strategy(json_t *j, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(j, "strategies"), i, row)
        if (strcmp(json_string_value(json_object_get(row, "strategy")), name) == 0)
            return row;
    fail_msg("no strategy %s", name);
    return NULL;
}
static double number(json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

// The work of a prediction does not grow with the ranks: counted, for time differs by machine.
static void thousands_of_ranks(void **state)
{
    (void)state;
    json_t *few = ask("16", "400Gbit/s"), *many = ask("16384", "400Gbit/s");
    static const char *const names[] = {"none", "grad", "full", "hybrid"};
    for (size_t i = 0; i < 4; i++) {
        double events = number(strategy(many, names[i]), "events");
        assert_true(events > 0 && events < 1.2 * number(strategy(few, names[i]), "events") && events < 2000);
        assert_true(number(strategy(many, names[i]), "step_seconds") > 0);
    }
    assert_true(number(strategy(many, "full"), "memory_bytes") < number(strategy(few, "full"), "memory_bytes"));
    json_decref(few);
    json_decref(many);
}

static void a_slow_line_favours_few_bytes(void **state)
{
    (void)state;
    json_t *slow = ask("64", "1Gbit/s"), *fast = ask("64", "3200Gbit/s");
    assert_true(number(strategy(slow, "full"), "step_seconds") > number(strategy(slow, "grad"), "step_seconds"));
    assert_true(number(strategy(slow, "full"), "exposed_seconds") > 10 * number(strategy(fast, "full"), "exposed_seconds"));
    json_decref(slow);
    json_decref(fast);
}

static void prints_table_words_and_assumptions(void **state)
{
    (void)state;
    const char *words[] = {"advise", "--ranks", "16384", NULL};
    command_run(folder, words, 30, &result);
    assert_int_equal(result.status, 0);
    static const char *const expected[] = {"strategy", "hybrid 2048x8", "is the fastest strategy that fits", "bound by computing", "assumptions", "defaults, measured by nobody", "between groups"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_non_null(strstr(result.out, expected[i]));
}

// Its eight rows, shared by the ranks.
static void a_workload_has_its_batch(void **state)
{
    (void)state;
    const char *words[] = {"advise", "--workload", "small", "--ranks", "4", "--hosts", "4", "--json", NULL};
    command_run(folder, words, 30, &result);
    assert_int_equal(result.status, 0);
    json_t *j = json_loads(result.out, 0, NULL);
    assert_non_null(j);
    assert_int_equal(number(strategy(j, "none"), "rows"), 2);
    assert_int_equal(number(strategy(j, "full"), "rows"), 2);
    json_decref(j);
}

static void what_does_not_fit_is_not_best(void **state)
{
    (void)state;
    const char *words[] = {"advise", "--ranks", "8", "--memory", "1GB", NULL};
    command_run(folder, words, 30, &result);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "No strategy fits."));
}

// The crossover map and the throughput, with their data, where gnuplot is.
static void draws_figures(void **state)
{
    (void)state;
    const char *words[] = {"advise", "--ranks", "16", "--figures", "figures", NULL};
    command_run(folder, words, 120, &result);
    assert_int_equal(result.status, 0);
    char path[4200];
    static const char *const names[] = {"crossover-map", "advise-bandwidth"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/figures/%s.dat", folder, names[i]);
        assert_int_equal(access(path, R_OK), 0);
    }
    snprintf(path, sizeof path, "%s/figures", folder);
    scratch_remove(path);
}

static void bad_input(void **state)
{
    (void)state;
    static const struct { const char *words[6], *complaint; } bad[] = {
        {{"advise", "--ranks", "0"}, "--ranks: found 0"},
        {{"advise", "--bandwidth", "fast"}, "--bandwidth: found 'fast', expected a bandwidth such as"},
        {{"advise", "--alpha", "5"}, "--alpha: found '5', expected a time such as"},
        {{"advise", "--exchange", "star"}, "--exchange: found 'star', expected direct, ring or tree"},
        {{"advise", "--model", "bert"}, "--model: found 'bert', expected llama or gpt"},
        {{"advise", "--precision", "f33"}, "f33"},
        {{"advise", "--dim", "100", "--heads", "3"}, "dim 100 is no multiple of heads 3"},
        {{"advise", "--ranks", "8", "--hosts", "3"}, "--hosts: found 3 for 8 ranks"},
        {{"advise", "--case", "/nonexistent.yaml"}, "/nonexistent.yaml"},
        {{"advise", "--workload", "huge"}, "--workload: found 'huge', expected a file or one of medium, small, tiny"},
        {{"advise", "--workload", "tiny", "--case", "a.yaml"}, "--workload: found with --case"},
        {{"advise", "--workload", "tiny", "--precision", "bf16"}, "--precision: found with --workload"},
        {{"advise", "--case", "a.yaml", "--no-reshard"}, "--no-reshard: found with --case"},
        {{"advise", "-k", "x"}, "--pattern: found without --case"},
        {{"advise", "-f", "shm", "--from", "0"}, "--from: found with --fabric"},
        {{"advise", "--from", "newest"}, "--from: found 'newest', expected the number of a run"},
        {{"advise", "-f", "shm", "--ranks", "65"}, "--ranks: found 65, expected 2 to 64"},
        {{"advise", "-f", "shm", "--ranks", "2"}, "too large to be stepped here"},
        {{"advise", "--validate", "--rates", "100"}, "--rates: found one rate"},
        {{"advise", "--validate", "--rates", "100,x"}, "--rates: found '100,x'"},
        {{"advise", "--validate", "--rounds", "0"}, "--rounds: found 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        command_run(folder, bad[i].words, 30, &result);
        assert_int_equal(result.status, 2);
        assert_non_null(strstr(result.err, bad[i].complaint));
        assert_true(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thousands_of_ranks), cmocka_unit_test(a_slow_line_favours_few_bytes), cmocka_unit_test(prints_table_words_and_assumptions),
                                       cmocka_unit_test(a_workload_has_its_batch), cmocka_unit_test(what_does_not_fit_is_not_best), cmocka_unit_test(draws_figures), cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
