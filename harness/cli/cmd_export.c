// fsdpmark export RUN: everything of a stored run, for other programs.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/report/export.h"

struct request { const char *store, *output, *pattern; bool formats[4]; };
enum { CSV, JSON, TRACE, CHAKRA, FORMATS };
static bool (*const writers[FORMATS])(const struct export *, FILE *) = {export_csv, export_json, export_trace, export_chakra};

static int write_out(const struct cli *cli, const struct request *r, int format, const struct export *e)
{
    bool is_stdout = strcmp(r->output, "-") == 0;
    FILE *out = is_stdout ? stdout : fopen(r->output, "we");
    bool ok = out != NULL && writers[format](e, out);
    int reason = errno;
    if (out != NULL && !is_stdout && fclose(out) != 0)
        ok = false, reason = errno;
    if (!ok && is_stdout && cli_reader_is_gone())
        return 0;
    return ok ? 0 : options_bad(cli->command, "%s: cannot be written: %s", is_stdout ? "standard output" : r->output, strerror(reason));
}

static int export_run(const struct cli *cli, const struct request *r, int format, struct store *s, const struct stored_run *run)
{
    struct error error = {0};
    struct stored_serieses series = {0};
    int count = 0;
    if (!store_count_series(s, run->id, &count, &error) || (count > 0 && !store_load_series(s, run->id, NULL, &series, &error)))
        return options_bad(cli->command, "%s", error.text);
    struct export e = {run, &series, r->pattern};
    int status = (format == TRACE || format == CHAKRA) && export_timelines(&e) == 0
                     ? options_bad(cli->command, "run %lld: no case%s%s has a timeline; expected one of several ranks under check --probes", (long long)run->id,
                                   r->pattern != NULL ? " like " : "", r->pattern != NULL ? r->pattern : "")
                     : write_out(cli, r, format, &e);
    stored_series_free(&series);
    return status;
}

int cmd_export(const struct cli *cli, int argc, char **argv)
{
    struct request r = {.output = "-"};
    const char *word = "";
    int words, asked = 0, format = JSON;
    const struct option table[] = {
        {"csv", 0, OPTION_FLAG, &r.formats[CSV], NULL, "a table with a row for each value: results, figures, measured quantities, samples, facts"},
        {"json", 0, OPTION_FLAG, &r.formats[JSON], NULL, "one document with everything (the default)"},
        {"trace", 0, OPTION_FLAG, &r.formats[TRACE], NULL, "timelines in the Trace Event Format, for chrome://tracing and Perfetto"},
        {"chakra", 0, OPTION_FLAG, &r.formats[CHAKRA], NULL, "a step's execution traces with the names of MLCommons Chakra's schema, as JSON"},
        {"pattern", 'k', OPTION_TEXT, &r.pattern, "PATTERN", "timelines of the cases whose id matches the glob, or holds the text (default: one an implementation)"},
        {"output", 'o', OPTION_TEXT, &r.output, "FILE", "where to (standard output)"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, &word, 1, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    for (int i = 0; i < FORMATS; i++)
        if (r.formats[i])
            asked++, format = i;
    if (asked > 1)
        return options_bad(cli->command, "found %d formats, expected one of --csv, --json, --trace, --chakra", asked);
    if (r.pattern != NULL && format != TRACE && format != CHAKRA)
        return options_bad(cli->command, "--pattern: found without --trace or --chakra, expected one of them: it chooses timelines");
    struct store *s;
    struct stored_run run;
    if (!cli_load_run(cli, r.store, word, &s, &run))
        return 2;
    int status = export_run(cli, &r, format, s, &run);
    stored_run_free(&run);
    store_close(s);
    return status;
}
