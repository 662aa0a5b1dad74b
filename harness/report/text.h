// Text from anywhere, made safe for one output form: every format writes strings through here and nowhere else.
//
// Strings are read as UTF-8; each byte that is not gives U+FFFD. Control characters, which no form may carry raw, are
// shown: as \x1b on a terminal, as U+FFFD in figures, elsewhere as the control pictures U+2400.. (source: Unicode code
// chart U2400).
#ifndef HARNESS_REPORT_TEXT_H
#define HARNESS_REPORT_TEXT_H

#include <stdint.h>
#include <stdio.h>

enum text_form {
    TEXT_PLAIN,    // valid UTF-8, controls shown as pictures, newline and tab kept
    TEXT_TERMINAL, // one line: newline and tab are blanks, controls and direction overrides are \x.. or \u{..}
    TEXT_XML,      // element content and attribute values; HTML too
    TEXT_MARKDOWN, // one line, in a table cell or a paragraph
    TEXT_CSV,      // inside the quotes
    TEXT_TAP,      // one line of a test's description
    TEXT_GNUPLOT,  // inside the double quotes of a data file column
    TEXT_FORMS
};

// The next code point and where it ends; 0 at the end of the string.
uint32_t text_next(const char **s);
void text_put(FILE *out, enum text_form form, const char *s);
// Writes the template with each % replaced by the next argument (const char *), escaped; what is data cannot be markup.
void text_fill(FILE *out, enum text_form form, const char *template, ...);
// A copy in that form; the caller frees it.
char *text_copy(enum text_form form, const char *s);
// The same, at most `width` columns wide: the middle of a longer one is an ellipsis (names differ at both ends).
char *text_shorten(enum text_form form, const char *s, int width);
// Columns on a terminal of text in that form: 0 for combining marks, 2 for wide East Asian and pictographs.
int text_width(const char *s);
// Writes s (already in its form) broken at blanks into lines of at most `width` columns, each after the first begun by
// `indent` blanks. Words longer than a line are cut.
void text_wrap(FILE *out, const char *s, int width, int indent);
// The shortest decimal that reads back as x; "nan", "inf", "-inf".
const char *text_number(double x, char buffer[32]);

#endif
