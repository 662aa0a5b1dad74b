// fsdpmark fabric: which fabrics can be had here; one held up for a look at it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/fabric/fabric.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/keeper.h"

static int list(const struct cli *cli, const char *suite, const char *hostfile)
{
    struct string_list names = {0}, titles = {0};
    struct error error = {0};
    struct fabric f;
    bool ok = fabric_list(suite, &names, &titles, &error);
    for (int i = 0; ok && i < names.count && !interrupt_signal(); i++) {
        if (!(ok = fabric_read(names.items[i], suite, &f, &error)))
            break;
        if (f.kind == FABRIC_HOSTS && !(ok = fabric_hosts(&f, hostfile, NULL, &error)))
            fabric_free(&f);
        if (!ok)
            break;
        char *reason = fabric_unavailable(&f);
        printf("%-20s %-6s %s\n", f.name, reason == NULL ? "has" : "lacks", f.title);
        if (reason != NULL)
            printf("%27s %s\n", "", reason);
        free(reason);
        fabric_free(&f);
    }
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    string_list_free(&names);
    string_list_free(&titles);
    return ok ? 0 : 2;
}

static void print_words(const char *title, const char *const *words)
{
    printf("%s", title);
    for (; *words != NULL; words++)
        printf(strchr(*words, ' ') != NULL ? " '%s'" : " %s", *words);
    putchar('\n');
}

// Everything that a program needs to run on it by hand.
static void describe(const struct fabric_place *p)
{
    int hosts = fabric_place_hosts(p);
    printf("%s: %s\n", fabric_place_fabric(p)->name, fabric_place_fabric(p)->title);
    for (int h = 0; h < hosts; h++) {
        const char *address = fabric_place_address(p, h);
        printf("host %d: %s", h, address != NULL ? address : "this machine");
        if (fabric_place_rate(p, h) > 0)
            printf(", %g Mbit/s", fabric_place_rate(p, h) * 1e-6);
        print_words(fabric_place_enter(p, h)[0] != NULL ? ", enter:" : "", fabric_place_enter(p, h));
    }
    char **options = fabric_place_mpirun(p, hosts);
    print_words("mpirun, on host 0:", (const char *const *)options);
    environment_free(options);
    fflush(stdout);
}

static int hold(const struct cli *cli, const char *suite, const char *name, const char *hostfile, const char *agent, int hosts)
{
    struct error error = {0};
    struct fabric f;
    struct fabric_place *place = NULL;
    if (!fabric_read(name, suite, &f, &error))
        return options_bad(cli->command, "%s", error.text);
    if (!fabric_hosts(&f, hostfile, agent, &error)) {
        fabric_free(&f);
        return options_bad(cli->command, "%s", error.text);
    }
    char *reason = fabric_unavailable(&f);
    int status = 0;
    if (reason != NULL)
        status = options_bad(cli->command, "%s cannot be had here: %s", f.name, reason);
    else if (!fabric_open(&f, hosts, cli->program, &place, &error))
        status = options_bad(cli->command, "%s", error.text);
    else
        describe(place);
    while (place != NULL && fabric_place_fabric(place)->kind == FABRIC_VIRTUAL && !interrupt_signal() && fabric_place_up(place))
        usleep(50000);
    if (place != NULL && !fabric_place_up(place))
        status = options_bad(cli->command, "the process that holds %s has ended", f.name);
    fabric_close(place);
    fabric_free(&f);
    free(reason);
    return status;
}

int cmd_fabric(const struct cli *cli, int argc, char **argv)
{
    const char *given = NULL, *hostfile = NULL, *agent = NULL, *word = "";
    int64_t hosts = 0;
    int words;
    const struct option table[] = {
        {"hosts", 0, OPTION_INTEGER, &hosts, "N", "hosts of a virtual fabric; default as its file says"},
        {"hostfile", 0, OPTION_TEXT, &hostfile, "FILE", "machines of the fabric hosts, 'NAME slots=N' in each line (docs/fabrics.md)"},
        {"agent", 0, OPTION_TEXT, &agent, "COMMAND", "how mpirun reaches the machines of the fabric hosts; default ssh"},
        {"suite", 0, OPTION_TEXT, &given, "FOLDER", "the suite"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, &word, 1, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (hosts > FABRIC_HOSTS_MOST)
        return options_bad(cli->command, "--hosts: found %lld, expected %d at most", (long long)hosts, FABRIC_HOSTS_MOST);
    char *suite = cli_suite(cli, given);
    int status = suite == NULL ? 2 : word[0] ? hold(cli, suite, word, hostfile, agent, (int)hosts) : list(cli, suite, hostfile);
    free(suite);
    return status;
}
