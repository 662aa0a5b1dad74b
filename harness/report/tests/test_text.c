// Escaping, widths and wrapping, by tables.
#include "harness/report/text.h"

#include "harness/store/tests/sample.h"

static void utf8_is_read_strictly(void **state) {
    (void)state;
    static const struct { const char *bytes; uint32_t points[5]; } table[] = {
        {"a", {'a'}}, {"\x7f", {0x7f}}, {"\xc3\xa9", {0xe9}}, {"\xe2\x82\xac", {0x20ac}}, {"\xf0\x9f\x98\x80", {0x1f600}},
        {"\xff" "a", {0xfffd, 'a'}}, {"\x80", {0xfffd}}, {"\xc0\xaf", {0xfffd, 0xfffd}},          // overlong
        {"\xc3", {0xfffd}}, {"\xc3z", {0xfffd, 'z'}}, {"\xe2\x82", {0xfffd, 0xfffd}},              // cut short
        {"\xed\xa0\x80", {0xfffd, 0xfffd, 0xfffd}}, {"\xf4\x90\x80\x80", {0xfffd, 0xfffd, 0xfffd, 0xfffd}}, // surrogate, too large
        {"\xe0\x80\xaf", {0xfffd, 0xfffd, 0xfffd}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *p = table[i].bytes;
        for (int k = 0; k < 5 && table[i].points[k]; k++) assert_int_equal(text_next(&p), table[i].points[k]);
        assert_int_equal(text_next(&p), 0);
        assert_int_equal(*p, 0);
    }
}

static void each_form_escapes_what_is_special_in_it(void **state) {
    (void)state;
    static const char input[] = "<b>&\"'`*_[]\\|#!~,\n\t\r\x1b[31m\x7f\xff\xc2\x9b\xe2\x80\xae\xc3\xa9";
    static const char *const expected[TEXT_FORMS] = {
        [TEXT_PLAIN] = "<b>&\"'`*_[]\\|#!~,\n\t␍␛[31m␡\uFFFD\uFFFD\uFFFDé",
        [TEXT_TERMINAL] = "<b>&\"'`*_[]\\|#!~,   \\x1b[31m\\x7f\uFFFD\\x9b\\u{202e}é",
        [TEXT_XML] = "&lt;b&gt;&amp;&quot;&#39;`*_[]\\|#!~,\n\t␍␛[31m␡\uFFFD\uFFFD\uFFFDé",
        [TEXT_MARKDOWN] = "&lt;b&gt;&amp;\"'\\`\\*\\_\\[\\]\\\\\\|\\#\\!\\~,   ␛\\[31m␡\uFFFD\uFFFD\uFFFDé",
        [TEXT_CSV] = "<b>&\"\"'`*_[]\\|#!~,\n\t␍␛[31m␡\uFFFD\uFFFD\uFFFDé",
        [TEXT_TAP] = "<b>&\"'`*_[]\\\\|\\#!~,   ␛[31m␡\uFFFD\uFFFD\uFFFDé",
        [TEXT_GNUPLOT] = "<b>&”'`*_[]∖|#!~,   \uFFFD[31m\uFFFD\uFFFD\uFFFD\uFFFDé",
    };
    for (int form = 0; form < TEXT_FORMS; form++) {
        char *got = text_copy((enum text_form)form, input);
        assert_string_equal(got, expected[form]);
        free(got);
    }
    char *none = text_copy(TEXT_XML, NULL);
    assert_string_equal(none, "");
    free(none);
}

static void widths_and_shortening(void **state) {
    (void)state;
    static const struct { const char *text; int width; } widths[] = {
        {"", 0}, {"abc", 3}, {"é", 1}, {"e\xcc\x81", 1}, {"漢字", 4}, {"😀", 2}, {"→", 1}, {"한", 2},
    };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) assert_int_equal(text_width(widths[i].text), widths[i].width);
    static const struct { const char *text; int width; const char *expected; } cut[] = {
        {"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc…fg"}, {"blocks.11.attention.query.weight", 17, "blocks.1…y.weight"},
        {"漢字漢字漢字", 7, "漢…字"}, {"", 5, ""},
    };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        char *got = text_shorten(TEXT_PLAIN, cut[i].text, cut[i].width);
        assert_true(text_width(got) <= cut[i].width);
        assert_string_equal(got, cut[i].expected);
        free(got);
    }
}

static char *wrapped(const char *s, int width, int indent) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    text_wrap(out, s, width, indent);
    fclose(out);
    return text;
}

static void text_is_wrapped_at_blanks_or_cut(void **state) {
    (void)state;
    static const struct { const char *text; const char *expected; } table[] = {
        {"", "\n"},
        {"one two", "one two\n"},
        {"the quick brown fox jumps", "the quick brown fox\n  jumps\n"},
        {"01234567890123456789", "01234567890123456789\n"},
        {"01234567890123456789 x", "01234567890123456789\n  x\n"},
        {"0123456789012345678901234", "01234567890123456789\n  01234\n"},
        {"漢漢漢漢漢漢漢漢漢漢漢", "漢漢漢漢漢漢漢漢漢漢\n  漢\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *got = wrapped(table[i].text, 20, 2);
        assert_string_equal(got, table[i].expected);
        free(got);
    }
}

static void numbers_are_short_and_exact(void **state) {
    (void)state;
    static const struct { double x; const char *expected; } table[] = {
        {0, "0"}, {1, "1"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {1e300, "1e+300"}, {-2.5, "-2.5"}, {123456789, "123456789"},
        {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}, {5e-324, "4.94066e-324"},
    };
    char buffer[32];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_string_equal(text_number(table[i].x, buffer), table[i].expected);
        if (isfinite(table[i].x)) assert_true(strtod(buffer, NULL) == table[i].x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_read_strictly),
        cmocka_unit_test(each_form_escapes_what_is_special_in_it),
        cmocka_unit_test(widths_and_shortening),
        cmocka_unit_test(text_is_wrapped_at_blanks_or_cut),
        cmocka_unit_test(numbers_are_short_and_exact),
    };
    return cmocka_run_group_tests_name("report text", tests, NULL, NULL);
}
