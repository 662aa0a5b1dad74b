// The commands that read two stored runs, or export one, over a store made here: what they say and their exit status.
#include <jansson.h>

#include "harness/store/tests/sample.h"
#include "harness/cli/tests/command.h"
#include "harness/net/point.h"
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
    assert_true(store_add_series(s, run, &series, &id, &error));
    for (int l = 0; l < 4; l++) assert_true(store_add_samples(s, id, l, 5, values + 5 * l, &error));
    json_decref(point);
    struct result r = sample_result("step-bitwise", v, 0, 0, "elements", "a message");
    struct case_record c = sample_case("reference", "exact.case", "exact", "full", 2, &r, 1);
    sample_record(s, run, &c);
    assert_true(store_end_run(s, run, 0, &error));
}

// A run of series alone: steps of two implementations, with their versions in a plan of no cases. The second is wrong, or twice as slow.
static void add_steps(struct store *s, bool wrong, int rounds) {
    struct error error = {0};
    static const char *const subjects[] = {"reference", "pytorch-fsdp2"};
    int64_t run = sample_begin(s, "fsdpmark bench"), id;
    for (int i = 0; i < 2; i++) {
        json_t *point = json_pack("{s:i, s:i, s:s, s:s}", "ranks", 2, "rows", 8, "strategy", "full", "precision", "f32");
        json_t *facts = json_pack("{s:s, s:i, s:i, s:i, s:s}", "verdict", i == 1 && wrong ? "WRONG" : "PASS", "tokens_per_step", 100, "flop_per_step", 1000000, "parameters", 1000,
                                  "peak_bytes_why", "no probe");
        if (i == 1 && wrong) json_object_set_new(facts, "why", json_string("after-steps: it did not train"));
        struct series series = {"bench", "shm", subjects[i], "tiny<1>", "seconds", point, facts};
        sample_plan(s, run, subjects[i], 0);
        double values[8];
        for (int k = 0; k < 8; k++) values[k] = 0.02 * (wrong ? 0.5 : 1 + i) + 0.0001 * k;
        assert_true(store_add_series(s, run, &series, &id, &error));
        for (int l = 0; l < rounds; l++) assert_true(store_add_samples(s, id, l, 8 / rounds, values + l * (8 / rounds), &error));
        json_decref(point);
        json_decref(facts);
    }
    assert_true(store_end_run(s, run, 0, &error));
}

// Ended by a signal after one of three cases; with a waiver that has expired; with one that is not needed.
static void add_unsound(struct store *s) {
    struct error error = {0};
    struct waiver_record w = {"reference", "*", "*", "", "why", "page.md", "9999-12-31", "w.yaml:3"};
    struct result r = sample_result("step-bitwise", VERDICT_PASS, 0, 0, "elements", "a message");
    struct case_record c = sample_case("reference", "exact.case", "exact", "full", 2, &r, 1);
    int64_t id;
    for (int i = 0; i < 3; i++) {
        int64_t run = sample_begin(s, "fsdpmark check");
        sample_plan(s, run, "reference", i == 0 ? 3 : 1);
        w.expires = i == 1 ? "2001-01-01" : "9999-12-31";
        assert_true(i == 0 || store_add_waiver(s, run, &w, &id, &error));
        c.waivers = i == 2 ? &id : NULL;
        sample_record(s, run, &c);
        assert_true(i == 0 || store_end_run(s, run, 1, &error));
    }
}

// A run of net of one point, with wrong elements.
static void add_gather(struct store *s) {
    struct error error = {0};
    struct net_point p = {.measure = "sweep", .label = "", .call_count = 1, .calls = {{.op = NET_ALL_GATHER, .type = DTYPE_F32, .count = 2048}}};
    int64_t run = sample_begin(s, "fsdpmark net"), id;
    json_t *point = net_point_write(&p), *facts = json_pack("{s:i, s:s}", "errors", 3, "first_error", "rank 1: element 5");
    json_object_update_new(point, json_pack("{s:i, s:i, s:i}", "ranks", 2, "hosts", 1, "within", 0));
    struct series series = {"net", "shm", "mpi", "all-gather", "seconds", point, facts};
    double values[8];
    for (int k = 0; k < 8; k++) values[k] = 1e-5 + 1e-7 * k;
    assert_true(store_add_series(s, run, &series, &id, &error) && store_add_samples(s, id, 0, 8, values, &error));
    json_decref(point);
    json_decref(facts);
    assert_true(store_end_run(s, run, 1, &error));
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
    sample_begin(s, "fsdpmark check"); // killed before it planned anything
    add_steps(s, false, 4);
    add_steps(s, true, 4);
    add_unsound(s);
    add_steps(s, false, 1);
    add_gather(s);
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
        {{"compare", "5", "6"}, 1, "WRONG !", ""},
        {{"compare", "5", "6"}, 1, "after-steps: it did not train", ""},
        {{"compare", "6", "5"}, 1, "was WRONG\n", ""}, // the other one is twice as slow
        {{"compare", "1", "2", "--json"}, 1, "\"word\": \"slower\"", ""},
        {{"compare", "1", "2", "--csv"}, 1, "measured,\"all-gather (net, shm, mpi)\",\"seconds\",\"s\",", ""},
        {{"compare", "1", "2", "--before", "results.db"}, 1, "slower !", ""},
        {{"compare", "5", "10"}, 0, "2 rows tell nothing (-v lists them)", ""}, // of one round each
        {{"compare", "5", "10", "-v"}, 0, "1.000         -  one start: no interval\n", ""},
        {{"compare", "1", "2", "--json", "--csv"}, 2, "", "fsdpmark compare: found --json and --csv, expected one: both are for standard output\n"},
        {{"compare", "1"}, 2, "", "fsdpmark compare: found 1 runs, expected two: the earlier, then the later (fsdpmark show lists them)\n"},
        {{"compare", "1", "x"}, 2, "", "fsdpmark compare: found run 'x', expected a number (fsdpmark show lists them)\n"},
        {{"compare", "1", "99"}, 2, "", "no run 99; it holds, newest first: 11"},
        {{"compare", "1", "2", "--threshold", "-3"}, 2, "", "--threshold"},
        {{"compare", "1", "2", "--before", "none.db"}, 2, "", "none.db"},
    };
    run_all(table, sizeof table / sizeof *table);
}

static void export(void **state) {
    (void)state;
    static const struct expectation table[] = {
        {{"export", "1"}, 0, "\"launches\":[[0.001,", ""},
        {{"export", "1", "--csv"}, 0, "\"sample\",\"net\",\"shm\",\"mpi\",\"all-gather\",\"{\"\"bytes\"\":4096}\",\"seconds\",0,0,0.001,,\"s\",,\r\n", ""},
        {{"export", "4"}, 0, "\"case\":\"(not run)\"", ""}, // neither cases nor series
        {{"export", "5"}, 0, "\"cases\": []", ""},
        {{"export"}, 0, "{\"run\": {\"id\":9,", ""},         // the newest that is not of series alone
        {{"export", "1", "-o", "run.json"}, 0, "", ""},
        {{"export", "1", "--csv", "--json"}, 2, "", "fsdpmark export: found 2 formats, expected one of --csv, --json, --trace, --chakra\n"},
        {{"export", "1", "--trace"}, 2, "", "fsdpmark export: run 1: no case has a timeline; expected one of several ranks under check --probes\n"},
        {{"export", "1", "--chakra", "-k", "x"}, 2, "", "fsdpmark export: run 1: no case like x has a timeline"},
        {{"export", "1", "--csv", "-k", "x"}, 2, "", "fsdpmark export: --pattern: found without --trace or --chakra, expected one of them: it chooses timelines\n"},
        {{"export", "1", "-k", "x"}, 2, "", "--pattern: found without --trace"},
        {{"export", "1", "-o", "/nonexistent/x"}, 2, "", "fsdpmark export: /nonexistent/x: cannot be written: No such file or directory\n"},
        {{"export", "99"}, 2, "", "no run 99"},
    };
    run_all(table, sizeof table / sizeof *table);
}

static bool is_there(const char *name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

static void show_and_report(void **state) {
    (void)state;
    char path[8600];
    static const struct expectation table[] = {
        {{"show", "5"}, 0, "tiny<1> on shm: 2 ranks, f32, 1000 parameters; the same global batch for all: 8 rows; a rank has 100 tokens", ""}, // the bench's table
        {{"show", "5"}, 0, "40.35 ms  [40, 40.7]", ""},
        {{"show", "5"}, 0, "pytorch-fsdp2, peak memory: no probe\n", ""},
        {{"show", "5"}, 0, "run 5, 2", ""},
        {{"show", "6"}, 0, "pytorch-fsdp2, WRONG: after-steps: it did not train\n", ""},
        {{"show", "5", "-v"}, 0, "\n2 series, 0 errors\n", ""},
        {{"show", "5", "-v"}, 0, "tiny<1> (bench, shm, pytorch-fsdp2)", ""},
        {{"show", "5", "-v"}, 0, "40.35 ms  40 ms to 40.7 ms", ""},
        {{"show", "6", "-v"}, 0, "tiny<1> (bench, shm, pytorch-fsdp2), WRONG: after-steps: it did not train\n", ""},
        {{"show", "11"}, 0, "Collectives by size\n", ""}, // net's
        {{"show", "11"}, 0, "8192        2048     float  none", ""},
        {{"show", "11"}, 0, "FAIL: 3 wrong elements: rank 1: element 5\n", ""},
        {{"show", "11", "-v"}, 0, "all-gather (net, shm, mpi)", ""},
        {{"show", "5", "--json"}, 0, "\"launches\":[[0.02,", ""},
        {{"show", "1"}, 0, "1 PASS", ""},
        {{"show", "--store", "."}, 2, "", "fsdpmark show: .: a folder, expected the file of a results store\n"},
        {{"show", "99"}, 2, "", "no run 99; it holds, newest first: 11, 10, "},
        {{"show", "4"}, 0, "no case was planned", ""},
        {{"report", "5", "-o", "five"}, 0, "run 5: five/index.html\n", ""},
        {{"report", "4", "-o", "four"}, 0, "run 4: four/index.html\n", ""},
        {{"report", "5", "-o", "/dev/null/x"}, 2, "", "fsdpmark report: /dev/null/x/figures: cannot make the folder: Not a directory\n"},
        {{"report", "1", "-o", "/proc"}, 2, "", "fsdpmark report: /proc/figures: cannot make the folder: "},
        {{"report", "1", "-o", "blocked"}, 2, "", "fsdpmark report: blocked/index.html: cannot write: Is a directory\n"},
    };
    command_run(folder, (const char *const[]){"report", "1", "-o", "blocked", NULL}, LIMIT_S, &result);
    snprintf(path, sizeof path, "rm '%s/blocked/index.html' && mkdir '%s/blocked/index.html'", folder, folder);
    assert_int_equal(system(path), 0);
    run_all(table, sizeof table / sizeof *table);
    assert_true(is_there("five/index.html") && is_there("five/series.csv") && is_there("five/run.json") && !is_there("five/results.csv"));
    assert_true(is_there("four/index.html") && is_there("four/results.csv"));
    if (!system("gnuplot --version >/dev/null 2>&1")) assert_true(is_there("five/figures/implementations.svg") && is_there("five/figures/implementations.pdf") && !is_there("five/figures/bandwidth.svg"));
    static char page[COMMAND_OUTPUT];
    snprintf(path, sizeof path, "%s/five/index.html", folder);
    command_slurp(path, page);
    assert_non_null(strstr(page, "tiny&lt;1&gt; (bench, shm, reference)"));
    assert_null(strstr(page, "tiny<1>"));
}

// A reader that goes, as head does, leaves no complaint and the status that there would be.
static void a_reader_may_go(void **state) {
    (void)state;
    static const struct { const char *words, *status; } rows[] = {{"export 1 --csv", "0"}, {"export 1 --json", "0"}, {"show 5", "0"}, {"show 5 -v", "0"}, {"compare 1 2", "1"}, {"compare 1 2 --csv", "1"}, {"compare 1 1 --json", "0"}};
    char program[4096], command[12800], path[4200];
    assert_true(command_program(program));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(command, sizeof command, "cd '%s' && { sleep 0.2; '%s' %s 2>said; printf $? >status; } | true", folder, program, rows[i].words);
        if (system(command)) fail();
        snprintf(path, sizeof path, "%s/said", folder);
        command_slurp(path, result.err);
        snprintf(path, sizeof path, "%s/status", folder);
        command_slurp(path, result.out);
        if (result.err[0] || strcmp(result.out, rows[i].status)) fail_msg("%s: status %s, said '%s'", rows[i].words, result.out, result.err);
    }
}

// The list, JSON and JUnit count alike, also where a run was cut short.
static void counts_agree(void **state) {
    (void)state;
    static const struct { int run, fail, broken; bool ended; } known[] = {{3, 1, 0, true}, {4, 0, 1, false}, {7, 0, 1, false}, {8, 1, 0, true}, {9, 1, 0, true}};
    command_run(folder, (const char *const[]){"show", "--json", NULL}, LIMIT_S, &result);
    json_t *runs = json_loads(result.out, 0, NULL), *run;
    size_t i;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        run = json_array_get(runs, (size_t)known[k].run - 1);
        assert_int_equal(json_integer_value(json_object_get(run, "id")), known[k].run);
        assert_int_equal(json_integer_value(json_object_get(run, "fail")), known[k].fail);
        assert_int_equal(json_integer_value(json_object_get(run, "broken")), known[k].broken);
        assert_int_equal(json_is_integer(json_object_get(run, "exit_status")), known[k].ended);
    }
    json_array_foreach(runs, i, run) {
        static const char *const keys[][2] = {{"pass", "PASS"}, {"fail", "FAIL"}, {"skip", "SKIP"}, {"broken", "BROKEN"}, {"waived", "waived"}};
        char id[8];
        snprintf(id, sizeof id, "%zu", i + 1);
        if (i + 1 == 5 || i + 1 == 6 || i + 1 >= 10) continue; // of bench and net: no verdicts
        command_run(folder, (const char *const[]){"show", id, "--json", NULL}, LIMIT_S, &result);
        json_t *one = json_loads(result.out, 0, NULL), *verdicts = json_object_get(json_object_get(one, "run"), "verdicts");
        for (int k = 0; k < 5; k++)
            if (json_integer_value(json_object_get(run, keys[k][0])) != json_integer_value(json_object_get(verdicts, keys[k][1]))) fail_msg("run %s: %s", id, keys[k][1]);
        json_decref(one);
    }
    json_decref(runs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(compare), cmocka_unit_test(export), cmocka_unit_test(show_and_report), cmocka_unit_test(a_reader_may_go), cmocka_unit_test(counts_agree)};
    alarm(300);
    return cmocka_run_group_tests_name("commands on stored runs", tests, set_up, tear_down);
}
