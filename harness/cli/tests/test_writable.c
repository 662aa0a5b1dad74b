// What is told before anything is measured: reports that cannot be written, and a folder of temporary files that is none. Nothing is left behind.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 20; // no measurement is as short
static struct command_result result;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";

static int set_up(void **state)
{
    (void)state;
    bool fine = command_folder(folder);
    if (fine)
        command_write(folder, "file", "x");
    return !fine;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void says(const char *const *words, const char *expected)
{
    command_run(folder, words, LIMIT_S, &result);
    if (result.status != 2 || strcmp(result.err, expected) != 0 || result.out[0] != 0)
        fail_msg("%s: status %d; expected \"%s\", found \"%s\" and on stdout \"%s\"", words[0], result.status, expected, result.err, result.out);
}

static void reports_are_tried_first(void **state)
{
    (void)state;
    static const struct { const char *words[8], *said; } rows[] = {
        {{"net", "--json", "/nonexistent/x"}, "fsdpmark net: /nonexistent/x: cannot be written: No such file or directory\n"},
        {{"net", "--csv", "."}, "fsdpmark net: .: cannot be written: Is a directory\n"},
        {{"net", "--figures", "file"}, "fsdpmark net: file: cannot be written: Not a directory\n"},
        {{"net", "--figures", "file/below/it"}, "fsdpmark net: file/below/it: cannot be written: Not a directory\n"},
        {{"bench", "--json", "/nonexistent/x"}, "fsdpmark bench: /nonexistent/x: cannot be written: No such file or directory\n"},
        {{"bench", "--csv", "file/x"}, "fsdpmark bench: file/x: cannot be written: Not a directory\n"},
        {{"bench", "--figures", "/proc/x/y"}, "fsdpmark bench: /proc/x/y: cannot be written: No such file or directory\n"},
        {{"advise", "-f", "shm", "--figures", "file"}, "fsdpmark advise: file: cannot be written: Not a directory\n"},
        {{"advise", "--validate", "--figures", ""}, "fsdpmark advise: --figures: found '', expected a path\n"},
        {{"selftest", "--json", "file/x"}, "fsdpmark selftest: file/x: cannot be written: Not a directory\n"},
        {{"check", "-p", "tiny", "--junit", "file/x"}, "fsdpmark check: file/x: cannot be written: Not a directory\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        says(rows[i].words, rows[i].said);
}

// A run that stops for another reason has made no file and no folder, and has emptied none.
static void trying_leaves_nothing(void **state)
{
    (void)state;
    char path[4200];
    struct command_result *r = &result;
    const char *const words[] = {"net", "--figures", "a/b//c/", "--json", "new.json", "--csv", "file", "-f", "no-such-fabric", NULL};
    command_run(folder, words, LIMIT_S, r);
    assert_int_equal(r->status, 2);
    assert_non_null(strstr(r->err, "found no fabric 'no-such-fabric'"));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i == 0 ? "a" : "new.json");
        assert_int_not_equal(access(path, F_OK), 0);
    }
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fgetc(file), 'x');
    fclose(file);
    const char *const again[] = {"net", "--figures", ".", "-f", "no-such-fabric", NULL}; // a folder that is there stays
    command_run(folder, again, LIMIT_S, r);
    assert_int_equal(access(path, F_OK), 0);
}

// What is wrong is said, not that what cannot be asked without it is missing.
static void temporary_folder_is_tried_first(void **state)
{
    (void)state;
    static const struct { const char *words[4]; } rows[] = {{{"net"}}, {{"fabric"}}, {{"fabric", "shm"}}, {{"bench"}}, {{"doctor"}}, {{"check", "-p", "tiny"}}, {{"advise", "-f", "shm"}}, {{"selftest"}}};
    char said[400], path[4200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("TMPDIR", "/nonexistent", 1);
        snprintf(said, sizeof said, "fsdpmark %s: TMPDIR: found /nonexistent, where no file can be made: No such file or directory; expected a folder for temporary files\n", rows[i].words[0]);
        says(rows[i].words, said);
    }
    snprintf(path, sizeof path, "%s/file", folder);
    setenv("TMPDIR", path, 1);
    const char *const words[] = {"net", NULL}, *const list[] = {"list", "fabrics", NULL};
    snprintf(said, sizeof said, "fsdpmark net: TMPDIR: found %s, where no file can be made: Not a directory; expected a folder for temporary files\n", path);
    says(words, said);
    command_run(folder, list, LIMIT_S, &result); // needs none
    unsetenv("TMPDIR");
    assert_int_equal(result.status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports_are_tried_first), cmocka_unit_test(trying_leaves_nothing), cmocka_unit_test(temporary_folder_is_tried_first)};
    return cmocka_run_group_tests_name("reports and folders", tests, set_up, tear_down);
}
