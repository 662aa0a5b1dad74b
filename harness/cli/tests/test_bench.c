// fsdpmark bench as a command: mistakes, a real run of the reference beside an implementation that trains nothing, an interrupt, what is stored.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <sys/stat.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"
#include "harness/store/series.h"

static struct command_result result;
static char folder[] = "/tmp/fsdpmark-bench-XXXXXX";
// Small enough that nothing takes time: the truth of a few hundred parameters.
static const char workload[] = "name: mini\ntitle: t\nlayer: calibrated\nmodel: {kind: mlp, sizes: [16, 24, 8]}\nglobal_rows: 8\nsteps: 9\n"
                               "optimizer: {kind: sgd, lr: 0.25}\nprogram:\n  - init\n  - steps 0 7\n  - observe s7 param\n  - train 8\n"
                               "matrix:\n  ranks: [1, 2]\n  strategy: [none, full]\n";

static int make_folder(void **state)
{
    (void)state;
    bool fine = command_folder(folder);
    if (fine)
        command_write(folder, "mini.yaml", workload);
    return !fine;
}
static int remove_folder(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void mistakes(void **state)
{
    (void)state;
    static const struct { const char *words[10], *says; } wrong[] = {
        {{"bench", "-i", "refernce"}, "refernce"},
        {{"bench", "-w", "huge"}, "--workload: found 'huge', expected a file or one of medium, small, tiny"},
        {{"bench", "-s", "zero3"}, "--strategy: found 'zero3', expected none, optimizer, grad, full or hybrid"},
        {{"bench", "--batch", "most"}, "--batch: found 'most', expected equal or best"},
        {{"bench", "--batch", "best"}, "--batch best: found without --memory"},
        {{"bench", "--memory", "1GiB"}, "--memory: found without --batch best"},
        {{"bench", "--batch", "best", "--memory", "much"}, "--memory: found 'much', expected "},
        {{"bench", "--time", "0"}, "--time"},
        {{"bench", "--json", "-", "--csv", "-"}, "found 2 reports for standard output"},
        {{"bench", "-w", "mini.yaml", "-n", "3"}, "mini.yaml: found no case of 3 ranks, precision f32; its ranks are 1, 2, its precisions f32, its strategies none, full\n"},
        {{"bench", "-n", "9"}, "small.yaml: found no case of 9 ranks, precision f32; its ranks are 1, 2, 4, 8, its"}, // none that is measured only where it is named
        {{"bench", "-n", "0"}, "--ranks: found '0', expected a whole number of at least 1"},
        {{"bench", "-n", "4294967298"}, "--ranks: found 4294967298, expected at most 2147483647"},
        {{"bench", "--rounds", "0"}, "--rounds: found '0', expected a whole number of at least 1"},
        {{"bench", "--seed", "0"}, "--seed: found '0', expected a whole number of at least 1"},
        {{"bench", "--precision", "foo"}, "--precision: found 'foo', expected f32, bf16, f16 or f64"},
        {{"bench", "-w", "notes.md"}, "notes.md:2: found broken YAML or JSON"},
        {{"bench", "--store", "."}, ".: a folder, expected the file of a results store"},
        {{"bench", "-f", "shm", "--hostfile", "machines"}, "--hostfile: found without a fabric of the kind hosts, expected -f hosts with it"},
        {{"bench", "-f", "virtual-100m", "--agent", "x"}, "--agent: found without a fabric of the kind hosts, expected -f hosts with it"},
        {{"bench", "-w", "mini.yaml", "-s", "hybrid"}, "found no case of 2 ranks, precision f32, strategy hybrid"},
        {{"bench", "-i", "reference", "-i", "reference"}, "implementation reference: found twice"},
        {{"bench", "-w", "mini.yaml", "-s", "full", "-s", "full"}, "found workload mini, strategy full twice, expected each once"},
        {{"bench", "-f", "nowhere"}, "nowhere"},
        {{"bench", "-w", "unjudged.yaml"}, "expected what can be timed and judged"},
    };
    command_write(folder, "notes.md", "[a: b\n");
    command_write(folder, "unjudged.yaml", "name: u\ntitle: t\nlayer: calibrated\nmodel: {kind: mlp, sizes: [16, 24, 8]}\nglobal_rows: 8\nsteps: 4\nprogram:\n  - steps 0 3\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        command_run(folder, wrong[i].words, 60, &result);
        if (result.status != 2 || strstr(result.err, wrong[i].says) == NULL)
            fail_msg("%s %s: status %d, said: %s", wrong[i].words[1], wrong[i].words[2], result.status, result.err);
        assert_string_equal(result.out, "");
    }
}

static json_t *row_of(json_t *rows, const char *implementation)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
        if (strcmp(json_string_value(json_object_get(row, "implementation")), implementation) == 0)
            return row;
    fail_msg("no row of %s", implementation);
    return NULL;
}

static double fact(json_t *row, const char *name) { return json_number_value(json_object_get(json_object_get(row, "facts"), name)); }

// The null implementation is faster than any, and wrong.
static void wrong_is_no_score(void **state)
{
    (void)state;
    static const char *const words[] = {"bench", "-i", "reference", "-i", "null", "-w", "mini.yaml", "--rounds", "3", "--time", "200", "--json", "bench.json", NULL};
    char path[4200];
    command_run(folder, words, 280, &result);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "WRONG"));
    snprintf(path, sizeof path, "%s/bench.json", folder);
    json_t *all = json_load_file(path, 0, NULL), *rows = json_object_get(all, "rows"), *reference = row_of(rows, "reference"), *null = row_of(rows, "null");
    assert_string_equal(json_string_value(json_object_get(reference, "verdict")), "PASS");
    assert_string_equal(json_string_value(json_object_get(null, "verdict")), "WRONG");
    assert_true(json_is_null(json_object_get(null, "step_s")));
    assert_true(json_number_value(json_object_get(json_object_get(reference, "step_s"), "value")) > 0);
    json_t *launches = json_object_get(reference, "launches");
    assert_int_equal(json_array_size(launches), 3);
    assert_int_equal(json_array_size(json_object_get(json_array_get(launches, 0), "seconds")), 6); // 8 timed steps, 2 of them warm
    // 16 x 24 + 24 + 24 x 8 + 8 parameters; full: gathered twice, reduced once, half of each leaves the rank
    assert_true(fact(reference, "parameters") == 608);
    assert_true(fact(reference, "peak_bytes") > 608 * 4);
    assert_true(fact(reference, "sent_bytes") >= 608 * 4 / 2 * 2);
    json_decref(all);
}

// The build that carries faults, with one that saves communication or work, beside the same build without any: faster or not, it has no speed.
static void a_fault_is_no_score(void **state)
{
    (void)state;
    static const char *const faults[] = {"last-unit-not-reduced", "last-shard-not-updated", "divided-twice"};
    static const char *const words[] = {"bench", "-i", "./faulty", "-i", "./faulty:one", "-i", "./faulty:two", "-i", "./faulty:three", "-w", "mini.yaml", "--no-probes", "--rounds", "2", "--store", "faulty.db",
                                        "--json", "faulty.json", "--csv", "faulty.csv", NULL};
    char path[4200], manifest[2000];
    snprintf(path, sizeof path, "%s/faulty", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(manifest, sizeof manifest,
             "title: with faults\ncommand: [\"${build}/fsdp-reference-faulty\", --worker]\nlaunchers: [mpirun]\nranks: [1, 8]\nstrategies: [none, full]\nlayouts: [flat]\n"
             "models: [mlp]\ncompute: [f32]\nreduce: [f32]\nvariants:\n  one: {options: {fault: %s}}\n  two: {options: {fault: %s}}\n  three: {options: {fault: %s}}\n",
             faults[0], faults[1], faults[2]);
    command_write(path, "implementation.yaml", manifest);
    command_run(folder, words, 280, &result);
    if (result.status != 1)
        fail_msg("status %d: %s%s", result.status, result.out, result.err);
    snprintf(path, sizeof path, "%s/faulty.json", folder);
    json_t *all = json_load_file(path, 0, NULL), *rows = json_object_get(all, "rows");
    assert_int_equal(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        static const char *const figures[] = {"step_s", "tokens_per_s_and_rank", "flop_per_s_and_rank", "mfu", "ratio", "word"};
        json_t *row = json_array_get(rows, i);
        if (strcmp(json_string_value(json_object_get(row, "verdict")), i == 0 ? "PASS" : "WRONG") != 0)
            fail_msg("row %zu: %s", i, result.out);
        for (size_t k = 0; i > 0 && k < sizeof figures / sizeof *figures; k++)
            assert_true(json_is_null(json_object_get(row, figures[k])));
        assert_true(i == 0 || json_string_value(json_object_get(json_object_get(row, "facts"), "why")) != NULL);
    }
    json_decref(all);
    snprintf(path, sizeof path, "%s/faulty.csv", folder);
    command_slurp(path, result.out);
    int wrong = 0;
    for (const char *at = result.out; (at = strstr(at, ",WRONG,")) != NULL; at++)
        wrong++;
    assert_int_equal(wrong, 3);
    command_run(folder, (const char *const[]){"show", "1", "--store", "faulty.db", NULL}, 60, &result);
    assert_non_null(strstr(result.out, "faulty:one, WRONG: "));
    command_run(folder, (const char *const[]){"compare", "1", "1", "--store", "faulty.db", NULL}, 60, &result);
    assert_int_equal(result.status, 1);
}

// The largest that fits is known to be: one row more of a rank was measured above the limit. What does not fit at all is a SKIP.
static void the_best_batch_fits(void **state)
{
    (void)state;
    static const char *const words[] = {"bench", "-w", "mini.yaml", "-s", "none", "-s", "full", "--batch", "best", "--memory", "48KiB", "--no-probes", "--rounds", "1", "--store", "fit.db", "--json", "fit.json", NULL};
    char path[4200];
    command_run(folder, words, 280, &result);
    if (result.status != 0)
        fail_msg("status %d: %s%s", result.status, result.out, result.err);
    assert_non_null(strstr(result.out, "the largest global batch with at most 48 KiB on each rank"));
    assert_non_null(strstr(result.out, "reference, exposed: left out by --no-probes\n"));
    snprintf(path, sizeof path, "%s/fit.json", folder);
    json_t *all = json_load_file(path, 0, NULL), *rows = json_object_get(all, "rows");
    for (size_t i = 0; i < 2; i++) {
        json_t *row = json_array_get(rows, i);
        double peak = fact(row, "peak_bytes"), count = (double)json_integer_value(json_object_get(row, "rows"));
        // Growth by a row of a rank is what its activations take, 96 floats in all, and some of what they leave to the allocator.
        assert_true(count > 2 && count < 128 && peak <= 48 * 1024 && peak > 40 * 1024);
    }
    json_decref(all);
    command_run(folder, (const char *const[]){"bench", "-w", "mini.yaml", "--batch", "best", "--memory", "1KiB", "--no-probes", "--store", "fit.db", NULL}, 100, &result);
    assert_int_equal(result.status, 3);
    assert_non_null(strstr(result.out, "reference, SKIP: one row of a rank needs "));
    assert_non_null(strstr(result.out, "\n0 rounds"));
}

static void samples_are_stored(void **state)
{
    (void)state;
    struct store *store;
    struct stored_serieses all;
    struct error error = {0};
    char path[4200];
    snprintf(path, sizeof path, "%s/results.db", folder);
    assert_true(store_open(path, true, &store, &error));
    assert_true(store_load_series(store, 0, "bench", &all, &error));
    assert_int_equal(all.count, 2);
    for (int i = 0; i < all.count; i++) {
        bool reference = strcmp(all.items[i].subject, "reference") == 0;
        assert_int_equal(all.items[i].count, reference ? 18 : 0);
        assert_string_equal(json_string_value(json_object_get(all.items[i].facts, "verdict")), reference ? "PASS" : "WRONG");
        assert_string_equal(json_string_value(json_object_get(all.items[i].point, "strategy")), reference ? "full" : "full");
    }
    stored_series_free(&all);
    store_close(store);
}

// What cannot be measured is in the store too, and a batch that was looked for is the one of the stored point.
static void rows_are_stored_as_they_ended(void **state)
{
    (void)state;
    static const char *const words[] = {"bench", "-w", "mini.yaml", "-s", "full", "-f", "hosts", "-f", "shm", "--batch", "best", "--memory", "4MiB", "--rounds", "1", "--store", "best.db",
                                        "--json", "best.json", NULL};
    struct store *store;
    struct stored_serieses all;
    struct error error = {0};
    char path[4200];
    command_run(folder, words, 280, &result);
    if (result.status != 0)
        fail_msg("status %d: %s%s", result.status, result.out, result.err);
    snprintf(path, sizeof path, "%s/best.json", folder);
    json_t *report = json_load_file(path, 0, NULL), *rows = json_object_get(report, "rows");
    snprintf(path, sizeof path, "%s/best.db", folder);
    assert_true(store_open(path, true, &store, &error) && store_load_series(store, 0, "bench", &all, &error));
    assert_int_equal(all.count, 2);
    for (int i = 0; i < 2; i++) {
        json_t *row = json_array_get(rows, (size_t)i);
        assert_string_equal(all.items[i].fabric, i == 0 ? "hosts" : "shm");
        assert_string_equal(json_string_value(json_object_get(all.items[i].facts, "verdict")), i == 0 ? "SKIP" : "PASS");
        assert_int_equal(json_integer_value(json_object_get(all.items[i].point, "rows")), json_integer_value(json_object_get(row, "rows")));
        assert_true(i == 0 || json_integer_value(json_object_get(row, "rows")) > 8); // more than the workload's
    }
    json_decref(report);
    stored_series_free(&all);
    store_close(store);
}

// Ends it after its first round, and finds the samples in the store.
static void an_interrupt_keeps_what_there_is(void **state)
{
    (void)state;
    char program[4096], path[4200], out[4200];
    struct error error = {0};
    struct store *store;
    struct stored_serieses all = {0};
    int status = 0, samples = 0;
    assert_true(command_program(program));
    snprintf(path, sizeof path, "%s/cut.db", folder);
    snprintf(out, sizeof out, "%s/cut.out", folder);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(folder) != 0 || freopen(out, "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        execl(program, program, "bench", "-w", "mini.yaml", "--no-probes", "--time", "1000", "--narrow", "0.0000001", "--store", path, (char *)NULL);
        _exit(99);
    }
    for (double until = launch_now() + 200; samples == 0 && launch_now() < until; usleep(200000))
        if (access(path, R_OK) == 0 && store_open(path, true, &store, &error)) {
            if (store_load_series(store, 0, "bench", &all, &error)) {
                samples = all.count > 0 ? all.items[0].count : 0;
                stored_series_free(&all);
            }
            store_close(store);
        }
    assert_true(samples > 0);
    kill(pid, SIGINT);
    pid_t done = 0;
    for (double until = launch_now() + 60; done != pid && launch_now() < until; usleep(10000))
        done = waitpid(pid, &status, WNOHANG);
    if (done != pid)
        kill(pid, SIGKILL);
    assert_int_equal(done, pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT);
    command_slurp(out, result.out);
    assert_non_null(strstr(result.out, "reference"));
    assert_non_null(strstr(result.out, "interrupted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes), cmocka_unit_test(wrong_is_no_score), cmocka_unit_test(samples_are_stored), cmocka_unit_test(a_fault_is_no_score), cmocka_unit_test(the_best_batch_fits), cmocka_unit_test(rows_are_stored_as_they_ended),
                                       cmocka_unit_test(an_interrupt_keeps_what_there_is)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
