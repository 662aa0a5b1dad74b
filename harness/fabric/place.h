// A place from within: what place.c (the harness's side), hold.c (the process that holds it), topology.c (its links), enter.c
// (processes that go in) and sweep.c (what is left of it) share.
//
// A place of the virtual fabric is nothing but namespaces that one process, the holder, keeps open as descriptors: no name under /run, no
// interface, bridge or address outside. So they go with the holder and the last process that has entered, whoever is killed and how. The
// descriptors have fixed numbers, and whoever knows the holder enters through /proc/PID/fd/NUMBER.
// Source: namespaces(7), "namespace lifetime"; setns(2); user_namespaces(7).
#ifndef HARNESS_PLACE_H
#define HARNESS_PLACE_H

#include <sys/types.h>

#include "harness/fabric/fabric.h"

// Descriptors of the holder, beside those of a keeper (harness/launch/keeper.h).
enum { HOLD_SWITCH = 10, HOLD_PROGRAM = 11, HOLD_HOSTS = 12 };
enum { HOLD_NET, HOLD_NAME, HOLD_PER_HOST };

// Who holds a place: PID.START as text, so that a pid that is used again is not mistaken. In the environment of all that
// has entered.
#define PLACE_VARIABLE "FSDPMARK_PLACE"
enum { PLACE_ID = 48 };

struct place_plan {
    const struct fabric *fabric;
    const char *program;  // of the launch agent
    int hosts;
    unsigned char net[2]; // 10.net[0].net[1].0/24
};

// The life of the holder, in a fork of the harness: makes all, tells through the lifeline ("" or what failed), waits for its end.
_Noreturn void place_hold(const struct place_plan *plan, int lifeline, pid_t harness);
// Links, bridges, rates, addresses. In the holder, whose own network namespace is the switch.
bool topology_make(const struct place_plan *plan, struct error *error);
// Line rate at a host's port [bit/s].
double topology_rate(const struct fabric *f, int host);

// The machines of a host file. Errors: "FILE:LINE: found ..., expected ...".
struct hostfile_machine { char name[64]; int slots; };
struct hostfile { int count; struct hostfile_machine machines[FABRIC_HOSTS_MOST]; };
bool hostfile_read(const char *path, struct hostfile *out, struct error *error);
// Bytes that a link of this rate lets through at once after a rest.
long topology_burst(const struct fabric *f, double rate_bits);

// The job of Slurm that this process is in.
struct slurm_node { char name[64], topology[200]; bool seen, has_program; };
struct slurm_job { int count; struct slurm_node nodes[FABRIC_HOSTS_MOST]; char address[64]; bool has_pmix; };
// NULL: this is in one. Else "reason; remedy", owned by the caller.
char *slurm_unavailable(void);
bool slurm_open(const char *program, struct slurm_job *out, struct error *error);

void place_id(pid_t holder, char id[PLACE_ID]);
void place_namespaces(pid_t holder, int host, struct fabric_namespaces *out);
// True where the holder named so lives.
bool place_lives(const char *id, pid_t *holder);
// Ends the processes that have entered a place; NULL: all places that have lost their holder. The number of places.
int place_clear(const char *id);

#endif
