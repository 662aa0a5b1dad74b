// Workers that misbehave, each in its own way: the verdict and the message, and that the rest of the run goes on.
//
// The program under test is build/fsdpmark itself; the worker is this test program (oracle.h), started by a manifest that
// the test writes.
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/launch/launch.h"
#include "harness/launch/tests/template_program.h"
#include "harness/run/scratch.h"
#include "harness/run/tests/oracle.h"
#include "harness/store/store.h"

static const double RUN_LIMIT_S = 120;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX", self[4096], program[4096];
static const char *cases_name = "cases.yaml"; // what `check` runs

// ---- the place ----

static void write_file(const char *name, const char *format, ...)
{
    char path[256];
    va_list list;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    va_start(list, format);
    vfprintf(file, format, list);
    va_end(list);
    fclose(file);
}

static void write_manifest(const char *command, const char *mode, const char *at, const char *on)
{
    write_file("implementation.yaml", "title: oracle\nname: oracle\nnote: in a test\ncommand: [%s]\nlaunchers: [local, mpirun, fork]\n"
               "options: {misbehave: \"%s\", at: \"%s\", on: \"%s\"}\n", command, mode, at, on);
}

static int set_up(void **state)
{
    (void)state;
    const char *build = getenv("FSDPMARK_BUILD") != NULL ? getenv("FSDPMARK_BUILD") : "build";
    char path[4096];
    snprintf(path, sizeof path, "%s/fsdpmark", build);
    char *suite = realpath("suite", NULL);
    if (suite == NULL || realpath(path, program) == NULL || mkdtemp(folder) == NULL)
        return -1;
    setenv("FSDPMARK_SUITE", suite, 1);
    free(suite);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    snprintf(path, sizeof path, "%s/cache", folder);
    setenv("FSDPMARK_CACHE", path, 1);
    write_file("cases.yaml", "defaults: {layer: exact}\ncases:\n  - name: t\n    title: three small ones\n"
               "    model: {kind: mlp, sizes: [4, 3]}\n    data: {recipe: exact, density: 0.7}\n    global_rows: 4\n    matrix:\n"
               "      ranks: [2]\n      strategy: [none]\n"
               "      variant: [{name: a, seed: 1}, {name: b, seed: 2}, {name: c, seed: 3}]\n");
    write_file("reshard.yaml", "name: r\ntitle: load what two ranks saved\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 3]}\n"
               "data: {recipe: exact, density: 0.7}\nglobal_rows: 4\nsteps: 2\nstrategy: none\nsave_ranks: 2\n"
               "program: [init, load, observe loaded param, eval 1 0, train 1]\nmatrix: {ranks: [1, 4]}\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

// ---- running the program ----

// Starts `fsdpmark` with words after the usual ones; output goes to the file `output`.
static pid_t start_program(const char *const *words)
{
    char store[256], output[256];
    snprintf(store, sizeof store, "%s/results.db", folder);
    snprintf(output, sizeof output, "%s/output", folder);
    const char *argv[32] = {program};
    int n = 1;
    for (int i = 0; words[i] != NULL; i++)
        argv[n++] = words[i];
    argv[n++] = "--store";
    argv[n++] = store;
    unlink(output);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen(output, "a", stdout) == NULL || freopen(output, "a", stderr) == NULL)
            _exit(99);
        execv(program, (char **)argv);
        _exit(99);
    }
    return pid;
}

static int await_program(pid_t pid)
{
    int status;
    for (double until = launch_now() + RUN_LIMIT_S; launch_now() < until; usleep(5000))
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    fail_msg("fsdpmark did not end within %g s", RUN_LIMIT_S);
    return -1;
}

static char *slurp(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 18);
    if (file != NULL) {
        size_t n = fread(text, 1, (1 << 18) - 1, file);
        text[n] = 0;
        fclose(file);
    }
    return text;
}

// Runs `check` on the test's cases; returns its exit status, *results the results array (new reference).
static int check(const char *launcher, json_t **results)
{
    char manifest[256], cases[256], json[256];
    snprintf(manifest, sizeof manifest, "%s/implementation.yaml", folder);
    snprintf(cases, sizeof cases, "%s/%s", folder, cases_name);
    snprintf(json, sizeof json, "%s/out.json", folder);
    unlink(json);
    const char *const words[] = {"check", "-i", manifest, "--case", cases, "--json", json, "--deadline", "2.5", "--launcher", launcher, NULL};
    int status = await_program(start_program(words));
    json_t *root = json_load_file(json, 0, NULL);
    *results = json_incref(json_object_get(root, "results"));
    json_decref(root);
    if (*results == NULL) {
        char *output = slurp("output");
        print_error("%s\n", output);
        free(output);
    }
    return status;
}

// ---- judging the verdicts ----

static const char *text_of(json_t *result, const char *key)
{
    const char *text = json_string_value(json_object_get(result, key));
    return text != NULL ? text : "";
}

// A result of the case with that verdict whose message holds the text.
static bool has(json_t *results, const char *id, const char *check_name, const char *verdict, const char *message)
{
    size_t i;
    json_t *r;
    json_array_foreach(results, i, r)
        if (strcmp(text_of(r, "case"), id) == 0 && strcmp(text_of(r, "verdict"), verdict) == 0 &&
            (check_name == NULL || strcmp(text_of(r, "check"), check_name) == 0) && strstr(text_of(r, "message"), message) != NULL)
            return true;
    return false;
}

static bool spoiled(json_t *results, const char *id)
{
    size_t i, seen = 0;
    json_t *r;
    json_array_foreach(results, i, r)
        if (strcmp(text_of(r, "case"), id) == 0) {
            seen++;
            if (strcmp(text_of(r, "verdict"), "FAIL") == 0 || strcmp(text_of(r, "verdict"), "BROKEN") == 0)
                return true;
        }
    return seen == 0;
}

static void expect(json_t *results, const char *id, const char *check_name, const char *verdict, const char *message)
{
    if (has(results, id, check_name, verdict, message))
        return;
    size_t i;
    json_t *r;
    json_array_foreach(results, i, r)
        print_error("  %s %s %s: %s\n", text_of(r, "case"), text_of(r, "check"), text_of(r, "verdict"), text_of(r, "message"));
    fail_msg("%s: expected %s with '%s'", id, verdict, message);
}

static void expect_fine(json_t *results, const char *id)
{
    expect(results, id, NULL, "PASS", "");
    if (spoiled(results, id))
        fail_msg("%s: expected no FAIL and no BROKEN", id);
}

// ---- one fault at a time ----

static const struct scenario {
    const char *mode, *on, *launcher;
    const char *verdict, *check, *message;
    int status;
} scenarios[] = {
    {"crash", "1", "local", "FAIL", "answer", "crash: rank 1 ended with signal 11 (Segmentation fault) before the case was done; last event of rank 0: {", 1},
    {"crash", "1", "mpirun", "FAIL", "answer", "crash: rank 1 ended with signal 11", 1},
    {"exit", "0", "local", "FAIL", "answer", "early end: rank 0 ended with exit status 3 before the case was done", 1},
    {"exit", "0", "mpirun", "FAIL", "answer", "early end: rank 0 ended with exit status 3 before the case was done", 1},
    {"leave", "1", "local", "FAIL", "answer", "early end: rank 1 ended with exit status 0 before the case was done", 1},
    {"hang", "1", "local", "FAIL", "answer", "hang: no end within the deadline of 2.5 s without an event; last event of rank 0: {\"event\":\"done\"}; last event of rank 1: {", 1},
    {"hang", "all", "mpirun", "FAIL", "answer", "hang: no end within the deadline of 2.5 s", 1},
    {"garbage", "1", "local", "FAIL", "answer", "t.none.n2.b/out/rank1.jsonl:5: ", 1},
    {"more", "0", "local", "FAIL", "answer", "t.none.n2.b/out/rank0.jsonl:", 1},
    {"other-case", "0", "local", "FAIL", "answer", "t.none.n2.b/out/rank0.jsonl:1: ", 1},
    {"error", "1", "local", "FAIL", "answer", "rank 1 reported an error: the shards do not fit", 1},
    {"shape", "0", "local", "FAIL", "answer", "has shape (", 1},
    {"missing", "0", "local", "FAIL", "answer", "is missing", 1},
    {"nan", "0", "local", "FAIL", "answer", "is not finite", 1},
    {"no-file", "0", "local", "FAIL", "answer", "cannot be read", 1},
    {"wrong", "0", "local", "FAIL", NULL, "", 1},
    {"unsupported", "1", "local", "FAIL", "answer", "unsupported on 1 of 2 ranks", 1},
    {"unsupported", "all", "local", "SKIP", "answer", "unsupported: not on a Monday", 0},
    {"silent", "all", "local", "FAIL", "answer", "rank ", 1},
    {"nothing", "1", "local", "FAIL", "answer", "rank 1 ended with exit status 0 before the case was done; last event of rank 0: {\"event\":\"done\"}; rank 1 wrote nothing", 1},
    {"crash", "1", "fork", "FAIL", "answer", "crash: rank 1 ended with signal 11 (Segmentation fault) before the case was done; last event of rank 0: {", 1},
    {"exit", "0", "fork", "FAIL", "answer", "early end: rank 0 ended with exit status 3 before the case was done", 1},
    {"leave", "1", "fork", "FAIL", "answer", "early end: rank 1 ended with exit status 0 before the case was done", 1},
    {"hang", "1", "fork", "FAIL", "answer", "hang: no end within the deadline of 2.5 s without an event; last event of rank 0: {\"event\":\"done\"}; last event of rank 1: {", 1},
    {"error", "1", "fork", "FAIL", "answer", "rank 1 reported an error: the shards do not fit", 1},
    {"silent", "all", "fork", "FAIL", "answer", "rank ", 1},
    {"kill-parent", "0", "fork", "FAIL", "answer", "the process that the ranks are forked from ended with signal 9 (Killed) while this case ran, twice in a row", 1},
    {"kill-parent-once", "1", "fork", "PASS", NULL, "", 0},
    {"stop-parent-once", "0", "fork", "PASS", NULL, "", 0},
};

// Every verdict bears the manifest's note, and what rank 0 remarked where it said hello properly.
static void expect_notes(json_t *results, const struct scenario *s)
{
    static const char *const speechless[] = {"more", "other-case", "silent"};
    bool spoke = true;
    size_t i;
    json_t *r;
    for (int k = 0; k < 3; k++)
        spoke &= strcmp(s->mode, speechless[k]) != 0;
    json_array_foreach(results, i, r)
        assert_string_equal(text_of(r, "note"), spoke || strcmp(text_of(r, "case"), "t.none.n2.b") != 0 ? "in a test; knows the truth" : "in a test");
}

static void misbehaviour(void **state)
{
    const struct scenario *s = *state;
    char command[4200];
    json_t *results;
    snprintf(command, sizeof command, "\"%s\"", self);
    write_manifest(command, s->mode, "t.none.n2.b", s->on);
    int status = check(s->launcher, &results);
    expect(results, "t.none.n2.b", s->check, s->verdict, s->message);
    expect_fine(results, "t.none.n2.a");
    expect_fine(results, "t.none.n2.c");
    expect_notes(results, s);
    assert_int_equal(status, s->status);
    json_decref(results);
    char *output = slurp("output");
    bool told = strstr(output, "the process that the workers are forked from has ended; it is started once more") != NULL;
    assert_int_equal(told, strstr(s->mode, "-parent") != NULL);
    free(output);
}

static void check_correct(const char *launcher)
{
    char command[4200];
    json_t *results;
    snprintf(command, sizeof command, "\"%s\"", self);
    write_manifest(command, "none", "*", "all");
    assert_int_equal(check(launcher, &results), 0);
    expect_fine(results, "t.none.n2.a");
    expect_fine(results, "t.none.n2.b");
    expect_fine(results, "t.none.n2.c");
    json_decref(results);
}

static void correct(void **state) { (void)state; check_correct("local"); }
static void correct_fork(void **state) { (void)state; check_correct("fork"); }

static void check_bad_end(const char *launcher)
{
    char command[4200];
    json_t *results;
    snprintf(command, sizeof command, "\"%s\"", self);
    write_manifest(command, "bad-end", "t.none.n2.c", "1");
    assert_int_equal(check(launcher, &results), 1);
    expect(results, "t.none.n2.c", "answer", "FAIL", "rank 1 ended with exit status 7 after its last case was done, expected exit status 0");
    expect_fine(results, "t.none.n2.b");
    json_decref(results);
}

static void bad_end(void **state) { (void)state; check_bad_end("local"); }
static void bad_end_fork(void **state) { (void)state; check_bad_end("fork"); }

static void gate_fails(void **state)
{
    (void)state;
    char command[4200];
    json_t *results;
    snprintf(command, sizeof command, "\"%s\"", self);
    write_manifest(command, "wrong", "gate.*b", "0");
    assert_int_equal(check("local", &results), 1);
    expect(results, "t.none.n2.b", "answer", "SKIP", "not judged: unsharded arithmetic differs at N=1 (case gate.t.b)");
    expect(results, "gate.t.b", NULL, "FAIL", "[unsharded, N = 1: the adapter's or the framework's arithmetic, not a sharding fault]");
    expect_fine(results, "t.none.n2.a");
    json_decref(results);
}

// ---- cases that load what another saves ----

static int check_reshard(const char *mode, const char *at, const char *on, json_t **results)
{
    char command[4200];
    snprintf(command, sizeof command, "\"%s\"", self);
    write_manifest(command, mode, at, on);
    cases_name = "reshard.yaml";
    int status = check("local", results);
    cases_name = "cases.yaml";
    return status;
}

static void loaders_follow_savers(void **state)
{
    (void)state;
    static const char *const order[] = {"gate.r", "save.r.none.n2", "r.none.n1", "r.none.n4"};
    json_t *results, *r;
    size_t i;
    int seen = 0;
    assert_int_equal(check_reshard("none", "*", "all", &results), 0);
    for (int k = 0; k < 4; k++)
        expect_fine(results, order[k]);
    json_array_foreach(results, i, r)
    {
        seen += seen == 0 || strcmp(text_of(r, "case"), order[seen - 1]) != 0;
        assert_true(seen <= 4 && strcmp(text_of(r, "case"), order[seen - 1]) == 0);
    }
    expect(results, "r.none.n4", "save-load", "PASS", "");
    json_decref(results);
}

static void savers_fail(void **state)
{
    (void)state;
    static const char *const modes[] = {"wrong", "crash", "unsupported"}, *const verdicts[] = {"FAIL", "FAIL", "SKIP"};
    for (int k = 0; k < 3; k++) {
        char message[200];
        json_t *results;
        assert_int_equal(check_reshard(modes[k], "save.*", "all", &results), k < 2);
        expect(results, "save.r.none.n2", NULL, verdicts[k], "");
        snprintf(message, sizeof message, "not judged: the case that saves did not pass (case save.r.none.n2 is %s)", verdicts[k]);
        expect(results, "r.none.n1", "answer", "SKIP", message);
        expect(results, "r.none.n4", "answer", "SKIP", message);
        json_decref(results);
    }
}

static void loader_crashes(void **state)
{
    (void)state;
    json_t *results;
    assert_int_equal(check_reshard("crash", "r.none.n1", "all", &results), 1);
    expect(results, "r.none.n1", "answer", "FAIL", "crash: rank 0 ended with signal 11");
    expect_fine(results, "r.none.n4");
    json_decref(results);
}

static void check_no_worker(const char *launcher)
{
    json_t *results;
    write_manifest("/nonexistent/worker", "none", "*", "all");
    assert_int_equal(check(launcher, &results), 1);
    expect(results, "gate.t.a", "answer", "FAIL", "did not start: rank 0 ended with cannot be executed: No such file or directory");
    expect(results, "t.none.n2.a", "answer", "SKIP", "not judged");
    json_decref(results);
}

static void no_worker(void **state) { (void)state; check_no_worker("local"); }
static void no_worker_fork(void **state) { (void)state; check_no_worker("fork"); }

static void check_start_hangs(const char *launcher)
{
    json_t *results;
    double began = launch_now();
    write_manifest("sleep, \"600\"", "none", "*", "all");
    assert_int_equal(check(launcher, &results), 1);
    expect(results, "gate.t.c", "answer", "FAIL", "did not start: no event of any rank within the deadline of 7.5 s");
    // One deadline for all of the group, not one for each case.
    assert_true(launch_now() - began < 20);
    json_decref(results);
}

static void start_hangs(void **state) { (void)state; check_start_hangs("local"); }
static void start_hangs_fork(void **state) { (void)state; check_start_hangs("fork"); }

// ---- interrupts ----

static int workers_alive(void)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char path[300], text[32768] = "";
        snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
        FILE *file = atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() ? fopen(path, "re") : NULL;
        size_t n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
        if (file != NULL)
            fclose(file);
        static const char name[] = "ORACLE_MARK=";
        for (size_t i = 0; i + sizeof name < n; i += strlen(text + i) + 1)
            count += strncmp(text + i, name, sizeof name - 1) == 0 && strcmp(text + i + sizeof name - 1, folder) == 0;
    }
    closedir(proc);
    return count;
}

static void write_marked(const char *mode, const char *at)
{
    write_file("implementation.yaml", "title: oracle\nname: oracle\nnote: in a test\ncommand: [\"%s\"]\nlaunchers: [local, mpirun, fork]\n"
               "environment: {ORACLE_MARK: \"%s\"}\noptions: {misbehave: \"%s\", at: \"%s\", on: \"all\"}\n", self, folder, mode, at);
}

// Number of the newest run and of its cases; false where there is no store or no run yet.
static bool newest_run(int64_t *id, int *cases)
{
    char path[256];
    struct store *s;
    struct stored_run run;
    struct error error = {0};
    snprintf(path, sizeof path, "%s/results.db", folder);
    if (access(path, F_OK) != 0 || !store_open(path, true, &s, &error))
        return false;
    bool ok = store_load_run(s, 0, &run, &error);
    if (ok) {
        *id = run.id;
        *cases = run.case_count;
        stored_run_free(&run);
    }
    store_close(s);
    return ok;
}

// Starts a run that hangs in a case, sends it a signal there, when so many are recorded; returns its exit status.
static int interrupt(int number, const char *launcher, const char *at, int recorded)
{
    char manifest[256], cases[256];
    int64_t before = 0, run = 0;
    int count = 0;
    snprintf(manifest, sizeof manifest, "%s/implementation.yaml", folder);
    snprintf(cases, sizeof cases, "%s/%s", folder, cases_name);
    write_marked("hang", at);
    newest_run(&before, &count);
    run = before;
    count = 0;
    const char *const words[] = {"check", "-i", manifest, "--case", cases, "--launcher", launcher, NULL};
    pid_t pid = start_program(words);
    for (double until = launch_now() + 60; (run == before || count < recorded) && launch_now() < until; usleep(20000))
        newest_run(&run, &count);
    // The case that hangs may be in a start of its own.
    for (double until = launch_now() + 60; workers_alive() < 2 && launch_now() < until;)
        usleep(5000);
    int alive = workers_alive();
    kill(pid, number);
    int status = await_program(pid);
    assert_int_equal(count, recorded);
    assert_true(alive >= 2);
    for (double until = launch_now() + 5; workers_alive() > 0 && launch_now() < until;)
        usleep(5000);
    assert_int_equal(workers_alive(), 0);
    return status;
}

// *results: new reference.
static void resume(int64_t run, int cases_before, int cases_after, json_t **results)
{
    char word[32], json[256];
    int cases;
    snprintf(word, sizeof word, "%lld", (long long)run);
    snprintf(json, sizeof json, "%s/out.json", folder);
    write_marked("none", "");
    const char *const words[] = {"check", "--resume", word, "--json", json, NULL};
    assert_int_equal(await_program(start_program(words)), 0);
    int64_t newest;
    assert_true(newest_run(&newest, &cases));
    assert_int_equal(newest, run);
    assert_int_equal(cases, cases_after);
    assert_true(cases_before < cases);
    json_t *root = json_load_file(json, 0, NULL);
    *results = json_incref(json_object_get(root, "results"));
    json_decref(root);
}

static void check_interrupt(int number, const char *launcher, int expected_status)
{
    int cases;
    int64_t run;
    json_t *results;
    // Three gates and the first sharded case are recorded: the second is under way, and hangs.
    assert_int_equal(interrupt(number, launcher, "t.none.n2.b", 4), expected_status);
    assert_true(newest_run(&run, &cases));
    assert_int_equal(cases, 4);
    resume(run, cases, 6, &results);
    expect_fine(results, "t.none.n2.a");
    expect_fine(results, "t.none.n2.b");
    expect_fine(results, "t.none.n2.c");
    json_decref(results);
}

// The checkpoint went with the first session: who saves runs again, and is recorded once. Cases judged before count for the family.
static void killed_before_a_load(void **state)
{
    (void)state;
    int cases;
    int64_t run;
    json_t *results;
    cases_name = "reshard.yaml";
    int status = interrupt(SIGKILL, "local", "r.none.n4", 3);
    cases_name = "cases.yaml";
    assert_int_equal(status, 128 + SIGKILL);
    assert_true(newest_run(&run, &cases));
    assert_int_equal(cases, 3);
    resume(run, cases, 4, &results);
    expect_fine(results, "save.r.none.n2");
    expect_fine(results, "r.none.n4");
    expect(results, "r.none.n4", "rank-count", "PASS", "bitwise those of 2 cases");
    json_decref(results);
}

static void killed(void **state) { (void)state; check_interrupt(SIGKILL, "local", 128 + SIGKILL); }
static void killed_mpirun(void **state) { (void)state; check_interrupt(SIGKILL, "mpirun", 128 + SIGKILL); }
static void killed_fork(void **state) { (void)state; check_interrupt(SIGKILL, "fork", 128 + SIGKILL); }
static void ctrl_c_fork(void **state) { (void)state; check_interrupt(SIGINT, "fork", 128 + SIGINT); }
static void ctrl_c(void **state) { (void)state; check_interrupt(SIGINT, "local", 128 + SIGINT); }
static void terminated(void **state) { (void)state; check_interrupt(SIGTERM, "mpirun", 128 + SIGTERM); }

// Folders of killed runs are removed by the next run.
static void stale_folders(void **state)
{
    (void)state;
    char stale[128], own[4096];
    struct error error = {0};
    snprintf(stale, sizeof stale, "%s/fsdpmark.999999999.1", folder);
    setenv("TMPDIR", folder, 1);
    assert_true(scratch_folder(stale, &error));
    char *made = scratch_make(false, &error);
    assert_non_null(made);
    assert_int_equal(access(stale, F_OK), -1);
    snprintf(own, sizeof own, "%s", made);
    free(made);
    // One's own is not stale.
    char *kept = scratch_make(true, &error);
    assert_non_null(kept);
    assert_int_equal(access(own, F_OK), 0);
    scratch_end(own, false);
    scratch_end(kept, false);
    free(kept);
    unsetenv("TMPDIR");
}

int main(void)
{
    if (getenv("FSDPMARK_TEMPLATE") != NULL && !template_serve())
        return 0;
    if (getenv("FSDPMARK_JOB") != NULL)
        return oracle_main();
    enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };
    static char names[SCENARIOS][64];
    const struct CMUnitTest others[] = {
        cmocka_unit_test(bad_end), cmocka_unit_test(gate_fails), cmocka_unit_test(loaders_follow_savers), cmocka_unit_test(savers_fail),
        cmocka_unit_test(loader_crashes), cmocka_unit_test(killed_before_a_load), cmocka_unit_test(no_worker), cmocka_unit_test(start_hangs),
        cmocka_unit_test(killed), cmocka_unit_test(killed_mpirun), cmocka_unit_test(ctrl_c), cmocka_unit_test(terminated),
        cmocka_unit_test(stale_folders), cmocka_unit_test(correct_fork), cmocka_unit_test(bad_end_fork), cmocka_unit_test(no_worker_fork), cmocka_unit_test(start_hangs_fork),
        cmocka_unit_test(killed_fork), cmocka_unit_test(ctrl_c_fork),
    };
    enum { OTHERS = sizeof others / sizeof *others };
    struct CMUnitTest tests[1 + SCENARIOS + OTHERS] = {cmocka_unit_test(correct)};
    for (int i = 0; i < SCENARIOS; i++) {
        snprintf(names[i], sizeof names[i], "%s on %s, %s", scenarios[i].mode, scenarios[i].on, scenarios[i].launcher);
        tests[1 + i] = (struct CMUnitTest){.name = names[i], .test_func = misbehaviour, .initial_state = (void *)&scenarios[i]};
    }
    memcpy(tests + 1 + SCENARIOS, others, sizeof others);
    alarm(580);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
