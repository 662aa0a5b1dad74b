// libfsdpmark against the harness's own reader: what a worker may do, in which order, and what it is told where it does not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/library/fsdpmark.h"
#include "harness/protocol/answer.h"
#include "harness/protocol/job.h"
#include "harness/protocol/memory.h"
#include "harness/protocol/tensors.h"
#include "harness/protocol/tests/sample.h"
#include "harness/protocol/tests/temporary.h"

enum { ROWS = 5, STEPS = 2, INPUTS = 6 };
static const char *const case_id = "mlp.full.n2";
static char folder[64];
static struct error error;

static char *path_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s/%s", folder, case_id, name);
    return path;
}

// Text of the sample with one part replaced.
static char *spoiled(const char *part, const char *by)
{
    const char *at = strstr(sample_case, part);
    assert_non_null(at);
    return memory_format("%.*s%s%s", (int)(at - sample_case), sample_case, by, at + strlen(part));
}

// weight of row r of step s: r + s, so that row 0 of step 0 is masked out; input: the element's number.
static void write_data(void)
{
    struct tensors init = {0}, data = {0};
    const int64_t w0[] = {8, 6}, w1[] = {4, 8}, weight[] = {STEPS, 1, ROWS}, input[] = {STEPS, 1, ROWS, INPUTS};
    float *values = tensors_add(&data, "weight", DTYPE_F32, 3, weight, NULL, false)->data;
    for (int i = 0; i < STEPS * ROWS; i++)
        values[i] = (float)(i % ROWS + i / ROWS);
    values = tensors_add(&data, "input", DTYPE_F32, 4, input, NULL, false)->data;
    for (int i = 0; i < STEPS * ROWS * INPUTS; i++)
        values[i] = (float)i;
    tensors_add(&init, "layers.0.weight", DTYPE_F32, 2, w0, NULL, false);
    tensors_add(&init, "layers.1.weight", DTYPE_F32, 2, w1, NULL, false);
    assert_true(tensors_write(path_of("init.safetensors"), &init, &error));
    assert_true(tensors_write(path_of("data.safetensors"), &data, &error));
    tensors_free(&init);
    tensors_free(&data);
}

static void set(const char *rank, const char *size, const char *local, const char *const names[3])
{
    static const char *const all[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    const char *const values[] = {rank, size, local};
    for (int i = 0; i < 3; i++)
        if (values[i])
            setenv(names[i], values[i], 1);
}

static const char *const torchrun[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};

// A job of that case, of which this process is a rank of two. Takes the text.
static fsdpmark *open_job(char *text, const char *rank)
{
    snprintf(folder, sizeof folder, "/tmp/fsdpmark-library-XXXXXX");
    assert_non_null(temporary_make(folder));
    char *name = memory_text(path_of(""));
    mkdir(name, 0777);
    free(name);
    mkdir(path_of("out"), 0777);
    FILE *file = fopen(path_of("case.json"), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    free(text);
    write_data();
    assert_true(job_write(folder, 2, &case_id, 1, &error));
    setenv("FSDPMARK_JOB", folder, 1);
    set(rank, "2", rank, torchrun);
    fsdpmark *f = fsdpmark_open("tester", "1");
    assert_null(fsdpmark_error(f));
    return f;
}

static fsdpmark *open_case(const char *rank)
{
    fsdpmark *f = open_job(spoiled("\"global_rows\": 4", "\"global_rows\": 5"), rank);
    if (!fsdpmark_next(f))
        fail_msg("%s", fsdpmark_error(f));
    return f;
}

static void expect_error(const fsdpmark *f, const char *text)
{
    if (!fsdpmark_error(f) || !strstr(fsdpmark_error(f), text))
        fail_msg("found '%s', expected '%s' in it", fsdpmark_error(f) ? fsdpmark_error(f) : "", text);
}

// Closes; the harness must be able to read the answer, and it must end so.
static struct answer closed(fsdpmark *f, int rank, int status, enum event_kind end)
{
    struct answer answer;
    char *path = memory_format("%s/%s/out/rank%d.jsonl", folder, case_id, rank);
    assert_int_equal(fsdpmark_close(f), status);
    error = (struct error){""};
    if (!answer_read(path, case_id, rank, 2, &answer, &error))
        fail_msg("%s", error.text);
    free(path);
    assert_true(answer.ended);
    assert_int_equal(answer.end, end);
    return answer;
}

static void expect_failed(fsdpmark *f, const char *text)
{
    expect_error(f, text);
    assert_false(fsdpmark_next(f));
    assert_false(fsdpmark_done(f));
    assert_null(fsdpmark_text(f, "id"));
    struct answer answer = closed(f, 0, 1, EVENT_ERROR);
    const char *message = json_string_value(json_object_get(answer.events[answer.count - 1].fields, "message"));
    assert_non_null(message);
    assert_non_null(strstr(message, text));
    answer_free(&answer);
}

static void test_versions(void **state)
{
    (void)state;
    int major, minor, patch;
    assert_string_equal(fsdpmark_version(), FSDPMARK_VERSION);
    assert_int_equal(sscanf(FSDPMARK_VERSION, "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(FSDPMARK_VERSION_NUMBER, 10000 * major + 100 * minor + patch);
}

static void test_where_a_process_is(void **state)
{
    (void)state;
    static const char *const open_mpi[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"};
    static const char *const slurm[] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};
    const char *const *const names[] = {torchrun, open_mpi, slurm};
    assert_int_equal(fsdpmark_close(open_job(memory_text(sample_case), "0")), 0);
    for (int i = 0; i < 3; i++) {
        set("1", "2", "0", names[i]);
        fsdpmark *f = fsdpmark_open("tester", "1");
        assert_null(fsdpmark_error(f));
        assert_int_equal(fsdpmark_rank(f), 1);
        assert_int_equal(fsdpmark_size(f), 2);
        assert_int_equal(fsdpmark_local_rank(f), 0);
        assert_int_equal(fsdpmark_close(f), 0);
    }
    setenv("RANK", "0", 1); // the nearest launcher counts, and whole
    fsdpmark *f = fsdpmark_open("tester", "1");
    expect_error(f, "environment: WORLD_SIZE: found ''");
    assert_int_equal(fsdpmark_close(f), 2);
}

static void test_unusable_jobs(void **state)
{
    (void)state;
    static const struct { const char *job, *rank, *size, *says; } table[] = {
        {NULL, "0", "2", "environment: FSDPMARK_JOB: found ''"},
        {"relative", "0", "2", "environment: FSDPMARK_JOB: found 'relative'"},
        {"/nonexistent", "0", "2", "/nonexistent/job.json"},
        {"", "0", NULL, "environment: WORLD_SIZE"},
        {"", NULL, "2", "environment: found no RANK"},
        {"", "2", "2", "environment: RANK: found '2', expected a whole number from 0 to 1"},
        {"", "0", "3", "job.json:3: found 2 ranks, expected as many as were started, 3"},
    };
    assert_int_equal(fsdpmark_close(open_job(memory_text(sample_case), "0")), 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        set(table[i].rank, table[i].size, "0", torchrun);
        if (table[i].job)
            setenv("FSDPMARK_JOB", *table[i].job ? table[i].job : folder, 1);
        else
            unsetenv("FSDPMARK_JOB");
        fsdpmark *f = fsdpmark_open("tester", "1");
        expect_error(f, table[i].says);
        assert_false(fsdpmark_next(f));
        assert_int_equal(fsdpmark_close(f), 2);
    }
    fsdpmark *f = fsdpmark_open(NULL, "1");
    expect_error(f, "fsdpmark_open: found no name or version");
    assert_int_equal(fsdpmark_close(f), 2);
}

static void test_fields(void **state)
{
    (void)state;
    fsdpmark *f = open_case("0");
    assert_string_equal(fsdpmark_text(f, "id"), case_id);
    assert_string_equal(fsdpmark_text(f, "sharding.strategy"), "full");
    assert_true(fsdpmark_is(f, "optimizer.kind", "sgd"));
    assert_false(fsdpmark_is(f, "optimizer.kind", "adamw"));
    assert_int_equal(fsdpmark_integer(f, "model.sizes.2"), 4);
    assert_true(fsdpmark_number(f, "optimizer.lr") == 0.5);
    assert_true(fsdpmark_number(f, "data.init") != fsdpmark_number(f, "data.init")); // "nan"
    assert_true(fsdpmark_flag(f, "sharding.reshard_after_forward"));
    assert_int_equal(fsdpmark_length(f, "model.calls"), 2);
    assert_int_equal(fsdpmark_length(f, "parameters"), 2);
    assert_int_equal(fsdpmark_length(f, "id"), 1);
    assert_int_equal(fsdpmark_length(f, "clip"), 0);
    assert_int_equal(fsdpmark_length(f, "clip.norm"), 0);
    assert_int_equal(fsdpmark_length(f, "options.fault.more"), 0);
    assert_null(fsdpmark_error(f));
    assert_true(fsdpmark_unsupported(f, "%s", "nothing"));
    struct answer answer = closed(f, 0, 0, EVENT_UNSUPPORTED);
    assert_int_equal(answer.count, 2); // hello came by itself
    answer_free(&answer);
}

static void test_fields_that_are_not_there(void **state)
{
    (void)state;
    static const struct { const char *path; int how; const char *says; } table[] = {
        {"sharding.stratgy", 't', "case.json:7: sharding.stratgy: found no such field, expected strategy, mesh"},
        {"model.sizes.3", 'i', "model.sizes.3: found no such field, expected a number below 3"},
        {"model.sizes.-1", 'i', "found no such field"},
        {"model.sizes.", 'i', "found no such field"},
        {"", 't', "found no such field"},
        {"id.x", 't', "id.x: found no such field, expected no fields below"},
        {"model.sizes", 'i', "model.sizes: found a list of 3, expected a whole number"},
        {"optimizer.lr", 'i', "optimizer.lr: found '0.5', expected a whole number"},
        {"id", 'n', "id: found 'mlp.full.n2', expected a number"},
        {"seed", 'f', "seed: found '7', expected true or false"},
        {"clip", 't', "expected a text"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fsdpmark *f = open_case("0");
        switch (table[i].how) {
        case 't': assert_null(fsdpmark_text(f, table[i].path)); break;
        case 'i': assert_int_equal(fsdpmark_integer(f, table[i].path), 0); break;
        case 'n': assert_true(fsdpmark_number(f, table[i].path) == 0); break;
        default: assert_false(fsdpmark_flag(f, table[i].path));
        }
        expect_failed(f, table[i].says);
    }
}

static void test_tables(void **state)
{
    (void)state;
    fsdpmark *f = open_case("0");
    const struct fsdpmark_parameter *p = fsdpmark_parameter_at(f, 1);
    assert_string_equal(p->name, "layers.1.weight");
    assert_true(p->dims == 2 && p->shape[0] == 4 && p->shape[1] == 8 && p->count == 32 && !p->tied_to && p->decay);
    assert_null(fsdpmark_parameter_at(f, 2));
    assert_null(fsdpmark_parameter_at(f, -1));
    const struct fsdpmark_instruction *in = fsdpmark_instruction_at(f, 0);
    assert_true(in->verb == FSDPMARK_OBSERVE && in->what == FSDPMARK_PARAM && in->local);
    assert_string_equal(in->label, "init");
    assert_true(fsdpmark_instruction_at(f, 1)->verb == FSDPMARK_MICRO && fsdpmark_instruction_at(f, 1)->sync);
    assert_null(fsdpmark_instruction_at(f, 4)); // stop
    assert_null(fsdpmark_error(f));
    assert_int_equal(fsdpmark_close(f), 1); // the case is open
}

static void test_rows_of_a_rank(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        fsdpmark *f = open_case(rank ? "1" : "0");
        int64_t first, end;
        assert_true(fsdpmark_rows(f, &first, &end));
        assert_true(first == (rank ? 2 : 0) && end == (rank ? 5 : 2));
        const struct fsdpmark_tensor *x = fsdpmark_batch(f, "input", 1, 0), *w = fsdpmark_batch(f, "weight", 1, 0);
        assert_true(x->dims == 2 && x->shape[0] == end - first && x->shape[1] == INPUTS && x->count == (end - first) * INPUTS);
        assert_true(((const float *)x->data)[0] == (float)((ROWS + first) * INPUTS));
        assert_true(w->dims == 1 && w->count == end - first && ((const float *)w->data)[0] == (float)(first + 1));
        const struct fsdpmark_tensor *whole = fsdpmark_data(f, "input");
        assert_true(whole->dims == 4 && whole->count == STEPS * ROWS * INPUTS && ((const float *)whole->data)[7] == 7);
        assert_int_equal(fsdpmark_init(f, "layers.0.weight")->count, 48);
        assert_null(fsdpmark_error(f));
        assert_null(fsdpmark_batch(f, "input", STEPS, 0));
        expect_error(f, "found step 2 and microbatch 0");
        fsdpmark_close(f);
    }
    fsdpmark *f = open_case("0");
    assert_null(fsdpmark_init(f, "layers.2.weight"));
    expect_failed(f, "init.safetensors: found no tensor 'layers.2.weight'");
}

// Two ranks that compute each layer together are one data rank.
static void test_rows_of_tensor_ranks(void **state)
{
    (void)state;
    char *text = spoiled("\"mesh\": [1, 2], \"tensor\": 1", "\"mesh\": [1, 1], \"tensor\": 2");
    char *at = strstr(text, "\"global_rows\": 4");
    assert_non_null(at);
    at[strlen("\"global_rows\": ")] = '5';
    fsdpmark *f = open_job(text, "1");
    int64_t first, end;
    if (!fsdpmark_next(f))
        fail_msg("%s", fsdpmark_error(f));
    assert_true(fsdpmark_rows(f, &first, &end) && first == 0 && end == ROWS);
    assert_true(fsdpmark_loss_factor(f, 0, 0) == 1); // sum
    fsdpmark_close(f);
}

// Weights of step 1 are 1 2 | 3 4 5, those of step 0 are 0 1 | 2 3 4.
static void test_loss_factors(void **state)
{
    (void)state;
    static const struct { const char *loss; double factors[2]; } table[] = {
        {"\"loss\": \"sum\"", {2, 2}}, {"\"loss\": \"mean_of_tokens\"", {2.0 / 15, 2.0 / 15}}, {"\"loss\": \"mean_of_ranks\"", {1.0 / 3, 1.0 / 12}}};
    for (int i = 0; i < 3; i++)
        for (int rank = 0; rank < 2; rank++) {
            char *text = spoiled("\"global_rows\": 4", "\"global_rows\": 5");
            char *at = strstr(text, "\"loss\": \"sum\""), *other;
            assert_non_null(at);
            other = memory_format("%.*s%s%s", (int)(at - text), text, table[i].loss, at + strlen("\"loss\": \"sum\""));
            free(text);
            fsdpmark *f = open_job(other, rank ? "1" : "0");
            assert_true(fsdpmark_next(f));
            assert_true(fsdpmark_loss_factor(f, 1, 0) == table[i].factors[rank]);
            fsdpmark_close(f);
        }
}

static void test_order(void **state)
{
    (void)state;
    fsdpmark *f = open_case("0");
    assert_false(fsdpmark_step(f, 0, false, 1, 0));
    expect_failed(f, "event step: found it before hello, expected fsdpmark_hello first");
    f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL));
    assert_false(fsdpmark_hello(f, NULL));
    expect_failed(f, "fsdpmark_hello: found a second hello");
    f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL));
    assert_false(fsdpmark_configured(f, "strategy", "full"));
    expect_failed(f, "fsdpmark_configured: strategy: found it after hello");
    f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL));
    assert_false(fsdpmark_next(f));
    expect_failed(f, "fsdpmark_next: case mlp.full.n2: found it open");
    f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL));
    struct answer answer = closed(f, 0, 1, EVENT_ERROR); // closed before done
    answer_free(&answer);
    f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL) && fsdpmark_done(f));
    assert_false(fsdpmark_done(f));
    expect_error(f, "fsdpmark_done: case mlp.full.n2: found it ended");
    answer = closed(f, 0, 1, EVENT_DONE); // nothing comes after the end
    answer_free(&answer);
    f = open_case("0");
    assert_false(fsdpmark_fail(f, "lost %d\nrows", 3));
    expect_failed(f, "lost 3?rows");
}

static void test_cases_that_cannot_be_read(void **state)
{
    (void)state;
    fsdpmark *f = open_job(spoiled("\"seed\": 7", "\"seed\": -7"), "0");
    assert_false(fsdpmark_next(f));
    expect_failed(f, "case.json:2: seed: found '-7'");
    f = open_job(memory_text(sample_case), "0");
    unlink(path_of("data.safetensors"));
    assert_false(fsdpmark_next(f));
    expect_failed(f, "data.safetensors: No such file");
    f = open_job(memory_text(sample_case), "0");
    rmdir(path_of("out"));
    assert_false(fsdpmark_next(f));
    expect_error(f, "out/rank0.jsonl: cannot be opened");
    assert_int_equal(fsdpmark_close(f), 1);
    f = open_job(memory_text(sample_case), "0");
    assert_int_equal(symlink("/dev/full", path_of("out/rank0.jsonl")), 0);
    assert_true(fsdpmark_next(f));
    assert_false(fsdpmark_hello(f, NULL));
    expect_error(f, "out/rank0.jsonl: event hello: cannot be written: No space left on device");
    assert_int_equal(fsdpmark_close(f), 1);
}

static void test_shards(void **state)
{
    (void)state;
    static const struct { const char *of; struct fsdpmark_part part; const char *says; } table[] = {
        {"parameters", {"layers.0.weight", 0, 1}, "found shards of 'parameters'"},
        {"parameter", {"layers.9.weight", 0, 1}, "found parameter 'layers.9.weight'"},
        {"parameter", {"layers.0.weight", 40, 9}, "layers.0.weight: found elements [40, +9), expected them inside its 48"},
        {"parameter", {"layers.0.weight", -1, 1}, "expected them inside its 48"},
        {"parameter", {"layers.0.weight", 1, INT64_MAX}, "expected them inside its 48"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fsdpmark *f = open_case("0");
        assert_true(fsdpmark_hello(f, NULL));
        assert_false(fsdpmark_shards(f, table[i].of, &table[i].part, 1, 0, -1));
        expect_failed(f, table[i].says);
    }
}

// Everything that can be said, as the harness reads it.
static void test_a_whole_answer(void **state)
{
    (void)state;
    static const struct fsdpmark_part parts[] = {{"layers.0.weight", 0, 10}, {"layers.0.weight", 20, 4}};
    static const struct fsdpmark_figure figures[] = {{"total", 12}, {"bytes.GRAD", 0.5}, {"bytes.PARAM", 3}};
    fsdpmark *f = open_case("0");
    assert_true(fsdpmark_configured(f, "mesh", "%dx%d", 1, 2) && fsdpmark_hello(f, "a remark"));
    assert_true(fsdpmark_shards(f, "parameter", parts, 2, 2, 0.5));
    assert_true(fsdpmark_shards(f, "gradient", NULL, 0, 0, -1));
    assert_true(fsdpmark_micro(f, 0, 0, 1e300 * 1e300, 3, 0.25) && fsdpmark_eval(f, 0, 0, 1) && fsdpmark_clip(f, 0, 2.5));
    assert_true(fsdpmark_step(f, 0, true, 16, 0) && fsdpmark_memory(f, "allocated", figures, 3) && fsdpmark_traffic(f, figures, 3));
    assert_true(fsdpmark_done(f));
    struct answer answer = closed(f, 0, 0, EVENT_DONE);
    assert_int_equal(answer.count, 10);
    json_t *hello = answer.events[0].fields, *shards = json_object_get(answer.events[1].fields, "parts");
    assert_string_equal(json_string_value(json_object_get(json_object_get(hello, "configured"), "mesh")), "1x2");
    assert_string_equal(json_string_value(json_object_get(hello, "implementation")), "tester");
    assert_int_equal(json_array_size(json_object_get(shards, "layers.0.weight")), 2);
    assert_true(json_is_array(json_object_get(shards, "layers.1.weight"))); // held: nothing
    assert_non_null(json_object_get(answer.events[1].fields, "padding_max"));
    assert_null(json_object_get(answer.events[2].fields, "padding_max"));
    assert_string_equal(json_string_value(json_object_get(answer.events[3].fields, "loss")), "inf");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer.events[7].fields, "bytes"), "PARAM")), 3);
    answer_free(&answer);
}

static void observe_on(const char *rank)
{
    float own[48], whole[48];
    for (int i = 0; i < 48; i++)
        own[i] = whole[i] = (float)i;
    fsdpmark *f = open_case(rank);
    assert_true(fsdpmark_hello(f, NULL));
    assert_true(fsdpmark_put_local(f, FSDPMARK_PARAM, "layers.0.weight", FSDPMARK_F32, 24, own + 24));
    assert_true(fsdpmark_put_local(f, FSDPMARK_PARAM, "layers.1.weight", FSDPMARK_F32, 0, NULL)); // holds nothing
    assert_true(fsdpmark_put(f, FSDPMARK_PARAM, "layers.0.weight", FSDPMARK_F32, whole));
    own[24] = whole[1] = -1; // what was put is a copy
    assert_true(fsdpmark_observed(f, fsdpmark_instruction_at(f, 0)) && fsdpmark_done(f));
    struct answer answer = closed(f, *rank - '0', 0, EVENT_DONE);
    assert_int_equal(answer.count, *rank == '0' ? 4 : 3);
    answer_free(&answer);
}

static void test_observations(void **state)
{
    (void)state;
    struct tensors set;
    observe_on("0");
    assert_true(tensors_read(path_of("out/init.safetensors"), &set, &error));
    assert_int_equal(set.count, 1);
    struct tensor *t = tensors_find(&set, "param/layers.0.weight");
    assert_true(t && t->dims == 2 && t->shape[0] == 8 && ((float *)t->data)[1] == 1);
    tensors_free(&set);
    observe_on("1");
    assert_int_not_equal(access(path_of("out/init.safetensors"), F_OK), 0);
    assert_true(tensors_read(path_of("out/init.rank1.safetensors"), &set, &error));
    assert_int_equal(set.count, 1);
    t = tensors_find(&set, "param/layers.0.weight");
    assert_true(t && t->dims == 1 && t->count == 24 && ((float *)t->data)[0] == 24);
    tensors_free(&set);
}

static void test_observations_that_cannot_be(void **state)
{
    (void)state;
    static const float values[64];
    static const struct { unsigned what; const char *name; enum fsdpmark_dtype dtype; int64_t count; bool twice; const char *says; } table[] = {
        {FSDPMARK_GRAD, "layers.0.weight", FSDPMARK_F32, 1, false, "init: found grad/layers.0.weight, expected what the instruction asks for"},
        {FSDPMARK_PARAM | FSDPMARK_GRAD, "layers.0.weight", FSDPMARK_F32, 1, false, "expected one bit"},
        {0, "layers.0.weight", FSDPMARK_F32, 1, false, "expected one bit"},
        {64, "layers.0.weight", FSDPMARK_F32, 1, false, "expected one bit"},
        {FSDPMARK_PARAM, "layers.0.weight", FSDPMARK_I32, 1, false, "a floating-point type"},
        {FSDPMARK_PARAM, "layers.0.bias", FSDPMARK_F32, 1, false, "found parameter 'layers.0.bias'"},
        {FSDPMARK_PARAM, "layers.0.weight", FSDPMARK_F32, 49, false, "found 49 elements, expected at most 48"},
        {FSDPMARK_PARAM, "layers.0.weight", FSDPMARK_F32, -1, false, "found -1 elements"},
        {FSDPMARK_PARAM, "layers.0.weight", FSDPMARK_F32, 1, true, "found it a second time"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fsdpmark *f = open_case("0");
        assert_true(fsdpmark_hello(f, NULL));
        for (int times = 0; times < (table[i].twice ? 2 : 1); times++)
            fsdpmark_put_local(f, table[i].what, table[i].name, table[i].dtype, table[i].count, values);
        fsdpmark_observed(f, fsdpmark_instruction_at(f, 0));
        expect_failed(f, table[i].says);
    }
    fsdpmark *f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL));
    assert_false(fsdpmark_observed(f, fsdpmark_instruction_at(f, 1)));
    expect_failed(f, "fsdpmark_observed: found another instruction");
    f = open_case("0");
    assert_true(fsdpmark_hello(f, NULL));
    assert_int_equal(mkdir(path_of("out/init.safetensors"), 0777), 0);
    assert_false(fsdpmark_observed(f, fsdpmark_instruction_at(f, 0)));
    expect_failed(f, "init.safetensors: cannot be written");
}

// The symbol that a preloaded probe would have.
static char marked[32];
void fsdpmark_mark(const char *phase, int step);
void fsdpmark_mark(const char *phase, int step) { snprintf(marked, sizeof marked, "%s %d", phase, step); }

static void test_marks(void **state)
{
    (void)state;
    fsdpmark *f = open_case("0");
    fsdpmark_phase(f, "forward", 3);
    assert_string_equal(marked, "forward 3");
    fsdpmark_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions), cmocka_unit_test(test_where_a_process_is), cmocka_unit_test(test_unusable_jobs),
        cmocka_unit_test(test_fields), cmocka_unit_test(test_fields_that_are_not_there), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_rows_of_a_rank), cmocka_unit_test(test_rows_of_tensor_ranks), cmocka_unit_test(test_loss_factors), cmocka_unit_test(test_order),
        cmocka_unit_test(test_cases_that_cannot_be_read), cmocka_unit_test(test_shards), cmocka_unit_test(test_a_whole_answer),
        cmocka_unit_test(test_observations), cmocka_unit_test(test_observations_that_cannot_be), cmocka_unit_test(test_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
