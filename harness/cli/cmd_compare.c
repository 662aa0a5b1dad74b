// fsdpmark compare RUN RUN: what the second measured and judged otherwise than the first.
#include <stdio.h>
#include <stdlib.h>

#include "harness/cli/cli.h"
#include "harness/report/compare.h"

struct request { const char *store, *before, *figures; double threshold; bool verbose, as_json, as_csv; };
// One of the two runs, as loaded.
struct side { struct store *store; struct stored_run run; struct stored_serieses series; bool loaded; };

static bool load(const struct cli *cli, const char *store, const char *word, struct side *out)
{
    struct error error = {0};
    if (!cli_load_run(cli, store, word, &out->store, &out->run))
        return false;
    out->loaded = true;
    int count = 0;
    bool ok = store_count_series(out->store, out->run.id, &count, &error) &&
              (count == 0 || store_load_series(out->store, out->run.id, NULL, &out->series, &error));
    return ok || (options_bad(cli->command, "%s", error.text), false);
}

static void drop(struct side *s)
{
    if (!s->loaded)
        return;
    stored_series_free(&s->series);
    stored_run_free(&s->run);
    store_close(s->store);
}

static bool put_figure(const struct cli *cli, const struct request *r, const struct comparison *c)
{
    char why[256] = "";
    struct error error = {0};
    if (r->figures == NULL)
        return true;
    if (!compare_figure(c, r->figures, why, &error))
        return options_bad(cli->command, "%s", error.text), false;
    if (why[0] != 0)
        fprintf(stderr, "fsdpmark compare: no figure: %s\n", why);
    return true;
}

static int compare(const struct cli *cli, const struct request *r, struct side sides[2])
{
    struct comparison c;
    struct report_options o = {.color = report_wants_color(stdout), .verbose = r->verbose, .columns = report_columns(stdout)};
    compare_make((struct compare_side){&sides[0].run, &sides[0].series}, (struct compare_side){&sides[1].run, &sides[1].series}, r->threshold / 100, &c);
    bool ok = r->as_json ? compare_json(&c, stdout) : r->as_csv ? compare_csv(&c, stdout) : compare_table(&c, &o, stdout);
    int status = (ok || cli_reader_is_gone()) && put_figure(cli, r, &c) ? compare_exit_status(&c) : 2;
    compare_free(&c);
    return status;
}

int cmd_compare(const struct cli *cli, int argc, char **argv)
{
    struct request r = {.threshold = 5};
    const char *words[2] = {"", ""};
    int count;
    const struct option table[] = {
        {"threshold", 0, OPTION_RATIO, &r.threshold, "PERCENT", "what is worse by more, as its whole interval shows, is a regression (5)"},
        {"verbose", 'v', OPTION_FLAG, &r.verbose, NULL, "also rows that show no difference"},
        {"json", 0, OPTION_FLAG, &r.as_json, NULL, "as JSON"},
        {"csv", 0, OPTION_FLAG, &r.as_csv, NULL, "as CSV"},
        {"figures", 0, OPTION_TEXT, &r.figures, "FOLDER", "draw the ratios: compare.svg, .png, .pdf"},
        {"before", 0, OPTION_TEXT, &r.before, "FILE", "results database of the first run, if another"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, words, 2, &count);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (count != 2)
        return options_bad(cli->command, "found %d runs, expected two: the earlier, then the later (fsdpmark show lists them)", count);
    if (r.as_json && r.as_csv)
        return options_bad(cli->command, "found --json and --csv, expected one: both are for standard output");
    struct side sides[2] = {{0}, {0}};
    bool ok = load(cli, r.before != NULL ? r.before : r.store, words[0], &sides[0]) && load(cli, r.store, words[1], &sides[1]);
    int status = ok ? compare(cli, &r, sides) : 2;
    drop(&sides[0]);
    drop(&sides[1]);
    return status;
}
