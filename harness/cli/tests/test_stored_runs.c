// The commands that read two stored runs, or export one, over a store made here: what they say and their exit status.
#include <jansson.h>

#include "harness/store/tests/sample.h"
#include "harness/cli/tests/command.h"
#include "harness/store/series.h"

static const double LIMIT_S = 60;
static char folder[] = "/tmp/fsdpmark-runs.XXXXXX";
static struct command_result result;

static void add(struct store *s, double seconds, enum verdict v) {
    struct error error = {0};
    int64_t run = sample_begin(s, "fsdpmark net -f shm"), id;
    json_t *point = json_pack("{s:i}", "bytes", 4096);
    struct series series = {"net", "shm", "mpi", "all-gather", "seconds", point, NULL};
    double values[20];
    for (int i = 0; i < 20; i++) values[i] = seconds * (1 + 0.001 * i);
    assert_true(store_add_series(s, run, &series, &id, &error) && store_add_samples(s, id, 0, 20, values, &error));
    json_decref(point);
    struct result r = sample_result("step-bitwise", v, 0, 0, "elements", "a message");
    struct case_record c = sample_case("reference", "exact.case", "exact", "full", 2, &r, 1);
    sample_record(s, run, &c);
    assert_true(store_end_run(s, run, 0, &error));
}

static int set_up(void **state) {
    (void)state;
    char path[4200];
    if (!command_folder(folder)) return -1;
    snprintf(path, sizeof path, "%s/results.db", folder);
    struct store *s = sample_open(path);
    add(s, 1e-3, VERDICT_PASS);
    add(s, 1.3e-3, VERDICT_PASS);
    add(s, 1e-3, VERDICT_FAIL);
    int64_t run = sample_begin(s, "fsdpmark check");
    (void)run;
    store_close(s);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

struct expectation { const char *words[10]; int status; const char *out, *err; };
static void run_all(const struct expectation *table, size_t count) {
    for (size_t i = 0; i < count; i++) {
        command_run(folder, table[i].words, LIMIT_S, &result);
        if (result.status != table[i].status || !strstr(result.out, table[i].out) || !strstr(result.err, table[i].err))
            fail_msg("row %zu: status %d, '%s' '%s'", i, result.status, result.out, result.err);
        if (table[i].status == 2) assert_ptr_equal(strchr(result.err, '\n'), result.err + strlen(result.err) - 1); // one line
    }
}

static void compare(void **state) {
    (void)state;
    static const struct expectation table[] = {
        {{"compare", "1", "1"}, 0, "0 beyond the threshold", ""},
        {{"compare", "1", "2"}, 1, "slower !", ""},
        {{"compare", "1", "2", "--threshold", "40"}, 0, "slower\n", ""},
        {{"compare", "2", "1"}, 0, "faster", ""},
        {{"compare", "1", "3"}, 1, "PASS -> FAIL  reference  exact.case  step-bitwise: a message !", ""},
        {{"compare", "1", "4"}, 3, "the runs have no case and no series in common", ""},
        {{"compare", "1", "2", "--json"}, 1, "\"word\": \"slower\"", ""},
        {{"compare", "1", "2", "--csv"}, 1, "measured,\"all-gather (net, shm, mpi)\",\"seconds\",\"s\",", ""},
        {{"compare", "1", "2", "--before", "results.db"}, 1, "slower !", ""},
        {{"compare", "1"}, 2, "", "fsdpmark compare: found 1 runs, expected two: the earlier, then the later (fsdpmark show lists them)\n"},
        {{"compare", "1", "x"}, 2, "", "fsdpmark compare: found run 'x', expected a number (fsdpmark show lists them)\n"},
        {{"compare", "1", "9"}, 2, "", "no run 9; it holds, newest first: 4"},
        {{"compare", "1", "2", "--threshold", "-3"}, 2, "", "--threshold"},
        {{"compare", "1", "2", "--before", "none.db"}, 2, "", "none.db"},
    };
    run_all(table, sizeof table / sizeof *table);
}

static void export(void **state) {
    (void)state;
    static const struct expectation table[] = {
        {{"export", "1"}, 0, "\"launches\":[[0.001,", ""},
        {{"export", "1", "--csv"}, 0, "\"sample\",\"net\",\"shm\",\"mpi\",\"all-gather\",\"{\"\"bytes\"\":4096}\",\"seconds\",0,0,0.001,,,,\r\n", ""},
        {{"export"}, 0, "\"case\":\"(not run)\"", ""}, // the newest: neither cases nor series
        {{"export", "1", "-o", "run.json"}, 0, "", ""},
        {{"export", "1", "--csv", "--json"}, 2, "", "fsdpmark export: found 2 formats, expected one of --csv, --json, --trace, --chakra\n"},
        {{"export", "1", "--trace"}, 2, "", "fsdpmark export: run 1: no case has a timeline; expected one of several ranks under check --probes\n"},
        {{"export", "1", "--chakra", "-k", "x"}, 2, "", "fsdpmark export: run 1: no case like x has a timeline"},
        {{"export", "1", "-o", "/nonexistent/x"}, 2, "", "fsdpmark export: /nonexistent/x: cannot be written: No such file or directory\n"},
        {{"export", "9"}, 2, "", "no run 9"},
    };
    run_all(table, sizeof table / sizeof *table);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(compare), cmocka_unit_test(export)};
    alarm(300);
    return cmocka_run_group_tests_name("commands on stored runs", tests, set_up, tear_down);
}
