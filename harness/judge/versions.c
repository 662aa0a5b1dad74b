// The order of versions and the ranges over it.
//
// Order: release numbers, missing ones being 0; then dev < a < b < rc < the release < post, each with its number. What follows a
// '+' names a build and has no order. "<2.16" leaves out 2.16.0rc1 too, which has 2.16's behaviour.
// Source: PEP 440, "Summary of permitted suffixes and relative ordering" and "Exclusive ordered comparison".
//
// Grammar: part (";" part)*, part = NAME constraint ("," constraint)*, constraint = (">=" "<=" "==" "!=" ">" "<") VERSION;
// or "any" alone.
#include "harness/judge/versions.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 8, WORD = 64 };
enum phase { PHASE_DEV = -4, PHASE_ALPHA, PHASE_BETA, PHASE_CANDIDATE, PHASE_RELEASE, PHASE_POST };
struct version { long numbers[MOST_NUMBERS]; enum phase phase; long phase_number; };

static bool read_phase(const char **at, struct version *v)
{
    static const struct { const char *word; enum phase phase; } phases[] = {
        {"dev", PHASE_DEV}, {"alpha", PHASE_ALPHA}, {"a", PHASE_ALPHA}, {"beta", PHASE_BETA}, {"b", PHASE_BETA},
        {"rc", PHASE_CANDIDATE}, {"c", PHASE_CANDIDATE}, {"pre", PHASE_CANDIDATE}, {"post", PHASE_POST},
    };
    const char *s = *at + strspn(*at, ".-_");
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        size_t size = strlen(phases[i].word);
        if (strncmp(s, phases[i].word, size) != 0)
            continue;
        char *end;
        s += size;
        s += strspn(s, ".-_");
        v->phase = phases[i].phase;
        v->phase_number = strtol(s, &end, 10);
        *at = end;
        return true;
    }
    return false;
}

// A phase of a phase (2.0rc1.dev3) counts as that phase.
static bool read_version(const char *text, struct version *v)
{
    *v = (struct version){.phase = PHASE_RELEASE};
    const char *at = text + (*text == 'v');
    for (int i = 0; i < MOST_NUMBERS && isdigit((unsigned char)*at); i++) {
        char *end;
        v->numbers[i] = strtol(at, &end, 10);
        at = end;
        if (*at != '.' || !isdigit((unsigned char)at[1]))
            break;
        at++;
    }
    bool numbered = at > text + (*text == 'v'), phased = numbered && read_phase(&at, v);
    struct version rest;
    while (phased && *at && read_phase(&at, &rest))
        ;
    return numbered && (*at == 0 || *at == '+');
}

static int sign(long x) { return (x > 0) - (x < 0); }

static int compare_releases(const struct version *a, const struct version *b)
{
    for (int i = 0; i < MOST_NUMBERS; i++)
        if (a->numbers[i] != b->numbers[i])
            return sign(a->numbers[i] - b->numbers[i]);
    return 0;
}

static int compare(const struct version *a, const struct version *b)
{
    int order = compare_releases(a, b);
    if (order == 0)
        order = sign((long)a->phase - (long)b->phase);
    return order != 0 ? order : sign(a->phase_number - b->phase_number);
}

bool versions_compare(const char *a, const char *b, int *order)
{
    struct version x, y;
    if (!read_version(a, &x) || !read_version(b, &y))
        return false;
    *order = compare(&x, &y);
    return true;
}

// ---- ranges ----

static const char *const operators[] = {">=", "<=", "==", "!=", ">", "<", NULL};

static bool holds(const char *operator, const struct version *v, const struct version *limit)
{
    int order = compare(v, limit);
    switch (operator[0]) {
    case '>': return operator[1] ? order >= 0 : order > 0;
    case '=': return order == 0;
    case '!': return order != 0;
    default:
        if (operator[1])
            return order <= 0;
        return order < 0 && !(limit->phase == PHASE_RELEASE && v->phase < PHASE_RELEASE && compare_releases(v, limit) == 0);
    }
}

struct constraint { char package[WORD]; const char *operator; char text[WORD]; struct version limit; };

// A word up to one of `stops`, blanks around it dropped. False where it is empty or too long.
static bool take_word(const char **at, const char *stops, char word[WORD])
{
    const char *start = *at + strspn(*at, " ");
    size_t size = strcspn(start, stops);
    *at = start + size;
    while (size > 0 && start[size - 1] == ' ')
        size--;
    snprintf(word, WORD, "%.*s", (int)(size < WORD ? size : 0), start);
    return word[0] != 0;
}

static bool take_constraint(const char **at, struct constraint *c, struct error *error)
{
    const char *start = *at + strspn(*at, " ");
    c->operator = NULL;
    for (int i = 0; c->operator == NULL && operators[i]; i++)
        if (strncmp(start, operators[i], strlen(operators[i])) == 0)
            c->operator = operators[i];
    if (c->operator == NULL)
        return error_set(error, "found '%.40s' after '%s', expected one of >=, <=, ==, !=, > or < and a version", start, c->package);
    *at = start + strlen(c->operator);
    if (!take_word(at, ",;", c->text) || !read_version(c->text, &c->limit))
        return error_set(error, "found '%s' after '%s', expected a version such as 2.15", c->text, c->operator);
    return true;
}

typedef bool visitor(const struct constraint *c, void *context);
static bool visit(const char *ranges, visitor *see, void *context, struct error *error)
{
    const char *at = ranges + strspn(ranges, " ");
    if (strcmp(at, "any") == 0)
        return true;
    for (;; at++) {
        struct constraint c = {.operator = NULL};
        if (!take_word(&at, " <>=!,;", c.package))
            return error_set(error, "found '%.40s', expected PACKAGE >=VERSION,<VERSION or any", at);
        do {
            at += *at == ',';
            if (!take_constraint(&at, &c, error))
                return false;
            if (!see(&c, context))
                return false;
        } while (*at == ',');
        if (*at == 0)
            return true;
    }
}

static bool see_nothing(const struct constraint *c, void *context)
{
    (void)c, (void)context;
    return true;
}

bool versions_valid(const char *ranges, struct error *error) { return visit(ranges, see_nothing, NULL, error); }

struct looking { json_t *there; char *why; size_t size; };

static bool see(const struct constraint *c, void *context)
{
    struct looking *l = context;
    struct version v;
    const char *found = json_string_value(json_object_get(l->there, c->package));
    char word[WORD];
    snprintf(word, sizeof word, "%.*s", found != NULL ? (int)strcspn(found, " \t") : 0, found != NULL ? found : "");
    if (found == NULL)
        snprintf(l->why, l->size, "no version of %s is known", c->package);
    else if (!read_version(word, &v))
        snprintf(l->why, l->size, "%s %s has no order", c->package, word);
    else if (!holds(c->operator, &v, &c->limit))
        snprintf(l->why, l->size, "%s %s is not %s%s", c->package, word, c->operator, c->text);
    else
        return true;
    return false;
}

bool versions_within(const char *ranges, json_t *there, char *why, size_t size)
{
    struct looking l = {there, why, size};
    struct error error = {0};
    return visit(ranges, see, &l, &error);
}
