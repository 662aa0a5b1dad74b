// A strict little XML reader for tests: fails the test on anything that is not well-formed, and hands out the names of
// elements and every decoded text and attribute value.
#ifndef HARNESS_REPORT_TESTS_MARKUP_H
#define HARNESS_REPORT_TESTS_MARKUP_H

#include <ctype.h>

#include "harness/report/text.h"
#include "harness/store/tests/sample.h"

struct markup {
    int elements, values;
    char names[64][32];  // distinct element names
    int name_count;
    char **value;        // decoded texts and attribute values, in order
    char **value_of;     // "element" or "element@attribute"
    char *stack[64];
    int depth;
};

static inline void markup_value(struct markup *m, const char *where, const char *from, const char *to) {
    static const struct { const char *entity; char byte; } entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}};
    char *out = malloc((size_t)(to - from) + 1), *at = out;
    while (from < to) {
        size_t used = 0;
        assert_true(*from != '<');
        for (int i = 0; *from == '&' && i < 6; i++)
            if (!strncmp(from, entities[i].entity, strlen(entities[i].entity))) {
                *at++ = entities[i].byte;
                used = strlen(entities[i].entity);
            }
        if (*from == '&' && !used) fail_msg("an & that is no entity: %.20s", from);
        if (!used) *at++ = *from;
        from += used ? used : 1;
    }
    *at = 0;
    for (const char *p = out; *p;) {
        uint32_t c = text_next(&p);
        if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0xfffe || c == 0xffff) fail_msg("character U+%04X in XML", c);
    }
    m->value = realloc(m->value, sizeof *m->value * (size_t)(m->values + 1));
    m->value_of = realloc(m->value_of, sizeof *m->value_of * (size_t)(m->values + 1));
    m->value[m->values] = out;
    m->value_of[m->values++] = strdup(where);
}

static inline const char *markup_attributes(struct markup *m, const char *element, const char *p) {
    while (isspace((unsigned char)*p)) {
        while (isspace((unsigned char)*p)) p++;
        if (*p == '>' || *p == '/') break;
        const char *name = p;
        while (isalnum((unsigned char)*p) || (*p && strchr("-_:.", *p))) p++;
        assert_true(p > name);
        char where[128];
        snprintf(where, sizeof where, "%s@%.*s", element, (int)(p - name), name);
        p += strspn(p, " ");
        assert_true(*p == '=');
        p += 1 + strspn(p + 1, " ");
        assert_true(*p == '"' || *p == '\'');
        const char *end = strchr(p + 1, *p);
        assert_non_null(end);
        markup_value(m, where, p + 1, end);
        p = end + 1;
    }
    return p;
}

static inline const char *markup_tag(struct markup *m, const char *p) {
    char name[32];
    bool close = *p == '/';
    if (close) p++;
    size_t length = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    assert_true(length && length < sizeof name);
    snprintf(name, sizeof name, "%.*s", (int)length, p);
    p = markup_attributes(m, name, p + length);
    if (close) {
        assert_true(m->depth > 0);
        if (strcmp(m->stack[m->depth - 1], name)) fail_msg("</%s> closes <%s>", name, m->stack[m->depth - 1]);
        free(m->stack[--m->depth]);
    } else {
        m->elements++;
        int i = 0;
        while (i < m->name_count && strcmp(m->names[i], name)) i++;
        assert_true(i < 64);
        if (i == m->name_count) strcpy(m->names[m->name_count++], name);
        if (*p == '/') p++;
        else m->stack[m->depth++] = strdup(name);
        assert_true(m->depth < 64);
    }
    assert_true(*p == '>');
    return p + 1;
}

static inline void markup_parse(struct markup *m, const char *p) {
    *m = (struct markup){0};
    while (*p) {
        if (*p != '<') {
            const char *end = p + strcspn(p, "<");
            if (m->depth) markup_value(m, m->stack[m->depth - 1], p, end);
            else assert_true(strspn(p, " \n") >= (size_t)(end - p));
            p = end;
        } else if (!strncmp(p, "<?xml", 5) || !strncmp(p, "<!DOCTYPE", 9)) {
            assert_int_equal(m->elements, 0);
            p = strchr(p, '>') + 1;
        } else if (!strncmp(p, "<![CDATA[", 9)) {
            p = strstr(p, "]]>");
            assert_non_null(p);
            p += 3;
        } else if (!strncmp(p, "<!--", 4)) {
            p = strstr(p, "-->");
            assert_non_null(p);
            p += 3;
        } else {
            p = markup_tag(m, p + 1);
        }
    }
    assert_int_equal(m->depth, 0);
    assert_true(m->elements > 0);
}

// How many values of "element" or "element@attribute" equal text.
static inline int markup_count(const struct markup *m, const char *where, const char *text) {
    int count = 0;
    for (int i = 0; i < m->values; i++) count += !strcmp(m->value_of[i], where) && (!text || !strcmp(m->value[i], text));
    return count;
}

static inline void markup_free(struct markup *m) {
    for (int i = 0; i < m->values; i++) {
        free(m->value[i]);
        free(m->value_of[i]);
    }
    free(m->value);
    free(m->value_of);
}

#endif
