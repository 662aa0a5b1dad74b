// Reports of fixed runs: the table to the letter, exit statuses, progress, folders, and time.
#include "harness/report/tests/rich.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "harness/report/figures.h"
#include "harness/report/tests/markup.h"
#include "harness/report/view.h"

struct fixture { const char *path; struct store *store; struct stored_run run; };

static struct fixture open_fixture(void) {
    struct fixture f = {.path = sample_path("r.db")};
    f.store = sample_open(f.path);
    return f;
}

static void load(struct fixture *f) {
    struct error error = {0};
    if (!store_load_run(f->store, 0, &f->run, &error)) fail_msg("%s", error.text);
}

static void close_fixture(struct fixture *f) {
    stored_run_free(&f->run);
    store_close(f->store);
    sample_remove(f->path);
}

typedef bool report_function(const struct stored_run *r, FILE *out);
static char *text_of(report_function *report, const struct stored_run *r) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(report(r, out));
    fclose(out);
    return text;
}

static char *table_of(const struct stored_run *r, struct report_options o) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(report_table(r, &o, out));
    fclose(out);
    return text;
}

static const char *const rich_table =
    "implementation   family            ranks  cases  results  verdict\n"
    "reference        exact-mlp         1-4,8     15       30  PASS\n"
    "reference        witness-mean      1-4,8     15       15  PASS\n"
    "reference        tiny-transformer  1-4,8     15       30  PASS\n"
    "pytorch-fsdp2    exact-mlp         1-4,8     15       30  1 FAIL, 14 PASS\n"
    "  FAIL    exact-mlp.full.n3  (suite/cases/exact.yaml:12)\n"
    "          step-bitwise: 12 > 0 elements; ranks 0-1; fits Z01 Z03\n"
    "            s0, layers.1.weight: 12 of 32 elements differ, first at (5, 2), in the\n"
    "            shard of rank 2; fitted scalar 0.333333 = 1/N, residual 2.1e-08: the\n"
    "            gradient of the last shard is divided twice\n"
    "pytorch-fsdp2    witness-mean      1-4,8     15       15  1 BROKEN, 14 PASS\n"
    "  BROKEN  witness-mean.none.n8  (suite/cases/exact.yaml:12)\n"
    "          answer\n"
    "            the harness could not start rank 7: fork: Resource temporarily\n"
    "            unavailable\n"
    "          | rank0: loading\n"
    "          | rank1: Traceback (most recent call last):\n"
    "          | rank1: KeyError: 'w'\n"
    "pytorch-fsdp2    tiny-transformer  1-4,8     15       30  1 FAIL, 14 PASS\n"
    "  FAIL    tiny-transformer.grad.n8  (suite/cases/exact.yaml:12)\n"
    "          gradient: 400 > 8 ratio; ranks 0-1; fits Z01 Z03\n"
    "            s1.grad, blocks.0.attention.query.weight\n"
    "deepspeed-zero3  exact-mlp         1-4,8     15       30  PASS\n"
    "deepspeed-zero3  witness-mean      1-4,8     15       15  5 SKIP, 10 PASS\n"
    "deepspeed-zero3  tiny-transformer  1-4,8     15       30  PASS\n"
    "  SKIP    5 cases: the implementation has no strategy full in layout flat\n"
    "\n"
    "127 PASS, 2 FAIL, 5 SKIP, 1 BROKEN (cases; 225 results; run 1)\n";

static void the_table_of_a_fixed_run(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    rich_run(f.store);
    load(&f);
    char *plain = table_of(&f.run, (struct report_options){.columns = 84});
    assert_string_equal(plain, rich_table);
    char *colored = table_of(&f.run, (struct report_options){.columns = 84, .color = true});
    assert_non_null(strstr(colored, "\x1b[32mPASS\x1b[0m"));
    assert_non_null(strstr(colored, "\x1b[1;31mFAIL\x1b[0m"));
    char *to = colored; // without its colours it is the same table
    for (const char *from = colored; *from;)
        if (*from == '\x1b') from += strcspn(from, "m") + 1;
        else *to++ = *from++;
    *to = 0;
    assert_string_equal(colored, plain);
    char *verbose = table_of(&f.run, (struct report_options){.columns = 84, .verbose = true});
    int lines = 0;
    for (const char *p = verbose; (p = strstr(p, "  sharding\n")); p++) lines++;
    assert_int_equal(lines, 45); // every result is there, the passing ones too
    assert_non_null(strstr(verbose, "  PASS    step-bitwise: 0 <= 0 elements\n            all 84 elements of 4 tensors equal\n"));
    free(plain);
    free(colored);
    free(verbose);
    close_fixture(&f);
}

static void color_is_for_terminals_that_want_it(void **state) {
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
    FILE *terminal = fopen(ptsname(master), "w"), *file = tmpfile();
    static const struct { const char *term, *no_color; bool expected; } table[] = {
        {"xterm", NULL, true}, {"xterm", "", true}, {"xterm", "1", false}, {"dumb", NULL, false}, {NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        table[i].term ? setenv("TERM", table[i].term, 1) : unsetenv("TERM");
        table[i].no_color ? setenv("NO_COLOR", table[i].no_color, 1) : unsetenv("NO_COLOR");
        assert_int_equal(report_wants_color(terminal), table[i].expected);
        assert_false(report_wants_color(file));
    }
    unsetenv("NO_COLOR");
    setenv("COLUMNS", "77", 1);
    assert_int_equal(report_columns(file), 77);
    unsetenv("COLUMNS");
    assert_int_equal(report_columns(file), 100);
    fclose(terminal);
    fclose(file);
    close(master);
}

// cases: one letter a case: P F S B, or - for a case without results. planned: -1 for no plan.
static void exit_statuses(void **state) {
    (void)state;
    static const struct { const char *cases; int planned, status; } table[] = {
        {"P", 1, 0}, {"PP", 2, 0}, {"PS", 2, 0}, {"PF", 2, 1}, {"FS", 2, 1}, {"PB", 2, 3}, {"FB", 2, 3}, {"SB", 2, 3},
        {"S", 1, 3}, {"SSS", 3, 3}, // nothing was judged
        {"P-", 2, 3},             // a case that no check judged
        {"PP", 3, 3}, {"F", 2, 3}, // planned, not run
        {"", 0, 3}, {"", 4, 3},   // nothing ran
        {"P", -1, 0}, {"", -1, 3},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct fixture f = open_fixture();
        int64_t run = sample_begin(f.store, "x");
        if (table[i].planned >= 0) sample_plan(f.store, run, "i", table[i].planned);
        for (const char *p = table[i].cases; *p; p++) {
            char id[8];
            snprintf(id, sizeof id, "c%d", (int)(p - table[i].cases));
            enum verdict v = *p == 'F' ? VERDICT_FAIL : *p == 'S' ? VERDICT_SKIP : *p == 'B' ? VERDICT_BROKEN : VERDICT_PASS;
            struct result r = sample_result("check", v, NAN, NAN, "", "");
            struct case_record c = sample_case("i", id, "f", "full", 1, &r, *p == '-' ? 0 : 1);
            sample_record(f.store, run, &c);
        }
        load(&f);
        if (report_exit_status(&f.run) != table[i].status) fail_msg("row %zu", i);
        report_function *const formats[] = {report_json, report_junit, report_tap, report_csv, report_markdown};
        for (int k = 0; k < 5; k++) free(text_of(formats[k], &f.run));
        char *text = text_of(report_json, &f.run), *table_text = table_of(&f.run, (struct report_options){.columns = 80});
        json_t *whole = json_loads(text, 0, NULL);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(whole, "run"), "exit_status")), table[i].status);
        assert_true(json_array_size(json_object_get(whole, "results")) > 0); // what is missing is told
        bool judged = strpbrk(table[i].cases, "PF");
        if (table[i].status == 3) assert_non_null(strstr(table_text, judged ? "BROKEN" : "\nno case is PASS or FAIL: nothing was judged\n"));
        if (judged) assert_null(strstr(table_text, "nothing was judged"));
        json_decref(whole);
        free(text);
        free(table_text);
        close_fixture(&f);
    }
}

static char *slurp(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    if (!in) return NULL;
    char *text = NULL;
    size_t bytes = 0;
    if (getdelim(&text, &bytes, 0, in) < 0) {
        free(text);
        text = NULL;
    }
    fclose(in);
    return text;
}

// A run of one implementation: cases of one check each, the letter of the verdict, then the letter of its waiver: w holds, x has
// expired, - none. Waivers: "w" until far in the future, "x" until far in the past.
static void record_waived(struct store *s, const char *cases, bool orphan) {
    struct error error = {0};
    int64_t run = sample_begin(s, "x"), ids[2];
    struct waiver_record w[2] = {
        {"i", "check", "c*", "any", "the framework forgets it", "pages/i.md#cause", "9999-12-31", "w.yaml:2"},
        {"i", "check", "d*", "any", "it was to be mended", "pages/i.md#old", "2020-01-31", "w.yaml:9"}};
    int used[2] = {strchr(cases, 'w') != NULL, strchr(cases, 'x') != NULL || orphan};
    for (int k = 0; k < 2; k++)
        if (used[k] && !store_add_waiver(s, run, &w[k], &ids[k], &error)) fail_msg("%s", error.text);
    sample_plan(s, run, "i", (int)strlen(cases) / 2);
    for (int i = 0; cases[2 * i]; i++) {
        char id[8], of = cases[2 * i + 1];
        snprintf(id, sizeof id, "c%d", i);
        enum verdict v = cases[2 * i] == 'F' ? VERDICT_FAIL : cases[2 * i] == 'B' ? VERDICT_BROKEN : cases[2 * i] == 'S' ? VERDICT_SKIP : VERDICT_PASS;
        struct result r = sample_result("check", v, 1, 0, "ulp", "it differs");
        int64_t waiver = of == 'w' ? ids[0] : of == 'x' ? ids[1] : 0;
        struct case_record c = sample_case("i", id, "f", "full", 1, &r, 1);
        c.waivers = &waiver;
        sample_record(s, run, &c);
    }
}

static void waivers_decide_the_status_and_are_marked_everywhere(void **state) {
    (void)state;
    static const struct { const char *cases; bool orphan; int status, waived; const char *says; } table[] = {
        {"Fw", false, 0, 1, NULL}, {"FwP-", false, 0, 1, NULL}, {"FwF-", false, 1, 1, NULL}, {"FwS-", false, 0, 1, NULL},
        {"FwB-", false, 3, 1, NULL}, {"F-", false, 1, 0, NULL},
        {"Fx", false, 1, 0, "w.yaml:9: expired on 2020-01-31: look again at pages/i.md#old, then renew or remove the waiver"},
        {"P-", true, 1, 0, "w.yaml:9: expired on 2020-01-31: look again at pages/i.md#old, then renew or remove the waiver"},
        {"PwP-", false, 1, 0, "w.yaml:2: check check of c0 is PASS, the waiver says that it FAILs: narrow or remove it"},
        {"PwPwFw", false, 1, 1, "w.yaml:2: check check of c0 is PASS (and 1 more of its results), the waiver says that it FAILs: narrow or remove it"},
        {"Px", false, 1, 0, "w.yaml:9: expired on 2020-01-31: look again"},
        {"S-", true, 3, 0, "w.yaml:9: expired on 2020-01-31: look again"}, // nothing was judged
    };
    report_function *const formats[] = {report_json, report_junit, report_tap, report_csv, report_markdown};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct fixture f = open_fixture();
        record_waived(f.store, table[i].cases, table[i].orphan);
        load(&f);
        if (report_exit_status(&f.run) != table[i].status) fail_msg("%s: status %d", table[i].cases, report_exit_status(&f.run));
        char *plain = table_of(&f.run, (struct report_options){.columns = 300}), summary[32];
        snprintf(summary, sizeof summary, "(%d waived)", table[i].waived);
        bool all = table[i].waived && strstr(plain, "FAIL (waived), 0 BROKEN");
        if (!table[i].waived) assert_null(strstr(plain, "waived"));
        else if (!all && !strstr(plain, summary)) assert_non_null(strstr(plain, "FAIL (waived)"));
        if (table[i].waived) assert_non_null(strstr(plain, "waived: check: the framework forgets it (pages/i.md#cause), until 9999-12-31"));
        if (table[i].says) assert_non_null(strstr(plain, table[i].says));
        free(plain);
        for (int k = 0; k < 5; k++) {
            char *text = text_of(formats[k], &f.run);
            if (table[i].waived) {
                assert_non_null(strstr(text, "waived"));
                assert_non_null(strstr(text, "the framework forgets it"));
                assert_non_null(strstr(text, k == 4 ? "pages/i.md\\#cause" : k == 2 ? "pages/i.md\\#cause" : "pages/i.md#cause"));
            }
            if (table[i].says) assert_non_null(strstr(text, k == 4 ? "w.yaml:" : table[i].says));
            free(text);
        }
        close_fixture(&f);
    }
}

// A waived FAIL is no failure to what reads JUnit or TAP, and a FAIL with its words to people.
static void waived_failures_do_not_fail_other_tools(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    record_waived(f.store, "FwP-", false);
    load(&f);
    char *text = text_of(report_junit, &f.run);
    assert_non_null(strstr(text, "tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\""));
    assert_non_null(strstr(text, "<property name=\"verdict\" value=\"FAIL\"/>"));
    assert_non_null(strstr(text, "<skipped message=\"the framework forgets it\" type=\"FAIL, waived\">it differs\nfigure: 1 &gt; 0 ulp\n"));
    free(text);
    text = text_of(report_tap, &f.run);
    assert_non_null(strstr(text, "not ok 1 - i c0 check # TODO waived: the framework forgets it (pages/i.md\\#cause)\n"));
    free(text);
    text = text_of(report_json, &f.run);
    json_t *whole = json_loads(text, 0, NULL), *first = json_array_get(json_object_get(whole, "results"), 0);
    assert_true(json_is_true(json_object_get(first, "waived")));
    assert_string_equal(json_string_value(json_object_get(first, "verdict")), "FAIL");
    assert_string_equal(json_string_value(json_object_get(first, "waiver_reason")), "the framework forgets it");
    assert_string_equal(json_string_value(json_object_get(first, "waiver_page")), "pages/i.md#cause");
    assert_true(json_is_false(json_object_get(json_array_get(json_object_get(whole, "results"), 1), "waived")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json_object_get(whole, "run"), "verdicts"), "waived")), 1);
    json_decref(whole);
    free(text);
    struct error error = {0};
    char folder[300];
    snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    if (!report_write(&f.run, folder, &error)) fail_msg("%s", error.text);
    char *page = slurp(folder, "index.html");
    assert_non_null(strstr(page, "<td class=\"waived\">1 FAIL (waived), 1 PASS</td>"));
    assert_non_null(strstr(page, "Known failures, waived"));
    assert_non_null(strstr(page, "<p>Waived until 9999-12-31: the framework forgets it <code>pages/i.md#cause</code></p>"));
    assert_non_null(strstr(page, "Nothing but known failures."));
    free(page);
    close_fixture(&f);
}

// What verdicts must be read with stands beside them in every format.
static void notes_are_shown(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    int64_t run = sample_begin(f.store, "x");
    struct result r = sample_result("check", VERDICT_PASS, 0, 0, "", "");
    sample_plan(f.store, run, "i", 3);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        struct case_record c = sample_case("i", id, "f", "full", 1, &r, 1);
        c.note = i < 2 ? "on CPU through a stand-in" : NULL;
        sample_record(f.store, run, &c);
    }
    load(&f);
    char *text = table_of(&f.run, (struct report_options){.columns = 100});
    assert_non_null(strstr(text, "  note    2 of 3 cases: on CPU through a stand-in\n"));
    free(text);
    static const struct { report_function *report; const char *says; int times; } table[] = {
        {report_json, "\"note\": \"on CPU through a stand-in\"", 2}, {report_csv, "\"on CPU through a stand-in\"", 2},
        {report_junit, "<property name=\"note\" value=\"on CPU through a stand-in\"/>", 2},
        {report_tap, "\n# i, 2 of 3 cases: on CPU through a stand-in\n", 1},
        {report_markdown, "## Notes on the verdicts\n\n- i, 2 of 3 cases: on CPU through a stand-in\n", 1}};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        int times = 0;
        text = text_of(table[k].report, &f.run);
        for (const char *p = text; (p = strstr(p, table[k].says)); p++) times++;
        if (times != table[k].times) fail_msg("%s: %d times", table[k].says, times);
        free(text);
    }
    close_fixture(&f);
}

static void an_interrupted_run_says_what_is_missing(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    int64_t run = sample_begin(f.store, "x");
    sample_plan(f.store, run, "reference", 10);
    sample_plan(f.store, run, "pytorch-fsdp2", 10);
    struct result r = sample_result("check", VERDICT_PASS, 0, 0, "", "");
    struct case_record c = sample_case("reference", "c", "f", "full", 1, &r, 1);
    sample_record(f.store, run, &c);
    load(&f);
    char *text = table_of(&f.run, (struct report_options){.columns = 120});
    assert_non_null(strstr(text, "9 of 10 planned cases were not run: the run was interrupted"));
    assert_non_null(strstr(text, "10 of 10 planned cases were not run: the run was interrupted"));
    assert_non_null(strstr(text, "1 PASS, 0 FAIL, 0 SKIP, 2 BROKEN"));
    free(text);
    close_fixture(&f);
}

static void members_of_a_family_share_a_row(void **state) {
    (void)state;
    static const char *const families[] = {"exact.f32", "wide", "exact.bf16.m2", ".odd", ""};
    struct fixture f = open_fixture();
    int64_t run = sample_begin(f.store, "x");
    struct result r = sample_result("check", VERDICT_PASS, 0, 0, "", "");
    for (int i = 0; i < 5; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        struct case_record c = sample_case("reference", id, families[i], "full", 1 + i, &r, 1);
        sample_record(f.store, run, &c);
    }
    load(&f);
    char *text = table_of(&f.run, (struct report_options){.columns = 120});
    assert_non_null(strstr(text, "reference       exact   1,3        2        2  PASS\n"
                                 "reference       wide    2          1        1  PASS\n"
                                 "reference       .odd    4          1        1  PASS\n"
                                 "reference               5          1        1  PASS\n"));
    free(text);
    close_fixture(&f);
}

static void a_run_of_skips_is_said_to_have_judged_nothing(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    int64_t run = sample_begin(f.store, "x");
    struct result r = sample_result("support", VERDICT_SKIP, NAN, NAN, "", "not installed: make implementations");
    struct case_record c = sample_case("reference", "c", "f", "full", 1, &r, 1);
    sample_record(f.store, run, &c);
    load(&f);
    char *text = table_of(&f.run, (struct report_options){.columns = 120});
    assert_non_null(strstr(text, "SKIP    c: not installed: make implementations"));
    assert_non_null(strstr(text, "0 PASS, 0 FAIL, 1 SKIP, 0 BROKEN (cases; 1 results; run 1)\nno case is PASS or FAIL: nothing was judged\n"));
    free(text);
    text = text_of(report_markdown, &f.run);
    assert_non_null(strstr(text, "nothing was judged"));
    free(text);
    close_fixture(&f);
}

static bool has_gnuplot(void) { return !system("gnuplot --version >/dev/null 2>&1"); }

static void the_folder_holds_every_format(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct error error = {0};
    char folder[300];
    rich_run(f.store);
    load(&f);
    snprintf(folder, sizeof folder, "%.*s/deep/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    for (int twice = 0; twice < 2; twice++) // the second over the first
        if (!report_write(&f.run, folder, &error)) fail_msg("%s", error.text);
    static const char *const names[] = {"report.md", "results.csv", "results.json", "index.html"};
    for (int i = 0; i < 4; i++) {
        char *text = slurp(folder, names[i]);
        assert_non_null(text);
        assert_non_null(strstr(text, "tiny-transformer.grad.n8"));
        free(text);
    }
    char *page = slurp(folder, "index.html");
    struct markup m;
    markup_parse(&m, page);
    assert_int_equal(markup_count(&m, "td@class", "fail"), 2 + 2); // by family and in the results
    assert_null(strstr(page, "http:/" "/cdn"));
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "src="));
    const char *svg = strstr(page, "<svg");
    if (has_gnuplot()) {
        assert_non_null(svg);
        assert_int_equal(markup_count(&m, "text", "blocks.0.attention.query.weight"), 1);
        static const char *const pictures[] = {"ratio", "ranks", "verdicts"};
        for (int i = 0; i < 3; i++) {
            char name[64], *text;
            snprintf(name, sizeof name, "figures/%s.png", pictures[i]);
            text = slurp(folder, name);
            assert_non_null(text);
            assert_memory_equal(text, "\x89PNG\r\n\x1a\n", 8);
            free(text);
            snprintf(name, sizeof name, "figures/%s.svg", pictures[i]);
            text = slurp(folder, name);
            assert_non_null(text);
            assert_non_null(strstr(text, "</svg>"));
            free(text);
        }
    }
    markup_free(&m);
    free(page);
    close_fixture(&f);
}

static void without_gnuplot_the_page_says_so(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct error error = {0};
    char folder[300], *path = strdup(getenv("PATH"));
    rich_run(f.store);
    load(&f);
    snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    setenv("PATH", "/nonexistent", 1);
    bool ok = report_write(&f.run, folder, &error);
    setenv("PATH", path, 1);
    assert_true(ok);
    char *page = slurp(folder, "index.html");
    assert_non_null(strstr(page, "gnuplot is not installed"));
    assert_null(strstr(page, "<svg"));
    free(page);
    free(path);
    close_fixture(&f);
}

static void figures_without_data_say_why(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct error error = {0};
    char folder[300];
    int64_t run = sample_begin(f.store, "x");
    struct result r = sample_result("step-bitwise", VERDICT_PASS, 0, 0, "elements", "");
    struct case_record c = sample_case("reference", "c", "f", "full", 1, &r, 1);
    sample_record(f.store, run, &c);
    load(&f);
    snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    assert_true(report_write(&f.run, folder, &error));
    char *page = slurp(folder, "index.html");
    assert_non_null(strstr(page, "no data: no check of this run recorded figures by tensor"));
    assert_non_null(strstr(page, "no data: no result of a calibrated case of this run has a figure and a bound above 0"));
    free(page);
    close_fixture(&f);
}

static void a_folder_that_cannot_be_written_is_named(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct error error = {0};
    char folder[300];
    rich_run(f.store);
    load(&f);
    snprintf(folder, sizeof folder, "%s/report", f.path); // below a file
    assert_false(report_write(&f.run, folder, &error));
    assert_memory_equal(error.text, folder, strlen(folder));
    assert_non_null(strstr(error.text, ": cannot make the folder: Not a directory"));
    close_fixture(&f);
}

static void a_picture_that_fails_says_why(void **state) {
    (void)state;
    char why[256] = "", folder[256];
    if (!has_gnuplot()) skip();
    const char *path = sample_path("bad.gp");
    FILE *script = fopen(path, "w");
    fputs("set nonsense of all kinds\n", script);
    fclose(script);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_false(gnuplot_run(folder, "bad.gp", "svg", why));
    assert_non_null(strstr(why, "gnuplot failed on bad.gp: "));
    assert_non_null(strstr(why, "line 1"));
    sample_remove(path);
}

static void progress_is_quiet_in_a_log(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct progress *p = progress_open(out, "reference", 500, false);
    for (int i = 0; i < 500; i++) progress_step(p, "case", i % 10 ? VERDICT_PASS : VERDICT_FAIL, i == 0, "why\x1b[2J\nnot");
    progress_close(p);
    fclose(out);
    int lines = 0, told = 0;
    for (const char *q = text; *q; q++) {
        lines += *q == '\n';
        assert_true((unsigned char)*q >= 0x20 || *q == '\n');
    }
    for (const char *q = text; (q = strstr(q, "FAIL case: why\\x1b[2J not\n")); q++) told++;
    assert_int_equal(told, 19);
    assert_non_null(strstr(text, "FAIL (waived) case: why\\x1b[2J not\n"));
    assert_non_null(strstr(text, "more FAIL or BROKEN are in the table only\n"));
    assert_true(lines <= 20 + 1 + 11);
    assert_non_null(strstr(text, "reference: 500 of 500, 50 FAIL (1 waived), "));
    free(text);
}

static void progress_draws_a_bar_on_a_terminal(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct progress *p = progress_open(out, "reference", 4, true);
    progress_step(p, "one", VERDICT_PASS, false, "");
    progress_step(p, "two", VERDICT_BROKEN, false, "why");
    progress_close(p);
    fclose(out);
    assert_non_null(strstr(text, "\r\x1b[Kreference [######                  ] 1/4  one"));
    assert_non_null(strstr(text, "\r\x1b[KBROKEN two: why\n"));
    assert_non_null(strstr(text, "[############            ] 2/4, 1 BROKEN  two"));
    assert_string_equal(text + strlen(text) - 4, "\r\x1b[K");
    free(text);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void twenty_thousand_results_are_reported_in_seconds(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct error error = {0};
    char id[32], family[32], folder[300];
    int64_t run = sample_begin(f.store, "x");
    struct result results[4];
    for (int i = 0; i < 4; i++) results[i] = sample_result("check", i ? VERDICT_PASS : VERDICT_FAIL, 3, 2, "ratio", "a message of usual length, as checks write them");
    for (int i = 0; i < 5000; i++) {
        snprintf(id, sizeof id, "case%d", i / 2);
        snprintf(family, sizeof family, "family%d", i / 20);
        struct case_record c = sample_case(i % 2 ? "one" : "two", id, family, "full", 1 + i % 8, results, 4);
        sample_record(f.store, run, &c);
    }
    load(&f);
    double began = seconds();
    char *text = table_of(&f.run, (struct report_options){.columns = 100});
    free(text);
    report_function *const formats[] = {report_json, report_junit, report_tap, report_csv, report_markdown};
    for (int i = 0; i < 5; i++) free(text_of(formats[i], &f.run));
    snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    assert_true(report_write(&f.run, folder, &error));
    print_message("20000 results in every format in %.2f s\n", seconds() - began);
    assert_true(seconds() - began < 60); // far above what it takes, sanitizers on a busy machine included
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_a_fixed_run),
        cmocka_unit_test(color_is_for_terminals_that_want_it),
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(waivers_decide_the_status_and_are_marked_everywhere),
        cmocka_unit_test(waived_failures_do_not_fail_other_tools),
        cmocka_unit_test(notes_are_shown),
        cmocka_unit_test(an_interrupted_run_says_what_is_missing),
        cmocka_unit_test(members_of_a_family_share_a_row),
        cmocka_unit_test(a_run_of_skips_is_said_to_have_judged_nothing),
        cmocka_unit_test(the_folder_holds_every_format),
        cmocka_unit_test(without_gnuplot_the_page_says_so),
        cmocka_unit_test(figures_without_data_say_why),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_named),
        cmocka_unit_test(a_picture_that_fails_says_why),
        cmocka_unit_test(progress_is_quiet_in_a_log),
        cmocka_unit_test(progress_draws_a_bar_on_a_terminal),
        cmocka_unit_test(twenty_thousand_results_are_reported_in_seconds),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
