// fsdpmark fabric: which fabrics can be had here; one held up for a look at it.
#include <signal.h>
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
    return interrupt_signal() != 0 ? 128 + interrupt_signal() : ok ? 0 : 2;
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

// Up until Ctrl-C, which is its end; another signal ends it too, and stands in the status.
static int hold(const struct cli *cli, struct fabric_place *place)
{
    describe(place);
    while (fabric_place_fabric(place)->kind == FABRIC_VIRTUAL && !interrupt_signal() && fabric_place_up(place))
        usleep(50000);
    int caught = interrupt_signal();
    if (!fabric_place_up(place) && caught == 0)
        return options_bad(cli->command, "the process that holds %s has ended", fabric_place_fabric(place)->name);
    return caught != 0 && caught != SIGINT ? 128 + caught : 0;
}

static int show(const struct cli *cli, const struct cli_fabric_request *r)
{
    struct error error = {0};
    struct fabric f;
    struct fabric_place *place = NULL;
    int status = 2;
    if (!cli_fabric(cli, r, &f))
        return 2;
    char *reason = fabric_unavailable(&f);
    if (interrupt_signal() != 0)
        free(reason), status = 128 + interrupt_signal();
    else if (reason != NULL)
        status = cli_skip(&f, reason, stdout);
    else if (fabric_open(&f, r->hosts > 0 ? (int)r->hosts : 0, cli->program, &place, &error))
        status = hold(cli, place);
    else
        status = interrupt_signal() != 0 ? 128 + interrupt_signal() : options_bad(cli->command, "%s", error.text);
    fabric_close(place);
    fabric_free(&f);
    return status;
}

int cmd_fabric(const struct cli *cli, int argc, char **argv)
{
    const char *given = NULL;
    struct cli_fabric_request r = {.hosts = CLI_HOSTS_OWN};
    int words;
    const struct option table[] = {
        {"hosts", 0, OPTION_INTEGER, &r.hosts, "N", "hosts of a virtual fabric; default as its file says"},
        {"hostfile", 0, OPTION_TEXT, &r.hostfile, "FILE", "machines of the fabric hosts, 'NAME slots=N' in each line (docs/fabrics.md)"},
        {"agent", 0, OPTION_TEXT, &r.agent, "COMMAND", "how mpirun reaches the machines of the fabric hosts; default ssh"},
        {"suite", 0, OPTION_TEXT, &given, "FOLDER", "the suite"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, &r.name, 1, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (words == 0 && (r.hosts != CLI_HOSTS_OWN || r.agent != NULL))
        return options_bad(cli->command, "--%s: found without FABRIC, expected one", r.agent != NULL ? "agent" : "hosts");
    if (!cli_can_work(cli))
        return 2;
    char *suite = cli_suite(cli, given);
    r.suite = suite;
    int status = suite == NULL ? 2 : words > 0 ? show(cli, &r) : list(cli, suite, r.hostfile);
    free(suite);
    return status;
}
