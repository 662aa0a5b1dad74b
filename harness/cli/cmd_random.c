// fsdpmark random: a case file of random correct configurations, for check --case.
#include <stdio.h>

#include "harness/cases/random.h"
#include "harness/cli/cli.h"

int cmd_random(const struct cli *cli, int argc, char **argv)
{
    int64_t count = 200, seed = 1, ranks = 8;
    const char *path = "-";
    int words;
    const struct option table[] = {
        {"count", 'n', OPTION_INTEGER, &count, "N", "how many (200)"},
        {"seed", 's', OPTION_INTEGER, &seed, "S", "of the draw (1); the same seed gives the same cases"},
        {"ranks", 0, OPTION_INTEGER, &ranks, "N", "largest number of ranks, 1 to 8 (8)"},
        {"output", 'o', OPTION_TEXT, &path, "FILE", "where to (standard output)"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (count < 1 || count > 20000)
        return options_bad(cli->command, "--count: found %lld, expected 1 to 20000", (long long)count);
    if (ranks < 1 || ranks > 8)
        return options_bad(cli->command, "--ranks: found %lld, expected 1 to 8", (long long)ranks);
    FILE *out = path[0] == '-' && path[1] == 0 ? stdout : fopen(path, "w");
    if (out == NULL)
        return options_bad(cli->command, "%s: %m", path);
    random_cases_write(out, (int)count, (uint64_t)seed, (int)ranks);
    bool failed = ferror(out) != 0;
    failed = (out == stdout ? fflush(out) : fclose(out)) != 0 || failed;
    return failed ? options_bad(cli->command, "%s: not written whole", path) : 0;
}
