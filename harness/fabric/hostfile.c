// The machines of a host file: one a line, "NAME slots=N"; # begins a comment. What mpirun reads, less what would leave a doubt.
//
// Slots must be named: what mpirun takes where they are not differs by its version. They are the most ranks that the machine may hold; which rank
// is on which machine does not follow from them, but is as on every fabric (fabric.h). A name that cannot be looked up here is refused
// before anything starts: mpirun would tell of it in the words of its launch agent, after a while, once a start.
// Source: mpirun(1), "Specifying Host Nodes" of Open MPI 4.1.
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fabric/place.h"
#include "harness/protocol/memory.h"

enum { SLOTS_MOST = 4096 };

struct line { const char *path; int number; struct error *error; };

#define complain(at, format, ...) error_set((at)->error, "%s:%d: " format, (at)->path, (at)->number, __VA_ARGS__)

static bool read_slots(const struct line *at, const char *word, int *slots)
{
    char *end = NULL;
    long value = strncmp(word, "slots=", 6) == 0 ? strtol(word + 6, &end, 10) : 0;
    if (end == NULL || end == word + 6 || *end != 0 || value < 1 || value > SLOTS_MOST)
        return complain(at, "found '%.60s', expected slots=N with N from 1 to %d", word, SLOTS_MOST);
    *slots = (int)value;
    return true;
}

static bool is_known(const struct line *at, const char *name)
{
    struct addrinfo *found = NULL;
    int status = getaddrinfo(name, NULL, NULL, &found);
    if (status != 0)
        return complain(at, "found host '%s', which cannot be looked up: %s; expected a name or an address", name, gai_strerror(status));
    freeaddrinfo(found);
    return true;
}

static bool read_machine(const struct line *at, char *text, struct hostfile *out)
{
    char *rest = text, *name = strsep(&rest, " \t"), *slots = NULL;
    while (rest != NULL && (slots = strsep(&rest, " \t")) != NULL && !slots[0])
        continue;
    if (slots == NULL || !slots[0])
        return complain(at, "found no slots of '%.60s', expected '%.60s slots=N'", name, name);
    if (out->count == FABRIC_HOSTS_MOST || strlen(name) >= sizeof out->machines->name)
        return complain(at, "found '%s', expected %d machines at most, each with a name of 60 letters at most", name, FABRIC_HOSTS_MOST);
    for (int m = 0; m < out->count; m++)
        if (strcmp(out->machines[m].name, name) == 0)
            return complain(at, "found '%s' again, expected each machine once", name);
    struct hostfile_machine *machine = &out->machines[out->count++];
    snprintf(machine->name, sizeof machine->name, "%s", name);
    if (!read_slots(at, slots, &machine->slots))
        return false;
    rest += rest != NULL ? strspn(rest, " \t") : 0;
    return rest == NULL || !rest[0] ? is_known(at, name) : complain(at, "found '%.60s', expected nothing after slots=%d", rest, machine->slots);
}

bool hostfile_read(const char *path, struct hostfile *out, struct error *error)
{
    char text[1024];
    FILE *file = fopen(path, "re");
    struct line at = {path, 1, error};
    *out = (struct hostfile){0};
    if (file == NULL)
        return complain(&at, "cannot be read: %s", strerror(errno));
    bool ok = true;
    for (; ok && fgets(text, sizeof text, file) != NULL; at.number++) {
        text[strcspn(text, "#\r\n")] = 0;
        char *start = text + strspn(text, " \t");
        ok = !start[0] || read_machine(&at, start, out);
    }
    if (ok && ferror(file))
        ok = complain(&at, "cannot be read: %s", strerror(errno));
    else if (ok && out->count == 0)
        ok = error_set(error, "%s:1: found no machine in %d lines, expected 'NAME slots=N' in each", path, at.number - 1);
    fclose(file);
    return ok;
}

bool fabric_hosts(struct fabric *f, const char *hostfile, const char *agent, struct error *error)
{
    struct hostfile machines;
    const char *option = hostfile != NULL ? "hostfile" : "agent";
    if (f->kind != FABRIC_HOSTS)
        return (hostfile == NULL && agent == NULL) || error_set(error, "--%s: found with fabric %s, expected one of the kind hosts", option, f->name);
    if (agent != NULL && agent[strspn(agent, " ")] == 0)
        return error_set(error, "--agent: found '%s', expected a command", agent);
    if (hostfile != NULL) {
        free(f->hostfile);
        f->hostfile = memory_text(hostfile);
    }
    if (agent != NULL) {
        free(f->agent);
        f->agent = memory_text(agent);
    }
    return f->hostfile == NULL || hostfile_read(f->hostfile, &machines, error);
}
