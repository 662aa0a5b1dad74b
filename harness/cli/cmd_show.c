// fsdpmark show [RUN]: the table again, in any format, or the list of runs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/advise/validate_output.h"
#include "harness/bench/bench.h"
#include "harness/cli/cli.h"
#include "harness/net/output.h"
#include "harness/report/export.h"
#include "harness/report/series_report.h"
#include "harness/report/text.h"

static void print_run(json_t *run)
{
    json_t *status = json_object_get(run, "exit_status");
    char ended[24] = "not ended";
    if (json_is_integer(status))
        snprintf(ended, sizeof ended, "%d", (int)json_integer_value(status));
    printf("%-5lld %-20s %-9s", (long long)json_integer_value(json_object_get(run, "id")),
           json_string_value(json_object_get(run, "started")), ended);
    static const char *const counts[] = {"pass", "fail", "waived", "skip", "broken"};
    for (int i = 0; i < 5; i++)
        printf(" %6lld", (long long)json_integer_value(json_object_get(run, counts[i])));
    printf("  %s\n", json_string_value(json_object_get(run, "command")));
}

static int list_runs(const struct cli *cli, const char *store, bool as_json)
{
    struct store *s;
    struct error error = {0};
    json_t *runs = NULL, *run;
    size_t i;
    char *path = cli_store(cli, store);
    if (path == NULL)
        return 2;
    bool opened = store_open(path, true, &s, &error), ok = opened && store_list_runs(s, &runs, &error);
    free(path);
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    if (ok && as_json) {
        json_dumpf(runs, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (ok) {
        printf("%-5s %-20s %-9s %6s %6s %6s %6s %6s  %s\n", "run", "started", "exit", "PASS", "FAIL", "waived", "SKIP", "BROKEN", "command");
        json_array_foreach(runs, i, run)
            print_run(run);
    }
    json_decref(runs);
    if (opened)
        store_close(s);
    return ok ? 0 : 2;
}

// The table that the bench printed.
static void print_bench(const struct stored_run *run, const struct stored_serieses *series)
{
    struct bench_table t;
    bench_from_stored(series, (int)json_integer_value(json_object_get(run->environment, "cores")), &t);
    bench_print(&t, stdout);
    bench_table_free(&t);
}

// Those that net printed.
static bool print_net(struct store *s, const struct stored_run *run, struct error *error)
{
    struct net_rows rows;
    struct net_findings findings;
    if (!net_rows_load(s, run->id, &rows, error))
        return false;
    if (rows.count > 0)
        printf("%s: %d ranks on %d host%s\n", rows.fabric, rows.items[0].ranks, rows.items[0].hosts, rows.items[0].hosts == 1 ? "" : "s");
    net_consistency(&rows, &findings);
    net_table(&rows, &findings, stdout);
    net_rows_free(&rows);
    return true;
}

// A run of series alone has no verdicts to show.
static int show_series(const struct cli *cli, struct store *s, const struct stored_run *run, bool verbose, bool as_json)
{
    struct stored_serieses series;
    struct error error = {0};
    struct report_options o = {.columns = report_columns(stdout)};
    bool ok = store_load_series(s, run->id, NULL, &series, &error);
    const char *tool = ok ? stored_series_tool(&series) : "";
    if (ok && as_json)
        export_json(&(struct export){run, &series, NULL}, stdout);
    else if (ok && !verbose && strcmp(tool, "bench") == 0)
        print_bench(run, &series);
    else if (ok && !verbose && strcmp(tool, "net") == 0)
        ok = print_net(s, run, &error);
    else if (ok && !verbose && strcmp(tool, "validate") == 0)
        validate_print_stored(&series, stdout);
    else if (ok)
        series_table(&series, &o, stdout);
    if (ok && !as_json) {
        printf("run %lld, %.10s: ", (long long)run->id, run->started);
        text_put(stdout, TEXT_TERMINAL, run->command);
        putchar('\n');
    }
    stored_series_free(&series);
    return ok ? 0 : options_bad(cli->command, "%s", error.text);
}

static int show(const struct cli *cli, struct store *s, const struct stored_run *run, bool verbose, bool as_json)
{
    struct error error = {0};
    int count;
    if (!store_count_series(s, run->id, &count, &error))
        return options_bad(cli->command, "%s", error.text);
    if (count > 0 && !stored_run_judges(run))
        return show_series(cli, s, run, verbose, as_json);
    if (as_json)
        report_json(run, stdout);
    else
        cli_print_table(run, verbose, stdout);
    return 0;
}

int cmd_show(const struct cli *cli, int argc, char **argv)
{
    const char *store = NULL, *word = "";
    bool verbose = false, as_json = false;
    int words;
    const struct option table[] = {
        {"verbose", 'v', OPTION_FLAG, &verbose, NULL, "every result, not only what is not PASS; of net, bench and advise --validate a line for each series"},
        {"json", 0, OPTION_FLAG, &as_json, NULL, "as JSON"},
        {"store", 0, OPTION_TEXT, &store, "FILE", "results database"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, &word, 1, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (words == 0)
        return list_runs(cli, store, as_json);
    struct store *s;
    struct stored_run run;
    if (!cli_load_run(cli, store, word, &s, &run))
        return 2;
    int status = show(cli, s, &run, verbose, as_json);
    stored_run_free(&run);
    store_close(s);
    return status;
}
