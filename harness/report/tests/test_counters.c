// Counters in the report, from hand-made figures: the sums of the page and of counters.csv, whose a number is, what was not available, and text as text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/report/counters.h"

static json_t *value(const char *event, const char *phase, const char *scope, const char *unit, double x, int times) {
    return json_pack("{ss ss ss ss ss sf si}", "check", "counters", "tensor", event, "label", phase, "scope", scope, "unit", unit, "figure", x, "times", times);
}

static json_t *absent(const char *event, const char *reason) {
    return json_pack("{ss ss ss}", "check", "counters", "tensor", event, "reason", reason);
}

// Two cases of one implementation: 30 + 12 clicks, a level of 7 at most, an event that neither has; and figures of another check.
static struct stored_run run_of(struct stored_case cases[2]) {
    memset(cases, 0, 2 * sizeof *cases);
    for (int k = 0; k < 2; k++)
        cases[k] = (struct stored_case){.implementation = (char *)(uintptr_t)"subject<1>",
            .figures = json_pack("[o o o {ss ss sf}]", value("x::clicks", "forward", "process", "events", k ? 12 : 30, 2), value("x::level", "forward", "level", "bytes", k ? 7 : 3, 2),
                                 absent("x::watts", "no \"meter\" & no <cable>"), "check", "gradient", "tensor", "w", "figure", 1e9)};
    return (struct stored_run){.cases = cases, .case_count = 2};
}

static char *text_of(bool (*report)(const struct stored_run *r, FILE *out), const struct stored_run *r) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(report(r, out));
    fclose(out);
    return text;
}

static void the_page_adds_up_and_says_whose(void **state) {
    (void)state;
    struct stored_case cases[2];
    struct stored_run run = run_of(cases);
    char *page = text_of(counters_html, &run);
    assert_true(counters_some(&run));
    assert_non_null(strstr(page, "<h3>subject&lt;1&gt;</h3>"));
    assert_non_null(strstr(page, "<tr><td>forward</td><td class=\"number\">4</td><td class=\"number\">42</td><td class=\"number\">7</td></tr>"));
    assert_non_null(strstr(page, "<tr><th>unit</th><th></th><th class=\"number\">events</th><th class=\"number\">bytes</th></tr>"));
    assert_non_null(strstr(page, "<tr><th>of</th><th></th><th class=\"number\">process</th><th class=\"number\">level</th></tr>"));
    assert_non_null(strstr(page, "process: of all threads of all ranks; level: the largest at the end of a phase"));
    assert_non_null(strstr(page, "<tr><td>x::watts</td><td class=\"number\">2</td><td class=\"message\">no &quot;meter&quot; &amp; no &lt;cable&gt;</td></tr>"));
    assert_null(strstr(page, "1000000000"));
    free(page);
    for (int k = 0; k < 2; k++) json_decref(cases[k].figures);
}

static void the_numbers_are_a_file_too(void **state) {
    (void)state;
    struct stored_case cases[2];
    struct stored_run run = run_of(cases);
    char *csv = text_of(counters_csv, &run);
    assert_string_equal(csv, "implementation,event,phase,scope,unit,value,times,cases,reason\r\n"
                             "\"subject<1>\",\"x::clicks\",\"forward\",\"process\",\"events\",42,4,2,\"\"\r\n"
                             "\"subject<1>\",\"x::level\",\"forward\",\"level\",\"bytes\",7,4,2,\"\"\r\n"
                             "\"subject<1>\",\"x::watts\",\"\",\"\",\"\",,,2,\"no \"\"meter\"\" & no <cable>\"\r\n");
    free(csv);
    for (int k = 0; k < 2; k++) json_decref(cases[k].figures);
}

static void a_run_without_counters_has_no_table(void **state) {
    (void)state;
    struct stored_run none = {.case_count = 0};
    char *page = text_of(counters_html, &none);
    assert_string_equal(page, "");
    assert_false(counters_some(&none));
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_adds_up_and_says_whose), cmocka_unit_test(the_numbers_are_a_file_too), cmocka_unit_test(a_run_without_counters_has_no_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
