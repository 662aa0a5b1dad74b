// What is written is read back equal: case.json, safetensors, answers, the job.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/document.h"
#include "harness/protocol/job.h"
#include "harness/protocol/memory.h"
#include "harness/protocol/tensors.h"

static char folder[] = "/tmp/fsdpmark-protocol-XXXXXX";

static char *in_folder(const char *name)
{
    return memory_format("%s/%s", folder, name);
}

static void assert_fine(bool fine, const struct error *error)
{
    if (!fine)
        fail_msg("%s", error->text);
}

static struct fsdp_case transformer_case(void)
{
    struct fsdp_case c = {
        .id = memory_text("calibrated.full.n4"), .family = memory_text("calibrated"), .layer = LAYER_CALIBRATED,
        .world_size = 4, .global_rows = 8, .seed = 9007199254740993, // 2^53 + 1 is no double
        .model = {.kind = MODEL_TRANSFORMER, .layers = 2, .dim = 32, .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 50, .context = 16,
                  .norm = NORM_RMSNORM, .position = POSITION_ROPE, .activation = ACTIVATION_SWIGLU, .tied = true, .norm_eps = 1e-5, .rope_theta = 1e4},
        .parameter_count = 2, .parameters = memory_zeros(2, sizeof(struct case_parameter)),
        .sharding = {.strategy = STRATEGY_HYBRID, .replicas = 1, .shards = 1, .tensor = 2, .pipeline = 2, .layout = SHARD_FLAT, .wrap = WRAP_PATTERN,
                     .wrap_pattern = memory_text("blocks.*"), .wrap_min_parameters = 100000000000, .prefetch_backward = 1, .offload = OFFLOAD_CPU},
        .precision = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, LOSS_SCALE_DYNAMIC, 65536, 2, 0.5, 2000},
        .optimizer = {.kind = OPTIMIZER_ADAMW, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 4.9406564584124654e-324, .weight_decay = 1.0 / 3},
        .clip = CLIP_LINF, .clip_limit = 1.0000000000000002, .loss = LOSS_MEAN_OF_RANKS, .divergent_init = true,
        .data = {.recipe = memory_text("gaussian"), .density = 0.6, .std = 0.02, .steps = 3, .micros = 2, .value_count = 4,
                 .values = memory_zeros(4, sizeof(double)), .init = NAN, .uneven_tokens = true},
        .program_length = 6, .program = memory_zeros(6, sizeof(struct instruction)), .checkpoint = memory_text("/tmp/x"),
        .option_count = 1, .options = memory_zeros(1, sizeof(struct case_option)),
    };
    const double values[] = {0x1p126, INFINITY, -INFINITY, 0x1.fffffffffffffp-1};
    memcpy(c.data.values, values, sizeof values);
    c.parameters[0] = (struct case_parameter){memory_text("embed.weight"), 2, {50, 32}, 1600, memory_text(""), -1, true};
    c.parameters[1] = (struct case_parameter){memory_text("head.weight"), 2, {50, 32}, 1600, memory_text(""), 0, false};
    c.program[0] = (struct instruction){.verb = VERB_FREEZE, .pattern = memory_text("embed.*")};
    c.program[1] = (struct instruction){.verb = VERB_FORWARD, .step = 2, .micro = 1, .slot = 3};
    c.program[2] = (struct instruction){.verb = VERB_BACKWARD, .slot = 3, .sync = true};
    c.program[3] = (struct instruction){.verb = VERB_CLIP, .step = 2};
    c.program[4] = (struct instruction){.verb = VERB_OBSERVE, .label = memory_text("s2"), .what = OBSERVE_PARAM | OBSERVE_EXP_AVG_SQ, .local = true};
    c.program[5] = (struct instruction){.verb = VERB_STOP};
    c.options[0] = (struct case_option){memory_text("fault"), memory_text("3")};
    return c;
}

static char *text_of(const struct fsdp_case *c)
{
    json_t *object = fields_write(case_fields, c, c);
    char *text = json_dumps(object, JSON_REAL_PRECISION(17));
    json_decref(object);
    return text;
}

static void case_is_read_back_equal(void **state)
{
    (void)state;
    struct error error = {""};
    struct fsdp_case c = transformer_case(), back;
    char *path = in_folder("case.json");
    assert_fine(case_write(&c, path, &error), &error);
    assert_fine(case_read(path, &back, &error), &error);
    char *before = text_of(&c), *after = text_of(&back);
    assert_string_equal(before, after);
    assert_true(c.seed == back.seed && c.optimizer.eps == back.optimizer.eps && c.clip_limit == back.clip_limit);
    assert_true(back.parameters[1].tied_to == 0 && back.parameters[1].count == 1600 && isnan(back.data.init));
    assert_memory_equal(c.data.values, back.data.values, 4 * sizeof(double));
    assert_memory_equal(&c.precision, &back.precision, sizeof c.precision);
    assert_true(back.program[1].slot == 3 && back.program[4].what == (OBSERVE_PARAM | OBSERVE_EXP_AVG_SQ) && back.program[4].local);
    case_free(&back);
    case_copy(&back, &c);
    free(after);
    after = text_of(&back);
    assert_string_equal(before, after);
    case_free(&c);
    case_free(&back);
    free(before);
    free(after);
    free(path);
}

static void rows_are_split_without_gap(void **state)
{
    (void)state;
    for (int n = 1; n <= 9; n++)
        for (int64_t rows = n; rows < 40; rows++) {
            struct fsdp_case c = {.global_rows = rows};
            int64_t first, end, at = 0;
            for (int r = 0; r < n; r++) {
                case_rows(&c, r, n, &first, &end);
                assert_true(first == at && end > first);
                at = end;
            }
            assert_int_equal(at, rows);
        }
}

static void tensors_are_read_back_equal(void **state)
{
    (void)state;
    struct error error = {""};
    struct tensors set = {0}, back;
    char *path = in_folder("t.safetensors");
    const int64_t shape[] = {3, 1}, none[] = {0, 4};
    const uint16_t halves[] = {0x3f80, 0x7fc0, 0xff80};
    const double doubles[] = {0.1, -0.0, 5e-324};
    assert_non_null(tensors_add(&set, "param/odd", DTYPE_BF16, 2, shape, halves, true));
    assert_non_null(tensors_add(&set, "param/empty", DTYPE_F32, 2, none, NULL, false));
    assert_non_null(tensors_add(&set, "grad/odd", DTYPE_F64, 2, shape, doubles, false));
    assert_non_null(tensors_add(&set, "scalar", DTYPE_I32, 0, shape, NULL, false));
    assert_null(tensors_add(&set, "scalar", DTYPE_I32, 0, shape, NULL, false));
    assert_fine(tensors_write(path, &set, &error), &error);
    assert_fine(tensors_read(path, &back, &error), &error);
    assert_int_equal(back.count, 4);
    assert_memory_equal(tensors_find2(&back, "param", "odd")->data, halves, sizeof halves);
    assert_memory_equal(tensors_find(&back, "grad/odd")->data, doubles, sizeof doubles);
    assert_int_equal((uintptr_t)tensors_find(&back, "grad/odd")->data % 8, 0);
    assert_int_equal(tensors_find(&back, "param/empty")->count, 0);
    assert_int_equal(tensors_find(&back, "scalar")->count, 1);
    assert_null(tensors_find2(&back, "param", "scalar"));
    tensors_free(&set);
    tensors_free(&back);
    free(path);
}

static void events_are_read_back(void **state)
{
    (void)state;
    struct error error = {""};
    struct answer_writer w;
    struct answer a;
    char *path = in_folder("out/rank1.jsonl"), *out = in_folder("out");
    double value;
    mkdir(out, 0700);
    assert_fine(answer_open(&w, folder, 1, &error), &error);
    assert_true(answer_event(&w, "hello", json_pack("{s:s,s:i,s:i,s:s,s:s,s:{s:s}}", "case", "c", "rank", 1, "world_size", 2,
                                                    "implementation", "i", "version", "v", "configured", "strategy", "full")));
    assert_true(answer_event(&w, "clip", json_pack("{s:i,s:o}", "step", 0, "norm", answer_number(INFINITY))));
    assert_true(answer_event(&w, "clip", json_pack("{s:i,s:o}", "step", 1, "norm", answer_number(0.1))));
    fputs("{\"event\": \"do", w.file); // killed in the middle of a line
    fflush(w.file);
    assert_fine(answer_read(path, "c", 1, 2, &a, &error), &error);
    assert_true(a.count == 3 && !a.ended);
    assert_true(event_number(answer_find(&a, EVENT_CLIP, 0), "norm", &value) && isinf(value));
    assert_true(event_number(answer_find(&a, EVENT_CLIP, 1), "norm", &value) && value == 0.1);
    assert_false(event_number(answer_find(&a, EVENT_CLIP, 1), "loss", &value));
    assert_null(answer_find(&a, EVENT_DONE, 0));
    answer_free(&a);
    fputs("ne\"}\n", w.file);
    answer_close(&w);
    assert_fine(answer_read(path, "c", 1, 2, &a, &error), &error);
    assert_true(a.count == 4 && a.ended && a.end == EVENT_DONE);
    answer_free(&a);
    free(out);
    free(path);
}

static void job_is_read_from_the_environment(void **state)
{
    (void)state;
    struct error error = {""};
    struct job j;
    const char *cases[] = {"a", "b.full.n2"};
    assert_fine(job_write(folder, 2, cases, 2, &error), &error);
    setenv("FSDPMARK_JOB", folder, 1);
    setenv("RANK", "1", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    assert_fine(job_from_environment(&j, &error), &error);
    assert_true(j.rank == 1 && j.world_size == 2 && j.case_count == 2);
    assert_string_equal(j.cases[1], "b.full.n2");
    job_free(&j);
    setenv("RANK", "2", 1);
    assert_false(job_from_environment(&j, &error));
    assert_string_equal(error.text, "environment: RANK: found '2', expected a whole number from 0 to 1");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char *command = memory_format("rm -rf '%s'", folder);
    int status = system(command);
    free(command);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_is_read_back_equal), cmocka_unit_test(rows_are_split_without_gap),
        cmocka_unit_test(tensors_are_read_back_equal), cmocka_unit_test(events_are_read_back),
        cmocka_unit_test(job_is_read_from_the_environment),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
