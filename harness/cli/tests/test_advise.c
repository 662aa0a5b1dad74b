// fsdpmark advise as a command: thousands of ranks, what it prints, stored runs, its end by kill -9, bad input.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>
#include <sys/stat.h>

#include "harness/cli/tests/command.h"
#include "harness/net/point.h"
#include "harness/run/scratch.h"
#include "harness/store/series.h"

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
    scratch_remove(folder);
    return access(folder, F_OK) == 0;
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

// ---- stored runs ----
enum { SAMPLES = 15 };

static void add_series(struct store *s, int64_t run, const char *tool, const char *fabric, const char *name, const char *quantity, json_t *point, json_t *facts, double seconds)
{
    struct error error = {""};
    const struct series series = {tool, fabric, "made", name, quantity, point, facts};
    double values[SAMPLES];
    int64_t id;
    for (int i = 0; i < SAMPLES; i++)
        values[i] = seconds * (1 + 0.01 * (i % 5 - 2) / 2);
    assert_true(store_add_series(s, run, &series, &id, &error) && store_add_samples(s, id, 0, SAMPLES, values, &error));
    json_decref(point);
    json_decref(facts);
}

static void add_call(struct store *s, int64_t run, const char *measure, enum net_op op, enum net_group g, double bytes, double seconds)
{
    char name[64];
    const struct net_point p = {.measure = measure, .label = "", .call_count = 1, .calls = {{op, g, DTYPE_F32, (int64_t)bytes / 4, 0}}, .how = g == NET_WORLD ? NET_BLOCKING : NET_NONBLOCKING};
    json_t *point = net_point_write(&p);
    json_object_update_new(point, json_pack("{s:i, s:i, s:i}", "ranks", 4, "hosts", 4, "within", 2));
    add_series(s, run, "net", "two", net_point_name(&p, name), "seconds", point, json_pack("{s:i, s:f}", "errors", 0, "line_rate", 25e6), seconds);
}

static int64_t begin(struct store *s, json_t *environment)
{
    struct error error = {""};
    const struct run_info info = {"fsdpmark", NULL, NULL, 1, environment};
    int64_t run;
    assert_true(store_begin_run(s, &info, &run, &error));
    json_decref(environment);
    return run;
}

static struct store *open_store(char path[4200])
{
    struct store *s;
    struct error error = {""};
    snprintf(path, 4200, "%s/stored.db", folder);
    unlink(path);
    assert_true(store_open(path, false, &s, &error));
    return s;
}

// Two groups of two hosts, 200 Mbit/s inside. Between them: `between` bytes/s to a rank. The gathers of all ranks say what the slower of both does.
static void add_two_tiers(struct store *s, double between)
{
    struct error error = {""};
    int64_t run = begin(s, json_pack("{s:i, s:{s:s, s:[s, s], s:i, s:i, s:f, s:f, s:i}}", "cores", 2, "fabric", "name", "two", "mca", "btl=self,tcp", "btl_tcp_links=2", "hosts", 4, "group", 2, "rate_bits",
                                         200e6, "between_rate_bits", 100e6, "burst_bytes", 65536));
    for (double bytes = 1 << 18; bytes <= 1 << 22; bytes *= 4) {
        add_call(s, run, "sweep", NET_ALL_GATHER, NET_WORLD, bytes, 1e-3 + 0.75 * bytes / between);
        add_call(s, run, "tiers", NET_ALL_GATHER, NET_WITHIN, bytes, 1e-4 + bytes / 2 / 24e6);
        add_call(s, run, "tiers", NET_ALL_REDUCE, NET_BETWEEN, bytes / 2, 4e-4 + bytes / 2 / between);
    }
    assert_true(store_end_run(s, run, 0, &error));
}

static const char *best_of(json_t *j)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(j, "strategies"), i, row)
        if (json_is_true(json_object_get(row, "best")))
            return json_string_value(json_object_get(row, "strategy"));
    return "";
}

// Where the ways between groups are narrow hybrid is the best; where both tiers are as fast it is not: so both are looked at.
static void hybrid_on_two_stored_tiers(void **state)
{
    (void)state;
    char path[4200];
    struct store *s = open_store(path);
    add_two_tiers(s, 1e6);
    add_two_tiers(s, 12.5e6);
    store_close(s);
    for (int run = 1; run <= 2; run++) {
        const char *words[] = {"advise", "-w", "small", "--ranks", "4", "--flops", "300G", "--copy-rate", "10G", "--update-rate", run == 1 ? "10G" : "50M", "--from", run == 1 ? "1" : "0", "--store", path,
                               "--json", NULL};
        command_run(folder, words, 30, &result);
        assert_int_equal(result.status, 0);
        json_t *j = json_loads(result.out, 0, NULL);
        assert_non_null(j);
        json_t *tiers = json_object_get(json_object_get(j, "machine"), "tiers"), *mpi = json_object_get(j, "open_mpi");
        assert_int_equal(json_array_size(tiers), 2);
        assert_float_equal(number(json_array_get(tiers, 0), "bytes_per_second"), 24e6, 1e5);
        // The second run's line between groups is said to carry twice what two ranks can share of 100 Mbit/s.
        assert_float_equal(number(json_array_get(tiers, 1), "bytes_per_second"), run == 1 ? 1e6 : 6.25e6, 1e4);
        assert_int_equal(number(strategy(j, "hybrid"), "shards"), 2);
        if (run == 1)
            assert_string_equal(best_of(j), "hybrid");
        else
            assert_string_not_equal(best_of(j), "hybrid");
        assert_string_equal(json_string_value(json_object_get(mpi, "mpirun")), "mpirun --mca btl self,tcp --mca btl_tcp_links 2");
        assert_non_null(strstr(json_string_value(json_object_get(mpi, "why_no_others")), "it does not say"));
        json_decref(j);
    }
    const char *const odd[] = {"advise", "-w", "small", "--ranks", "7", "--from", "1", "--store", path, NULL}, *const none[] = {"advise", "-w", "small", "--from", "99", "--store", path, NULL};
    command_run(folder, odd, 30, &result);
    assert_int_equal(result.status, 2);
    assert_non_null(strstr(result.err, "--ranks: found 7, expected a multiple of the 2 ranks of a group"));
    command_run(folder, none, 30, &result);
    assert_int_equal(result.status, 2);
    assert_non_null(strstr(result.err, "no run 99; it holds, newest first: 2, 1"));
}

// As `advise --validate` stores them: beside the steps what was predicted, where it was.
static void a_stored_validation_is_shown_with_its_predictions(void **state)
{
    (void)state;
    char path[4200], report[4200];
    struct error error = {""};
    struct store *s = open_store(path);
    for (int run = 1; run <= 2; run++) {
        int64_t id = begin(s, json_pack("{s:i}", "cores", 2));
        for (int i = 0; i < 12; i++)
            for (int free_ = 0; free_ < 2; free_++) {
                double rate = 25e6 * (1 << i / 4), seconds = 0.1 * (i % 2 + 1) * 25e6 / rate;
                json_t *point = json_pack("{s:i, s:s, s:f, s:i, s:i}", "ranks", i % 4 < 2 ? 2 : 4, "strategy", i % 2 ? "full" : "none", "rate_bits", rate, "replicas", 1, "shards", 2);
                json_t *facts = run == 1 && !free_ ? json_pack("{s:f, s:f}", "predicted_s", 1.1 * seconds, "tokens_per_step", 1024.0) : NULL;
                add_series(s, id, "validate", "virtual-eager", "step", free_ ? "seconds without communication" : "seconds", point, facts, free_ ? 0.01 : seconds);
            }
        assert_true(store_end_run(s, id, 0, &error));
    }
    store_close(s);
    for (int run = 1; run <= 2; run++) {
        const char *words[] = {"show", run == 1 ? "1" : "2", "--store", path, NULL};
        command_run(folder, words, 30, &result);
        assert_int_equal(result.status, 0);
        assert_non_null(strstr(result.out, run == 1 ? "110.0 ms  10.0 %" : "n/a"));
        assert_true((strstr(result.out, "step times: median error 10.0 % over 12 points, largest 10.0 %; bound 15 %: PASS") != NULL) == (run == 1));
    }
    const char *words[] = {"report", "1", "--store", path, "-o", "report", NULL};
    command_run(folder, words, 120, &result);
    assert_int_equal(result.status, 0);
    snprintf(report, sizeof report, "%s/report/figures/bandwidth.dat", folder);
    command_slurp(report, result.out);
    assert_non_null(strstr(result.out, "predicted"));
    snprintf(report, sizeof report, "%s/report", folder);
    scratch_remove(report);
}

// ---- kill -9 ----
// Processes whose command line holds the text.
static int processes_with(const char *text)
{
    char path[300], line[1 << 14];
    int found = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        FILE *f = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        size_t n = f != NULL ? fread(line, 1, sizeof line, f) : 0;
        found += n > 0 && memmem(line, n, text, strlen(text)) != NULL;
        if (f != NULL)
            fclose(f);
    }
    closedir(proc);
    return found;
}

static bool wait_for(const char *text, int least, int most, double seconds)
{
    for (double until = launch_now() + seconds; launch_now() < until; usleep(20000)) {
        int n = processes_with(text);
        if (n >= least && n <= most)
            return true;
    }
    return false;
}

// The run of net that it started ends with it, with all that this one has started: keepers and workers have the place of its job folders in their words.
static void a_killed_one_leaves_nothing_that_runs(void **state)
{
    (void)state;
    char path[4200], program[4096], temporary[4200];
    snprintf(path, sizeof path, "%s/killed.db", folder);
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    assert_true(command_program(program) && mkdir(temporary, 0700) == 0);
    const char *const words[] = {program, "advise", "-w", "tiny", "-f", "tcp-loopback", "--ranks", "2", "--store", path, NULL};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("TMPDIR", temporary, 1);
        if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        execv(program, (char **)words);
        _exit(99);
    }
    assert_true(wait_for("fsdpmark-net", 2, 1000, 60) && wait_for(temporary, 2, 1000, 60)); // its workers are at work
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(wait_for(path, 0, 0, 15) && wait_for(temporary, 0, 0, 15));
}

static void bad_input(void **state)
{
    (void)state;
    static const struct { const char *words[8], *complaint; } bad[] = {
        {{"advise", "--ranks", "0"}, "--ranks: found 0"},
        {{"advise", "--bandwidth", "fast"}, "--bandwidth: found 'fast', expected a bandwidth such as"},
        {{"advise", "--alpha", "5"}, "--alpha: found '5', expected a time such as"},
        {{"advise", "--exchange", "star"}, "--exchange: found 'star', expected direct, ring or tree"},
        {{"advise", "--model", "bert"}, "--model: found 'bert', expected llama or gpt"},
        {{"advise", "--precision", "f33"}, "--precision: found 'f33', expected f32, f64, bf16,"},
        {{"advise", "--layout", "flat, micros: 3"}, "--layout: found 'flat, micros: 3', expected flat or per_parameter"},
        {{"advise", "--dim", "100", "--heads", "3"}, "advise: dim 100 is no multiple of heads 3"},
        {{"advise", "--layers", "1000"}, "--layers: found '1000', expected a whole number from 1 to"},
        {{"advise", "--kv-heads", "5"}, "advise: heads 32 is no multiple of kv_heads 5"},
        {{"advise", "--prefetch", "5000"}, "--prefetch: found '5000', expected a whole number from 0 to"},
        {{"advise", "--layers", "0"}, "--layers: found 0, expected at least 1"},
        {{"advise", "--hosts", "0"}, "--hosts: found 0, expected at least 1"},
        {{"advise", "--rows", "0"}, "--rows: found 0, expected at least 1"},
        {{"advise", "--ranks", "9"}, "--ranks: found 9, which 2 hosts of at most 8 ranks do not share evenly"},
        {{"advise", "--contention", "0.5"}, "--contention: found 0.5, expected 1 (none) to 100"},
        {{"advise", "--both-ways", "50"}, "--both-ways: found 50, expected 0.1 to 10"},
        {{"advise", "--peak", "1G"}, "--peak: found '1G', expected at least the 593 Tflop/s"},
        {{"advise", "--bandwidth", "1e-30B/s"}, "--bandwidth: found '1e-30B/s', expected a bandwidth such as 100Mbit/s or 50GB/s, from 1kbit/s to 1Pbit/s"},
        {{"advise", "--rates", "50,100"}, "--rates: found without --validate"},
        {{"advise", "--rounds", "3"}, "--rounds: found without --validate"},
        {{"advise", "--validate", "--ranks", "4"}, "--ranks: found with --validate, which has its own"},
        {{"advise", "--validate", "--bandwidth", "1Gbit/s"}, "--bandwidth: found with --validate, which has its own"},
        {{"advise", "--validate", "-f", "shm"}, "found with --fabric, expected one of them"},
        {{"advise", "--validate", "--from", "0"}, "found with --from, expected one of them"},
        {{"advise", "--validate", "--rates", "100,50"}, "--rates: found '100,50', expected rates in Mbit/s from 0.1 to 100000, the lowest first"},
        {{"advise", "--from", "0", "--hosts", "2"}, "--hosts: found with --from, which has its own"},
        {{"advise", "--workload", "tiny", "-f", "shm", "--hosts=2"}, "--hosts: found with shm, which is not emulated"},
        {{"advise", "--ranks", "8", "--hosts", "3"}, "--hosts: found 3 for 8 ranks"},
        {{"advise", "--case", "/nonexistent.yaml"}, "/nonexistent.yaml"},
        {{"advise", "--workload", "huge"}, "--workload: found 'huge', expected a file or one of medium, small, tiny"},
        {{"advise", "--workload", "tiny", "--case", "a.yaml"}, "--workload: found with --case"},
        {{"advise", "--workload", "tiny", "--precision", "bf16"}, "--precision: found with --workload"},
        {{"advise", "--case", "a.yaml", "--no-reshard"}, "--no-reshard: found with --case"},
        {{"advise", "-k", "x"}, "--pattern: found without --case"},
        {{"advise", "-f", "shm", "--from", "0"}, "--from: found with --fabric, expected one of them"},
        {{"advise", "--from", "newest"}, "--from: found 'newest', expected the number of a run"},
        {{"advise", "-f", "shm", "--ranks", "65"}, "--ranks: found 65, expected 2 to 64"},
        {{"advise", "-f", "shm", "--ranks", "2"}, "too large to be stepped here"},
        {{"advise", "--validate", "--rates", "100"}, "--rates: found one rate"},
        {{"advise", "--validate", "--rates", "100,x"}, "--rates: found '100,x'"},
        {{"advise", "--validate", "--rounds", "0"}, "--rounds: found 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        command_run(folder, bad[i].words, 30, &result);
        if (result.status != 2 || strstr(result.err, bad[i].complaint) == NULL)
            fail_msg("status %d, '%s', expected '%s'", result.status, result.err, bad[i].complaint);
        assert_true(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thousands_of_ranks), cmocka_unit_test(a_slow_line_favours_few_bytes), cmocka_unit_test(prints_table_words_and_assumptions),
                                       cmocka_unit_test(a_workload_has_its_batch), cmocka_unit_test(what_does_not_fit_is_not_best), cmocka_unit_test(draws_figures), cmocka_unit_test(hybrid_on_two_stored_tiers),
                                       cmocka_unit_test(a_stored_validation_is_shown_with_its_predictions), cmocka_unit_test(a_killed_one_leaves_nothing_that_runs), cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
