// The program fsdp-reference from outside: its arguments, a truth and a case served by one rank, and a case that fails.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/job.h"
#include "reference/models/model.h"

static char program[4096], folder[] = "/tmp/fsdpmark-worker-XXXXXX";
static struct error error;

// Runs the program; its output goes to folder/log. An argument that is NULL ends the list.
static int run(const char *first, const char *second)
{
    char log[4200];
    int status = -1;
    snprintf(log, sizeof log, "%s/log", folder);
    pid_t child = fork();
    if (child == 0) {
        int file = open(log, O_CREAT | O_TRUNC | O_WRONLY, 0666);
        dup2(file, 1);
        dup2(file, 2);
        execl(program, program, first, second, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_log(const char *text)
{
    char path[4200], log[8192];
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    log[fread(log, 1, sizeof log - 1, file)] = 0;
    fclose(file);
    if (!strstr(log, text))
        fail_msg("found '%s', expected '%s' in it", log, text);
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct { const char *first, *second; int status; const char *says; } table[] = {
        {NULL, NULL, 2, "found '', expected --worker"},
        {"--nonsense", NULL, 2, "found '--nonsense', expected --worker"},
        {"--truth", NULL, 2, "expected --worker"},
        {"--truth", "/nonexistent", 2, "/nonexistent/case.json"},
        {"--bench", "/nonexistent", 2, "/nonexistent"},
        {"--overlap", "/nonexistent", 2, "/nonexistent"},
        {"--worker", NULL, 2, "environment: "},
        {"--version", NULL, 0, "fsdp-reference "},
        {"--help", NULL, 0, "--truth FOLDER..."},
    };
    unsetenv("FSDPMARK_JOB");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(run(table[i].first, table[i].second), table[i].status);
        expect_log(table[i].says);
    }
}

static int64_t sizes[] = {6, 8, 4};
static int calls[] = {0, 1};
static struct instruction steps[] = {
    {.verb = VERB_OBSERVE, .label = (char *)"init", .what = OBSERVE_PARAM, .local = true},
    {.verb = VERB_MICRO, .sync = true},
    {.verb = VERB_OBSERVE, .label = (char *)"s0.grad", .what = OBSERVE_GRAD},
    {.verb = VERB_STEP},
    {.verb = VERB_OBSERVE, .label = (char *)"s0", .what = OBSERVE_PARAM},
    {.verb = VERB_STOP},
};

static void make_case(struct fsdp_case *c, const char *id)
{
    *c = (struct fsdp_case){.id = (char *)id, .family = (char *)"worker", .world_size = 1, .global_rows = 4, .seed = 1, .checkpoint = (char *)"/tmp/unused"};
    c->model = (struct model_spec){.kind = MODEL_MLP, .size_count = 3, .sizes = sizes, .call_count = 2, .calls = calls, .bias = true};
    c->sharding = (struct sharding_spec){.strategy = STRATEGY_FULL, .replicas = 1, .shards = 1, .tensor = 1, .pipeline = 1, .layout = SHARD_FLAT,
                                         .reshard_after_forward = true, .wrap_pattern = (char *)""};
    c->precision = (struct precision_spec){DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, LOSS_SCALE_NONE, 1, 2, 0.5, 2000};
    c->optimizer = (struct optimizer_spec){.kind = OPTIMIZER_SGD, .lr = 0.5};
    c->data = (struct data_spec){.recipe = (char *)"exact", .density = 0.6, .std = 1, .steps = 1, .micros = 1};
    c->program = steps;
    c->program_length = sizeof steps / sizeof *steps;
    assert_true(model_parameter_table(c, &error));
}

static void write_case(const char *id, char *case_folder, size_t size)
{
    struct fsdp_case c;
    char path[4200];
    make_case(&c, id);
    snprintf(case_folder, size, "%s/%s", folder, id);
    mkdir(case_folder, 0777);
    snprintf(path, sizeof path, "%s/out", case_folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/case.json", case_folder);
    bool written = case_write(&c, path, &error);
    for (int i = 0; i < c.parameter_count; i++) { // the rest of the case is not on the heap
        free(c.parameters[i].name);
        free(c.parameters[i].unit);
    }
    free(c.parameters);
    if (!written)
        fail_msg("%s", error.text);
}

static void start_environment(void)
{
    static const char *const variables[][2] = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 1);
    setenv("FSDPMARK_JOB", folder, 1);
}

static void expect_same_as_truth(const char *case_folder, const char *label)
{
    char path[4300];
    struct tensors own = {0}, truth = {0};
    snprintf(path, sizeof path, "%s/out/%s.safetensors", case_folder, label);
    assert_true(tensors_read(path, &own, &error));
    snprintf(path, sizeof path, "%s/truth/%s.safetensors", case_folder, label);
    assert_true(tensors_read(path, &truth, &error));
    assert_int_equal(own.count, 4);
    for (int i = 0; i < own.count; i++) {
        const struct tensor *t = tensors_find(&truth, own.items[i].name);
        assert_non_null(t);
        for (int64_t k = 0; k < t->count; k++)
            assert_true(dtype_get(own.items[i].dtype, own.items[i].data, k) == dtype_get(t->dtype, t->data, k));
    }
    tensors_free(&own);
    tensors_free(&truth);
}

static void test_a_case_and_its_truth(void **state)
{
    (void)state;
    static const char *const ids[] = {"good"};
    char case_folder[4200], path[4300];
    struct answer answer;
    write_case(ids[0], case_folder, sizeof case_folder);
    assert_int_equal(run("--truth", case_folder), 0);
    assert_true(job_write(folder, 1, ids, 1, &error));
    start_environment();
    assert_int_equal(run("--worker", NULL), 0);
    snprintf(path, sizeof path, "%s/out/rank0.jsonl", case_folder);
    if (!answer_read(path, ids[0], 0, 1, &answer, &error))
        fail_msg("%s", error.text);
    assert_true(answer.ended && answer.end == EVENT_DONE);
    answer_free(&answer);
    expect_same_as_truth(case_folder, "init");
    expect_same_as_truth(case_folder, "s0.grad");
    expect_same_as_truth(case_folder, "s0");
}

// No data for it: the answer ends in an error that names the file, and the status is 1.
static void test_a_case_that_fails(void **state)
{
    (void)state;
    static const char *const ids[] = {"bad"};
    char case_folder[4200];
    write_case(ids[0], case_folder, sizeof case_folder);
    assert_true(job_write(folder, 1, ids, 1, &error));
    start_environment();
    assert_int_equal(run("--worker", NULL), 1);
    expect_log("bad/data.safetensors");
}

int main(void)
{
    char *end = program;
    if (readlink("/proc/self/exe", program, sizeof program - 64) < 0 || !mkdtemp(folder))
        return 1;
    for (int up = 0; up < 4 && end; up++) // build/tests/reference/worker/test_worker
        if ((end = strrchr(program, '/')))
            *end = 0;
    strcat(program, "/fsdp-reference");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments), cmocka_unit_test(test_a_case_and_its_truth),
                                       cmocka_unit_test(test_a_case_that_fails)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) || failed;
}
