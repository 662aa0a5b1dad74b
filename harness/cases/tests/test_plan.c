// Expansion of the test suite's files: ids, families, gates, programs, profiles, capabilities.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/suite.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/memory.h"

#define SUITE "harness/cases/tests/data"

static struct implementation full;

static struct plan plan_of(const char *profile, const char *pattern)
{
    struct error error = {""};
    struct plan plan;
    const struct selection s = {.suite = SUITE, .profile = profile, .pattern = pattern};
    if (!plan_make(&s, &full, &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

static const struct planned_case *find(const struct plan *plan, const char *id)
{
    for (int i = 0; i < plan->count; i++)
        if (strcmp(plan->cases[i].c.id, id) == 0)
            return &plan->cases[i];
    fail_msg("no case %s", id);
    return NULL;
}

static int count_with(const struct plan *plan, const char *part)
{
    int count = 0;
    for (int i = 0; i < plan->count; i++)
        count += strstr(plan->cases[i].c.id, part) != NULL;
    return count;
}

// Ids of a selection that are no gates.
static int chosen(const char *pattern)
{
    struct plan plan = plan_of(NULL, pattern);
    int count = 0;
    for (int i = 0; i < plan.count; i++)
        count += !plan.cases[i].is_gate && !plan.cases[i].is_saver;
    plan_free(&plan);
    return count;
}

static void several_patterns_are_a_union(void **state)
{
    (void)state;
    int first = chosen(".n2"), second = chosen("*.n1.*");
    assert_true(first > 0 && second > 0);
    assert_int_equal(chosen(".n2,*.n1.*"), first + second);
    assert_int_equal(chosen(".n2,.n2"), first); // each case once
    assert_int_equal(chosen(",.n2,"), first);   // nothing matches nothing
    assert_int_equal(chosen("no-such-case,.n2"), first);
}

static void manifest_is_read(void **state)
{
    (void)state;
    assert_string_equal(full.name, "full");
    assert_true(full.folder[0] == '/' && strstr(full.folder, SUITE "/implementations/full"));
    char *expected = memory_format("%s/x", full.folder);
    assert_string_equal(full.command.items[1], expected);
    assert_true(full.command.items[0][0] == '/' && strstr(full.command.items[0], "/worker"));
    assert_string_equal(full.environment.items[0], "A=/opt/python");
    assert_string_equal(full.launchers.items[0], "mpirun");
    assert_true(full.layouts.count == 2 && full.strategies.count == 5 && full.min_ranks == 1 && full.max_ranks == 6);
    free(expected);
}

// A variant's lists replace the manifest's, its options and environment are added to it.
static void variants_are_laid_over(void **state)
{
    (void)state;
    struct error error = {""};
    struct implementation one;
    assert_true(implementation_read("full:narrow", SUITE, &one, &error));
    assert_string_equal(one.name, "full:narrow");
    assert_string_equal(one.variant, "narrow");
    assert_int_equal(one.max_ranks, 2);
    assert_int_equal(one.layouts.count, 1);
    assert_int_equal(one.strategies.count, 5);
    assert_int_equal(one.option_count, 2);
    assert_string_equal(one.options[0].value, "nccl");
    assert_string_equal(one.options[1].value, "1");
    assert_int_equal(one.environment.count, full.environment.count + 1);
    assert_string_equal(strrchr(one.environment.items[one.environment.count - 1], '/'), "/python");
    assert_non_null(strstr(one.environment.items[one.environment.count - 1], "/venv-other/bin/python"));
    implementation_free(&one);
    assert_true(full.variants.count == 1 && full.variant == NULL && strcmp(full.options[0].value, "mpi") == 0);
}

static void ids_are_those_of_the_matrix(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "gate.steps.f32", "gate.steps.bf16",
        "steps.none.n1.f32", "steps.none.n1.bf16",
        "steps.full.param.n1.f32.reshard", "steps.full.param.n1.f32.no-reshard", "steps.full.param.n1.bf16.reshard",
        "steps.full.param.n1.bf16.no-reshard", "steps.full.flat.n1.f32.reshard", "steps.full.flat.n1.f32.no-reshard",
        "steps.none.n2.f32", "steps.none.n2.bf16",
        "steps.full.param.n2.f32.reshard", "steps.full.param.n2.f32.no-reshard", "steps.full.param.n2.bf16.reshard",
        "steps.full.param.n2.bf16.no-reshard", "steps.full.flat.n2.f32.reshard", "steps.full.flat.n2.f32.no-reshard",
        "steps.none.n4.f32", "steps.none.n4.bf16",
        "steps.full.param.n4.f32.reshard", "steps.full.param.n4.f32.no-reshard", "steps.full.param.n4.bf16.reshard",
        "steps.full.param.n4.bf16.no-reshard", "steps.full.flat.n4.f32.reshard", "steps.full.flat.n4.f32.no-reshard",
        "steps.hybrid-2x2.param.n4.f32.reshard", "steps.hybrid-2x2.param.n4.f32.no-reshard", "steps.hybrid-2x2.param.n4.bf16.reshard",
        "steps.hybrid-2x2.param.n4.bf16.no-reshard", "steps.hybrid-2x2.flat.n4.f32.reshard", "steps.hybrid-2x2.flat.n4.f32.no-reshard",
    };
    struct plan plan = plan_of(NULL, "steps.*");
    assert_int_equal(plan.count, sizeof expected / sizeof *expected);
    for (int i = 0; i < plan.count; i++)
        assert_string_equal(plan.cases[i].c.id, expected[i]);
    plan_free(&plan);
}

static void families_and_gates_follow_the_numbers(void **state)
{
    (void)state;
    static const struct { const char *id, *family, *gate; } rows[] = {
        {"steps.hybrid-2x2.flat.n4.f32.no-reshard", "steps.f32", "gate.steps.f32"},
        {"steps.none.n1.bf16", "steps.bf16", "gate.steps.bf16"},
        {"meshes.hybrid-3x2.n6.m3.sync-last", "meshes.n6.m3.sync-last", "gate.meshes.n6.m3"},
        {"meshes.hybrid-3x2.n6.m3.sync-all", "meshes.n6.m3.sync-all", "gate.meshes.n6.m3"},
        {"mean.full.n2.plain", "mean.n2", "gate.mean.n2"},
        {"mean.full.n2.root", "mean.n2", "gate.mean.n2"},
        {"mean.full.n2.half", "mean.n2.half", NULL},
    };
    struct plan plan = plan_of(NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct planned_case *p = find(&plan, rows[i].id);
        assert_string_equal(p->c.family, rows[i].family);
        if (rows[i].gate)
            assert_string_equal(plan.cases[p->gate].c.id, rows[i].gate);
        else
            assert_int_equal(p->gate, -1);
    }
    plan_free(&plan);
}

static void gates_are_unsharded(void **state)
{
    (void)state;
    struct plan plan = plan_of(NULL, NULL);
    int gates = 0;
    for (int i = 0; i < plan.count; i++) {
        const struct planned_case *p = &plan.cases[i];
        struct error error = {""};
        if (!case_validate(&p->c, p->c.id, &error))
            fail_msg("%s", error.text);
        if (!p->is_gate) {
            assert_true(p->skip ? p->gate < 0 : plan.cases[p->gate].is_gate && p->gate < i);
            continue;
        }
        gates++;
        assert_true(p->gate == -1 && !p->skip && p->c.world_size == 1 && p->c.sharding.strategy == STRATEGY_NONE);
        for (int k = 0; k < p->c.program_length; k++)
            assert_true(!p->c.program[k].local && (p->c.program[k].sync || p->c.program[k].verb != VERB_MICRO));
    }
    assert_int_equal(gates, count_with(&plan, "gate."));
    assert_int_equal(gates, 2 + 2 + 2); // steps, meshes, mean; half and written are skipped
    const struct planned_case *sharded = find(&plan, "meshes.hybrid-3x2.n6.m3.sync-last"), *gate = &plan.cases[sharded->gate];
    assert_string_equal(gate->c.id, "gate.meshes.n6.m3");
    assert_true(gate->c.global_rows == 12 && gate->c.program_length == sharded->c.program_length);
    plan_free(&plan);
}

static char *program_text(const struct fsdp_case *c)
{
    json_t *program = field_write(field_find(case_fields, "program"), c, c);
    char *text = json_dumps(program, JSON_COMPACT);
    json_decref(program);
    return text;
}

static void programs_are_standard_or_written(void **state)
{
    (void)state;
    static const struct { const char *id, *program; } rows[] = {
        {"meshes.hybrid-2x3.n6.m3.sync-last",
         "[{\"verb\":\"observe\",\"label\":\"init\",\"what\":[\"param\"],\"local\":true},"
         "{\"verb\":\"micro\",\"step\":0,\"micro\":0,\"sync\":false},{\"verb\":\"micro\",\"step\":0,\"micro\":1,\"sync\":false},"
         "{\"verb\":\"micro\",\"step\":0,\"micro\":2,\"sync\":true},{\"verb\":\"observe\",\"label\":\"s0.grad\",\"what\":[\"grad\"],\"local\":true},"
         "{\"verb\":\"step\",\"step\":0},{\"verb\":\"observe\",\"label\":\"s0\",\"what\":[\"param\"],\"local\":true},{\"verb\":\"zero_grad\"},"
         "{\"verb\":\"stop\"}]"},
        {"written.full.n2",
         "[{\"verb\":\"observe\",\"label\":\"init\",\"what\":[\"param\"],\"local\":true},"
         "{\"verb\":\"micro\",\"step\":0,\"micro\":0,\"sync\":true},{\"verb\":\"micro\",\"step\":0,\"micro\":1,\"sync\":true},"
         "{\"verb\":\"observe\",\"label\":\"s0.grad\",\"what\":[\"grad\"],\"local\":true},{\"verb\":\"clip\",\"step\":0},"
         "{\"verb\":\"observe\",\"label\":\"s0.clipped\",\"what\":[\"clipped\"],\"local\":true},{\"verb\":\"step\",\"step\":0},"
         "{\"verb\":\"observe\",\"label\":\"s0\",\"what\":[\"param\",\"exp_avg\",\"exp_avg_sq\"],\"local\":true},{\"verb\":\"zero_grad\"},"
         "{\"verb\":\"freeze\",\"pattern\":\"layers.0.*\"},{\"verb\":\"micro\",\"step\":1,\"micro\":0,\"sync\":false},"
         "{\"verb\":\"micro\",\"step\":1,\"micro\":1,\"sync\":true},{\"verb\":\"observe\",\"label\":\"s1.grad\",\"what\":[\"grad\"],\"local\":true},"
         "{\"verb\":\"step\",\"step\":1},{\"verb\":\"observe\",\"label\":\"s1\",\"what\":[\"param\",\"exp_avg\"],\"local\":true},"
         "{\"verb\":\"forward\",\"step\":2,\"micro\":0,\"slot\":0},{\"verb\":\"backward\",\"slot\":0,\"sync\":true},{\"verb\":\"save\"},"
         "{\"verb\":\"stop\"}]"},
    };
    struct plan plan = plan_of(NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = program_text(&find(&plan, rows[i].id)->c);
        assert_string_equal(text, rows[i].program);
        free(text);
    }
    plan_free(&plan);
}

static void defaults_are_laid_under(void **state)
{
    (void)state;
    struct plan plan = plan_of(NULL, NULL);
    const struct fsdp_case *w = &find(&plan, "written.full.n2")->c, *h = &find(&plan, "mean.full.n4.half")->c;
    const struct fsdp_case *s = &find(&plan, "steps.full.flat.n4.f32.no-reshard")->c;
    assert_true(w->optimizer.lr == 0.001 && w->optimizer.weight_decay == 0.01 && w->optimizer.beta2 == 0.999 && w->clip == CLIP_LINF);
    assert_true(w->loss == LOSS_SUM && w->global_rows == 4 && w->model.call_count == 2 && w->parameter_count == 4 && w->seed == 1);
    assert_true(s->global_rows == 12 && s->data.density == 0.5 && s->optimizer.lr == 0.5 && !s->sharding.reshard_after_forward);
    assert_true(h->precision.compute == DTYPE_F16 && h->precision.loss_scale == LOSS_SCALE_DYNAMIC && h->optimizer.lr == 0.25);
    assert_true(h->global_rows == 4 && h->loss == LOSS_MEAN_OF_RANKS && h->data.value_count == 4 && isinf(h->data.values[3]));
    assert_true(h->data.values[2] == 0x1p126 && h->data.pattern_count == 1 && strcmp(h->data.recipe, "values") == 0);
    assert_string_equal(case_option(h, "backend"), "mpi");
    plan_free(&plan);
}

static void incapable_is_skipped_with_the_reason(void **state)
{
    (void)state;
    struct plan plan = plan_of(NULL, NULL);
    assert_string_equal(find(&plan, "written.full.n2")->skip, "the manifest says that it cannot do save");
    assert_string_equal(find(&plan, "mean.full.n2.half")->skip, "compute type f16 is not in the manifest's list");
    assert_null(find(&plan, "mean.full.n2.root")->skip);
    assert_true(strstr(find(&plan, "written.full.n2")->origin, "mlp.yaml:") != NULL);
    plan_free(&plan);
}

static void profiles_restrict(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "gate.steps.f32", "steps.none.n1.f32", "steps.full.param.n1.f32.reshard", "steps.full.param.n1.f32.no-reshard", "steps.full.flat.n1.f32.reshard",
        "steps.full.flat.n1.f32.no-reshard", "steps.none.n2.f32", "steps.full.param.n2.f32.reshard", "steps.full.param.n2.f32.no-reshard",
        "steps.full.flat.n2.f32.reshard", "steps.full.flat.n2.f32.no-reshard", "mean.full.n4.half",
    };
    struct plan plan = plan_of("small", NULL);
    assert_int_equal(plan.count, sizeof expected / sizeof *expected);
    for (int i = 0; i < plan.count; i++)
        assert_string_equal(plan.cases[i].c.id, expected[i]);
    plan_free(&plan);
    plan = plan_of("small", "n2.f32.no-");
    assert_int_equal(plan.count, 3); // a gate and two layouts
    plan_free(&plan);
}

static void savers_come_before_what_loads(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "gate.r", "save.r.none.n4", "save.r.full.param.n4", "save.r.full.flat.n4", "save.r.hybrid-2x2.param.n4", "save.r.hybrid-2x2.flat.n4",
        "r.none.n2.from-4", "r.full.param.n2.from-4.layout-same", "r.full.param.n2.from-4.layout-other", "r.full.flat.n2.from-4.layout-same",
        "r.full.flat.n2.from-4.layout-other", "r.hybrid-1x2.param.n2.from-4.layout-same", "r.hybrid-1x2.param.n2.from-4.layout-other",
        "r.hybrid-1x2.flat.n2.from-4.layout-same", "r.hybrid-1x2.flat.n2.from-4.layout-other",
        "r.none.n6.from-4", "r.full.param.n6.from-4.layout-same", "r.full.param.n6.from-4.layout-other", "r.full.flat.n6.from-4.layout-same",
        "r.full.flat.n6.from-4.layout-other", "r.hybrid-2x3.param.n6.from-4.layout-same", "r.hybrid-2x3.param.n6.from-4.layout-other",
        "r.hybrid-2x3.flat.n6.from-4.layout-same", "r.hybrid-2x3.flat.n6.from-4.layout-other",
    };
    static const struct { const char *id, *saver; } rows[] = {
        {"r.none.n6.from-4", "save.r.none.n4"}, {"r.full.param.n2.from-4.layout-same", "save.r.full.param.n4"},
        {"r.full.param.n2.from-4.layout-other", "save.r.full.flat.n4"}, {"r.hybrid-2x3.flat.n6.from-4.layout-other", "save.r.hybrid-2x2.param.n4"},
    };
    struct implementation able = full;
    struct plan plan = {0};
    struct error error = {""};
    const struct selection s = {.suite = SUITE, .case_file = SUITE "/reshard.yaml"};
    able.cannot.count = 0;
    if (!plan_make(&s, &able, &plan, &error))
        fail_msg("%s", error.text);
    assert_int_equal(plan.count, sizeof expected / sizeof *expected);
    for (int i = 0; i < plan.count; i++) {
        const struct planned_case *p = &plan.cases[i];
        assert_string_equal(p->c.id, expected[i]);
        assert_true(p->is_saver == (strncmp(p->c.id, "save.", 5) == 0) && (p->saver >= 0) == (strncmp(p->c.id, "r.", 2) == 0));
        assert_true(p->is_gate ? p->gate == -1 : p->gate == 0);
        if (!p->is_gate)
            assert_string_equal(p->c.family, "r");
        if (!case_validate(&p->c, p->c.id, &error))
            fail_msg("%s", error.text);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(plan.cases[find(&plan, rows[i].id)->saver].c.id, rows[i].saver);
    plan_free(&plan);
}

// Tensor and pipeline ranks show in the id; the mesh and the rows are those of the data ranks, and family and gate tell these alone.
static void data_ranks_share_rows_and_mesh(void **state)
{
    (void)state;
    static const struct { const char *id, *family, *gate; int replicas, shards, rows; const char *skip; } rows[] = {
        {"gate.by-rank.n2", "gate.by-rank.n2", NULL, 1, 1, 6, NULL},
        {"gate.whole", "gate.whole", NULL, 1, 1, 12, NULL},
        {"whole.optimizer.n2.p2", "whole", "gate.whole", 1, 1, 12, NULL},
        {"by-rank.none.n4.p2", "by-rank.n2", "gate.by-rank.n2", 2, 1, 6, NULL},
        {"by-rank.none.n4.t2", "by-rank.n2", NULL, 2, 1, 6, "its manifest lists no tensor parallelism"},
        {"by-rank.none.n4.t2.p2", "by-rank.n1", NULL, 1, 1, 3, "its manifest lists no tensor parallelism"},
        {"by-rank.hybrid-1x2.n4.p2", "by-rank.n2", "gate.by-rank.n2", 1, 2, 6, NULL},
        {"by-rank.hybrid-2x1.n4.p2", "by-rank.n2", "gate.by-rank.n2", 2, 1, 6, NULL},
        {"by-rank.hybrid-1x2.n4.t2", "by-rank.n2", NULL, 1, 2, 6, "its manifest lists no tensor parallelism"},
        {"by-rank.hybrid-2x1.n4.t2", "by-rank.n2", NULL, 2, 1, 6, "its manifest lists no tensor parallelism"},
        {"by-rank.hybrid-1x1.n4.t2.p2", "by-rank.n1", NULL, 1, 1, 3, "its manifest lists no tensor parallelism"},
        {"whole.optimizer.n4.p2", "whole", "gate.whole", 1, 2, 12, NULL},
        {"whole.optimizer.n4.t2.p2", "whole", NULL, 1, 1, 12, "its manifest lists no tensor parallelism"},
    };
    struct implementation able = full;
    struct plan plan = {0};
    struct error error = {""};
    const struct selection s = {.suite = SUITE, .case_file = SUITE "/parallel.yaml"};
    able.max_pipeline = 4;
    if (!plan_make(&s, &able, &plan, &error))
        fail_msg("%s", error.text);
    assert_int_equal(plan.count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct planned_case *p = find(&plan, rows[i].id);
        assert_string_equal(p->c.family, rows[i].family);
        assert_string_equal(p->gate < 0 ? "" : plan.cases[p->gate].c.id, rows[i].gate ? rows[i].gate : "");
        assert_string_equal(p->skip ? p->skip : "", rows[i].skip ? rows[i].skip : "");
        assert_true(p->c.sharding.replicas == rows[i].replicas && p->c.sharding.shards == rows[i].shards && p->c.global_rows == rows[i].rows);
        if (!case_validate(&p->c, p->c.id, &error))
            fail_msg("%s", error.text);
    }
    plan_free(&plan);
    able.min_pipeline = 3;
    assert_true(plan_make(&s, &able, &plan, &error));
    assert_string_equal(find(&plan, "whole.optimizer.n4.p2")->skip, "pipeline 2 is outside the manifest's 3 to 4");
    plan_free(&plan);
}

// The uninterrupted run: two standard steps, save, and what follows `load`; the gate trains the same.
static void savers_train_uninterrupted(void **state)
{
    (void)state;
    static const struct { enum verb verb; int step; const char *label; } expected[] = {
        {VERB_OBSERVE, 0, "init"},
        {VERB_MICRO, 0, NULL}, {VERB_OBSERVE, 0, "s0.grad"}, {VERB_STEP, 0, NULL}, {VERB_OBSERVE, 0, "s0"}, {VERB_ZERO_GRAD, 0, NULL},
        {VERB_MICRO, 1, NULL}, {VERB_OBSERVE, 0, "s1.grad"}, {VERB_STEP, 1, NULL}, {VERB_OBSERVE, 0, "s1"}, {VERB_ZERO_GRAD, 0, NULL},
        {VERB_SAVE, 0, NULL}, {VERB_OBSERVE, 0, "loaded"}, {VERB_EVAL, 2, NULL},
        {VERB_MICRO, 2, NULL}, {VERB_OBSERVE, 0, "s2.grad"}, {VERB_STEP, 2, NULL}, {VERB_OBSERVE, 0, "s2"}, {VERB_ZERO_GRAD, 0, NULL}, {VERB_STOP, 0, NULL},
    };
    struct implementation able = full;
    struct plan plan = {0};
    struct error error = {""};
    const struct selection s = {.suite = SUITE, .case_file = SUITE "/reshard.yaml", .pattern = "r.full.flat.n2.*same"};
    able.cannot.count = 0;
    assert_true(plan_make(&s, &able, &plan, &error));
    assert_int_equal(plan.count, 3);
    for (int k = 0; k < 2; k++) {
        const struct fsdp_case *c = &plan.cases[k].c;
        assert_int_equal(c->program_length, sizeof expected / sizeof *expected);
        for (int i = 0; i < c->program_length; i++) {
            assert_true(c->program[i].verb == expected[i].verb && c->program[i].step == expected[i].step);
            assert_true(!expected[i].label || strcmp(c->program[i].label, expected[i].label) == 0);
            assert_true(c->program[i].verb != VERB_OBSERVE || c->program[i].local == (k == 1));
        }
    }
    const struct fsdp_case *saver = &plan.cases[1].c;
    assert_true(saver->world_size == 4 && saver->sharding.shards == 4 && saver->sharding.layout == SHARD_FLAT && saver->global_rows == 12);
    plan_free(&plan);
}

static void who_cannot_save_is_not_asked_to_load(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct error error = {""};
    const struct selection s = {.suite = SUITE, .case_file = SUITE "/reshard.yaml"};
    assert_true(plan_make(&s, &full, &plan, &error));
    assert_int_equal(count_with(&plan, "save."), 0);
    assert_string_equal(find(&plan, "r.none.n2.from-4")->skip, "the case that saves, save.r.none.n4: the manifest says that it cannot do save");
    assert_int_equal(find(&plan, "r.none.n2.from-4")->saver, -1);
    plan_free(&plan);
}

static void suite_is_listed(void **state)
{
    (void)state;
    struct string_list names = {0}, titles = {0};
    struct error error = {""};
    assert_true(suite_list_cases(SUITE, &names, &titles, &error));
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[3], "mean");
    assert_string_equal(titles.items[1], "Every mesh of six ranks");
    string_list_free(&names);
    string_list_free(&titles);
    assert_true(suite_list_profiles(SUITE, &names, &titles, &error) && names.count == 1);
    assert_string_equal(names.items[0], "small");
    string_list_free(&names);
    string_list_free(&titles);
    assert_true(suite_list_implementations(SUITE, &names, &error) && names.count == 1);
    assert_string_equal(names.items[0], "full");
    string_list_free(&names);
}

static int read_full(void **state)
{
    (void)state;
    struct error error = {""};
    setenv("FSDPMARK_PYTHON", "/opt/python", 1);
    if (!implementation_read("full", SUITE, &full, &error))
        fprintf(stderr, "%s\n", error.text);
    return error.text[0];
}

static int free_full(void **state)
{
    (void)state;
    implementation_free(&full);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_patterns_are_a_union), cmocka_unit_test(manifest_is_read), cmocka_unit_test(variants_are_laid_over), cmocka_unit_test(ids_are_those_of_the_matrix), cmocka_unit_test(families_and_gates_follow_the_numbers),
        cmocka_unit_test(gates_are_unsharded), cmocka_unit_test(programs_are_standard_or_written), cmocka_unit_test(defaults_are_laid_under),
        cmocka_unit_test(incapable_is_skipped_with_the_reason), cmocka_unit_test(profiles_restrict), cmocka_unit_test(suite_is_listed),
        cmocka_unit_test(savers_come_before_what_loads), cmocka_unit_test(data_ranks_share_rows_and_mesh), cmocka_unit_test(savers_train_uninterrupted),
        cmocka_unit_test(who_cannot_save_is_not_asked_to_load),
    };
    return cmocka_run_group_tests(tests, read_full, free_full);
}
