// A case that fails by itself is no measure for others: those that are right stay PASS.
//
// Under the seeded fault the last shard is not updated: what is sharded fails, and comes before what is not at the next number of ranks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 120;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";
static struct command_result result;

static int set_up(void **state)
{
    (void)state;
    if (!command_folder(folder))
        return -1;
    command_write(folder, "faulty.yaml", "title: t\nname: faulty\ncommand: [\"${build}/fsdp-reference-faulty\", --worker]\nlaunchers: [mpirun]\nlayouts: [flat]\n"
               "options: {fault: last-shard-not-updated}\n");
    command_write(folder, "cases.yaml", "name: t\ntitle: small\nlayer: exact\nmodel: {kind: mlp, sizes: [6, 8, 4]}\ndata: exact\nglobal_rows: 12\n"
               "matrix: {ranks: [2, 3], strategy: [none, full]}\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void right_among_wrong(void **state)
{
    (void)state;
    char path[4200];
    const char *const words[] = {"check", "-i", "./faulty.yaml", "--case", "cases.yaml", "--store", "t.db", "--json", "t.json", NULL};
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 1);
    snprintf(path, sizeof path, "%s/t.json", folder);
    json_t *root = json_load_file(path, 0, NULL), *row;
    size_t i, wrong = 0, right = 0;
    json_array_foreach(json_object_get(root, "results"), i, row) {
        const char *id = json_string_value(json_object_get(row, "case")), *check = json_string_value(json_object_get(row, "check"));
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        bool failed = strcmp(verdict, "FAIL") == 0, whole = strstr(id, ".full.") == NULL;
        if (whole && failed)
            fail_msg("%s, check %s: %s", id, check, json_string_value(json_object_get(row, "message")));
        wrong += !whole && failed && strcmp(check, "step-bitwise") == 0;
        right += strcmp(id, "t.none.n3") == 0 && strcmp(check, "rank-count") == 0;
    }
    json_decref(root);
    assert_int_equal(wrong, 2);
    assert_int_equal(right, 1); // it is compared all the same: with the right one at two ranks
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_among_wrong)};
    return cmocka_run_group_tests_name("family", tests, set_up, tear_down);
}
