// Waivers: the order of versions, what a malformed file is told, what each field covers, and the suite's own file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/versions.h"
#include "harness/judge/waivers.h"
#include "harness/protocol/memory.h"
#include "harness/protocol/tests/temporary.h"

static void versions_have_an_order(void **state)
{
    (void)state;
    // Ascending; those on one line, separated by blanks, are equal.
    static const char *const rows[][2] = {
        {"1.0.dev3", "1.0.0.dev3"}, {"1.0a1", "1.0.alpha1"}, {"1.0a2", "1.0a2+cpu"}, {"1.0b1", "1.0-beta1"}, {"1.0rc1", "1.0c1"},
        {"1.0", "v1"}, {"1.0.0+cu128", "1"}, {"1.0.post1", "1.0.post1"}, {"1.0.1", "1.0.1+abc"}, {"1.2", "1.2"}, {"1.10", "1.10.0"}, {"2", "2.0"},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < ROWS; k++) {
            int order, expected = i == k || (i + k == 11 && (i == 5 || i == 6)) ? 0 : i < k ? -1 : 1; // rows 5 and 6 are the same version
            assert_true(versions_compare(rows[i][0], rows[k][1], &order));
            if (order != expected) fail_msg("%s against %s: %d, expected %d", rows[i][0], rows[k][1], order, expected);
        }
    static const char *const none[] = {"", "abc", "v", "1.x", "1.0 x", "1.0rc1z", "-1", "1..2", "1.0.", "4129f82"};
    int order;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (versions_compare(none[i], "1", &order)) fail_msg("'%s' was taken for a version", none[i]);
}

static void ranges_hold_what_they_say(void **state)
{
    (void)state;
    static const struct { const char *ranges; bool within; const char *why; } table[] = {
        {"any", true, ""}, {"torch >=2.15,<2.16", true, ""}, {"torch >=2.15, <2.16", true, ""}, {" torch  ==2.15.0 ", true, ""},
        {"torch>=2", true, ""}, {"torch >2.15", false, "torch 2.15.0+cpu is not >2.15"}, {"torch <=2.15", true, ""},
        {"torch !=2.15", false, "torch 2.15.0+cpu is not !=2.15"}, {"torch <2.15", false, "torch 2.15.0+cpu is not <2.15"},
        {"torch >=2.15; numpy >=2", true, ""}, {"torch >=2.15; numpy >=3", false, "numpy 2.4 is not >=3"},
        {"jax >=0.1", false, "no version of jax is known"}, {"next <3.0", false, "next 3.0.0rc1 is not <3.0"}, {"next <3.1", true, ""},
        {"next <3.0rc2", true, ""}, {"odd >=1", false, "odd deadbeef has no order"}, {"words >=1.2", true, ""},
    };
    json_t *there = json_pack("{ss ss ss ss ss}", "torch", "2.15.0+cpu", "numpy", "2.4", "next", "3.0.0rc1", "odd", "deadbeef", "words", "1.2.3 4129f82");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char why[128] = "";
        bool within = versions_within(table[i].ranges, there, why, sizeof why);
        if (within != table[i].within || strcmp(why, table[i].why) != 0) fail_msg("%s: %d '%s'", table[i].ranges, within, why);
    }
    json_decref(there);
}

// ---- the file ----

static char folder[] = "/tmp/fsdpmark-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char *path = memory_format("%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    free(path);
}

static bool read_text(const char *text, struct waiver_list *out, struct error *error)
{
    char *path = memory_format("%s/w.yaml", folder);
    write_file("w.yaml", text);
    bool ok = waivers_read(path, folder, out, error);
    free(path);
    return ok;
}

#define GOOD "implementation: a, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"
#define WITH(field) "waivers:\n  - {" field "}\n"
static const struct { const char *text, *message; } malformed[] = {
    {"", "w.yaml:1: found an empty document, expected a mapping"},
    {"[]\n", "w.yaml:1: found no list under waivers alone, expected {waivers: [...]}"},
    {"waivers: {}\n", "w.yaml:1: found no list under waivers alone, expected {waivers: [...]}"},
    {"waivers: []\nmore: 1\n", "w.yaml:1: found no list under waivers alone, expected {waivers: [...]}"},
    {"waivers: [a]\n", "w.yaml:1: found no mapping, expected {implementation, versions, check, cases, reason, page, expires}"},
    {"waivers:\n  - {implementation: a\n", "w.yaml:3: found broken YAML or JSON: "},
    {WITH("implementation: a"), "w.yaml:2: versions: found nothing, expected this field"},
    {WITH(GOOD ", checks: answer"), "w.yaml:2: found unknown field 'checks' (did you mean 'check'?), expected one of implementation, versions, check, cases, reason, page or expires"},
    {WITH("implementation: [], versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: implementation: found a list of 0, expected a text, or a list of texts"},
    {WITH("implementation: {a: b}, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: implementation: found a mapping, expected a text, or a list of texts"},
    {WITH("implementation: a, versions: any, check: stepbitwise, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: check: found 'stepbitwise' (did you mean 'step-bitwise'?), expected a check (fsdpmark list checks) or answer"},
    {WITH("implementation: a, versions: any, check: [answer, evidence], cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: check: found 'evidence', expected a check (fsdpmark list checks) or answer"},
    {WITH("implementation: a, versions: any, check: \"*\", cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: check: found '*', expected a check (fsdpmark list checks) or answer"},
    {WITH("implementation: a, versions: torch 2.15, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: versions: found '2.15' after 'torch', expected one of >=, <=, ==, !=, > or < and a version"},
    {WITH("implementation: a, versions: torch >=, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: versions: found '' after '>=', expected a version such as 2.15"},
    {WITH("implementation: a, versions: torch ~2, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: versions: found '~2' after 'torch', expected one of >=, <=, ==, !=, > or < and a version"},
    {WITH("implementation: a, versions: \">=2\", check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: versions: found '>=2', expected PACKAGE >=VERSION,<VERSION or any"},
    {WITH("implementation: a, versions: torch >=2.x, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: versions: found '2.x' after '>=', expected a version such as 2.15"},
    {WITH("implementation: a, versions: \"torch >=2;\", check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-31"), "w.yaml:2: versions: found '', expected PACKAGE >=VERSION,<VERSION or any"},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: \" \", page: page.md, expires: 2027-01-31"), "w.yaml:2: reason: found nothing, expected why it fails"},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: other.md, expires: 2027-01-31"), "w.yaml:2: page: found 'other.md', expected a file below "},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: \"other.md#there\", expires: 2027-01-31"), "w.yaml:2: page: found 'other.md#there', expected a file below "},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: \"#there\", expires: 2027-01-31"), "w.yaml:2: page: found '#there', expected a file below "},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: ., expires: 2027-01-31"), "w.yaml:2: page: found '.', expected a file below "},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: never"), "w.yaml:2: expires: found 'never', expected a day as YYYY-MM-DD"},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-02-29"), "w.yaml:2: expires: found '2027-02-29', expected a day as YYYY-MM-DD"},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-13-01"), "w.yaml:2: expires: found '2027-13-01', expected a day as YYYY-MM-DD"},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-1-31"), "w.yaml:2: expires: found '2027-1-31', expected a day as YYYY-MM-DD"},
    {WITH("implementation: a, versions: any, check: answer, cases: x, reason: r, page: page.md, expires: 2027-01-311"), "w.yaml:2: expires: found '2027-01-311', expected a day as YYYY-MM-DD"},
    {WITH(GOOD) "  - {" GOOD ", page: page.md}\n", "w.yaml:3: found 'page' a second time"},
};

static void malformed_files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct waiver_list list;
        struct error error = {0};
        bool ok = read_text(malformed[i].text, &list, &error);
        const char *said = strstr(error.text, "w.yaml");
        if (ok || said == NULL || strncmp(said, malformed[i].message, strlen(malformed[i].message)) != 0)
            fail_msg("%s\n  said     %s\n  expected %s", malformed[i].text, ok ? "nothing" : error.text, malformed[i].message);
    }
}

static void a_waiver_covers_what_its_fields_name(void **state)
{
    (void)state;
    struct waiver_list list;
    struct error error = {0};
    if (!read_text("waivers:\n"
                   "  - {implementation: [pytorch-fsdp1, \"jax*:flat\"], versions: [torch >=2.15, numpy >=2], check: [answer, step-bitwise],\n"
                   "     cases: [\"exact-mesh.hybrid-*\", one], reason: \"why, and how\", page: \"page.md#cause\", expires: 2028-02-29}\n", &list, &error))
        fail_msg("%s", error.text);
    assert_int_equal(list.count, 1);
    const struct waiver *w = &list.items[0];
    assert_string_equal(w->versions, "torch >=2.15; numpy >=2");
    assert_string_equal(w->reason, "why, and how");
    assert_string_equal(w->page, "page.md#cause");
    assert_string_equal(w->expires, "2028-02-29");
    assert_non_null(strstr(w->origin, "/w.yaml:2"));
    json_t *in = json_pack("{ss ss}", "torch", "2.15.0", "numpy", "2.4"), *out = json_pack("{ss ss}", "torch", "2.14.0", "numpy", "2.4"), *none = json_object();
    assert_true(waiver_concerns(w, "pytorch-fsdp1", in));
    assert_true(waiver_concerns(w, "jax-fsdp:flat", in));
    assert_false(waiver_concerns(w, "jax-fsdp", in));
    assert_false(waiver_concerns(w, "pytorch-fsdp1:flat", in));
    assert_false(waiver_concerns(w, "pytorch-fsdp1", out));
    assert_false(waiver_concerns(w, "pytorch-fsdp1", none));
    json_decref(in), json_decref(out), json_decref(none);
    assert_true(waiver_covers_case(w, "exact-mesh.hybrid-4x1.flat.n4") && waiver_covers_case(w, "one"));
    assert_false(waiver_covers_case(w, "exact-mesh.full.n4") || waiver_covers_case(w, "one.n2"));
    assert_true(waiver_covers_check(w, "answer") && waiver_covers_check(w, "step-bitwise"));
    assert_false(waiver_covers_check(w, "replicas-agree"));
    waivers_free(&list);
}

// ---- the suite's own ----

// The anchor that a heading gets: lower case, blanks to '-', nothing else but letters, digits, '-' and '_' (as GitHub makes it).
static void anchor_of(const char *heading, char *out, size_t size)
{
    size_t n = 0;
    heading += strspn(heading, "# ");
    for (; *heading && *heading != '\n' && n + 1 < size; heading++)
        if (isalnum((unsigned char)*heading) || *heading == '-' || *heading == '_')
            out[n++] = (char)tolower((unsigned char)*heading);
        else if (*heading == ' ')
            out[n++] = '-';
    out[n] = 0;
}

static bool has_anchor(const char *path, const char *anchor)
{
    char line[4096], made[4096];
    bool found = false;
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    while (!found && fgets(line, sizeof line, in)) {
        if (*line == '#')
            anchor_of(line, made, sizeof made);
        found = *line == '#' && strcmp(made, anchor) == 0;
    }
    fclose(in);
    return found;
}

// What a plan of all cases has, per implementation: so that no entry waives what does not exist.
static bool covers_a_case(const struct waiver *w, const char *name)
{
    struct implementation i;
    struct error error = {0};
    struct plan plan;
    const struct selection s = {.suite = "suite"};
    bool covered = false;
    if (!implementation_read(name, "suite", &i, &error) || !plan_make(&s, &i, &plan, &error))
        fail_msg("%s: %s", w->origin, error.text);
    for (int k = 0; k < plan.count; k++)
        covered |= plan.cases[k].skip == NULL && waiver_covers_case(w, plan.cases[k].c.id);
    plan_free(&plan);
    implementation_free(&i);
    return covered;
}

static void the_suites_waivers_point_at_what_exists(void **state)
{
    (void)state;
    struct waiver_list list;
    struct error error = {0};
    if (!waivers_read("suite/waivers.yaml", ".", &list, &error))
        fail_msg("%s", error.text);
    for (int i = 0; i < list.count; i++) {
        const struct waiver *w = &list.items[i];
        const char *anchor = strchr(w->page, '#');
        char *page = memory_format("%.*s", (int)strcspn(w->page, "#"), w->page);
        if (anchor == NULL || !has_anchor(page, anchor + 1))
            fail_msg("%s: page %s: found no heading with that anchor", w->origin, w->page);
        free(page);
        for (int k = 0; k < w->implementations.count; k++) {
            const char *name = w->implementations.items[k];
            if (strpbrk(name, "*?[") == NULL && !covers_a_case(w, name))
                fail_msg("%s: cases: no case of %s matches", w->origin, name);
        }
    }
    waivers_free(&list);
}

static int start(void **state)
{
    (void)state;
    if (temporary_make(folder) == NULL)
        return -1;
    write_file("page.md", "# Cause\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_have_an_order), cmocka_unit_test(ranges_hold_what_they_say), cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(a_waiver_covers_what_its_fields_name), cmocka_unit_test(the_suites_waivers_point_at_what_exists),
    };
    return cmocka_run_group_tests_name("waivers", tests, start, NULL);
}
