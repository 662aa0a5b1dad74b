// The fabric that a command was asked for: read, with the options that only some kinds have, and whether it can be had here.
#include <stdio.h>
#include <stdlib.h>

#include "harness/cli/cli.h"
#include "harness/fabric/fabric.h"

bool cli_fabric(const struct cli *cli, const struct cli_fabric_request *r, struct fabric *out)
{
    struct error error = {0};
    if (r->hosts != CLI_HOSTS_OWN && (r->hosts < 1 || r->hosts > FABRIC_HOSTS_MOST))
        return options_bad(cli->command, "--hosts: found %lld, expected 1 to %d", (long long)r->hosts, FABRIC_HOSTS_MOST), false;
    if (!fabric_read(r->name, r->suite, out, &error))
        return options_bad(cli->command, "%s", error.text), false;
    bool ok = r->hosts == CLI_HOSTS_OWN || out->kind == FABRIC_VIRTUAL ||
              error_set(&error, "--hosts: found with fabric %s, expected one of the kind virtual", out->name);
    if (ok && fabric_hosts(out, r->hostfile, r->agent, &error))
        return true;
    options_bad(cli->command, "%s", error.text);
    fabric_free(out);
    return false;
}

int cli_skip(const struct fabric *f, char *reason, FILE *out)
{
    fprintf(out, "SKIP: fabric %s cannot be had here: %s\n", f->name, reason);
    free(reason);
    return 3;
}
