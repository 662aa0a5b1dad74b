// See options.h.
#include "harness/cli/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"

enum { MAX_OPTIONS = 60 };

int options_bad(const struct command *command, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "fsdpmark %s: ", command->name);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return 2;
}

char *options_joined(const struct option_list *list)
{
    char *text = NULL;
    for (int i = 0; i < list->count; i++) {
        char *longer = text != NULL ? memory_format("%s,%s", text, list->items[i]) : memory_text(list->items[i]);
        free(text);
        text = longer;
    }
    return text;
}

static void print_help(const struct command *command, const struct option *table)
{
    printf("usage: fsdpmark %s %s\n\n%s\n\n", command->name, command->usage, command->summary);
    for (const struct option *o = table; o->name != NULL; o++) {
        char left[64];
        snprintf(left, sizeof left, "%s%c%s --%s%s%s", o->letter ? "-" : " ", o->letter ? o->letter : ' ', o->letter ? "," : " ",
                 o->name, o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "");
        printf("  %-26s %s%s\n", left, o->help, o->kind == OPTION_LIST ? " (may be repeated)" : "");
    }
    printf("  %-26s %s\n", "-h, --help", "this help");
}

static const struct option *find(const struct option *table, const char *name, size_t size, char letter)
{
    for (const struct option *o = table; o->name != NULL; o++)
        if (letter != 0 ? o->letter == letter : strlen(o->name) == size && strncmp(o->name, name, size) == 0)
            return o;
    return NULL;
}

static bool unknown(const struct command *command, const struct option *table, const char *word)
{
    const char *names[MAX_OPTIONS + 2];
    char name[64];
    int count = 0;
    for (const struct option *o = table; o->name != NULL && count < MAX_OPTIONS; o++)
        names[count++] = o->name;
    names[count++] = "help";
    names[count] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + strspn(word, "-"), "="), word + strspn(word, "-"));
    const char *near = word[1] == '-' ? nearest_name(name, names) : NULL;
    options_bad(command, "unknown option '%s', %s%s", word, near != NULL ? "nearest is --" : "see fsdpmark help ",
                near != NULL ? near : command->name);
    return false;
}

static bool store_number(const struct command *command, const struct option *o, const char *value)
{
    char *end;
    if (o->kind == OPTION_INTEGER || o->kind == OPTION_COUNT) {
        int least = o->kind == OPTION_COUNT;
        errno = 0;
        long long n = strtoll(value, &end, 0);
        *(int64_t *)o->target = n;
        if (end != value && *end == 0 && n > 0 && errno == ERANGE)
            return options_bad(command, "--%s: found '%s', expected at most %lld", o->name, value, LLONG_MAX), false;
        return (end != value && *end == 0 && n >= least) ||
               (options_bad(command, "--%s: found '%s', expected a whole number of at least %d", o->name, value, least), false);
    }
    double x = strtod(value, &end);
    *(double *)o->target = x;
    if (end != value && *end == 0 && x > 1e9)
        return options_bad(command, "--%s: found '%s', expected at most 1e9", o->name, value), false;
    return (end != value && *end == 0 && x > 0) ||
           (options_bad(command, "--%s: found '%s', expected a number above 0", o->name, value), false);
}

static bool store_value(const struct command *command, const struct option *o, const char *value)
{
    struct option_list *list = o->target;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->target = true;
        return true;
    case OPTION_TEXT:
        *(const char **)o->target = value;
        return true;
    case OPTION_LIST:
        if (list->count == sizeof list->items / sizeof *list->items)
            return options_bad(command, "--%s: given more than %d times", o->name, list->count), false;
        list->items[list->count++] = value;
        return true;
    default:
        return store_number(command, o, value);
    }
}

// Takes the option at argv[*i]; moves *i over its argument.
static bool take(const struct command *command, const struct option *table, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *value = NULL;
    bool is_long = word[1] == '-';
    size_t size = is_long ? strcspn(word + 2, "=") : 0;
    const struct option *o = find(table, word + 2, size, is_long ? 0 : word[1]);
    if (o == NULL)
        return unknown(command, table, word);
    if (is_long && word[2 + size] == '=')
        value = word + 3 + size;
    else if (!is_long && word[2] != 0)
        value = word + 2;
    if (o->kind == OPTION_FLAG && value != NULL)
        return options_bad(command, "--%s: found '%s', expected no argument", o->name, value), false;
    if (o->kind != OPTION_FLAG && value == NULL) {
        if (*i + 1 >= argc)
            return options_bad(command, "--%s: found nothing, expected %s", o->name, o->argument), false;
        value = argv[++*i];
    }
    return store_value(command, o, value);
}

enum options_result options_parse(const struct command *command, const struct option *table, int argc, char **argv,
                                  const char **words, int word_limit, int *word_count)
{
    bool options_over = false;
    *word_count = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool is_option = !options_over && word[0] == '-' && word[1] != 0;
        if (is_option && strcmp(word, "--") == 0) {
            options_over = true;
        } else if (is_option && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            print_help(command, table);
            return OPTIONS_HELP;
        } else if (is_option) {
            if (!take(command, table, argc, argv, &i))
                return OPTIONS_BAD;
        } else if (*word_count == word_limit) {
            options_bad(command, "found '%s', expected: fsdpmark %s %s", word, command->name, command->usage);
            return OPTIONS_BAD;
        } else {
            words[(*word_count)++] = word;
        }
    }
    return OPTIONS_RUN;
}
