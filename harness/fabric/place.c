// A place as the harness sees it: opened, asked where ranks live and how they get there, closed.
//
// Only the virtual fabric makes something. The addresses of a place carry the pid of its holder, so that those of two places differ in what
// they print; they could be the same, since no place sees another's.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fabric/place.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/keeper.h"
#include "harness/protocol/memory.h"

static const double OPEN_DEADLINE_S = 60, CLOSE_DEADLINE_S = 5;

struct host { int slots; char name[64], address[64], topology[200], **enter, **environment; };

struct fabric_place {
    const struct fabric *fabric;
    int hosts;
    struct host *host;     // (hosts)
    char subnet[32];       // "" where all is this machine
    char *agent;
    bool has_pmix;         // of Slurm
    pid_t holder;          // -1: none
    int lifeline;
};

// ---- opening ----

// Waits for the holder's word; "" is the good one.
static bool await_holder(struct fabric_place *p, struct error *error)
{
    char text[sizeof error->text];
    struct pollfd poll_one = {p->lifeline, POLLIN, 0};
    double until = launch_now() + OPEN_DEADLINE_S;
    while (poll(&poll_one, 1, 100) <= 0 && launch_now() < until && !interrupt_signal())
        continue;
    ssize_t size = recv(p->lifeline, text, sizeof text - 1, MSG_DONTWAIT);
    if (size > 0 && text[0] == 0)
        return true;
    text[size > 0 ? size : 0] = 0;
    const char *why = size > 0 ? text : size == 0 ? "its process has ended" : interrupt_signal() ? "interrupted" : "it did not come up in time";
    return error_set(error, "fabric %s: %s", p->fabric->name, why);
}

static bool begin(struct fabric_place *p, struct place_plan *plan, struct error *error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return error_set(error, "cannot make a pair of sockets: %s", strerror(errno));
    fflush(NULL);
    pid_t harness = getpid();
    if ((p->holder = fork()) == 0)
        place_hold(plan, pair[1], harness);
    close(pair[1]);
    p->lifeline = pair[0];
    return p->holder > 0 ? await_holder(p, error) : error_set(error, "cannot start a process: %s", strerror(errno));
}

static char **words(const char *const *list)
{
    return argv_append(NULL, list);
}

static void describe_host(struct fabric_place *p, const struct place_plan *plan, int h, const char *id)
{
    char number[16], mark[PLACE_ID + sizeof PLACE_VARIABLE + 1];
    struct host *host = &p->host[h];
    snprintf(host->address, sizeof host->address, "10.%u.%u.%d", plan->net[0], plan->net[1], h + 1);
    snprintf(number, sizeof number, "%d", h);
    snprintf(mark, sizeof mark, "%s=%s", PLACE_VARIABLE, id);
    const char *const enter[] = {plan->program, "__enter", id, number, NULL};
    // Open MPI refuses to start as root unless told twice, and in a user namespace everybody is.
    const char *const environment[] = {"GLOO_SOCKET_IFNAME=eth0", "NCCL_SOCKET_IFNAME=eth0", mark, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", NULL};
    host->enter = words(enter);
    host->environment = argv_append(words(environment), (const char *const *)p->fabric->environment);
}

static bool open_virtual(struct fabric_place *p, int hosts, const char *program, struct error *error)
{
    const struct fabric *f = p->fabric;
    if (hosts > FABRIC_HOSTS_MOST)
        return error_set(error, "fabric %s: found %d hosts, expected %d at most", f->name, hosts, FABRIC_HOSTS_MOST);
    if (f->slow_host >= hosts)
        return error_set(error, "fabric %s: found %d hosts, expected more than %d, since host %d is the slow one", f->name, hosts, f->slow_host, f->slow_host);
    p->hosts = hosts;
    p->host = memory_zeros((size_t)hosts, sizeof *p->host);
    // The holder's pid is not known before its fork; this one's tells as much and two of one process count on.
    static unsigned places;
    unsigned number = (unsigned)getpid() + 257 * places++;
    struct place_plan plan = {f, program, hosts, {(unsigned char)(number >> 8), (unsigned char)number}};
    char id[PLACE_ID];
    if (!begin(p, &plan, error))
        return false;
    place_id(p->holder, id);
    snprintf(p->subnet, sizeof p->subnet, "10.%u.%u.0/24", plan.net[0], plan.net[1]);
    // mpirun splits the agent at blanks and colons, which the program's own path may hold.
    p->agent = memory_format("/proc/%ld/fd/%d __agent %s", (long)p->holder, HOLD_PROGRAM, id);
    for (int h = 0; h < hosts; h++)
        describe_host(p, &plan, h, id);
    return true;
}

static void describe_here(struct fabric_place *p, int h, const char *name)
{
    static const char *const none[] = {NULL};
    snprintf(p->host[h].address, sizeof p->host[h].address, "%s", name);
    p->host[h].enter = words(none);
    p->host[h].environment = words((const char *const *)p->fabric->environment);
}

// On other machines the interface is another: none named, so that each rank looks for its own (harness/launch/rank.c).
static void describe_there(struct fabric_place *p, int h, const char *name, const char *address)
{
    static const char *const none[] = {NULL}, *const unnamed[] = {"GLOO_SOCKET_IFNAME=", "NCCL_SOCKET_IFNAME=", NULL};
    struct host *host = &p->host[h];
    snprintf(host->name, sizeof host->name, "%s", name);
    snprintf(host->address, sizeof host->address, "%s", address);
    host->enter = words(none);
    host->environment = argv_append(words(unnamed), (const char *const *)p->fabric->environment);
}

static bool open_here(struct fabric_place *p)
{
    p->hosts = 1;
    p->host = memory_zeros(1, sizeof *p->host);
    describe_here(p, 0, "");
    return true;
}

static bool open_hosts(struct fabric_place *p, struct error *error)
{
    struct hostfile file;
    if (!hostfile_read(p->fabric->hostfile, &file, error))
        return false;
    p->hosts = file.count;
    p->host = memory_zeros((size_t)p->hosts, sizeof *p->host);
    for (int h = 0; h < p->hosts; h++) {
        describe_there(p, h, file.machines[h].name, file.machines[h].name);
        p->host[h].slots = file.machines[h].slots;
    }
    return true;
}

// Open MPI's options are variables there, since srun has none for it.
static void add_slurm(struct fabric_place *p, struct host *host)
{
    const char *const pmix[] = {p->has_pmix && getenv("SLURM_MPI_TYPE") == NULL ? "SLURM_MPI_TYPE=pmix" : NULL, NULL};
    host->environment = argv_append(host->environment, pmix);
    for (char *const *option = p->fabric->mca; *option != NULL; option++) {
        char *pair = memory_format("OMPI_MCA_%s", *option);
        const char *const one[] = {pair, NULL};
        host->environment = argv_append(host->environment, one);
        free(pair);
    }
}

static bool open_slurm(struct fabric_place *p, const char *program, struct error *error)
{
    struct slurm_job job;
    struct error own = {0};
    if (!slurm_open(program, &job, &own))
        return error_set(error, "fabric %s: %s", p->fabric->name, own.text);
    p->hosts = job.count;
    p->has_pmix = job.has_pmix;
    p->host = memory_zeros((size_t)p->hosts, sizeof *p->host);
    for (int h = 0; h < p->hosts; h++) {
        describe_there(p, h, job.nodes[h].name, h == 0 ? job.address : job.nodes[h].name);
        add_slurm(p, &p->host[h]);
        snprintf(p->host[h].topology, sizeof p->host[h].topology, "%s", job.nodes[h].topology);
    }
    return true;
}

bool fabric_open(const struct fabric *f, int hosts, const char *program, struct fabric_place **out, struct error *error)
{
    struct fabric_place *p = memory_zeros(1, sizeof *p);
    *p = (struct fabric_place){.fabric = f, .holder = -1, .lifeline = -1};
    *out = NULL;
    fabric_sweep();
    bool ok;
    switch (f->kind) {
    case FABRIC_VIRTUAL: ok = open_virtual(p, hosts > 0 ? hosts : f->hosts, program, error); break;
    case FABRIC_HOSTS: ok = open_hosts(p, error); break;
    case FABRIC_SLURM: ok = open_slurm(p, program, error); break;
    default: ok = open_here(p); break;
    }
    if (ok)
        *out = p;
    else
        fabric_close(p);
    return ok;
}

void fabric_close(struct fabric_place *p)
{
    if (p == NULL)
        return;
    if (p->lifeline >= 0)
        close(p->lifeline);
    // The end of the lifeline is the holder's sign.
    double until = launch_now() + CLOSE_DEADLINE_S;
    for (; p->holder > 0 && waitpid(p->holder, NULL, WNOHANG) == 0; usleep(500))
        if (launch_now() > until)
            kill(p->holder, SIGKILL);
    for (int h = 0; h < p->hosts; h++) {
        environment_free(p->host[h].enter);
        environment_free(p->host[h].environment);
    }
    free(p->host);
    free(p->agent);
    free(p);
}

// ---- asking ----

bool fabric_place_up(const struct fabric_place *p)
{
    char byte;
    return p->holder < 0 || (recv(p->lifeline, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && (errno == EAGAIN || errno == EINTR));
}

int fabric_place_hosts(const struct fabric_place *p) { return p->hosts; }
const struct fabric *fabric_place_fabric(const struct fabric_place *p) { return p->fabric; }
int fabric_place_host(const struct fabric_place *p, int rank, int ranks) { return (int)((long)rank * p->hosts / ranks); }
const char *fabric_place_name(const struct fabric_place *p, int host) { return p->host[host].name[0] ? p->host[host].name : NULL; }
const char *fabric_place_topology(const struct fabric_place *p, int host) { return p->host[host].topology[0] ? p->host[host].topology : NULL; }
const char *fabric_place_address(const struct fabric_place *p, int host) { return p->host[host].address[0] ? p->host[host].address : NULL; }
const char *fabric_place_interface(const struct fabric_place *p, int host) { return p->fabric->kind == FABRIC_VIRTUAL && host < p->hosts ? "eth0" : NULL; }
double fabric_place_rate(const struct fabric_place *p, int host) { return p->fabric->kind == FABRIC_VIRTUAL ? topology_rate(p->fabric, host) : 0; }
double fabric_place_way(const struct fabric_place *p, int from, int to)
{
    const struct fabric *f = p->fabric;
    double a = fabric_place_rate(p, from), b = fabric_place_rate(p, to), least = a < b ? a : b;
    bool apart = f->group > 0 && from / f->group != to / f->group;
    return from == to ? 0 : apart && f->between_rate_bits < least ? f->between_rate_bits : least;
}
const char *const *fabric_place_enter(const struct fabric_place *p, int host) { return (const char *const *)p->host[host].enter; }
const char *const *fabric_place_environment(const struct fabric_place *p, int host) { return (const char *const *)p->host[host].environment; }

bool fabric_place_namespaces(const struct fabric_place *p, int host, struct fabric_namespaces *out)
{
    if (p->holder > 0)
        place_namespaces(p->holder, host, out);
    return p->holder > 0;
}

static int ranks_on(const struct fabric_place *p, int host, int ranks)
{
    int count = 0;
    for (int r = 0; r < ranks; r++)
        count += fabric_place_host(p, r, ranks) == host;
    return count;
}

char *fabric_place_crowded(const struct fabric_place *p, int ranks)
{
    for (int h = 0; h < p->hosts; h++)
        if (p->host[h].slots > 0 && ranks_on(p, h, ranks) > p->host[h].slots)
            return memory_format("%d ranks on %d machines are %d on %s, which has slots=%d in %s", ranks, p->hosts, ranks_on(p, h, ranks), p->host[h].name,
                                 p->host[h].slots, p->fabric->hostfile);
    return NULL;
}

// ---- mpirun ----

// "10.1.2.1:2,10.1.2.2:2": the hosts that have ranks, with their number.
static char *host_list(const struct fabric_place *p, int ranks)
{
    char *list = memory_text("");
    for (int h = 0; h < p->hosts; h++) {
        int slots = ranks_on(p, h, ranks);
        char *longer = memory_format("%s%s%s:%d", list, list[0] ? "," : "", p->host[h].address, slots);
        if (slots > 0) {
            free(list);
            list = longer;
        } else {
            free(longer);
        }
    }
    return list;
}

static char **append_mca(char **argv, const char *name, const char *value)
{
    const char *const three[] = {"--mca", name, value, NULL};
    return argv_append(argv, three);
}

// Of any fabric, the file's own last, where they win.
static char **append_own(char **argv, const struct fabric *f)
{
    for (int i = 0; f->mca[i] != NULL; i++) {
        char *name = memory_text(f->mca[i]), *value = strchr(name, '=');
        *value = 0;
        argv = append_mca(argv, name, value + 1);
        free(name);
    }
    return argv;
}

static char **mpirun_virtual(const struct fabric_place *p, int ranks)
{
    char *hosts = host_list(p, ranks);
    const char *const head[] = {
        "--host", hosts, "--map-by", "slot",
        "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", p->agent, "--mca", "plm_rsh_no_tree_spawn", "1",
        "--mca", "orte_keep_fqdn_hostnames", "1", "--mca", "oob_tcp_if_include", p->subnet, "--mca", "btl_tcp_if_include", p->subnet, NULL,
    };
    char **argv = argv_append(NULL, head);
    free(hosts);
    return argv;
}

// What a variable says here need not hold there.
static bool stays_here(const char *pair)
{
    static const char *const names[] = {"HOME=", "USER=", "LOGNAME=", "SHELL=", "TMPDIR=", "XDG_RUNTIME_DIR=", "SLURM_", "OMPI_", NULL};
    for (int i = 0; names[i] != NULL; i++)
        if (strncmp(pair, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

char **fabric_place_forward(const struct fabric_place *p, char **argv, char *const *environment)
{
    for (; p->fabric->kind == FABRIC_HOSTS && *environment != NULL; environment++) {
        char *name = memory_format("%.*s", (int)strcspn(*environment, "="), *environment);
        const char *const two[] = {"-x", name, NULL};
        if (!stays_here(*environment))
            argv = argv_append(argv, two);
        free(name);
    }
    return argv;
}

// The remote launcher by name, since in a job of Slurm mpirun would take another. An address is no name to be cut at its first dot.
static char **mpirun_hosts(const struct fabric_place *p, int ranks)
{
    struct in6_addr any;
    bool has_address = false;
    char *hosts = host_list(p, ranks), **argv;
    const char *const head[] = {"--host", hosts, "--map-by", "slot", "--mca", "plm", "rsh", NULL};
    argv = argv_append(NULL, head);
    for (int h = 0; h < p->hosts; h++)
        has_address |= inet_pton(AF_INET, p->host[h].address, &any) == 1 || inet_pton(AF_INET6, p->host[h].address, &any) == 1;
    if (has_address)
        argv = append_mca(argv, "orte_keep_fqdn_hostnames", "1");
    if (p->fabric->agent != NULL)
        argv = append_mca(argv, "plm_rsh_agent", p->fabric->agent);
    free(hosts);
    return argv;
}

static char **mpirun_here(void)
{
    static const char *const head[] = {"--mca", "plm", "isolated", "--mca", "oob_tcp_if_include", "lo", NULL};
    return argv_append(NULL, head);
}

char **fabric_place_mpirun(const struct fabric_place *p, int ranks)
{
    enum fabric_kind kind = p->fabric->kind;
    return append_own(kind == FABRIC_VIRTUAL ? mpirun_virtual(p, ranks) : kind == FABRIC_HOSTS ? mpirun_hosts(p, ranks) : mpirun_here(), p->fabric);
}
