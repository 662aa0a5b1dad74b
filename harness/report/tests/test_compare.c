// Two made-up runs against each other: rows, words, verdicts that changed, exit status, and every format read back.
#include "harness/report/compare.h"

#include <math.h>

#include "harness/protocol/tests/temporary.h"
#include "harness/report/series_name.h"
#include "harness/report/series_report.h"
#include "harness/store/tests/sample.h"

enum { SAMPLES = 12, LAUNCHES = 4 };

struct pair { struct store *store; struct stored_run runs[2]; struct stored_serieses series[2]; struct comparison c; const char *path; };

static void add_series(struct store *s, int64_t run, const char *name, const char *quantity, int bytes, double value, double noise, json_t *facts) {
    struct error error = {0};
    int64_t id;
    json_t *point = json_pack("{s:i, s:i, s:s}", "ranks", 4, "bytes", bytes, "dtype", "f32");
    struct series series = {"net", "virtual-100m", "mpi", name, quantity, point, facts};
    assert_true(store_add_series(s, run, &series, &id, &error));
    json_decref(point);
    json_decref(facts);
    for (int l = 0; l < LAUNCHES; l++) {
        double values[SAMPLES];
        for (int i = 0; i < SAMPLES; i++) values[i] = value * (1 + noise * ((i * 7 + l * 3) % SAMPLES - 5.5) / SAMPLES);
        assert_true(store_add_samples(s, id, l, SAMPLES, values, &error));
    }
}

static json_t *probed(int64_t peak, int64_t wire) {
    return json_pack("{s:[{s:i, s:s, s:[{s:s, s:i, s:[i, i], s:[I, I, I], s:[[s, s, s, i, i, I, I, i]]}, {s:s, s:i, s:[i, i], s:[I, I, I]}]}]}", "ranks", "rank", 0, "probes", "heap,mpi", "phases",
                     "name", "forward", "step", 0, "us", 0, 10, "heap", (json_int_t)0, (json_int_t)peak, (json_int_t)peak, "traffic", "collective", "all-gather", "f32", 4, 1, (json_int_t)wire,
                     (json_int_t)wire, 5, "name", "step", "step", 0, "us", 10, 20, "heap", (json_int_t)peak, (json_int_t)(peak / 2), (json_int_t)peak);
}

static void add_case(struct store *s, int64_t run, const char *id, double seconds, enum verdict v, json_t *probes) {
    struct result r = sample_result("step-bitwise", v, v == VERDICT_FAIL ? 3 : 0, 0, "elements", v == VERDICT_FAIL ? "3 elements differ" : "");
    struct case_record c = sample_case("reference", id, "exact", "full", 4, &r, 1);
    c.seconds = seconds;
    c.probes = probes;
    sample_record(s, run, &c);
    json_decref(probes);
}

// slower: how much the second run's case seconds and one of its series are.
static void fill(struct store *s, int which, double slower) {
    int64_t run = sample_begin(s, which ? "fsdpmark net again" : "fsdpmark net");
    sample_plan(s, run, "reference", 8);
    add_series(s, run, "all-gather", "seconds", 4096, which ? 1e-3 * slower : 1e-3, 0.02, json_pack("{s:i, s:I, s:i}", "errors", 0, "sent_bytes", (json_int_t)3072, "spilled_bytes", which));
    add_series(s, run, "all-gather", "seconds", 8192, 2e-3, 0.02, NULL);
    add_series(s, run, "reduce-scatter", "seconds", 4096, which ? 0.5e-3 : 1e-3, 0.02, NULL);
    add_series(s, run, "exchange", "seconds", 4096, which ? 0.5e-3 : 1e-3, 0.02, which ? json_pack("{s:i, s:s}", "errors", 1, "first_error", "element 7 is 3, expected 4") : NULL);
    add_series(s, run, "all-reduce", "seconds", 4096, which ? 1.01e-3 : 1e-3, 0.5, NULL);
    add_series(s, run, which ? "broadcast" : "barrier", "seconds", 8, 1, 0.02, NULL);
    add_series(s, run, "all-gather", "tokens per second", 4096, which ? 500 : 100, 0.02, NULL);
    for (int i = 0; i < 7; i++) {
        char id[32];
        snprintf(id, sizeof id, "exact.case%d", i);
        add_case(s, run, id, (1 + 0.1 * i) * (which ? slower : 1), which && i == 2 ? VERDICT_FAIL : !which && i == 3 ? VERDICT_FAIL : VERDICT_PASS,
                 i < 3 ? probed(1000000 + (which && i == 1 ? 200000 : which ? 100 : 0), 4096 + (which && i == 0)) : NULL);
    }
    add_case(s, run, which ? "exact.new" : "exact.old", 1, VERDICT_PASS, NULL);
}

static struct pair *pair_of(double slower, double threshold) {
    struct pair *p = calloc(1, sizeof *p);
    struct error error = {0};
    p->path = sample_path("results.db");
    p->store = sample_open(p->path);
    fill(p->store, 0, slower);
    fill(p->store, 1, slower);
    for (int i = 0; i < 2; i++) {
        if (!store_load_run(p->store, i + 1, &p->runs[i], &error)) fail_msg("%s", error.text);
        if (!store_load_series(p->store, i + 1, NULL, &p->series[i], &error)) fail_msg("%s", error.text);
    }
    compare_make((struct compare_side){&p->runs[0], &p->series[0]}, (struct compare_side){&p->runs[1], &p->series[1]}, threshold, &p->c);
    return p;
}

static void drop(struct pair *p) {
    compare_free(&p->c);
    for (int i = 0; i < 2; i++) {
        stored_series_free(&p->series[i]);
        stored_run_free(&p->runs[i]);
    }
    store_close(p->store);
    sample_remove(p->path);
    free(p);
}

static const struct compare_row *row_of(const struct comparison *c, const char *what, const char *quantity) {
    for (int i = 0; i < c->row_count; i++)
        if (strstr(c->rows[i].what, what) && !strcmp(c->rows[i].quantity, quantity)) return &c->rows[i];
    fail_msg("no row '%s', %s", what, quantity);
    return NULL;
}

static void series_are_matched_by_their_point(void **state) {
    (void)state;
    struct pair *p = pair_of(1.2, 0.05);
    const struct compare_row *slow = row_of(&p->c, "all-gather, bytes 4096", "seconds"), *same = row_of(&p->c, "all-gather, bytes 8192", "seconds"),
                             *fast = row_of(&p->c, "reduce-scatter", "seconds"), *noisy = row_of(&p->c, "all-reduce", "seconds");
    assert_string_equal(slow->what, "all-gather, bytes 4096 (net, virtual-100m, mpi)"); // ranks and dtype are the same everywhere
    assert_true(fabs(slow->ratio.value - 1.2) < 1e-9 && slow->ratio.low > 1.05 && slow->ratio.high < 1.4 && slow->ratio.coverage >= 0.95);
    assert_true(slow->worse && !strcmp(slow->word, "slower") && slow->ratio.count == SAMPLES * LAUNCHES);
    assert_true(!same->worse && !strcmp(same->word, "no difference shown") && same->ratio.value == 1);
    assert_true(!fast->worse && !strcmp(fast->word, "faster"));
    assert_true(!noisy->worse && !strcmp(noisy->word, "no difference shown"));
    const struct compare_row *rate = row_of(&p->c, "all-gather", "tokens per second");
    assert_true(!rate->worse && !strcmp(rate->word, "more")); // which is better is not known of it
    assert_true(p->c.series_both == 6 && p->c.series_before == 1 && p->c.series_after == 1);
    drop(p);
}

// A fifth slower: said from four starts of each run on, never from one.
static void few_starts_have_no_word(void **state) {
    (void)state;
    static const struct { int before, after; const char *word; } cases[] = {{4, 4, "slower"}, {3, 3, "too few starts"}, {2, 4, "too few starts"}, {1, 4, "one start: no interval"}, {1, 1, "one start: no interval"}};
    struct pair *p = pair_of(1.2, 0.05);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stored_series a = p->series[0].items[0], b = p->series[1].items[0];
        struct stored_run none = {.id = 9, .started = "2026-01-01"};
        struct comparison c;
        a.launch_count = cases[i].before, a.count = SAMPLES * cases[i].before;
        b.launch_count = cases[i].after, b.count = SAMPLES * cases[i].after;
        struct stored_serieses before = {1, &a, NULL}, after = {1, &b, NULL};
        compare_make((struct compare_side){&none, &before}, (struct compare_side){&none, &after}, 0.05, &c);
        const struct compare_row *row = row_of(&c, "all-gather", "seconds");
        bool tells = !strcmp(cases[i].word, "slower"), one = cases[i].before == 1;
        assert_string_equal(row->word, cases[i].word);
        assert_true(row->worse == tells && compare_tells(row) == tells && (row->ratio.coverage >= 0.95) == tells && isnan(row->ratio.low) == one && fabs(row->ratio.value - 1.2) < 0.01);
        compare_free(&c);
    }
    drop(p);
}

static void facts_are_counted(void **state) {
    (void)state;
    struct pair *p = pair_of(1, 0.05);
    const struct compare_row *spilled = row_of(&p->c, "all-gather, bytes 4096", "spilled_bytes"), *bytes = row_of(&p->c, "all-gather, bytes 4096", "sent_bytes");
    assert_true(spilled->worse && isinf(spilled->ratio.value) && !strcmp(spilled->word, "more")); // of none came one
    assert_true(!bytes->worse && !strcmp(bytes->word, "equal") && bytes->ratio.value == 1);
    drop(p);
}

// Half the time, and wrong.
static void what_is_wrong_is_never_faster(void **state) {
    (void)state;
    struct pair *p = pair_of(1, 0.05);
    const struct compare_row *now = row_of(&p->c, "exchange", "seconds");
    assert_true(now->worse && !strcmp(now->word, "WRONG") && isnan(now->ratio.value) && isnan(now->after.value) && now->before.value > 0);
    assert_string_equal(now->why, "element 7 is 3, expected 4");
    struct comparison c;
    compare_make((struct compare_side){&p->runs[1], &p->series[1]}, (struct compare_side){&p->runs[0], &p->series[0]}, 0.05, &c);
    const struct compare_row *before = row_of(&c, "exchange", "seconds");
    assert_true(!before->worse && !strcmp(before->word, "was WRONG") && isnan(before->ratio.value) && isnan(before->before.value));
    compare_free(&c);
    drop(p);
}

// One series against itself, with the verdicts of a bench.
static void verdicts_of_series_go_before_times(void **state) {
    (void)state;
    static const struct { const char *before, *after, *word; bool worse; int status; } rows[] = {
        {"PASS", "PASS", "no difference shown", false, 0}, {"PASS", "WRONG", "WRONG", true, 1}, {"WRONG", "WRONG", "WRONG", true, 1}, {"BROKEN", "WRONG", "WRONG", true, 1},
        {"WRONG", "PASS", "was WRONG", false, 0}, {"PASS", "BROKEN", "BROKEN", true, 1}, {"BROKEN", "BROKEN", "BROKEN", false, 0}, {"SKIP", "PASS", "was SKIP", false, 0},
        {"PASS", "SKIP", "SKIP", true, 1}, {NULL, "WRONG", "WRONG", true, 1}, {NULL, "SKIP", NULL, false, 3},
    };
    struct pair *p = pair_of(1, 0.05);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct stored_series a = p->series[0].items[0], b = a;
        struct stored_run none = {.id = 9, .started = "2026-01-01"};
        struct comparison c;
        a.facts = json_pack("{s:s*}", "verdict", rows[i].before);
        b.facts = json_pack("{s:s, s:s}", "verdict", rows[i].after, "why", "it says why");
        struct stored_serieses before = {rows[i].before != NULL, &a, NULL}, after = {1, &b, NULL};
        compare_make((struct compare_side){&none, &before}, (struct compare_side){&none, &after}, 0.05, &c);
        if (compare_exit_status(&c) != rows[i].status || (c.row_count > 0) != (rows[i].word != NULL)) fail_msg("row %zu: status %d, %d rows", i, compare_exit_status(&c), c.row_count);
        if (rows[i].word) assert_string_equal(c.rows[0].word, rows[i].word);
        if (rows[i].word) assert_int_equal(c.rows[0].worse, rows[i].worse);
        compare_free(&c);
        json_decref(a.facts);
        json_decref(b.facts);
    }
    drop(p);
}

static void cases_give_one_row_a_family_and_quantity(void **state) {
    (void)state;
    struct pair *p = pair_of(1.2, 0.05);
    const struct compare_row *seconds = row_of(&p->c, "reference, exact (7 cases)", "seconds"), *peak = row_of(&p->c, "reference, exact (3 cases)", "peak bytes"),
                             *rest = row_of(&p->c, "reference, exact (3 cases)", "rest bytes"), *sent = row_of(&p->c, "reference, exact (3 cases)", "sent bytes");
    assert_true(seconds->worse && fabs(seconds->ratio.value - 1.2) < 1e-12 && seconds->ratio.count == 7 && !seconds->counted);
    assert_true(peak->worse && peak->counted && peak->ratio.high == 1.2 && !strcmp(peak->word, "more"));
    assert_string_equal(peak->worst_case, "exact.case1");
    assert_true(rest->worse && rest->before.value == 500000);
    assert_true(!sent->worse && !strcmp(sent->word, "more") && sent->ratio.high == 4097.0 / 4096); // traffic is exact, but within the threshold
    assert_int_equal(p->c.cases_both, 7);
    assert_true(p->c.cases_before == 1 && p->c.cases_after == 1);
    drop(p);
    p = pair_of(1.2, 0.25);
    assert_false(row_of(&p->c, "exact (3 cases)", "peak bytes")->worse);
    assert_false(row_of(&p->c, "exact (7 cases)", "seconds")->worse);
    assert_string_equal(row_of(&p->c, "exact (7 cases)", "seconds")->word, "slower");
    drop(p);
}

static void verdicts_that_changed_are_told(void **state) {
    (void)state;
    struct pair *p = pair_of(1, 0.05);
    assert_int_equal(p->c.verdict_count, 2);
    const struct compare_verdict *worse = &p->c.verdicts[0], *better = &p->c.verdicts[1];
    assert_true(worse->worse && worse->before == VERDICT_PASS && worse->after == VERDICT_FAIL);
    assert_string_equal(worse->case_id, "exact.case2");
    assert_string_equal(worse->message, "3 elements differ");
    assert_true(!better->worse && better->after == VERDICT_PASS);
    assert_int_equal(compare_exit_status(&p->c), 1);
    drop(p);
}

static void a_run_against_itself_is_no_worse(void **state) {
    (void)state;
    struct pair *p = pair_of(1, 0.05);
    struct comparison c;
    compare_make((struct compare_side){&p->runs[0], &p->series[0]}, (struct compare_side){&p->runs[0], &p->series[0]}, 0.05, &c);
    assert_int_equal(compare_exit_status(&c), 0);
    for (int i = 0; i < c.row_count; i++) assert_true(!strcmp(c.rows[i].word, "equal") || !strcmp(c.rows[i].word, "no difference shown"));
    assert_true(c.row_count >= 10 && c.verdict_count == 0 && json_object_size(c.differences) == 0);
    compare_free(&c);
    struct stored_run none = {.id = 9, .started = "2026-01-01"};
    struct stored_serieses nothing = {0};
    compare_make((struct compare_side){&p->runs[0], &p->series[0]}, (struct compare_side){&none, &nothing}, 0.05, &c);
    assert_int_equal(compare_exit_status(&c), 3); // nothing was compared
    compare_free(&c);
    drop(p);
}

static char *written(bool (*write)(const struct comparison *, FILE *), const struct comparison *c) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(write(c, out));
    fclose(out);
    return text;
}

static bool table(const struct comparison *c, FILE *out) {
    struct report_options o = {.columns = 200};
    return compare_table(c, &o, out);
}

static bool narrow_table(const struct comparison *c, FILE *out) {
    struct report_options o = {.columns = 60, .verbose = true};
    return compare_table(c, &o, out);
}

static char *listed(const struct stored_serieses *series, int columns) {
    char *text = NULL;
    size_t bytes;
    struct report_options o = {.columns = columns};
    FILE *out = open_memstream(&text, &bytes);
    assert_true(series_table(series, &o, out));
    fclose(out);
    return text;
}

// Names that differ in their middle, on a terminal that has no room for them.
static void names_are_told_whole(void **state) {
    (void)state;
    struct pair *p = pair_of(1.2, 0.05);
    json_t *varies = series_varying(&p->series[0]);
    char *text = written(narrow_table, &p->c), *narrow = listed(&p->series[0], 60), *wide = listed(&p->series[0], 200);
    for (int i = 0; i < p->c.row_count; i++) assert_non_null(strstr(text, p->c.rows[i].what));
    for (int i = 0; i < p->series[0].count; i++) {
        char *name = series_name(&p->series[0].items[i], varies);
        assert_true(strstr(narrow, name) && strstr(wide, name));
        free(name);
    }
    assert_non_null(strstr(narrow, "all-gather, bytes 4096 (net, virtual-100m, mpi)\n"));
    assert_null(strstr(wide, "mpi)\n"));
    json_decref(varies);
    free(text);
    free(narrow);
    free(wide);
    drop(p);
}

static void formats_read_back(void **state) {
    (void)state;
    struct pair *p = pair_of(1.2, 0.05);
    char *json = written(compare_json, &p->c), *csv = written(compare_csv, &p->c), *text = written(table, &p->c);
    json_error_t where;
    json_t *whole = json_loads(json, 0, &where), *rows = json_object_get(whole, "rows");
    assert_non_null(whole);
    assert_int_equal(json_array_size(rows), p->c.row_count);
    for (int i = 0; i < p->c.row_count; i++) {
        json_t *row = json_array_get(rows, (size_t)i), *ratio = json_object_get(row, "ratio");
        assert_string_equal(json_string_value(json_object_get(row, "word")), p->c.rows[i].word);
        assert_true(json_is_true(json_object_get(row, "worse")) == p->c.rows[i].worse);
        if (isfinite(p->c.rows[i].ratio.low)) assert_true(json_real_value(json_object_get(ratio, "low")) == p->c.rows[i].ratio.low);
        else if (p->c.rows[i].fault) assert_true(json_is_null(json_object_get(ratio, "low")));
        else assert_string_equal(json_string_value(json_object_get(ratio, "low")), "inf");
    }
    assert_int_equal(json_array_size(json_object_get(whole, "verdicts")), 2);
    assert_int_equal(json_integer_value(json_object_get(whole, "exit_status")), 1);
    json_decref(whole);
    int lines = 0;
    for (const char *at = csv; (at = strstr(at, "\r\n")); at += 2) lines++;
    assert_int_equal(lines, 1 + p->c.row_count + p->c.verdict_count);
    assert_non_null(strstr(csv, ",\"WRONG\",1,\"\",\"element 7 is 3, expected 4\"\r\n"));
    assert_non_null(strstr(csv, "verdict,\"reference\",\"step-bitwise\",,PASS,FAIL,,,,,,\"\",1,\"exact.case2\",\"3 elements differ\"\r\n"));
    static const char *const said[] = {"slower !", "WRONG !", "    element 7 is 3, expected 4\n", "most on exact.case1", "PASS -> FAIL  reference  exact.case2  step-bitwise: 3 elements differ !", "FAIL -> PASS  reference  exact.case3",
                                       "1 series only in the first run: not compared", "1 cases only in the second run: not compared", "run 2 ("};
    for (int i = 0; i < 9; i++)
        if (!strstr(text, said[i])) fail_msg("'%s' stands not in\n%s", said[i], text);
    assert_null(strstr(text, "bytes 8192")); // shows nothing
    free(json);
    free(csv);
    free(text);
    drop(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_are_matched_by_their_point), cmocka_unit_test(few_starts_have_no_word), cmocka_unit_test(names_are_told_whole), cmocka_unit_test(facts_are_counted), cmocka_unit_test(what_is_wrong_is_never_faster),
        cmocka_unit_test(verdicts_of_series_go_before_times), cmocka_unit_test(cases_give_one_row_a_family_and_quantity),
        cmocka_unit_test(verdicts_that_changed_are_told), cmocka_unit_test(a_run_against_itself_is_no_worse), cmocka_unit_test(formats_read_back),
    };
    return cmocka_run_group_tests_name("comparison of runs", tests, NULL, NULL);
}
