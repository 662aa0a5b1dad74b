// Escaping, one table row a form: what each special character becomes. See text.h. A report is written by one thread, so
// characters go out without the lock of the stream.
#include "harness/report/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int sequence_length(unsigned char lead) {
    return lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

uint32_t text_next(const char **s) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)*s;
    int length = sequence_length(*p);
    if (!*p) return 0;
    *s += 1;
    if (length < 2) return length ? *p : 0xfffd;
    uint32_t c = *p & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0xfffd;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < smallest[length] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff) return 0xfffd;
    *s += length - 1;
    return c;
}

static void put_utf8(FILE *out, uint32_t c) {
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    putc_unlocked((int)(leads[more] | c >> (6 * more)), out);
    while (more--) putc_unlocked((int)(0x80 | (c >> (6 * more) & 0x3f)), out);
}

static bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }
// Noncharacters, which XML forbids, and the marks that reorder what a reader sees.
static bool is_deceptive(uint32_t c) {
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x2028 ||
           c == 0x2029 || (c & 0xfffe) == 0xfffe;
}

struct form {
    bool one_line;          // newline, tab and carriage return become a blank
    enum { AS_PICTURE, AS_ESCAPE, AS_REPLACEMENT } controls;
    const char *special;    // characters that are replaced ...
    const char *const *by;  // ... each by the string of the same place, or by a backslash and itself where by is NULL
};
static const char *const xml_by[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
static const char *const csv_by[] = {"\"\""};
// A table cell ends at |, and raw HTML, links and code must not start.
static const char *const markdown_by[] = {"&lt;", "&gt;", "&amp;", "\\|", "\\`", "\\*", "\\_", "\\[", "\\]", "\\\\", "\\~", "\\#", "\\!"};
// Inside a data column gnuplot has no escape for a quote and reads some backslashes, so look-alikes stand in. Control
// pictures are left out: there are fonts that draw them as large as the page.
static const char *const gnuplot_by[] = {"\xe2\x80\x9d", "\xe2\x88\x96"}; // right double quotation mark, set minus

static const struct form forms[TEXT_FORMS] = {
    [TEXT_PLAIN] = {false, AS_PICTURE, "", NULL},
    [TEXT_TERMINAL] = {true, AS_ESCAPE, "", NULL},
    [TEXT_XML] = {false, AS_PICTURE, "<>&\"'", xml_by},
    [TEXT_MARKDOWN] = {true, AS_PICTURE, "<>&|`*_[]\\~#!", markdown_by},
    [TEXT_CSV] = {false, AS_PICTURE, "\"", csv_by},
    [TEXT_TAP] = {true, AS_PICTURE, "\\#", NULL},
    [TEXT_GNUPLOT] = {true, AS_REPLACEMENT, "\"\\", gnuplot_by},
};

static void put_control(FILE *out, const struct form *f, uint32_t c) {
    bool blank = c == '\n' || c == '\t' || c == '\r';
    if (blank && f->one_line) putc_unlocked(' ', out);
    else if (c == '\n' || c == '\t') putc_unlocked((int)c, out);
    else if (f->controls == AS_ESCAPE) fprintf(out, c < 0x100 ? "\\x%02x" : "\\u{%x}", c);
    else put_utf8(out, f->controls == AS_REPLACEMENT ? 0xfffd : c < 0x20 ? 0x2400 + c : c == 0x7f ? 0x2421 : 0xfffd);
}

void text_put(FILE *out, enum text_form form, const char *s) {
    const struct form *f = &forms[form];
    for (uint32_t c; s && (c = text_next(&s));) {
        const char *special = c < 0x80 ? strchr(f->special, (int)c) : NULL;
        if (is_control(c) || is_deceptive(c)) put_control(out, f, c);
        else if (!special) put_utf8(out, c);
        else if (f->by) fputs(f->by[special - f->special], out);
        else fprintf(out, "\\%c", (int)c);
    }
}

void text_fill(FILE *out, enum text_form form, const char *template, ...) {
    va_list args;
    va_start(args, template);
    for (; *template; template++)
        if (*template == '%') text_put(out, form, va_arg(args, const char *));
        else putc_unlocked(*template, out);
    va_end(args);
}

char *text_copy(enum text_form form, const char *s) {
    char *copy = NULL;
    size_t bytes;
    FILE *out = open_memstream(&copy, &bytes);
    if (!out) abort();
    text_put(out, form, s);
    fclose(out);
    return copy;
}

// Source of the ranges: Unicode EastAsianWidth (W and F) and general category Mn, coarsened to whole blocks.
static int width_of(uint32_t c) {
    static const struct { uint32_t first, last; int width; } ranges[] = {
        {0x300, 0x36f, 0}, {0x1100, 0x115f, 2}, {0x200b, 0x200d, 0}, {0x20d0, 0x20ff, 0}, {0x2e80, 0xa4cf, 2}, {0xac00, 0xd7a3, 2},
        {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0}, {0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2},
        {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return ranges[i].width;
    return 1;
}

int text_width(const char *s) {
    int width = 0;
    for (uint32_t c; s && (c = text_next(&s));) width += width_of(c);
    return width;
}

char *text_shorten(enum text_form form, const char *s, int width) {
    char *copy = text_copy(form, s);
    int left = text_width(copy), head_width = width / 2;
    if (left <= width) return copy;
    const char *head = copy, *tail = copy;
    for (const char *next = head; (head_width -= width_of(text_next(&next))) >= 0;) head = next;
    while (left > width - 1 - width / 2) left -= width_of(text_next(&tail));
    size_t head_bytes = (size_t)(head - copy);
    char *cut = malloc(head_bytes + strlen(tail) + 4);
    if (!cut) abort();
    sprintf(cut, "%.*s\xe2\x80\xa6%s", (int)head_bytes, copy, tail);
    free(copy);
    return cut;
}

// The end of the longest start of s that fits, cut after a blank where there is one.
static const char *line_end(const char *s, int width) {
    const char *end = s, *blank = NULL;
    for (const char *next = s; ; end = next) {
        uint32_t c = text_next(&next);
        if (!c) return end;
        width -= width_of(c);
        if (width < 0) return c == ' ' ? end : blank ? blank : end > s ? end : next;
        if (c == ' ') blank = end;
    }
}

void text_wrap(FILE *out, const char *s, int width, int indent) {
    if (width < 20) width = 20; // narrower is unreadable anyway, and a wide character must fit
    for (bool first = true; *s || first; first = false) {
        const char *end = line_end(s, width);
        fprintf(out, "%*s%.*s\n", first ? 0 : indent, "", (int)(end - s), s);
        s = end;
        while (*s == ' ') s++;
    }
}

const char *text_number(double x, char buffer[32]) {
    if (isnan(x)) return strcpy(buffer, "nan");
    if (isinf(x)) return strcpy(buffer, x > 0 ? "inf" : "-inf");
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, x);
        if (strtod(buffer, NULL) == x) break;
    }
    return buffer;
}
