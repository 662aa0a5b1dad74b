// The judge's parts: comparison, findings, fits, programs, holdings; and whole cases from files on disk, right and broken.
#include "harness/judge/family.h"
#include "harness/judge/noise.h"
#include "harness/judge/orders.h"
#include "suite/checks/tests/synthetic.h"

static void comparison_rejects_what_is_not_finite(void **state)
{
    (void)state;
    assert_true(judge_compare(0, 0) && judge_compare(1, 1) && judge_compare(-3, 0));
    assert_false(judge_compare(1.0000001, 1) || judge_compare(NAN, 1) || judge_compare(-INFINITY, 1) || judge_compare(INFINITY, INFINITY));
    assert_false(judge_compare(0, NAN) || judge_compare(0, INFINITY));
    assert_true(judge_finite(1e308) && judge_finite(-0.0) && judge_finite(4.9e-324));
    assert_false(judge_finite(NAN) || judge_finite(-NAN) || judge_finite(INFINITY));
    assert_true(judge_worse(1, 2) == 2 && isnan(judge_worse(NAN, 2)) && isnan(judge_worse(2, NAN)) && isinf(judge_worse(INFINITY, 3)));
    assert_string_equal(verdict_name(VERDICT_BROKEN), "BROKEN");
}

static void the_worst_finding_stays(void **state)
{
    (void)state;
    struct finding f = {0};
    finding_compare(&f, 0.5, 1, "x", "Z01", "half");
    assert_true(f.emitted && f.verdict == VERDICT_PASS && f.classes[0] == 0);
    finding_compare(&f, 0.25, 1, "x", "", "quarter");
    assert_string_equal(f.message, "half");
    finding_compare(&f, 0.75, 1, "x", "", "most");
    assert_string_equal(f.message, "most");
    finding_skip(&f, "skipped");
    assert_int_equal(f.verdict, VERDICT_SKIP);
    finding_compare(&f, 3, 1, "x", "Z01 Z02", "first of %d", 2);
    finding_compare(&f, 9, 1, "x", "Z03", "second");
    assert_string_equal(f.message, "first of 2");
    assert_string_equal(f.classes, "Z01 Z02");
    finding_pass(&f, "fine");
    assert_int_equal(f.verdict, VERDICT_FAIL);
    finding_broken(&f, "broken");
    finding_fail(&f, "Z04", "worse?");
    assert_true(f.verdict == VERDICT_BROKEN && f.classes[0] == 0);
    struct finding nan = {0};
    finding_compare(&nan, NAN, 1, "x", "Z01", "nan");
    assert_int_equal(nan.verdict, VERDICT_FAIL);
}

static struct tensor tensor_of(double *values, int64_t count)
{
    return (struct tensor){.name = "t", .dtype = DTYPE_F64, .dims = 1, .shape = {count}, .count = count, .data = values};
}

static void a_fit_separates_scale_and_rest(void **state)
{
    (void)state;
    double ref[4] = {1, -2, 3, 4}, twice[4] = {2, -4, 6, 8}, last[4] = {1, -2, 3, 5}, bad[4] = {1, NAN, 3, 4};
    struct tensor r = tensor_of(ref, 4), t = tensor_of(twice, 4), l = tensor_of(last, 4), n = tensor_of(bad, 4);
    struct fit fit;
    assert_true(judge_fit(&t, &r, 0, 4, &fit) && fit.scalar == 2 && fit.residual < 1e-7 && fit.first == 0 && fit.differing == 4);
    assert_true(judge_fit(&l, &r, 0, 4, &fit) && fit.first == 3 && fit.differing == 1 && fit.residual > 0.05 && fit.max_abs == 1);
    assert_true(judge_fit(&l, &r, 0, 3, &fit) && fit.differing == 0 && fit.distance == 0 && fit.first == -1);
    assert_true(judge_fit(&n, &r, 0, 4, &fit) && fit.nonfinite == 1 && isnan(fit.distance) && isnan(fit.scalar));
    assert_false(judge_fit(&l, &r, 2, 3, &fit));
    float rounded[1] = {0.1f};
    double tenth[1] = {0.1};
    struct tensor f32 = {.dtype = DTYPE_F32, .count = 1, .data = rounded}, f64 = tensor_of(tenth, 1);
    assert_true(judge_fit(&f32, &f64, 0, 1, &fit) && fit.differing == 0); // rounded to the subject's dtype
}

static void scales_have_names(void **state)
{
    (void)state;
    struct fsdp_case c = {.world_size = 6, .sharding = {.replicas = 2, .shards = 3}, .data = {.micros = 5}};
    static const struct { double scale; const char *name; } expected[] = {
        {6, "N"}, {1.0 / 6, "1/N"}, {2, "R"}, {1.0 / 3, "1/S"}, {2.449489743, "sqrt(N)"}, {5, "m"}, {36, "N^2"}, {-1, "-1"}};
    char buffer[32];
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_string_equal(judge_scale_name(expected[i].scale, &c, buffer, sizeof buffer), expected[i].name);
    assert_null(judge_scale_name(1, &c, buffer, sizeof buffer));
    assert_null(judge_scale_name(1.37, &c, buffer, sizeof buffer));
}

static void all_orders_of_a_sum_are_reached(void **state)
{
    (void)state;
    const double terms[3] = {256, 1, 2};
    assert_true(orders_reach(259.0 / 3, terms, 3, DTYPE_F64, DTYPE_F64));
    assert_false(orders_reach(260.0 / 3, terms, 3, DTYPE_F64, DTYPE_F64));
    // bf16: (256 + 1) + 2 = 258, 256 + (1 + 2) = 260
    assert_true(orders_reach(bf16_to_f32(bf16_from_f64(258.0 / 3)), terms, 3, DTYPE_BF16, DTYPE_F32));
    assert_true(orders_reach(bf16_to_f32(bf16_from_f64(260.0 / 3)), terms, 3, DTYPE_BF16, DTYPE_F32));
    assert_false(orders_reach(256.0 / 3, terms, 3, DTYPE_F32, DTYPE_F32));
    assert_false(orders_reach(NAN, terms, 3, DTYPE_BF16, DTYPE_F32));
}

// ---- programs ----

#define BASE "title: t\nranks: 2\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 6, 3]}\ndata: {recipe: exact, density: 0.7}\noptimizer: {kind: sgd, lr: 0.25}\nglobal_rows: 8\nlayout: per_parameter\n"
#define STANDARD "name: standard\nsteps: 2\n" BASE
#define TWISTED "name: twisted\nsteps: 2\nmicros: 2\n" BASE "program: [init, micro 0 0, \"observe half grad\", micro 0 1, \"observe whole grad\", step 0, zero_grad, " \
    "\"freeze layers.1.*\", forward 1 0 0, forward 1 1 1, backward 0, backward 1, \"observe again grad\", step 1, \"observe end param\", stop]\n"

static const struct program_label *label_named(const struct program_label *labels, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(labels[i].label, name) == 0)
            return &labels[i];
    fail_msg("no label %s", name);
    return NULL;
}

static void programs_tell_what_labels_show(void **state)
{
    (void)state;
    struct synthetic s = {0};
    struct program_label labels[16];
    synthetic_case(&s, STANDARD);
    int count = program_labels(s.c, labels, 16);
    assert_int_equal(count, 5);
    const struct program_label *l = label_named(labels, count, "s1.grad");
    assert_int_equal(l->gradient_step, 1);
    assert_int_equal(l->steps_done, 1);
    assert_string_equal(s.c->program[l->parameters_at].label, "s0");
    assert_int_equal(label_named(labels, count, "init")->gradient_step, -1);
    synthetic_free(&s);
}

static void programs_with_slots_and_freezes(void **state)
{
    (void)state;
    struct synthetic s = {0};
    struct program_label labels[16];
    bool frozen[8];
    synthetic_case(&s, TWISTED);
    int count = program_labels(s.c, labels, 16);
    assert_int_equal(label_named(labels, count, "half")->gradient_step, -1); // one of two microbatches
    assert_int_equal(label_named(labels, count, "whole")->gradient_step, 0);
    assert_int_equal(label_named(labels, count, "again")->gradient_step, 1);
    assert_int_equal(label_named(labels, count, "again")->parameters_at, -1); // a step without an observation lies between
    program_frozen(s.c, label_named(labels, count, "again")->at, frozen);
    assert_true(!frozen[0] && frozen[case_find_parameter(s.c, "layers.1.weight")]);
    program_frozen(s.c, label_named(labels, count, "whole")->at, frozen);
    assert_false(frozen[case_find_parameter(s.c, "layers.1.weight")]);
    synthetic_free(&s);
}

// ---- holdings ----

static void shards_events_are_refused(void **state)
{
    (void)state;
    static const struct { const char *parts, *message; } bad[] = {
        {"{\"nobody\": [[0, 1]]}", "rank 0, shards of parameter: no tensor is called 'nobody'"},
        {"{\"layers.0.weight\": [[20, 5]]}", "tensor layers.0.weight: range [20, 5] lies outside its 24 elements"},
        {"{\"layers.0.weight\": [[-1, 5]]}", "range [-1, 5] lies outside"},
        {"{\"layers.0.weight\": [[0, 5], [4, 2]]}", "ranges overlap"},
        {"{\"layers.0.weight\": [[0, 5, 1]]}", "is not [offset, length]"},
        {"{\"layers.0.weight\": 3}", "expected a list of [offset, length]"},
        {"{\"layers.0.weight\": [[0, 23]]}", "a later event contradicts an earlier one"}};
    struct synthetic *s = synthetic_run(STANDARD, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct holdings h;
        struct error error = {{0}};
        struct event events[2] = {{EVENT_SHARDS, json_pack("{s:s, s:o}", "of", "parameter", "parts", json_loads(bad[i].parts, 0, NULL)), 1},
                                  {EVENT_SHARDS, json_pack("{s:s, s:o}", "of", "parameter", "parts", json_loads("{\"layers.0.weight\": [[0, 24]]}", 0, NULL)), 2}};
        struct answer answers[2] = {{.count = 2, .events = events}, {.count = 0}};
        assert_false(holdings_load(s->c, answers, &h, &error));
        if (!strstr(error.text, bad[i].message))
            fail_msg("'%s' instead of '%s'", error.text, bad[i].message);
        holdings_free(&h);
        json_decref(events[0].fields);
        json_decref(events[1].fields);
    }
    synthetic_free(s);
}

static void chunks_are_those_of_torch(void **state)
{
    (void)state;
    static const struct { int64_t rows; int shards; int64_t lengths[4]; } expected[] = {
        {4, 4, {1, 1, 1, 1}}, {5, 4, {2, 2, 1, 0}}, {3, 4, {1, 1, 1, 0}}, {1, 4, {1, 0, 0, 0}}, {7, 4, {2, 2, 2, 1}}, {6, 4, {2, 2, 2, 0}}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct case_parameter p = {.dims = 2, .shape = {expected[i].rows, 3}, .count = 3 * expected[i].rows};
        int64_t next = 0;
        for (int s = 0; s < expected[i].shards; s++) {
            struct range r = holdings_chunk(&p, s, expected[i].shards);
            assert_int_equal(r.offset, next);
            assert_int_equal(r.length, 3 * expected[i].lengths[s]);
            next += r.length;
        }
        assert_int_equal(next, p.count);
    }
}

// ---- whole cases on disk ----

static const char *out_path(const struct synthetic *s, const char *file)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/out/%s", s->folder, file);
    return path;
}

static struct synthetic *on_disk(void)
{
    struct synthetic *s = synthetic_run(STANDARD, NULL);
    struct error error = {{0}};
    char name[128];
    assert_int_equal(mkdir(out_path(s, ""), 0700), 0);
    for (int i = 0; i < s->e.observed_count; i++) {
        snprintf(name, sizeof name, "%s.safetensors", s->observed[i].label);
        assert_true(tensors_write(out_path(s, name), &s->observed[i].full, &error));
        for (int r = 0; r < 2; r++) {
            snprintf(name, sizeof name, "%s.rank%d.safetensors", s->observed[i].label, r);
            assert_true(tensors_write(out_path(s, name), &s->observed[i].local[r], &error));
        }
    }
    return s;
}

static int judge_disk(struct synthetic *s, struct result *results, json_t *figures, char digest[33])
{
    struct judge_context j = {.case_folder = s->folder, .c = s->c, .truth = &s->truth, .answers = s->answers, .implementation = "synthetic", .figures = figures};
    return judge_case(&j, results, 64, digest);
}

static void a_right_case_passes_whole(void **state)
{
    (void)state;
    struct synthetic *s = on_disk();
    struct result results[64];
    char digest[33];
    json_t *figures = json_array();
    int count = judge_disk(s, results, figures, digest);
    assert_true(count > 5);
    for (int i = 0; i < count; i++)
        if (results[i].finding.verdict != VERDICT_PASS)
            fail_msg("%s: %s %s", results[i].check, verdict_name(results[i].finding.verdict), results[i].finding.message);
    assert_string_equal(results[0].check, "answer");
    assert_string_equal(digest, s->digest);
    assert_string_equal(digest, s->truth_digest); // exact: subject and truth end in the same bits
    assert_true(json_array_size(figures) > 0);
    json_t *first = json_array_get(figures, 0);
    assert_true(json_is_string(json_object_get(first, "check")) && json_is_number(json_object_get(first, "figure")));
    json_decref(figures);
    synthetic_free(s);
}

static void rewrite(struct synthetic *s, const char *file, void (*change)(struct tensors *set))
{
    struct tensors set = {0}, copy = {0};
    struct error error = {{0}};
    assert_true(tensors_read(out_path(s, file), &set, &error));
    for (int i = 0; i < set.count; i++)
        tensors_add(&copy, set.items[i].name, set.items[i].dtype, set.items[i].dims, set.items[i].shape, set.items[i].data, true);
    change(&copy);
    assert_true(tensors_write(out_path(s, file), &copy, &error));
    tensors_free(&set);
    tensors_free(&copy);
}

static void transpose(struct tensors *set) { struct tensor *t = tensors_find(set, "param/layers.0.weight"); t->shape[0] = 4; t->shape[1] = 6; }
static void as_integers(struct tensors *set) { tensors_find(set, "param/layers.0.weight")->dtype = DTYPE_I32; }
static void rename_one(struct tensors *set) { tensors_find(set, "param/layers.1.bias")->name[6] = 'X'; }
static void rename_gradient(struct tensors *set) { tensors_find(set, "grad/layers.1.bias")->name[5] = 'X'; }
static void put_nan(struct tensors *set) { ((float *)tensors_find(set, "param/layers.0.weight")->data)[7] = NAN; }
static void put_inf(struct tensors *set) { ((float *)tensors_find(set, "param/layers.0.weight")->data)[2] = INFINITY; }
static void cut(struct tensors *set) { struct tensor *t = tensors_find(set, "param/layers.0.weight"); t->count = t->shape[0] = t->count - 1; }

static void broken_structure_is_named(void **state)
{
    (void)state;
    static const struct { const char *file; void (*change)(struct tensors *set); const char *message; } bad[] = {
        {"s0.safetensors", transpose, "label s0: param/layers.0.weight has shape (4, 6), expected (6, 4)"},
        {"s0.safetensors", as_integers, "label s0: param/layers.0.weight has dtype i32, expected f32, bf16, f16 or f64"},
        {"s1.safetensors", rename_one, "label s1: param/layers.1.bias is missing"},
        {"s1.grad.safetensors", rename_gradient, "label s1.grad: grad/layers.1.bias is missing, the truth has one that is not 0"},
        {"init.safetensors", put_nan, "label init: param/layers.0.weight is not finite at element 7 (nan)"},
        {"s0.rank1.safetensors", put_inf, "label s0, rank 1: its part of param/layers.0.weight is not finite at element 2"},
        {"s0.rank1.safetensors", cut, "label s0, rank 1: its part of param/layers.0.weight has 11 elements, its shards event says 12"},
        {"s0.rank1.safetensors", NULL, "label s0 of rank 1 cannot be read: "},
        {"s0.safetensors", NULL, "label s0 of rank 0 cannot be read: "}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct synthetic *s = on_disk();
        struct result results[64];
        char digest[33];
        if (bad[i].change)
            rewrite(s, bad[i].file, bad[i].change);
        else
            assert_int_equal(unlink(out_path(s, bad[i].file)), 0);
        int count = judge_disk(s, results, NULL, digest);
        assert_int_equal(count, 1); // no check judges a case whose structure is wrong
        assert_string_equal(results[0].check, "answer");
        assert_int_equal(results[0].finding.verdict, VERDICT_FAIL);
        if (!strstr(results[0].finding.message, bad[i].message))
            fail_msg("'%s' instead of '%s'", results[0].finding.message, bad[i].message);
        synthetic_free(s);
    }
}

static void ends_decide_before_evidence(void **state)
{
    (void)state;
    static const struct { enum event_kind ends[2]; bool ended; enum verdict verdict; const char *message; } rows[] = {
        {{EVENT_UNSUPPORTED, EVENT_UNSUPPORTED}, true, VERDICT_SKIP, "unsupported: why"},
        {{EVENT_DONE, EVENT_UNSUPPORTED}, true, VERDICT_FAIL, "1 of 2 ranks answered unsupported"},
        {{EVENT_DONE, EVENT_ERROR}, true, VERDICT_FAIL, "rank 1 reported an error: what"},
        {{EVENT_DONE, EVENT_DONE}, false, VERDICT_FAIL, "stopped answering after 1 events"}};
    struct synthetic *s = synthetic_run(STANDARD, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct event last[2];
        struct answer answers[2];
        struct result results[8];
        char digest[33];
        for (int r = 0; r < 2; r++) {
            last[r] = (struct event){rows[i].ends[r], json_pack("{s:s, s:s}", "reason", "why", "message", "what"), 1};
            answers[r] = (struct answer){.rank = r, .count = 1, .events = &last[r], .ended = rows[i].ended, .end = rows[i].ends[r]};
        }
        struct judge_context j = {.case_folder = s->folder, .c = s->c, .truth = &s->truth, .answers = answers};
        assert_int_equal(judge_case(&j, results, 8, digest), 1);
        assert_int_equal(results[0].finding.verdict, rows[i].verdict);
        if (!strstr(results[0].finding.message, rows[i].message))
            fail_msg("'%s' instead of '%s'", results[0].finding.message, rows[i].message);
        assert_int_equal(digest[0], 0);
        for (int r = 0; r < 2; r++)
            json_decref(last[r].fields);
    }
    synthetic_free(s);
}

static void too_many_results_are_broken(void **state)
{
    (void)state;
    struct synthetic *s = on_disk();
    struct result results[3];
    char digest[33];
    struct judge_context j = {.case_folder = s->folder, .c = s->c, .truth = &s->truth, .answers = s->answers};
    assert_int_equal(judge_case(&j, results, 3, digest), 3);
    assert_int_equal(results[2].finding.verdict, VERDICT_BROKEN);
    synthetic_free(s);
}

// ---- noise ----

static void structural_zeros_take_their_neighbours_noise(void **state)
{
    (void)state;
    struct case_parameter parameters[3] = {{.name = "a", .count = 100, .unit = "u"}, {.name = "zero", .count = 4, .unit = "u"}, {.name = "other", .count = 4, .unit = "v"}};
    struct fsdp_case c = {.parameter_count = 3, .parameters = parameters};
    struct truth truth = {0};
    int64_t three = 3;
    double a[3] = {1e-6, 2e-7, 10}, zero[3] = {1e-12, 1e-12, 1e-15}, exact[3] = {0, 0, 2};
    tensors_add(&truth.noise, "l/grad/a", DTYPE_F64, 1, &three, a, true);
    tensors_add(&truth.noise, "l/grad/zero", DTYPE_F64, 1, &three, zero, true);
    tensors_add(&truth.noise, "l/grad/other", DTYPE_F64, 1, &three, exact, true);
    struct evidence e = {.c = &c, .truth = &truth};
    struct noise n;
    double relative;
    assert_true(noise_of(&e, "l", 0, DTYPE_F32, &n) && n.l2 == 1e-6 && !n.structural_zero);
    assert_true(noise_of(&e, "l", 1, DTYPE_F32, &n) && n.structural_zero && fabs(n.l2 - 2e-7) < 1e-12 && n.element == 1e-7);
    assert_true(noise_of(&e, "l", 2, DTYPE_F32, &n) && n.l2 == 2 * 0x1p-24); // the floor of the storage type
    assert_false(noise_of(&e, "k", 0, DTYPE_F32, &n));
    assert_true(noise_relative(&e, "l", &relative) && relative < 1e-6 && !noise_relative(&e, "k", &relative));
    tensors_free(&truth.noise);
}

// ---- family ----

static bool any_member(const struct evidence *e, const struct family_member *m)
{
    (void)e, (void)m;
    return true;
}

static void families_need_equal_truths(void **state)
{
    (void)state;
    struct family_member members[] = {{"a", 2, STRATEGY_FULL, "x", "other"}, {"b", 2, STRATEGY_FULL, "x", NULL}, {"c", 2, STRATEGY_FULL, NULL, "t"}};
    struct evidence e = {.digest = "x", .truth_digest = "t", .family_count = 3, .family = members};
    struct finding f = {0};
    assert_false(family_has(&e, any_member));
    members[0].truth_digest = "t";
    assert_true(family_has(&e, any_member));
    family_judge(&e, &f, any_member, "nothing");
    assert_int_equal(f.verdict, VERDICT_PASS);
    members[0].digest = "y";
    family_judge(&e, &f, any_member, "nothing");
    assert_int_equal(f.verdict, VERDICT_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparison_rejects_what_is_not_finite), cmocka_unit_test(the_worst_finding_stays),
        cmocka_unit_test(a_fit_separates_scale_and_rest), cmocka_unit_test(scales_have_names), cmocka_unit_test(all_orders_of_a_sum_are_reached),
        cmocka_unit_test(programs_tell_what_labels_show), cmocka_unit_test(programs_with_slots_and_freezes), cmocka_unit_test(shards_events_are_refused),
        cmocka_unit_test(chunks_are_those_of_torch), cmocka_unit_test(a_right_case_passes_whole), cmocka_unit_test(broken_structure_is_named),
        cmocka_unit_test(ends_decide_before_evidence), cmocka_unit_test(too_many_results_are_broken),
        cmocka_unit_test(structural_zeros_take_their_neighbours_noise), cmocka_unit_test(families_need_equal_truths)};
    return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}
