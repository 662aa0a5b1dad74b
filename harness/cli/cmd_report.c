// fsdpmark report [RUN] [-o FOLDER]
#include <stdio.h>

#include "harness/cli/cli.h"

int cmd_report(const struct cli *cli, int argc, char **argv)
{
    const char *folder = "fsdpmark-report", *store = NULL, *word = "";
    int words;
    const struct option table[] = {
        {"output", 'o', OPTION_TEXT, &folder, "FOLDER", "where to (fsdpmark-report)"},
        {"store", 0, OPTION_TEXT, &store, "FILE", "results database"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, &word, 1, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    struct store *s;
    struct stored_run run;
    struct error error = {0};
    if (!cli_load_run(cli, store, word, &s, &run))
        return 2;
    bool ok = report_write(&run, folder, &error);
    if (ok)
        printf("run %lld: %s/index.html\n", (long long)run.id, folder);
    else
        options_bad(cli->command, "%s", error.text);
    stored_run_free(&run);
    store_close(s);
    return ok ? 0 : 3;
}
