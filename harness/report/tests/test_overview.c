// The verdict matrix: capabilities of cases, cells of made-up stores, and every form in which it is written.
#include "harness/report/overview.h"

#include <sys/stat.h>

#include "harness/cases/suite.h"
#define sample_case sample_json // the store's sample has that name too
#include "harness/protocol/tests/sample.h"
#undef sample_case
#include "harness/report/tests/markup.h"

// ---- capabilities ----

// Rows that no case of the suite asks for: cases of one's own may. All others have some, none has all.
static const char *const unasked[] = {"compute-f64", "reduce-f64", "reduce-f16"};

static void every_capability_has_cases(void **state) {
    (void)state;
    struct implementation i;
    struct error error = {0};
    struct plan plan;
    const struct selection all = {.suite = "suite"};
    if (!implementation_read("reference", "suite", &i, &error) || !plan_make(&all, &i, &plan, &error)) fail_msg("%s", error.text);
    for (int row = 0; row < capability_count(); row++) {
        int count = 0;
        for (int k = 0; k < plan.count; k++) count += capabilities[row].has(&plan.cases[k].c);
        bool known = false;
        for (size_t k = 0; k < sizeof unasked / sizeof *unasked; k++) known |= !strcmp(unasked[k], capabilities[row].name);
        if ((count == 0) != known || count == plan.count) fail_msg("%s: %d of %d cases", capabilities[row].name, count, plan.count);
        for (int other = 0; other < row; other++) assert_string_not_equal(capabilities[row].name, capabilities[other].name);
    }
    plan_free(&plan);
    implementation_free(&i);
}

// What a case of the suite has, by its id: all that the matrix says of it.
static void capabilities_are_read_from_the_case(void **state) {
    (void)state;
    static const struct { const char *id, *has; } table[] = {
        {"exact-mlp.full.flat.n3", "full odd-ranks flat uneven-shards wrap-block compute-f32 reduce-f32"},
        {"exact-mlp.full.param.n1", "one-rank"},
        {"witness-accumulation.full.flat.n2.sync-last.bf16", "full flat wrap-block compute-bf16 reduce-f32 no-sync"},
        {"exact-reshard.full.flat.n1.from-4.layout-same", "one-rank load-resharded"},
    };
    struct implementation i;
    struct error error = {0};
    struct plan plan;
    const struct selection all = {.suite = "suite"};
    if (!implementation_read("reference", "suite", &i, &error) || !plan_make(&all, &i, &plan, &error)) fail_msg("%s", error.text);
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        char found[1024] = "";
        int k = 0;
        while (k < plan.count && strcmp(plan.cases[k].c.id, table[t].id)) k++;
        if (k == plan.count) fail_msg("%s: no such case", table[t].id);
        for (int row = 0; row < capability_count(); row++)
            if (capabilities[row].has(&plan.cases[k].c)) snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", *found ? " " : "", capabilities[row].name);
        assert_string_equal(found, table[t].has);
    }
    plan_free(&plan);
    implementation_free(&i);
}

// ---- made-up stores ----

// A case.json like the sample's, of that id, ranks and strategy; hidden: number of outputs, by which cases differ in size.
static char *case_text(const char *id, int ranks, const char *strategy, int hidden) {
    json_t *c = json_loads(sample_json, 0, NULL), *sharding = json_object_get(c, "sharding");
    json_object_set_new(c, "id", json_string(id));
    json_object_set_new(c, "world_size", json_integer(ranks));
    json_object_set_new(sharding, "strategy", json_string(strategy));
    json_object_set_new(sharding, "mesh", json_pack("[ii]", 1, ranks));
    json_array_set_new(json_object_get(json_array_get(json_object_get(c, "parameters"), 1), "shape"), 0, json_integer(hidden));
    char *text = json_dumps(c, JSON_COMPACT);
    json_decref(c);
    return text;
}

struct entry { const char *implementation, *id; int ranks, size; const char *verdict; bool waived; };

static void record(struct store *s, int64_t run, const struct entry *e) {
    struct error error = {0};
    enum verdict v = !strcmp(e->verdict, "FAIL") ? VERDICT_FAIL : !strcmp(e->verdict, "SKIP") ? VERDICT_SKIP : !strcmp(e->verdict, "BROKEN") ? VERDICT_BROKEN : VERDICT_PASS;
    struct result r = sample_result("step-bitwise", v, v == VERDICT_SKIP ? NAN : 3, v == VERDICT_SKIP ? NAN : 0, "ulp", "why <it> is | so");
    struct case_record c = sample_case(e->implementation, e->id, "f", "full", e->ranks, &r, 1);
    struct waiver_record w = {e->implementation, "step-bitwise", e->id, "any", "known <cause>", "pages/i.md#cause", "9999-12-31", "w.yaml:2"};
    int64_t waiver = 0;
    if (e->waived && !store_add_waiver(s, run, &w, &waiver, &error)) fail_msg("%s", error.text);
    char *text = case_text(e->id, e->ranks, "full", e->size);
    c.case_json = text;
    c.waivers = &waiver;
    c.note = !strcmp(e->implementation, "noted") ? "on CPU" : NULL;
    sample_record(s, run, &c);
    free(text);
}

static void load(struct store *s, const int64_t *runs, int count, struct stored_run *r, struct overview *m) {
    struct error error = {0};
    if (!store_load_newest(s, runs, count, r, &error) || !overview_make(r, NULL, m, &error)) fail_msg("%s", error.text);
}

static struct overview_cell *cell_of(const struct overview *m, const char *capability, const char *implementation) {
    int row = 0;
    while (strcmp(capabilities[row].name, capability)) row++;
    int column = names_find(&m->implementations, implementation);
    assert_true(column >= 0);
    return overview_at(m, row, column);
}

static void a_cell_is_the_worst_of_its_cases(void **state) {
    (void)state;
    static const struct { const char *cases; const char *text, *deciding, *class; } table[] = { // letters: verdict; w: a waived FAIL; then ranks
        {"P2 P3", "PASS 2", "c0", "pass"}, {"P3 P2", "PASS 2", "c1", "pass"}, {"S2 P3", "PASS 1", "c1", "pass"}, {"S3 S2", "SKIP 2", "c1", "skip"},
        {"P2 F4 F3", "FAIL 2/3", "c2", "fail"}, {"w2 P2", "waived 1/2", "c0", "waived"}, {"w2 F3", "FAIL 2", "c1", "fail"},
        {"B4 F2", "BROKEN 1/2", "c0", "broken"}, {"F2 S2", "FAIL 1", "c0", "fail"}, {"P1", "", NULL, "none"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = sample_path("r.db");
        struct store *s = sample_open(path);
        int64_t run = sample_begin(s, "x");
        int count = 0;
        for (const char *p = table[i].cases; *p; p += p[2] ? 3 : 2, count++) {
            char id[8];
            snprintf(id, sizeof id, "c%d", count);
            struct entry e = {"i", id, p[1] - '0', 8, *p == 'P' ? "PASS" : *p == 'S' ? "SKIP" : *p == 'B' ? "BROKEN" : "FAIL", *p == 'w'};
            record(s, run, &e);
        }
        struct stored_run r;
        struct overview m;
        char words[64];
        load(s, NULL, 0, &r, &m);
        const struct overview_cell *cell = cell_of(&m, "full", "i");
        assert_string_equal(overview_text(cell, words), table[i].text);
        assert_string_equal(overview_class(cell), table[i].class);
        if (table[i].deciding) assert_string_equal(cell->deciding->c->case_id, table[i].deciding);
        overview_free(&m);
        stored_run_free(&r);
        store_close(s);
        sample_remove(path);
    }
}

// Runs 1: FAIL, 2: PASS of the same case, 3: another implementation, 4: selftest's.
static void the_newest_verdict_counts(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct error error = {0};
    int64_t first = sample_begin(s, "x"), second = sample_begin(s, "y"), third = sample_begin(s, "z"), selftest;
    struct run_info info = {.command = "fsdpmark selftest", .profile = "selftest"};
    assert_true(store_begin_run(s, &info, &selftest, &error));
    record(s, first, &(struct entry){"i", "a", 2, 8, "FAIL", false});
    record(s, first, &(struct entry){"i", "b", 2, 12, "FAIL", false});
    record(s, second, &(struct entry){"i", "a", 2, 8, "PASS", false});
    record(s, third, &(struct entry){"noted", "a", 2, 8, "PASS", false});
    record(s, third, &(struct entry){"noted", "gate.a", 2, 8, "FAIL", false}); // gates are no subject of it
    record(s, selftest, &(struct entry){"faulty", "a", 2, 8, "FAIL", false});
    const struct { int64_t runs[2]; int count, implementations; const char *text; } table[] = {
        {{0, 0}, 0, 2, "FAIL 1/2"}, {{1, 0}, 1, 1, "FAIL 2"}, {{2, 0}, 1, 1, "PASS 1"}, {{1, 2}, 2, 1, "FAIL 1/2"}, {{2, 4}, 2, 2, "PASS 1"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct stored_run r;
        struct overview m;
        char words[64];
        load(s, table[i].runs, table[i].count, &r, &m);
        assert_int_equal(m.implementations.count, table[i].implementations);
        assert_string_equal(overview_text(cell_of(&m, "full", "i"), words), table[i].text);
        overview_free(&m);
        stored_run_free(&r);
    }
    struct stored_run r;
    struct overview m;
    const int64_t missing = 9;
    assert_false(store_load_newest(s, &missing, 1, &r, &error));
    assert_non_null(strstr(error.text, "no run 9; it holds, newest first: 4, 3, 2, 1"));
    const char *const names[] = {"noted", "i", NULL}, *const none[] = {"other", NULL};
    error = (struct error){0};
    assert_true(store_load_newest(s, NULL, 0, &r, &error));
    assert_true(overview_make(&r, names, &m, &error));
    assert_string_equal(m.implementations.items[0], "noted");
    overview_free(&m);
    assert_false(overview_make(&r, none, &m, &error));
    assert_string_equal(error.text, "implementation other: found no verdict on it in the store");
    stored_run_free(&r);
    store_close(s);
    sample_remove(path);
}

// ---- what is written ----

struct fixture { const char *path; struct store *s; struct stored_run r; struct overview m; };

static struct fixture fixture;

static struct fixture *open_fixture(void) {
    struct fixture *f = &fixture;
    *f = (struct fixture){.path = sample_path("r.db")};
    f->s = sample_open(f->path);
    int64_t run = sample_begin(f->s, "x");
    sample_plan(f->s, run, "noted", 2);
    record(f->s, run, &(struct entry){"noted", "a.full.n2", 2, 8, "FAIL", false});
    record(f->s, run, &(struct entry){"noted", "b.full.n4", 4, 8, "PASS", false});
    record(f->s, run, &(struct entry){"<b>|name", "a.full.n2", 2, 8, "FAIL", true});
    record(f->s, run, &(struct entry){"skips", "a.full.n2", 2, 8, "SKIP", false});
    load(f->s, NULL, 0, &f->r, &f->m);
    return f;
}

static void close_fixture(struct fixture *f) {
    overview_free(&f->m);
    stored_run_free(&f->r);
    store_close(f->s);
    sample_remove(f->path);
}

static char *slurp(const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *in = fopen(path, "r");
    if (!in) return NULL;
    if (getdelim(&text, &bytes, 0, in) < 0) text = strdup("");
    fclose(in);
    return text;
}

static void the_table_leads_to_the_smallest_case(void **state) {
    (void)state;
    struct fixture *f = open_fixture();
    char *text = NULL;
    size_t bytes;
    for (int narrow = 0; narrow < 2; narrow++) {
        FILE *out = open_memstream(&text, &bytes);
        assert_true(overview_table(&f->m, &(struct report_options){.columns = narrow ? 40 : 300}, out));
        fclose(out);
        int heads = 0;
        for (const char *p = text; (p = strstr(p, "capability  ")); p++) heads++;
        assert_int_equal(heads, narrow ? 3 : 1);
        assert_null(strchr(text, '\x1b'));
        if (!narrow) {
            assert_non_null(strstr(text, "waived 1 [1]  FAIL 1/2 [2]  SKIP 1\n"));
            assert_non_null(strstr(text, "[1] <b>|name FAIL (waived) a.full.n2, step-bitwise: 3 > 0 ulp; known <cause> (pages/i.md#cause)\n"
                                         "    fsdpmark check -i '<b>|name' -k a.full.n2   (fsdpmark show 1)\n"));
            assert_non_null(strstr(text, "[2] noted FAIL a.full.n2, step-bitwise: 3 > 0 ulp; why <it> is | so\n    fsdpmark check -i noted -k a.full.n2   (fsdpmark show 1)\n"));
            assert_non_null(strstr(text, "noted: on CPU\n"));
        }
        free(text);
    }
    FILE *out = open_memstream(&text, &bytes);
    overview_table(&f->m, &(struct report_options){.columns = 300, .color = true}, out);
    fclose(out);
    assert_non_null(strstr(text, "\x1b[1;31mFAIL 1/2 [2]\x1b[0m"));
    free(text);
    close_fixture(f);
}

static void json_tells_every_cell(void **state) {
    (void)state;
    struct fixture *f = open_fixture();
    char *text = NULL;
    size_t bytes, i;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(overview_json(&f->m, out));
    fclose(out);
    json_t *whole = json_loads(text, 0, NULL), *cells = json_object_get(whole, "cells"), *cell;
    int waived = 0, failed = 0;
    assert_int_equal(json_array_size(cells), (size_t)(capability_count() * 3));
    json_array_foreach(cells, i, cell) {
        const char *verdict = json_string_value(json_object_get(cell, "verdict"));
        if (!verdict || strcmp(verdict, "FAIL")) continue;
        failed++;
        waived += json_is_true(json_object_get(cell, "waived"));
        assert_string_equal(json_string_value(json_object_get(cell, "case")), "a.full.n2");
        assert_string_equal(json_string_value(json_object_get(cell, "check")), "step-bitwise");
        assert_string_equal(json_string_value(json_object_get(cell, "figure")), "3 > 0 ulp");
    }
    assert_true(failed > 2 && waived == failed / 2);
    json_decref(whole);
    free(text);
    close_fixture(f);
}

static void markdown_goes_between_its_lines(void **state) {
    (void)state;
    struct fixture *f = open_fixture();
    struct error error = {0};
    char path[300];
    snprintf(path, sizeof path, "%.*s/README.md", (int)(strrchr(f->path, '/') - f->path), f->path);
    if (!overview_markdown_into(&f->m, path, &error)) fail_msg("%s", error.text);
    char *alone = slurp(path);
    assert_memory_equal(alone, OVERVIEW_BEGIN, strlen(OVERVIEW_BEGIN));
    assert_non_null(strstr(alone, "| strategy: full (ZeRO-3) | waived 1 [1] | **FAIL 1/2** [2] | SKIP 1 |\n"));
    assert_non_null(strstr(alone, "&lt;b&gt;\\|name"));
    assert_non_null(strstr(alone, "([page](pages/i.md#cause), until 9999-12-31)"));
    FILE *out = fopen(path, "w");
    fprintf(out, "# Head\n\n%s -->\nold\n%s -->\n\ntail\n", OVERVIEW_BEGIN, OVERVIEW_END);
    fclose(out);
    for (int twice = 0; twice < 2; twice++)
        if (!overview_markdown_into(&f->m, path, &error)) fail_msg("%s", error.text);
    char *inside = slurp(path), *expected = malloc(strlen(alone) + 64);
    sprintf(expected, "# Head\n\n%s\ntail\n", alone);
    assert_string_equal(inside, expected);
    out = fopen(path, "w");
    fprintf(out, "# Head\n%s -->\nno end\n", OVERVIEW_BEGIN);
    fclose(out);
    assert_false(overview_markdown_into(&f->m, path, &error));
    assert_non_null(strstr(error.text, "README.md: found no lines " OVERVIEW_BEGIN " ... and " OVERVIEW_END " ..., expected both in a file that is there"));
    free(expected);
    free(inside);
    free(alone);
    close_fixture(f);
}

static void the_page_is_whole(void **state) {
    (void)state;
    struct fixture *f = open_fixture();
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(overview_html(&f->m, out));
    fclose(out);
    struct markup m;
    markup_parse(&m, text);
    int links = 0;
    for (int i = 0; i < m.values; i++) { // every link within the page leads somewhere
        if (strcmp(m.value_of[i], "a@href")) continue;
        bool there = false;
        assert_int_equal(m.value[i][0], '#');
        for (int k = 0; k < m.values; k++) there |= strstr(m.value_of[k], "@id") && !strcmp(m.value[k], m.value[i] + 1);
        if (!there) fail_msg("%s leads nowhere", m.value[i]);
        links++;
    }
    assert_true(links > 10);
    assert_true(markup_count(&m, "td@class", "waived") > 2 && markup_count(&m, "td@class", "fail") > 2 && markup_count(&m, "td@class", "skip") > 2);
    assert_int_equal(markup_count(&m, "pre", "fsdpmark check -i noted -k a.full.n2"), 1);
    assert_non_null(strstr(text, "<p>Waived until 9999-12-31: known &lt;cause&gt; <code>pages/i.md#cause</code></p>"));
    assert_non_null(strstr(text, "<p>Note: on CPU</p>"));
    assert_null(strstr(text, "<script"));
    markup_free(&m);
    free(text);
    close_fixture(f);
}

static void the_figure_is_drawn(void **state) {
    (void)state;
    if (system("gnuplot --version >/dev/null 2>&1")) skip();
    struct fixture *f = open_fixture();
    struct error error = {0};
    char svg[300], png[300];
    snprintf(svg, sizeof svg, "%.*s/m.svg", (int)(strrchr(f->path, '/') - f->path), f->path);
    snprintf(png, sizeof png, "%.*s/m.png", (int)(strrchr(f->path, '/') - f->path), f->path);
    if (!overview_figure(&f->m, svg, png, &error)) fail_msg("%s", error.text);
    char *drawn = slurp(svg), *pixels = slurp(png);
    assert_non_null(strstr(drawn, "FAIL 1/2"));
    assert_non_null(strstr(drawn, "waived 1"));
    assert_memory_equal(pixels, "\x89PNG\r\n\x1a\n", 8);
    free(drawn);
    free(pixels);
    assert_false(overview_figure(&f->m, "/nonexistent/m.svg", NULL, &error));
    assert_non_null(strstr(error.text, "/nonexistent/m.svg: cannot be written: No such file or directory"));
    close_fixture(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_capability_has_cases), cmocka_unit_test(capabilities_are_read_from_the_case),
        cmocka_unit_test(a_cell_is_the_worst_of_its_cases), cmocka_unit_test(the_newest_verdict_counts),
        cmocka_unit_test(the_table_leads_to_the_smallest_case), cmocka_unit_test(json_tells_every_cell),
        cmocka_unit_test(markdown_goes_between_its_lines), cmocka_unit_test(the_page_is_whole), cmocka_unit_test(the_figure_is_drawn),
    };
    return cmocka_run_group_tests_name("overview", tests, NULL, NULL);
}
