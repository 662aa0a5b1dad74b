// Checks on cases with tensor and pipeline ranks: right subjects pass, and faults along those axes are found and named.
//
// One table like test_checks.c's. The synthetic subject cuts the matrices of blocks by columns between tensor coordinates, shards the rows of
// what is left, and gives each stage its blocks.
#include "suite/checks/tests/synthetic.h"

#define MLP "title: t\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 6, 4]}\ndata: {recipe: exact, density: 0.7}\noptimizer: {kind: sgd, lr: 0.25}\nglobal_rows: 8\nsteps: 2\nlayout: per_parameter\n"
#define TENSOR "name: tensor\nranks: 4\ntensor: 2\n" MLP
#define PIPELINE "name: pipeline\nranks: 4\npipeline: 2\n" MLP
#define BOTH "name: both\nranks: 8\ntensor: 2\npipeline: 2\nstrategy: hybrid\nmesh: [2, 1]\n" MLP
#define PLAIN "name: plain\nranks: 2\ntensor: 2\nstrategy: none\n" MLP
#define CLIPPED "title: t\nlayer: witness\nloss: sum\nclip: {norm: \"2\", limit: 1}\ndata: {recipe: values, values: [1, 2, 3, 4], pattern: [3, 4, 12]}\nglobal_rows: 4\nlayout: per_parameter\n" \
    "model: {kind: witness, units: [{name: u0, parameters: [{name: w, shape: [5, 4]}, {name: bias, shape: [2]}]}, {name: u1, parameters: [{name: w, shape: [3, 2]}]}]}\n"
#define TENSOR_CLIP "name: tensor\nranks: 4\ntensor: 2\n" CLIPPED
#define PIPELINE_CLIP "name: pipeline\nranks: 4\npipeline: 2\n" CLIPPED
#define GPT "name: gpt\ntitle: t\nranks: 4\ntensor: 2\nlayer: calibrated\nmodel: {kind: transformer, layers: 1, dim: 8, heads: 2, ffn: 8, vocab: 23, context: 4}\ndata: {recipe: gaussian, std: 0.3}\nglobal_rows: 4\nlayout: per_parameter\n"

static void times(struct tensors *set, double factor)
{
    for (int i = 0; i < set->count; i++)
        for (int64_t k = 0; k < set->items[i].count; k++)
            ((double *)set->items[i].data)[k] *= factor;
}
static void over_ranks(struct synthetic *s, const struct program_label *l, struct tensors *g) { (void)l; times(g, 1.0 / s->c->world_size * case_data_ranks(s->c)); }
// Each shard its own data rank's gradient.
static void not_reduced(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors share[2];
    for (int d = 0; d < 2; d++)
        assert_true(gradient_of(&s->e, l, &s->state, (struct share){d, -1}, &share[d], NULL, NULL));
    for (int r = 0; r < s->c->world_size; r++)
        for (int p = 0; p < s->c->parameter_count; p++) {
            const struct held_part *part = &s->holdings.by[HELD_GRADIENT][r].parts[p];
            struct tensor *to = tensors_find2(g, "grad", s->c->parameters[p].name);
            const struct tensor *from = tensors_find2(&share[case_place(s->c, r).data], "grad", s->c->parameters[p].name);
            for (int k = 0; k < part->count; k++)
                for (int64_t i = part->ranges[k].offset; i < part->ranges[k].offset + part->ranges[k].length; i++)
                    ((double *)to->data)[i] = 2 * ((const double *)from->data)[i];
        }
    tensors_free(&share[0]);
    tensors_free(&share[1]);
}

static void norm_of_axis(struct synthetic *s, double *norms, bool by_stage)
{
    bool members[SYNTHETIC_RANKS];
    for (int r = 0; r < s->c->world_size; r++) {
        for (int q = 0; q < s->c->world_size; q++)
            members[q] = by_stage ? case_place(s->c, q).stage == case_place(s->c, r).stage : case_place(s->c, q).tensor == case_place(s->c, r).tensor;
        norms[r] = norm_of_members(&s->e, &s->gradient, "grad", members).value;
    }
}
static void tensor_norm(struct synthetic *s, double *factor, double *norms) { (void)factor; norm_of_axis(s, norms, false); }
static void stage_norm(struct synthetic *s, double *factor, double *norms) { (void)factor; norm_of_axis(s, norms, true); }
static void repeated_norm(struct synthetic *s, double *factor, double *norms)
{
    (void)factor;
    norm_of_axis(s, norms, false);
    double both = hypot(norms[0], norms[1]); // ranks 0 and 1 are the two tensor coordinates
    for (int r = 0; r < s->c->world_size; r++)
        norms[r] = both;
}

// Parameter p of one rank becomes what another holds.
static void takes_part_of(struct synthetic *s, int p, int rank, int other)
{
    for (int k = 0; k < HELD_COUNT; k++) {
        struct held_part *to = &s->holdings.by[k][rank].parts[p], *from = &s->holdings.by[k][other].parts[p];
        free(to->ranges);
        *to = *from;
        to->ranges = malloc((size_t)(from->count + 1) * sizeof *to->ranges);
        memcpy(to->ranges, from->ranges, (size_t)from->count * sizeof *to->ranges);
    }
}
static void not_split(struct synthetic *s) // every tensor coordinate holds all columns
{
    for (int p = 0; p < s->c->parameter_count; p++)
        for (int r = 0; r < s->c->world_size; r++)
            for (int k = 0; k < HELD_COUNT; k++) {
                struct held_part *part = &s->holdings.by[k][r].parts[p];
                struct range rows = holdings_extent(part);
                int64_t row = s->c->parameters[p].count / s->c->parameters[p].shape[0], first = rows.offset / row * row;
                part->total = (rows.offset + rows.length + row - 1) / row * row - first;
                part->ranges[0] = (struct range){first, part->total};
                part->count = 1;
            }
}
static void in_both_stages(struct synthetic *s) { takes_part_of(s, 0, 2, 0); }
static void no_blocks(struct synthetic *s)
{
    for (int p = 0; p < s->c->parameter_count; p++)
        for (int r = 0; r < 2; r++) {
            if (s->holdings.by[HELD_PARAMETER][r].parts[p].total == 0)
                takes_part_of(s, p, r, 2 + r);
            for (int k = 0; k < HELD_COUNT; k++)
                s->holdings.by[k][2 + r].parts[p].count = s->holdings.by[k][2 + r].parts[p].total = 0;
        }
}
static void shard_missing(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][3].parts[0].count = 0; s->holdings.by[HELD_PARAMETER][3].parts[0].total = 0; }
static void rows_swapped(struct synthetic *s) // the two shards of tensor coordinate 0
{
    struct held_part *parts[] = {&s->holdings.by[HELD_PARAMETER][0].parts[0], &s->holdings.by[HELD_PARAMETER][2].parts[0]}, kept = *parts[0];
    *parts[0] = *parts[1];
    *parts[1] = kept;
}
static void local_off(struct synthetic *s)
{
    struct observed *o = &s->observed[s->e.observed_count - 1];
    ((float *)o->local[3].items[0].data)[0] += 1;
}
static void say_loss(struct synthetic *s, int rank, double factor, double add)
{
    json_t *loss = json_object_get(answer_find(&s->answers[rank], EVENT_MICRO, 0)->fields, "loss");
    json_object_set_new(answer_find(&s->answers[rank], EVENT_MICRO, 0)->fields, "loss", json_real(json_number_value(loss) * factor + add));
}
static void other_coordinate(struct synthetic *s) { say_loss(s, 1, 2, 1); }
static void first_stage_guesses(struct synthetic *s) { say_loss(s, 0, 1, 7); }
static void last_stage_off(struct synthetic *s) { say_loss(s, 3, 2, 1); }
static json_t *configured(struct synthetic *s, int rank) { return json_object_get(s->answers[rank].events[0].fields, "configured"); }
static void no_tensor(struct synthetic *s) { json_object_del(configured(s, 2), "tensor"); }
static void no_pipeline(struct synthetic *s) { json_object_set_new(configured(s, 3), "pipeline", json_string("1")); }

static const struct row {
    const char *check, *yaml;
    struct fault fault;
    enum verdict verdict;
    const char *message, *classes;
} rows[] = {
    {"step-bitwise", TENSOR, {0}, VERDICT_PASS, "equal the truth bitwise", ""},
    {"step-bitwise", TENSOR, {.gradient = over_ranks}, VERDICT_FAIL, "a = 0.5", "Z01"},
    {"step-bitwise", TENSOR, {.gradient = not_reduced}, VERDICT_FAIL, "own rank's gradient: the reduction is missing", "Z03"},
    {"step-bitwise", PIPELINE, {.gradient = not_reduced}, VERDICT_FAIL, "own rank's gradient: the reduction is missing", "Z03"},
    {"mesh-gradient", BOTH, {0}, VERDICT_PASS, "", ""},
    {"mean-witness", TENSOR_CLIP, {0}, VERDICT_PASS, "the mean over 2 ranks", ""},
    {"data-differs", TENSOR, {0}, VERDICT_PASS, "2 shares of data", ""},
    {"gradient-ratio", GPT, {0}, VERDICT_PASS, "times the noise", ""},
    {"gradient-ratio", GPT, {.gradient = not_reduced}, VERDICT_FAIL, "the reduction is missing", "Z03"},
    {"initial-gather", BOTH, {0}, VERDICT_PASS, "", ""},
    {"really-sharded", TENSOR, {0}, VERDICT_PASS, "split the blocks", ""},
    {"really-sharded", PIPELINE, {0}, VERDICT_PASS, "split the blocks", ""},
    {"really-sharded", BOTH, {0}, VERDICT_PASS, "split the blocks", ""},
    {"really-sharded", PLAIN, {0}, VERDICT_PASS, "split the blocks", ""},
    {"really-sharded", PLAIN, {.finish = not_split}, VERDICT_FAIL, "parameter of layers.0: 30 of its 30 elements are held by several tensor-parallel ranks", "Z27"},
    {"really-sharded", TENSOR, {.finish = not_split}, VERDICT_FAIL, "held by several tensor-parallel ranks of replica 0", "Z27"},
    {"really-sharded", TENSOR, {.finish = shard_missing}, VERDICT_FAIL, "no rank of replica 0 holds 6 of its 24 elements", "Z11"},
    {"really-sharded", PIPELINE, {.finish = in_both_stages}, VERDICT_FAIL, "12 of 24 elements are held by several pipeline stages of replica 0", "Z27"},
    {"really-sharded", PIPELINE, {.finish = no_blocks}, VERDICT_FAIL, "pipeline stage 1 of replica 0 holds no part of a block", "Z27"},
    {"chunk-layout", TENSOR, {0}, VERDICT_PASS, "", ""},
    {"chunk-layout", PIPELINE, {0}, VERDICT_PASS, "", ""},
    {"chunk-layout", TENSOR, {.finish = rows_swapped}, VERDICT_FAIL, "rank 0 holds 6 elements from 12 on, chunk 0 of 2 has 6 from 0 on", "Z11"},
    {"replicas-agree", TENSOR, {0}, VERDICT_PASS, "bitwise", ""},
    {"replicas-agree", BOTH, {.finish = local_off}, VERDICT_FAIL, "on rank 3 differs", "Z15"},
    {"loss-per-step", TENSOR, {0}, VERDICT_PASS, "", ""},
    {"loss-per-step", TENSOR, {.loss_factor = 2}, VERDICT_FAIL, "(N times)", "Z01"},
    {"loss-per-step", TENSOR, {.finish = other_coordinate}, VERDICT_FAIL, "of tensor coordinate 1 add up", ""},
    {"loss-per-step", PIPELINE, {0}, VERDICT_PASS, "", ""},
    {"loss-per-step", PIPELINE, {.finish = first_stage_guesses}, VERDICT_PASS, "", ""},
    {"loss-per-step", PIPELINE, {.finish = last_stage_off}, VERDICT_FAIL, "add up to", ""},
    {"global-norm", TENSOR_CLIP, {0}, VERDICT_PASS, "", ""},
    {"global-norm", PIPELINE_CLIP, {0}, VERDICT_PASS, "", ""},
    {"global-norm", TENSOR_CLIP, {.clip = tensor_norm}, VERDICT_FAIL, "the rank's own tensor-parallel part", "Z07"},
    {"global-norm", TENSOR_CLIP, {.clip = repeated_norm}, VERDICT_FAIL, "what all 2 tensor-parallel ranks hold alike is counted 2 times", "Z08"},
    {"global-norm", PIPELINE_CLIP, {.clip = stage_norm}, VERDICT_FAIL, "the rank's own pipeline stage", "Z07"},
    {"configured-as-asked", BOTH, {0}, VERDICT_PASS, "", ""},
    {"configured-as-asked", TENSOR, {.finish = no_tensor}, VERDICT_FAIL, "rank 2 does not say which tensor it configured, the case asks for 2", ""},
    {"configured-as-asked", PIPELINE, {.finish = no_pipeline}, VERDICT_FAIL, "rank 3 configured pipeline = 1, the case asks for 2", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void row_holds(void **state)
{
    const struct row *row = *state;
    struct synthetic *s = synthetic_run(row->yaml, &row->fault);
    struct finding f = synthetic_judge(s, row->check);
    bool class_fits = row->classes[0] ? strncmp(f.classes, row->classes, strlen(row->classes)) == 0 : f.classes[0] == 0;
    if (f.verdict != row->verdict || !strstr(f.message, row->message) || !class_fits)
        fail_msg("%s: %s [%s] %s; expected %s [%s] ...%s...", row->check, verdict_name(f.verdict), f.classes, f.message, verdict_name(row->verdict),
                 row->classes, row->message);
    synthetic_free(s);
}

// r = (stage D + data) T + tensor, Megatron-LM's order.
static void ranks_have_their_places(void **state)
{
    (void)state;
    const struct fsdp_case c = {.world_size = 24, .sharding = {.replicas = 2, .shards = 3, .tensor = 2, .pipeline = 2}};
    assert_int_equal(case_data_ranks(&c), 6);
    for (int r = 0; r < 24; r++) {
        struct rank_place at = case_place(&c, r);
        assert_true(at.tensor == r % 2 && at.data == r / 2 % 6 && at.stage == r / 12 && at.replica == at.data / 3 && at.shard == at.data % 3);
        assert_int_equal(case_rank_at(&c, at.stage, at.data, at.tensor), r);
    }
}

// Tensor and pipeline ranks change neither data nor truth.
static void the_truth_is_that_of_the_data_ranks(void **state)
{
    (void)state;
    char keys[3][33];
    static const char *const yaml[] = {TENSOR, PIPELINE, "name: tensor\nranks: 2\n" MLP};
    for (int i = 0; i < 3; i++) {
        struct synthetic *s = synthetic_run(yaml[i], NULL);
        truth_key(s->c, keys[i]);
        synthetic_free(s);
    }
    assert_string_equal(keys[0], keys[1]);
    assert_string_equal(keys[0], keys[2]);
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 2];
    static char names[ROWS][128];
    for (int k = 0; k < ROWS; k++) {
        snprintf(names[k], sizeof names[k], "%s %s (%d)", rows[k].check, verdict_name(rows[k].verdict), k);
        tests[k] = (struct CMUnitTest){names[k], row_holds, NULL, NULL, (void *)&rows[k]};
    }
    tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(ranks_have_their_places);
    tests[ROWS + 1] = (struct CMUnitTest)cmocka_unit_test(the_truth_is_that_of_the_data_ranks);
    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
