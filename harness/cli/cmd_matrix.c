// fsdpmark matrix: which implementation can do what, from the newest verdicts of the store.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/protocol/memory.h"
#include "harness/report/overview.h"

enum { MOST_RUNS = 256 };

struct request {
    struct option_list implementations;
    const char *runs, *html, *markdown, *svg, *png, *store;
    bool as_json;
};

// "3,5,8"; 0 runs: all. False with one line of complaint.
static bool read_runs(const struct command *command, const char *text, int64_t runs[MOST_RUNS], int *count)
{
    *count = 0;
    for (const char *at = text; at != NULL && *count < MOST_RUNS; at++) {
        char *end;
        errno = 0;
        long long run = strtoll(at, &end, 10);
        if (end == at || run <= 0 || errno != 0 || (*end != 0 && *end != ','))
            break;
        runs[(*count)++] = run;
        if (*end == 0)
            return true;
        at = end;
    }
    return text == NULL || (options_bad(command, "--run: found '%s', expected numbers of runs with commas between them", text), false);
}

static bool write_html(const struct overview *m, const char *path, struct error *error)
{
    FILE *out = fopen(path, "we");
    bool ok = out != NULL && overview_html(m, out);
    if (out != NULL && fclose(out) != 0)
        ok = false;
    return ok || error_set(error, "%s: cannot be written: %s", path, strerror(errno));
}

// Files first: the table on stdout is for who asked for none.
static bool write_all(const struct request *r, const struct overview *m, struct error *error)
{
    bool files = r->html != NULL || r->markdown != NULL || r->svg != NULL || r->png != NULL;
    struct report_options o = {.color = report_wants_color(stdout), .columns = report_columns(stdout)};
    if ((r->html != NULL && !write_html(m, r->html, error)) || (r->markdown != NULL && !overview_markdown_into(m, r->markdown, error)) ||
        ((r->svg != NULL || r->png != NULL) && !overview_figure(m, r->svg, r->png, error)))
        return false;
    bool ok = r->as_json ? overview_json(m, stdout) : files || overview_table(m, &o, stdout);
    return ok || error_set(error, "standard output: cannot be written: %s", strerror(errno));
}

static int matrix(const struct cli *cli, const struct request *r, const char *path)
{
    int64_t runs[MOST_RUNS];
    int count;
    struct store *s;
    struct error error = {0};
    struct stored_run newest = {0};
    struct overview m = {0};
    const char *names[33] = {0};
    for (int i = 0; i < r->implementations.count; i++)
        names[i] = r->implementations.items[i];
    if (!read_runs(cli->command, r->runs, runs, &count))
        return 2;
    bool opened = store_open(path, true, &s, &error), loaded = opened && store_load_newest(s, runs, count, &newest, &error);
    bool made = loaded && overview_make(&newest, r->implementations.count > 0 ? names : NULL, &m, &error), ok = made && write_all(r, &m, &error);
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    if (made)
        overview_free(&m);
    if (loaded)
        stored_run_free(&newest);
    if (opened)
        store_close(s);
    return ok ? 0 : 2;
}

int cmd_matrix(const struct cli *cli, int argc, char **argv)
{
    struct request r = {0};
    int words;
    const struct option table[] = {
        {"implementation", 'i', OPTION_LIST, &r.implementations, "NAME", "a column, in this order; default all that the store has"},
        {"run", 0, OPTION_TEXT, &r.runs, "N[,N]", "verdicts of these runs; default all runs of check, the newest verdict on each case"},
        {"html", 0, OPTION_TEXT, &r.html, "FILE", "a page with a section for each deciding case"},
        {"markdown", 0, OPTION_TEXT, &r.markdown, "FILE", "a table; in a file that is there, what stands between the lines " OVERVIEW_BEGIN " and " OVERVIEW_END},
        {"svg", 0, OPTION_TEXT, &r.svg, "FILE", "the figure, by gnuplot"},
        {"png", 0, OPTION_TEXT, &r.png, "FILE", "the same as PNG"},
        {"json", 0, OPTION_FLAG, &r.as_json, NULL, "JSON on stdout in place of the table"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    char *path = cli_store(cli, r.store);
    int status = path != NULL ? matrix(cli, &r, path) : 2;
    free(path);
    return status;
}
