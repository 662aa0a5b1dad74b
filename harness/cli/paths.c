// Where things are: the suite, the built programs, the store. See cli.h.
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/protocol/memory.h"
#include "harness/report/counters.h"
#include "harness/report/exposed.h"

static char *program_folder(const struct cli *cli)
{
    char *path = memory_text(cli->program);
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = 0;
    return path;
}

// A suite is known by its implementations.
static char *suite_at(const char *folder, const char *below)
{
    char *path = memory_format("%s/%s/implementations", folder, below), *real = realpath(path, NULL);
    free(path);
    if (real != NULL)
        *strrchr(real, '/') = 0;
    return real;
}

char *cli_suite(const struct cli *cli, const char *given)
{
    static const char *const places[] = {"../suite", "../share/fsdpmark/suite", "../../suite"};
    const char *asked = given != NULL ? given : getenv("FSDPMARK_SUITE");
    char *folder = program_folder(cli), *found = NULL;
    if (asked != NULL && asked[0] != 0)
        found = suite_at(asked, ".");
    else
        for (int i = 0; i < 3 && found == NULL; i++)
            found = suite_at(folder, places[i]);
    if (found == NULL && asked != NULL)
        options_bad(cli->command, "%s: found no suite there, expected a folder that holds implementations/", asked);
    else if (found == NULL)
        options_bad(cli->command, "found no suite beside %s, expected --suite or FSDPMARK_SUITE to name it", folder);
    free(folder);
    return found;
}

void cli_export_build(const struct cli *cli)
{
    // The harness and the workers that it was built with belong together, whatever the variable said.
    char *folder = program_folder(cli);
    setenv("FSDPMARK_BUILD", folder, 1);
    free(folder);
}

char *cli_store(const struct cli *cli, const char *given)
{
    struct error error = {0};
    char *path = given != NULL ? memory_text(given) : session_default_store(&error);
    if (path == NULL)
        options_bad(cli->command, "%s", error.text);
    return path;
}

bool cli_load_run(const struct cli *cli, const char *store, const char *word, struct store **s, struct stored_run *run)
{
    struct error error = {0};
    char *end = NULL;
    long long id = word[0] != 0 ? strtoll(word, &end, 10) : 0;
    char *path;
    if (word[0] != 0 && (*end != 0 || id <= 0))
        return options_bad(cli->command, "found run '%s', expected a number (fsdpmark show lists them)", word), false;
    if ((path = cli_store(cli, store)) == NULL)
        return false;
    bool opened = store_open(path, true, s, &error);
    if (opened && !store_load_run(*s, id, run, &error)) {
        store_close(*s);
        opened = false;
    }
    if (!opened)
        options_bad(cli->command, "%s", error.text);
    free(path);
    return opened;
}

FILE *cli_open(const char *path) { return strcmp(path, "-") == 0 ? stdout : fopen(path, "we"); }

bool cli_reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

bool cli_close(const struct cli *cli, const char *path, FILE *file, bool written)
{
    bool ok = file != NULL && ((written && fflush(file) == 0) || (file == stdout && cli_reader_is_gone()));
    if (!ok)
        options_bad(cli->command, "%s: cannot be written: %s", path, strerror(errno));
    if (file != NULL && file != stdout)
        fclose(file);
    return ok;
}

bool cli_write(const struct cli *cli, const char *path, bool (*report)(const struct stored_run *, FILE *), const struct stored_run *run)
{
    FILE *file = cli_open(path);
    return cli_close(cli, path, file, file != NULL && report(run, file));
}

static bool is_stdout(const char *path) { return path != NULL && strcmp(path, "-") == 0; }
FILE *cli_news(const char *json, const char *csv) { return is_stdout(json) || is_stdout(csv) ? stderr : stdout; }

bool cli_one_on_stdout(const struct cli *cli, const char *json, const char *csv)
{
    return !is_stdout(json) || !is_stdout(csv) || (options_bad(cli->command, "found 2 reports for standard output, expected at most one"), false);
}

void cli_print_table(const struct stored_run *run, bool verbose, FILE *out)
{
    bool terminal = isatty(fileno(out));
    struct report_options o = {.color = terminal && getenv("NO_COLOR") == NULL, .verbose = verbose, .columns = report_columns(out)};
    report_table(run, &o, out);
    report_counters(run, out);
    report_exposed(run, out);
}
