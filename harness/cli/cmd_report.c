// fsdpmark report [RUN] [-o FOLDER]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench.h"
#include "harness/cli/cli.h"
#include "harness/net/output.h"
#include "harness/protocol/memory.h"
#include "harness/report/series_report.h"

static bool has_tool(const struct stored_serieses *series, const char *tool)
{
    for (int i = 0; i < series->count; i++)
        if (strcmp(series->items[i].tool, tool) == 0)
            return true;
    return false;
}

static void explain(const char *name, const char why[256], FILE *out)
{
    if (why[0] != 0)
        fprintf(out, "figure %s: not drawn: %s\n", name, why);
}

static bool draw_net(struct store *s, const struct stored_run *run, const char *folder, FILE *missing, struct error *error)
{
    struct net_rows rows;
    char why[256] = "";
    if (!net_rows_load(s, run->id, &rows, error))
        return false;
    bool ok = net_figures(&rows, run, folder, why, error);
    explain("busbw", why, missing);
    net_rows_free(&rows);
    return ok;
}

static bool draw_bench(const struct stored_run *run, const struct stored_serieses *series, const char *folder, FILE *missing, struct error *error)
{
    struct bench_table t;
    bench_from_stored(series, (int)json_integer_value(json_object_get(run->environment, "cores")), &t);
    bool ok = bench_plots(&t, run->environment, run->implementations, run->started, folder, missing, error);
    bench_table_free(&t);
    return ok;
}

static bool draw(struct store *s, const struct stored_run *run, const struct stored_serieses *series, const char *folder, FILE *missing, struct error *error)
{
    char why[256] = "";
    bool bench = has_tool(series, "bench"), steps = bench || has_tool(series, "validate");
    bool ok = (!has_tool(series, "net") || draw_net(s, run, folder, missing, error)) && (!bench || draw_bench(run, series, folder, missing, error)) &&
              (!steps || series_bandwidth_figure(run, series, folder, why, error));
    explain("bandwidth", why, missing);
    return ok;
}

// Of a run that measured: the page of its series, in place of the verdicts' where it judged no case.
static bool report_series(struct store *s, const struct stored_run *run, bool alone, const char *folder, struct error *error)
{
    struct stored_serieses series;
    char *figures = memory_format("%s/figures", folder), *missing = NULL;
    size_t bytes;
    FILE *out = open_memstream(&missing, &bytes);
    bool ok = out != NULL && store_load_series(s, run->id, NULL, &series, error);
    if (ok) {
        ok = draw(s, run, &series, figures, out, error);
        fflush(out);
        ok = ok && series_report(run, &series, folder, alone ? "index.html" : "series.html", missing, error);
        stored_series_free(&series);
    }
    if (out != NULL)
        fclose(out);
    free(missing);
    free(figures);
    return ok;
}

static bool report(struct store *s, const struct stored_run *run, const char *folder, struct error *error)
{
    int count;
    if (!store_count_series(s, run->id, &count, error))
        return false;
    bool alone = count > 0 && !stored_run_judges(run);
    return (alone || report_write(run, folder, error)) && (count == 0 || report_series(s, run, alone, folder, error));
}

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
    bool ok = report(s, &run, folder, &error);
    if (ok)
        printf("run %lld: %s/index.html\n", (long long)run.id, folder);
    else
        options_bad(cli->command, "%s", error.text);
    stored_run_free(&run);
    store_close(s);
    return ok ? 0 : 2;
}
