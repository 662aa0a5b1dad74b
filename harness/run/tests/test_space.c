// When a failure is put down to a full file system, and what becomes of it; and why a folder cannot be made.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/run/scratch.h"
#include "harness/run/space.h"

static void decision(void **state)
{
    (void)state;
    enum { BLOCK = 4096, ENOUGH = SPACE_BYTES / BLOCK };
    static const struct { fsblkcnt_t blocks; fsfilcnt_t files, files_left; bool is_short; } rows[] = {
        {ENOUGH, 1000, SPACE_FILES, false}, {ENOUGH - 1, 1000, SPACE_FILES, true}, {0, 1000, 1000, true},
        {ENOUGH, 1000, SPACE_FILES - 1, true}, {ENOUGH, 0, 0, false}, {(fsblkcnt_t)1 << 40, 1000, 1000, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        // Blocks that only root may take do not count.
        struct statvfs info = {.f_frsize = BLOCK, .f_bsize = 1, .f_bavail = rows[i].blocks, .f_bfree = 1 << 30, .f_files = rows[i].files,
                               .f_favail = rows[i].files_left};
        if (space_is_short(&info) != rows[i].is_short)
            fail_msg("row %zu: expected %s", i, rows[i].is_short ? "short" : "enough");
    }
}

// /proc has no space at all.
static void excuse(void **state)
{
    (void)state;
    struct result results[2] = {{.check = "answer"}, {.check = "full-gather"}};
    finding_fail(&results[0].finding, "Z29", "a rank ended early");
    results[1].finding.verdict = VERDICT_PASS;
    space_excuse("/dev/shm/nowhere", results, 2);
    assert_int_equal(results[0].finding.verdict, VERDICT_FAIL);
    space_excuse("/proc/self", results, 2);
    assert_int_equal(results[0].finding.verdict, VERDICT_BROKEN);
    assert_string_equal(results[0].finding.classes, "");
    assert_memory_equal(results[0].finding.message, "no space left in /proc: found 0 bytes", 37);
    assert_non_null(strstr(results[0].finding.message, "a rank ended early"));
    assert_int_equal(results[1].finding.verdict, VERDICT_PASS);
}

static void parent_tells(void **state)
{
    (void)state;
    struct error error = {0}, other = {0};
    assert_false(scratch_folder("/dev/null/a/b", &error));
    assert_string_equal(error.text, "/dev/null/a/b: cannot be made: Not a directory");
    if (geteuid() != 0) {
        assert_false(scratch_folder("/proc-not-there/a/b", &other));
        assert_string_equal(other.text, "/proc-not-there/a/b: cannot be made: Permission denied");
    } else {
        // Root is refused by a file system that takes no folders.
        assert_false(scratch_folder("/sys/not-there/a/b", &other));
        assert_null(strstr(other.text, "No such file"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decision), cmocka_unit_test(excuse), cmocka_unit_test(parent_tells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
