// Hostile text in every place of a run, in every format: what a reader of the format gets back is the text, and nothing
// of it became structure. The outputs are parsed back: XML and HTML by a strict reader, JSON by Jansson, CSV and TAP here.
#include "harness/report/report.h"
#include "harness/report/tests/markup.h"
#include "harness/report/text.h"

static char long_text[10 * 1024 + 1];
static const char *const hostile[] = {
    "\"quotes\" and 'ticks' and `graves`",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "]]> &amp; &lt; -->",
    "bells \x07\x1b[31mred\x1b]0;title\x07 \x7f \x01",
    "invalid \xff\xfe \xc3( \xed\xa0\x80 utf-8",
    "lines\nand\r\nmore\ttabs\nok 1 - forged\n1..0\n---\n",
    "# SKIP not really \\# \\",
    "a,b;c\"\"d,=1+1",
    "| cell | [link](javascript:x) **bold** _it_ ~~s~~ # head",
    "$(touch /tmp/owned) `id` {^sub}_{x}^2 @a \\n \\\"; set output 'x'; system('id')",
    "\xe2\x80\xae" "gnp.exe \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x98\x80 e\xcc\x81",
    "%s %n %d %% ${HOME}",
    "",
    long_text,
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

struct fixture { const char *path; struct store *store; struct stored_run run; };

// Every other FAIL.
static bool is_waived(int i) { return i % 6 == 0; }

// One case each: FAIL, SKIP, BROKEN and PASS with the text everywhere that text can be.
static int open_hostile(void **state) {
    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t i = 0; i < sizeof long_text - 1; i += 97) long_text[i] = ' ';
    struct fixture *f = calloc(1, sizeof *f);
    struct error error = {0};
    f->path = sample_path("r.db");
    f->store = sample_open(f->path);
    json_t *environment = json_object();
    json_object_set_new(environment, "<b>&\"key\"", json_string("<script>alert(2)</script>"));
    struct run_info info = {.command = hostile[1], .profile = hostile[2], .pattern = hostile[4], .seed = UINT64_MAX, .environment = environment};
    int64_t run;
    if (!store_begin_run(f->store, &info, &run, &error)) fail_msg("%s", error.text);
    json_decref(environment);
    for (int i = 0; i < HOSTILE; i++) {
        const char *text = hostile[i];
        struct result r = sample_result(text, (enum verdict)(1 + i % 3), i % 2 ? NAN : 1e9, 1, text, text);
        snprintf(r.finding.classes, sizeof r.finding.classes, "%s", text);
        snprintf(r.finding.ranks, sizeof r.finding.ranks, "%s", text);
        struct case_record c = sample_case(text, text, text, text, 1 + i, &r, 1);
        c.log_tail = c.case_json = c.origin = c.model = c.layout = c.compute = text;
        c.note = text;
        struct waiver_record w = {text, text, text, text, text, text, "9999-12-31", text};
        int64_t waiver;
        if (!store_add_waiver(f->store, run, &w, &waiver, &error)) fail_msg("%s", error.text);
        if (is_waived(i)) c.waivers = &waiver;
        c.layer = i == 7 ? "calibrated" : text; // the one whose picture is looked at
        json_t *name = json_string(text);
        c.figures = json_array();
        for (int k = 0; name && k < 3; k++)
            json_array_append_new(c.figures, json_pack("{s:O, s:O, s:O, s:f, s:f}", "check", name, "label", name, "tensor", name, "figure", 0.5, "bound", 1.0));
        json_decref(name);
        sample_record(f->store, run, &c);
        json_decref(c.figures);
        json_t *versions = json_pack("{s:s}", "<i>", "]]>");
        if (!store_set_plan(f->store, run, text, 1, versions, text, &error)) fail_msg("%s", error.text);
        json_decref(versions);
    }
    if (!store_load_run(f->store, run, &f->run, &error)) fail_msg("%s", error.text);
    *state = f;
    return 0;
}

static int close_hostile(void **state) {
    struct fixture *f = *state;
    stored_run_free(&f->run);
    store_close(f->store);
    sample_remove(f->path);
    free(f);
    return 0;
}

typedef bool report_function(const struct stored_run *r, FILE *out);
static char *text_of(report_function *report, const struct stored_run *r) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_true(report(r, out));
    fclose(out);
    assert_int_equal(strlen(text), bytes); // no NUL
    return text;
}

static const char *stored_message(const struct fixture *f, int i) { return f->run.cases[i].results[0].message; }

static void json_reads_back(void **state) {
    struct fixture *f = *state;
    char *text = text_of(report_json, &f->run);
    json_error_t why;
    json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!whole) fail_msg("%s", why.text);
    json_t *results = json_object_get(whole, "results");
    assert_int_equal(json_array_size(results), HOSTILE);
    for (int i = 0; i < HOSTILE; i++) {
        json_t *exact = json_string(stored_message(f, i));
        char *plain = text_copy(TEXT_PLAIN, stored_message(f, i));
        const char *got = json_string_value(json_object_get(json_array_get(results, (size_t)i), "message"));
        assert_string_equal(got, exact ? stored_message(f, i) : plain);
        json_decref(exact);
        free(plain);
        static const char *const keys[] = {"implementation", "case", "check", "verdict", "figure", "bound", "unit", "message", "classes", "ranks", "seed"};
        for (int k = 0; k < 11; k++) assert_non_null(json_object_get(json_array_get(results, (size_t)i), keys[k]));
    }
    assert_string_equal(json_string_value(json_object_get(json_array_get(results, 1), "figure")), "nan"); // a NaN beside a bound
    assert_true(json_number_value(json_object_get(json_array_get(results, 0), "figure")) == 1e9);
    assert_string_equal(json_string_value(json_object_get(json_object_get(whole, "run"), "seed")), "18446744073709551615");
    assert_string_equal(json_string_value(json_object_get(json_object_get(whole, "environment"), "<b>&\"key\"")), "<script>alert(2)</script>");
    json_decref(whole);
    free(text);
}

static void junit_reads_back(void **state) {
    struct fixture *f = *state;
    char *text = text_of(report_junit, &f->run);
    struct markup m;
    markup_parse(&m, text);
    static const char *const names[] = {"testsuites", "testsuite", "testcase", "failure", "skipped", "error", "system-out", "properties", "property"};
    for (int i = 0; i < m.name_count; i++) {
        bool known = false;
        for (int k = 0; k < 9; k++) known |= !strcmp(m.names[i], names[k]);
        if (!known) fail_msg("element %s", m.names[i]);
    }
    assert_int_equal(markup_count(&m, "testcase@name", NULL), HOSTILE);
    static const char *const elements[] = {"", "failure@message", "skipped@message", "error@message"};
    int of[4] = {0};
    for (int i = 0; i < HOSTILE; i++) {
        char *plain = text_copy(TEXT_PLAIN, stored_message(f, i));
        int element = is_waived(i) ? 2 : 1 + i % 3;
        assert_true(markup_count(&m, elements[element], plain) >= 1);
        free(plain);
        of[element]++;
    }
    char counts[128];
    snprintf(counts, sizeof counts, "<testsuites name=\"fsdpmark\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"", HOSTILE, of[1], of[3], of[2]);
    assert_non_null(strstr(text, counts));
    markup_free(&m);
    free(text);
}

static void xmllint_agrees(void **state) {
    struct fixture *f = *state;
    if (system("xmllint --version >/dev/null 2>&1")) skip();
    char *text = text_of(report_junit, &f->run);
    FILE *lint = popen("xmllint --noout - 2>&1", "w");
    fputs(text, lint);
    assert_int_equal(pclose(lint), 0);
    free(text);
}

// RFC 4180: fields by comma, records by CRLF, quoted fields with doubled quotes.
static const char *csv_field(const char *p, char *out) {
    if (*p != '"') {
        while (*p && *p != ',' && *p != '\r') *out++ = *p++;
        *out = 0;
        return p;
    }
    for (p++; *p != '"' || p[1] == '"'; p++) {
        assert_true(*p);
        p += *p == '"';
        *out++ = *p;
    }
    *out = 0;
    return p + 1;
}

static void csv_reads_back(void **state) {
    struct fixture *f = *state;
    char *text = text_of(report_csv, &f->run), *field = malloc(sizeof long_text);
    const char *p = text;
    int message = -1, columns = 0;
    for (int row = -1; *p; row++) {
        int column = 0;
        for (;; column++) {
            p = csv_field(p, field);
            if (row < 0 && !strcmp(field, "message")) message = column;
            char *plain = text_copy(TEXT_PLAIN, row < 0 ? "" : stored_message(f, row));
            if (row >= 0 && column == message) assert_string_equal(field, plain);
            free(plain);
            if (*p != ',') break;
            p++;
        }
        assert_memory_equal(p, "\r\n", 2);
        p += 2;
        if (row < 0) columns = column;
        assert_int_equal(column, columns);
        assert_true(row < HOSTILE);
    }
    assert_true(message >= 0);
    free(field);
    free(text);
}

static void tap_reads_back(void **state) {
    struct fixture *f = *state;
    char *text = text_of(report_tap, &f->run), start[64];
    assert_memory_equal(text, "TAP version 14\n1..14\n", 21);
    const char *line = text + 21;
    int notes = 0;
    for (; *line == '#'; line = strchr(line, '\n') + 1) notes++;
    assert_int_equal(notes, HOSTILE - 1); // one has none
    for (int i = 0; i < HOSTILE; i++) {
        enum verdict v = f->run.cases[i].results[0].verdict;
        snprintf(start, sizeof start, "%s %d - ", v == VERDICT_SKIP ? "ok" : "not ok", i + 1);
        assert_memory_equal(line, start, strlen(start));
        const char *end = strchr(line, '\n'), *skip = strstr(line, is_waived(i) ? " # TODO waived: " : " # SKIP");
        assert_int_equal(skip && skip < end, v == VERDICT_SKIP || is_waived(i));
        for (const char *p = line; p < end; p++) // no other # that is not escaped
            if (*p == '\\') p++;
            else if (*p == '#') assert_true(p == skip + 1);
        line = end + 1;
        if (v == VERDICT_SKIP) continue;
        assert_memory_equal(line, "  ---\n", 6);
        for (line += 6; strncmp(line, "  ...\n", 6);) {
            end = strchr(line, '\n');
            assert_memory_equal(line, "  ", 2);
            const char *colon = strstr(line, ": ");
            char *scalar = strndup(colon + 2, (size_t)(end - colon - 2));
            json_t *value = json_loads(scalar, JSON_DECODE_ANY, NULL);
            assert_non_null(value);
            if (!strncmp(line, "  message: ", 11)) {
                char *plain = text_copy(TEXT_PLAIN, stored_message(f, i));
                assert_string_equal(json_string_value(value), plain);
                free(plain);
            }
            json_decref(value);
            free(scalar);
            line = end + 1;
        }
        line += 6;
    }
    assert_int_equal(*line, 0);
    free(text);
}

static void markdown_keeps_its_structure(void **state) {
    struct fixture *f = *state;
    char *text = text_of(report_markdown, &f->run);
    int rows = 0, headings = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        assert_null(strchr(line, '<'));
        for (const char *p = line; (p = strstr(p, "](")); p++) assert_true(p > line && p[-1] == '\\');
        headings += *line == '#';
        int pipes = 0;
        for (char *p = line; *p; p++)
            if (*p == '\\') p++;
            else pipes += *p == '|';
        if (*line != '|') continue;
        assert_int_equal(pipes, 9);
        rows++;
    }
    assert_int_equal(rows, 2 + HOSTILE);
    assert_int_equal(headings, 6);
    free(text);
}

static void the_terminal_gets_no_control_characters(void **state) {
    struct fixture *f = *state;
    for (int verbose = 0; verbose < 2; verbose++) {
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        assert_true(report_table(&f->run, &(struct report_options){.columns = 90, .verbose = verbose}, out));
        fclose(out);
        for (const char *p = text; *p;) {
            uint32_t c = text_next(&p);
            assert_true(c == '\n' || (c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0) && c != 0x202e));
        }
        assert_non_null(strstr(text, "bells \\x07\\x1b[31mred"));
        assert_non_null(strstr(text, "\\u{202e}gnp.exe"));
        free(text);
    }
}

static char *slurp(const char *folder, const char *name) {
    char path[512], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(getdelim(&text, &bytes, 0, in) > 0);
    fclose(in);
    return text;
}

static void page_and_figures_hold_it_as_text(void **state) {
    struct fixture *f = *state;
    struct error error = {0};
    char folder[300];
    snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f->path, '/') - f->path), f->path);
    if (!report_write(&f->run, folder, &error)) fail_msg("%s", error.text);
    char *page = slurp(folder, "index.html");
    struct markup m;
    markup_parse(&m, page);
    static const char *const forbidden[] = {"script", "img", "b>", "i", "iframe", "object", "link", "foreignObject"};
    for (int i = 0; i < m.name_count; i++)
        for (int k = 0; k < 8; k++) assert_string_not_equal(m.names[i], forbidden[k]);
    for (int i = 0; i < m.values; i++) {
        const char *at = strchr(m.value_of[i], '@');
        if (at) assert_true(strncmp(at, "@on", 3) && strcmp(at, "@src"));
        if (at && strstr(at, "href")) assert_int_equal(m.value[i][0], '#'); // nothing leaves the page
    }
    for (int i = 0; i < HOSTILE; i++) {
        char *plain = text_copy(TEXT_PLAIN, stored_message(f, i));
        if (*plain) assert_true(markup_count(&m, "td", plain) + markup_count(&m, "p", plain) >= 1);
        free(plain);
    }
    assert_true(markup_count(&m, "td", "<script>alert(2)</script>") == 1);
    markup_free(&m);
    if (!system("gnuplot --version >/dev/null 2>&1")) {
        assert_null(strstr(page, "gnuplot failed"));
        static const struct { const char *name, *label; int count; } pictures[] = { // a label of each, whole
            {"figures/ratio.svg", "a,b;c””d,=1+1", 4 + 2} /* its row is named beside each of four bands of panels */, {"figures/verdicts.svg", "a,b;c””d,=1+1", 2},
            {"figures/ranks.svg", "a,b;c””d,=1+1", 2}};
        for (int i = 0; i < 3; i++) {
            char *svg = slurp(folder, pictures[i].name);
            markup_parse(&m, svg);
            assert_int_equal(markup_count(&m, "text", pictures[i].label), pictures[i].count);
            for (int k = 0; k < m.name_count; k++) assert_string_not_equal(m.names[k], "script");
            markup_free(&m);
            free(svg);
        }
    }
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(junit_reads_back),
        cmocka_unit_test(xmllint_agrees),
        cmocka_unit_test(csv_reads_back),
        cmocka_unit_test(tap_reads_back),
        cmocka_unit_test(markdown_keeps_its_structure),
        cmocka_unit_test(the_terminal_gets_no_control_characters),
        cmocka_unit_test(page_and_figures_hold_it_as_text),
    };
    return cmocka_run_group_tests_name("hostile text", tests, open_hostile, close_hostile);
}
