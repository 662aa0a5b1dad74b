// The selftest tested: it counts what it must, and says no where a fault is missed or a correct program alarmed.
//
// A suite of its own with one implementation, the worker of harness/run/tests/oracle.h, whose faults are its ways to misbehave.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"
#include "harness/run/tests/oracle.h"

static const double LIMIT_S = 120;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX", self[4096];
static struct command_result result;

static void write_file(const char *name, const char *text)
{
    char path[4200], parent[4200];
    struct error error = {0};
    snprintf(path, sizeof path, "%s/suite/%s", folder, name);
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = 0;
    assert_true(scratch_folder(parent, &error));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_manifest(const char *misbehave)
{
    char text[5000];
    snprintf(text, sizeof text, "title: oracle\ncommand: [\"%s\"]\noptions: {misbehave: \"%s\", at: \"*\", on: \"all\"}\n", self, misbehave);
    write_file("implementations/oracle/implementation.yaml", text);
}

static int set_up(void **state)
{
    (void)state;
    char suite[4200];
    if (!command_folder(folder))
        return -1;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    snprintf(suite, sizeof suite, "%s/suite", folder); // with cases of its own
    setenv("FSDPMARK_SUITE", suite, 1);
    write_file("cases/t.yaml", "name: t\ntitle: small\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 3]}\ndata: {recipe: exact, density: 0.7}\n"
               "global_rows: 4\nmatrix: {ranks: [1, 2], strategy: [none]}\n");
    write_file("profiles/all.yaml", "title: all\ncases:\n  - {pattern: \"t*\"}\n");
    write_manifest("none");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

// One fault file at a time; expected: the last line of stdout, NULL for none.
static void run_with(const char *fault, int status, const char *last_line)
{
    const char *const words[] = {"selftest", "--deadline", "3", NULL};
    write_file("faults/f.yaml", fault);
    command_run(folder, words, LIMIT_S, &result);
    if (result.status != status || (last_line != NULL && strstr(result.out, last_line) == NULL))
        print_error("%s%s", result.out, result.err);
    assert_int_equal(result.status, status);
    if (last_line != NULL) {
        size_t size = strlen(result.out);
        assert_true(size > 1);
        result.out[size - 1] = 0;
        const char *line = strrchr(result.out, '\n');
        assert_non_null(line);
        assert_string_equal(line + 1, last_line);
    }
}

static void detected(void **state)
{
    (void)state;
    run_with("name: wrong\nclass: Z01\nin: oracle\nclaim: one element is off by 1\ncases: [\"t.*\"]\nexpect: step-bitwise\n", 0,
             "faults: 1 of 1 detected; correct: 2 cases, 0 false alarms");
}

static void hang_detected(void **state)
{
    (void)state;
    run_with("name: hang\nclass: Z29\nin: oracle\nclaim: no rank goes on\ncases: [\"t.none.n2\"]\n", 0,
             "faults: 1 of 1 detected; correct: 1 cases, 0 false alarms");
}

static void missed(void **state)
{
    (void)state;
    run_with("name: harmless\nclass: Z01\nin: oracle\nclaim: nothing is wrong\ncases: [\"profile:all\"]\n", 1,
             "faults: 0 of 1 detected; correct: 2 cases, 0 false alarms");
    assert_non_null(strstr(result.out, "every check said PASS"));
}

static void failing_check_does_not_claim_it(void **state)
{
    (void)state;
    run_with("name: wrong\nclass: Z28\nin: oracle\nclaim: a class that no failing check claims\ncases: [\"t.none.n2\"]\n", 1,
             "faults: 0 of 1 detected; correct: 1 cases, 0 false alarms");
}

static void expected_check_says_nothing(void **state)
{
    (void)state;
    run_with("name: wrong\nclass: Z01\nin: oracle\nclaim: one element\ncases: [\"t.none.n2\"]\nexpect: mean-witness\n", 1,
             "faults: 0 of 1 detected; correct: 1 cases, 0 false alarms");
}

static void false_alarm(void **state)
{
    (void)state;
    write_manifest("wrong");
    run_with("name: wrong\nclass: Z01\nin: oracle\nclaim: one element\ncases: [\"t.none.n2\"]\n", 1,
             "faults: 1 of 1 detected; correct: 1 cases, 1 false alarms");
    assert_non_null(strstr(result.out, "FALSE ALARM oracle, case t.none.n2: "));
    write_manifest("none");
}

static void bad_files(void **state)
{
    (void)state;
    static const struct { const char *text, *message; } bad[] = {
        {"name: a\nclas: Z01\n", "/suite/faults/f.yaml:2: found 'clas', expected class\n"},
        {"name: a\nin: oracle\n", "/suite/faults/f.yaml:1: class: found nothing, expected a text\n"},
        {"name: a\nclass: Z31\nin: oracle\nclaim: x\ncases: [t]\n", "/suite/faults/f.yaml:2: class: found 'Z31', expected Z01 to Z30\n"},
        {"name: a\nclass: Z01\nin: oracle\nclaim: x\ncases: t\n", "/suite/faults/f.yaml:5: cases: found 't', expected a list of case ids or globs\n"},
        {"- a\n", "found a list of 1, expected a fault (a mapping)\n"},
        {"faults:\n  - {name: a, class: Z01, in: oracle, claim: x, cases: [t]}\n  - {name: a, class: Z02, in: oracle, claim: x, cases: [t]}\n",
         ": name: found 'a' again, expected each once in oracle (first "},
        {"name: a\nclass: Z01\nin: oracle\nclaim: x\ncases: [\"nothing-*\"]\n", "/suite/faults/f.yaml:1: fault a: "},
        {"name: a\nclass: Z01\nin: nobody\nclaim: x\ncases: [t]\n", "found no implementation 'nobody'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        run_with(bad[i].text, 2, NULL);
        if (strstr(result.err, bad[i].message) == NULL)
            fail_msg("found '%s', expected '%s'", result.err, bad[i].message);
    }
}

static void nothing_chosen(void **state)
{
    (void)state;
    const char *const words[] = {"selftest", "-k", "absent", "--in", "oracle", NULL};
    write_file("faults/f.yaml", "name: wrong\nclass: Z01\nin: oracle\nclaim: one\ncases: [t]\n");
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 2);
    assert_string_equal(result.err, "fsdpmark selftest: no fault matches -k absent --in oracle; fsdpmark list faults names them\n");
}

static void as_json(void **state)
{
    (void)state;
    const char *const words[] = {"selftest", "--json", "-", NULL};
    write_file("faults/f.yaml", "name: wrong\nclass: Z01\nin: oracle\nclaim: one element\ncases: [\"t.none.n2\"]\n");
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    json_t *root = json_loads(result.out, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "detected")), 1);
    assert_int_equal(json_integer_value(json_object_get(root, "false_alarms")), 0);
    json_t *fault = json_array_get(json_object_get(root, "faults"), 0);
    assert_string_equal(json_string_value(json_object_get(fault, "case")), "t.none.n2.fault-wrong");
    json_decref(root);
}

int main(void)
{
    if (getenv("FSDPMARK_JOB") != NULL)
        return oracle_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detected), cmocka_unit_test(hang_detected), cmocka_unit_test(missed),
        cmocka_unit_test(failing_check_does_not_claim_it), cmocka_unit_test(expected_check_says_nothing), cmocka_unit_test(false_alarm),
        cmocka_unit_test(bad_files), cmocka_unit_test(nothing_chosen), cmocka_unit_test(as_json),
    };
    alarm(500);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
