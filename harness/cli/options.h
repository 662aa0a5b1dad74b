// Options from a table: parsing, help and complaints have one source.
#ifndef HARNESS_OPTIONS_H
#define HARNESS_OPTIONS_H

#include <stdbool.h>

#include "harness/cases/suite.h"
#include "harness/protocol/error.h"

enum option_kind {
    OPTION_FLAG,     // bool
    OPTION_TEXT,     // const char *
    OPTION_LIST,     // struct option_list, may be given several times
    OPTION_INTEGER,  // int64_t, 0 or more
    OPTION_COUNT,    // int64_t, 1 or more: 0 is what it is where it was not given
    OPTION_SECONDS,  // double, more than 0
    OPTION_RATIO     // double, more than 0
};
struct option_list { int count; const char *items[128]; };
struct option {
    const char *name;      // without dashes; NULL ends the table
    char letter;           // 0: none
    enum option_kind kind;
    void *target;
    const char *argument;  // name of the argument in the help, NULL for flags
    const char *help;
};

struct cli;
struct command {
    const char *name, *summary;
    const char *usage;     // what follows the name
    int (*run)(const struct cli *cli, int argc, char **argv);
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_BAD };
// Parses argv[1..]; arguments that are no options go to words (at most word_limit). Prints help or one line of
// complaint itself. `--` ends the options; --name=value and -kvalue are taken too.
enum options_result options_parse(const struct command *command, const struct option *table, int argc, char **argv,
                                  const char **words, int word_limit, int *word_count);
// The texts with commas between; NULL: none. Owned by the caller.
char *options_joined(const struct option_list *list);
// One line "fsdpmark COMMAND: text" on stderr; returns 2.
int options_bad(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
