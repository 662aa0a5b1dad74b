// harness/bench/net.sh against programs that measure what the test wants: what it prints, what it repeats, and that a size beyond 5 % fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "harness/run/scratch.h"

static char folder[] = "/tmp/fsdpmark.test.XXXXXX", text[1 << 14];

// Stands for fsdpmark: of net's words it takes --sizes and --csv; its n-th run has the ratios of the file RATIOS.n, "SIZE GATHER REDUCE" a line.
static const char program[] =
    "#!/bin/sh\n"
    "here=$(dirname \"$0\")\n"
    "[ \"$1\" = fabric ] && { echo 'mpirun, on host 0: --mca pml ob1'; exit 0; }\n"
    "while [ $# -gt 0 ]; do case $1 in --sizes) echo \"$2\" >>\"$here/asked\" ;; --csv) csv=$2 ;; esac; shift; done\n"
    "n=$(wc -l <\"$here/asked\")\n"
    "[ -f \"$here/ratios.$n\" ] || { echo 'fsdpmark net: it broke'; exit 3; }\n"
    "printf 'measure,name,size,seconds,over_bare,over_bare_low,over_bare_high\\r\\n' >\"$csv\"\n"
    "awk '{ printf \"\\\"sweep\\\",\\\"all-gather\\\",%d,1e-06,%s,%.3f,%.3f\\r\\n\\\"sweep\\\",\\\"reduce-scatter\\\",%d,2e-06,%s,%.3f,%.3f\\r\\n\\\"sweep\\\",\\\"broadcast\\\",%d,2e-06,9,9,9\\r\\n\", "
    "$1, $2, $2 - .01, $2 + .01, $1, $3, $3 - .01, $3 + .01, $1 }' \"$here/ratios.$n\" >>\"$csv\"\n";
// Stands for mpirun: says what OSU's programs print, by name.
static const char mpirun[] =
    "#!/bin/sh\n"
    "case \"$*\" in *osu_allgather*) echo '# Size Avg Min Max Iterations'; echo '4 0.5 0.4 0.75 1000' ;; *) echo '# Size'; echo '8 1.5 1.4 1.75 1000' ;; esac\n";

static void put(const char *name, const char *content)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
    chmod(path, 0755);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    char osu[4200];
    snprintf(osu, sizeof osu, "%s/osu", folder);
    if (mkdir(osu, 0755) != 0)
        return -1;
    put("fsdpmark", program);
    put("osu/mpirun", mpirun);
    put("osu/osu_allgather", "#!/bin/sh\n");
    put("osu/osu_reduce_scatter", "#!/bin/sh\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

// runs: what each run measures, NULL at the end. The exit status; what was printed is in text.
static int script(const char *const *runs, const char *environment)
{
    char name[32], command[9000], path[4200];
    for (int n = 1; n < 6; n++) {
        snprintf(path, sizeof path, "%s/ratios.%d", folder, n);
        remove(path);
    }
    put("asked", "");
    for (int n = 0; runs[n] != NULL; n++) {
        snprintf(name, sizeof name, "ratios.%d", n + 1);
        put(name, runs[n]);
    }
    snprintf(command, sizeof command, "%s sh harness/bench/net.sh '%s' 2>&1; status=$?; cat '%s/asked'; exit $status", environment, folder, folder);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void has(const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in: %s", part, text);
}

static void good_sizes_pass(void **state)
{
    (void)state;
    static const char *const runs[] = {"8 1.00 1.02\n16 0.97 1.05\n", NULL};
    assert_int_equal(script(runs, ""), 0);
    has("    all-gather             8 bytes       1.00 us, over a bare loop 1.000 (0.990 to 1.010)\n");
    has("    reduce-scatter        16 bytes       2.00 us, over a bare loop 1.050 (1.040 to 1.060)\n");
    has("  4 within 5 % of the bare loop, 0 beyond (allowed: 0)\n8..4M\n"); // asked once
    has("    OSU: osu_allgather is not on PATH, so its column is left out\n");
}

static void missed_sizes_are_repeated_and_the_median_counts(void **state)
{
    (void)state;
    static const char *const runs[] = {"8 1.00 1.09\n16 1.00 1.00\n", "8 1.00 1.20\n", "8 1.00 1.01\n", "8 1.00 0.99\n", NULL};
    assert_int_equal(script(runs, ""), 0);
    has("    reduce-scatter         8 bytes       2.00 us, over a bare loop 1.010 (0.980 to 1.210), median of 3 repeats; at first 1.090\n");
    has("  4 within 5 % of the bare loop, 0 beyond (allowed: 0)\n8..4M\n8\n8\n8\n");
}

static void a_size_that_stays_beyond_fails(void **state)
{
    (void)state;
    static const char *const runs[] = {"8 1.00 1.09\n16 0.90 1.00\n", "8 1.00 1.20\n16 0.94 1\n", "8 1.00 1.06\n16 1 1\n", "8 1.00 0.99\n16 1 1\n", NULL};
    assert_int_equal(script(runs, ""), 1);
    has("over a bare loop 1.060 (0.980 to 1.210), median of 3 repeats; at first 1.090: beyond 5 %\n");
    has("over a bare loop 1.000 (0.930 to 1.010), median of 3 repeats; at first 0.900\n");
    has("  3 within 5 % of the bare loop, 1 beyond (allowed: 0)\n8..4M\n8,16\n8,16\n8,16\n");
    assert_int_equal(script(runs, "ALLOWED=1"), 0);
    has("  3 within 5 % of the bare loop, 1 beyond (allowed: 1)\n");
}

static void nothing_measured_fails(void **state)
{
    (void)state;
    static const char *const none[] = {NULL}, *const empty[] = {"", NULL};
    assert_int_equal(script(none, ""), 1);
    has("fsdpmark net: it broke");
    assert_int_equal(script(empty, ""), 1);
    has("found no all-gather and no reduce-scatter");
}

static void osu_stands_beside(void **state)
{
    (void)state;
    static const char *const runs[] = {"8 1.00 1.02\n16 1 1\n", NULL};
    char environment[4300];
    snprintf(environment, sizeof environment, "PATH='%s/osu':$PATH", folder);
    assert_int_equal(script(runs, environment), 0);
    has("    all-gather             8 bytes       1.00 us, over a bare loop 1.000 (0.990 to 1.010), OSU 0.75 us\n"); // 4 bytes of each of two ranks
    has("    reduce-scatter         8 bytes       2.00 us, over a bare loop 1.020 (1.010 to 1.030), OSU 1.75 us\n");
    has("    all-gather            16 bytes       1.00 us, over a bare loop 1.000 (0.990 to 1.010)\n");
    assert_null(strstr(text, "not on PATH"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_sizes_pass), cmocka_unit_test(missed_sizes_are_repeated_and_the_median_counts), cmocka_unit_test(a_size_that_stays_beyond_fails),
        cmocka_unit_test(nothing_measured_fails), cmocka_unit_test(osu_stands_beside)};
    return cmocka_run_group_tests_name("net.sh", tests, set_up, tear_down);
}
