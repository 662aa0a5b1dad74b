// fsdpmark net, run for real on this machine: short, right, and with a buffer damaged on purpose.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 150;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";
static struct command_result result;

static int set_up(void **state)
{
    (void)state;
    char program[4096], *suite = realpath("suite", NULL);
    if (suite == NULL || !command_program(program) || mkdtemp(folder) == NULL)
        return -1;
    setenv("FSDPMARK_SUITE", suite, 1);
    free(suite);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static json_t *report(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/net.json", folder);
    json_t *root = json_load_file(path, 0, NULL);
    if (root == NULL)
        fail_msg("no report; stderr: %s", result.err);
    return root;
}

// Each measure with small messages, so that every call, type, shape and group is checked once at least.
static void every_buffer_is_right(void **state)
{
    (void)state;
    const char *const words[] = {"net", "-n", "4", "--sizes", "4K", "-k", "exact-mlp", "-t", "60", "--starts", "1", "--narrow", "0.5", "--store", "net.db", "--json", "net.json",
                                 "--csv", "net.csv", NULL};
    command_run(folder, words, LIMIT_S, &result);
    if (result.status != 0)
        fail_msg("exit status %d: %s", result.status, result.err);
    json_t *root = report(), *rows = json_object_get(root, "rows"), *row;
    size_t i, uneven = 0, both = 0, mixed = 0, tiers = 0, units = 0, products = 0;
    json_array_foreach(rows, i, row)
    {
        const char *measure = json_string_value(json_object_get(row, "measure")), *name = json_string_value(json_object_get(row, "name"));
        assert_int_equal(json_integer_value(json_object_get(row, "errors")), 0);
        assert_true(json_real_value(json_object_get(row, "seconds")) > 0);
        uneven += strcmp(json_string_value(json_object_get(row, "shards")), "even") != 0;
        both += strcmp(name, "all-gather + reduce-scatter") == 0;
        mixed += strcmp(json_string_value(json_object_get(row, "type")), "bfloat16") == 0;
        tiers += strcmp(measure, "tiers") == 0;
        units += strcmp(measure, "units") == 0;
        products += json_is_real(json_object_get(row, "overlap"));
    }
    print_message("%zu points\n", json_array_size(rows));
    assert_true(uneven > 0 && both > 0 && mixed > 0 && tiers > 0 && units > 0 && products > 0);
    assert_non_null(strstr(result.out, "4 ranks on 1 host"));
    json_decref(root);
}

static void damage_is_found(void **state)
{
    (void)state;
    const char *const words[] = {"net", "-n", "2", "--sizes", "4K", "-m", "sweep", "-t", "10", "--starts", "1", "--corrupt", "1:3", "--store", "net.db", "--json", "net.json", NULL};
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 1);
    json_t *root = report(), *rows = json_object_get(root, "rows"), *row;
    size_t i;
    assert_int_equal(json_array_size(rows), 4);
    json_array_foreach(rows, i, row)
    {
        assert_int_equal(json_integer_value(json_object_get(row, "errors")), 1); // that one element of that one iteration, and no other
        assert_memory_equal(json_string_value(json_object_get(row, "first_error")), "rank 1, iteration 3: ", 21);
    }
    assert_non_null(strstr(result.out, "FAIL: 1 wrong elements: rank 1, iteration 3: all-gather: element 1023 is "));
    json_decref(root);
}

static void what_cannot_be_had_is_a_skip(void **state)
{
    (void)state;
    const char *const words[] = {"net", "-f", "hosts", "--store", "net.db", NULL};
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 3);
    assert_memory_equal(result.out, "SKIP: fabric hosts cannot be had here: no host file is named; remedy: ", 69);
}

static void bad_input_is_named(void **state)
{
    (void)state;
    static const struct { const char *option, *value, *complaint; } rows[] = {
        {"--sizes", "8..4", "--sizes: found '8..4', expected sizes"}, {"--sizes", "-5", "--sizes: found '-5', expected sizes"},
        {"-m", "sweeep", "--measure: found 'sweeep', expected all, sweep"}, {"-m", "", "--measure: found '', expected all, sweep"},
        {"-n", "0", "--ranks: found 0, expected 2 to 4096"}, {"-n", "1", "--ranks: found 1, expected 2 to 4096"}, {"-n", "-3", "--ranks: found '-3', expected a whole number of at least 0"},
        {"--within", "0", "--within: found 0, expected a divisor"}, {"--within", "3", "--within: found 3, expected a divisor"},
        {"--corrupt", "9:1", "--corrupt: found '9:1', expected RANK:ITERATION"}, {"--starts", "0", "--starts: found 0, expected 1 to 1000"},
        {"-f", "tokenring", "tokenring"}, {"-k", "no-such-case", "no-such-case"}, {"-k", "", "--pattern: found '', expected a glob or a part of a case's id"},
        {"--hosts", "2", "--hosts: found with fabric shm, expected one of the kind virtual"}, {"--hosts", "0", "--hosts: found 0, expected 1 to 64"},
        {"--hosts", "65", "--hosts: found 65, expected 1 to 64"}, {"--agent", "ssh", "--agent: found with fabric shm, expected one of the kind hosts"},
        {"--json", "/nonexistent/x", "/nonexistent/x: cannot be written: No such file or directory"}, {"--csv", ".", ".: cannot be written: Is a directory"},
        {"-m", "units", "--measure: found nothing to measure, expected for units: --case or -k"}, {"-m", "links", "--measure: found nothing to measure, expected for links: 3 to 32 ranks"},
        {"--json", "", "--json: found '', expected a path"}, {"--figures", "", "--figures: found '', expected a path"},
        {"--figures", "/etc/passwd/x", "/etc/passwd/x: cannot be written: Not a directory"}, {"--suite", "/nonexistent", "/nonexistent: found no suite there"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const words[] = {"net", rows[i].option, rows[i].value, "--store", "net.db", NULL};
        command_run(folder, words, LIMIT_S, &result);
        if (result.status != 2 || strstr(result.err, rows[i].complaint) == NULL || strchr(result.err, '\n') != result.err + strlen(result.err) - 1 || result.out[0] != 0)
            fail_msg("%s %s: exit status %d, said: %s%s", rows[i].option, rows[i].value, result.status, result.out, result.err);
    }
}

// With a shell, since a reader has to leave before anything is written: the run goes on to its end, and is no failure.
static void a_reader_may_leave(void **state)
{
    (void)state;
    char program[4096], line[9000];
    command_program(program);
    for (int json = 0; json < 2; json++) {
        snprintf(line, sizeof line, "cd '%s' && rm -f status && { sleep 1; '%s' net -m sweep --sizes 4K -n 2 -t 3 --starts 1 --store pipe.db %s 2>err; echo $? >status; } | true; "
                 "test \"$(cat status)\" = 0 && ! grep 'fsdpmark net:' err", folder, program, json ? "--json -" : "");
        if (system(line) != 0)
            fail_msg("%s", line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_buffer_is_right),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(what_cannot_be_had_is_a_skip),
        cmocka_unit_test(bad_input_is_named),
        cmocka_unit_test(a_reader_may_leave),
    };
    return cmocka_run_group_tests_name("net", tests, set_up, tear_down);
}
