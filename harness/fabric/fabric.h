// What the ranks talk over: suite/fabrics/NAME.yaml, whether it can be had here, and how ranks are started on it.
//
// A fabric is read (fabric_read), asked whether it can be had (fabric_unavailable), opened into a place (fabric_open: the virtual one makes its
// network namespaces there), used by any number of starts (launch_plan.place) and closed. However the program ends, what a
// place made comes down: at once by the keeper of the place, or at the next start (fabric_sweep).
#ifndef HARNESS_FABRIC_H
#define HARNESS_FABRIC_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/cases/suite.h"

enum fabric_kind { FABRIC_SHM, FABRIC_LOOPBACK, FABRIC_VIRTUAL, FABRIC_HOSTS, FABRIC_SLURM, FABRIC_NCCL, FABRIC_UCX, FABRIC_KINDS };
enum { FABRIC_HOSTS_MOST = 64, FABRIC_WORDS = 24 };

struct fabric {
    char *name, *title, *origin;    // origin: FILE:LINE
    enum fabric_kind kind;
    char *mca[FABRIC_WORDS + 1];    // "NAME=VALUE" for Open MPI, NULL at the end
    char *environment[FABRIC_WORDS + 1];
    // virtual
    int hosts;                      // as the file says; fabric_open may ask for another number
    double rate_bits;               // line rate of a host, both directions each [bit/s]
    int slow_host; double slow_rate_bits;   // -1: none
    int group; double between_rate_bits;    // two tiers: `group` consecutive hosts at rate_bits, groups joined at this rate; 0: one tier
    long burst_bytes, limit_bytes;  // of tbf; a burst of 0 is 10 ms of the rate, 64 KiB at least
    // hosts
    char *hostfile;
    char *agent;                    // mpirun's launch agent, a command and its words; NULL: Open MPI's own, ssh
};

bool fabric_read(const char *name_or_path, const char *suite, struct fabric *out, struct error *error);
void fabric_free(struct fabric *f);
// Options of a command that go before what the file of a fabric of the kind hosts says (NULL: none), and whether its host file is one.
bool fabric_hosts(struct fabric *f, const char *hostfile, const char *agent, struct error *error);
// For `list`.
bool fabric_list(const char *suite, struct string_list *names, struct string_list *titles, struct error *error);
// NULL: can be had here. Else "reason; remedy", owned by the caller.
char *fabric_unavailable(const struct fabric *f);
// NULL: this launcher can start ranks on it. Else what it expects: "mpirun, since ...".
const char *fabric_refuses(const struct fabric *f, const char *launcher);

struct fabric_place;
// hosts 0: as the fabric says. program: path of fsdpmark. The fabric is borrowed until the place is closed. Errors: one line with the command
// that failed and its output.
bool fabric_open(const struct fabric *f, int hosts, const char *program, struct fabric_place **out, struct error *error);
void fabric_close(struct fabric_place *p);
// Removes what killed programs left behind; the number of places removed.
int fabric_sweep(void);

// False once its holder was killed: then nothing that goes over it says anything of who used it.
bool fabric_place_up(const struct fabric_place *p);
int fabric_place_hosts(const struct fabric_place *p);
const struct fabric *fabric_place_fabric(const struct fabric_place *p);
// Rank r of n lives on host r * hosts / n.
int fabric_place_host(const struct fabric_place *p, int rank, int ranks);
const char *fabric_place_address(const struct fabric_place *p, int host);   // "10.x.y.z", of the fabric hosts as the host file has it; NULL: this machine itself
const char *fabric_place_name(const struct fabric_place *p, int host);      // of a machine of a host file, of a node of Slurm; NULL
const char *fabric_place_topology(const struct fabric_place *p, int host);  // Slurm's "switch.switch.node"; NULL: unknown
const char *fabric_place_interface(const struct fabric_place *p, int host); // for GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME; NULL
// NULL: the hosts may hold so many ranks. Else why not, owned by the caller.
char *fabric_place_crowded(const struct fabric_place *p, int ranks);
double fabric_place_rate(const struct fabric_place *p, int host);           // bit/s, 0: unknown
// The slowest line from one host to another, the shared one between two groups included; 0: unknown, or both are one host.
double fabric_place_way(const struct fabric_place *p, int from, int to);
// argv that enters the host and then runs what follows; NULL at the end; one that has only NULL where there is nothing to enter.
const char *const *fabric_place_enter(const struct fabric_place *p, int host);
// Files of a host's namespaces, network and name, for setns(2). False where there is nothing to enter.
struct fabric_namespaces { char net[48], name[48]; };
bool fabric_place_namespaces(const struct fabric_place *p, int host, struct fabric_namespaces *out);
// Open MPI's options for mpirun (transports, launch agent, hosts, subnet) in place of the launcher's own; NULL at the end, owned by the
// caller (environment_free).
char **fabric_place_mpirun(const struct fabric_place *p, int ranks);
// Appends mpirun's -x for what ranks on other machines need of an environment; nothing where they get it anyway.
char **fabric_place_forward(const struct fabric_place *p, char **argv, char *const *environment);
// "NAME=VALUE" for every rank of a host; NULL at the end.
const char *const *fabric_place_environment(const struct fabric_place *p, int host);

// For the environment of a run: {"name", "title", "mca", "environment"}, of a virtual one also hosts, rates and tbf's sizes, of one of several
// machines "nodes": [{"name", "topology" (Slurm)}]. New reference.
json_t *fabric_stamp(const struct fabric_place *p);

// The hidden modes `fsdpmark __enter PLACE HOST COMMAND...` and, for mpirun, `fsdpmark __agent PLACE ADDRESS COMMAND...`.
int fabric_enter_main(int argc, char **argv);

#endif
