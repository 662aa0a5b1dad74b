// `fsdpmark __enter PLACE HOST COMMAND...` and `fsdpmark __agent PLACE ADDRESS COMMAND...`: into a host of a place, then the command.
//
// The agent stands where mpirun expects ssh: it gets the address of a host and words that it joins for a shell there, as ssh does.
// Source: mpirun(1), plm_rsh_agent; setns(2).
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/fabric/place.h"
#include "harness/launch/keeper.h"
#include "harness/launch/process.h"
#include "harness/protocol/memory.h"

void place_id(pid_t holder, char id[PLACE_ID])
{
    unsigned long long ticks = 0;
    process_start(holder, &ticks);
    snprintf(id, PLACE_ID, "%ld.%llu", (long)holder, ticks);
}

bool place_lives(const char *id, pid_t *holder)
{
    long pid;
    unsigned long long recorded, current;
    char rest;
    if (sscanf(id, "%ld.%llu%c", &pid, &recorded, &rest) != 2 || !process_start(pid, &current) || current != recorded)
        return false;
    *holder = (pid_t)pid;
    return true;
}

void place_namespaces(pid_t holder, int host, struct fabric_namespaces *out)
{
    int at = HOLD_HOSTS + HOLD_PER_HOST * host;
    snprintf(out->net, sizeof out->net, "/proc/%ld/fd/%d", (long)holder, at + HOLD_NET);
    snprintf(out->name, sizeof out->name, "/proc/%ld/fd/%d", (long)holder, at + HOLD_NAME);
}

static int enter_path(const char *path, int kind)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, kind) != 0) {
        fprintf(stderr, "fsdpmark: cannot enter %s: %s\n", path, strerror(errno));
        return -1;
    }
    return close(fd);
}

static bool same_user_namespace(const char *path)
{
    struct stat own, other;
    return stat("/proc/self/ns/user", &own) == 0 && stat(path, &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

#define BLAS_THREADS "OPENBLAS_NUM_THREADS"
#define BLAS_THREADS_BEFORE "FSDPMARK_BLAS_THREADS"

// A process with threads may not change its user namespace, and OpenBLAS starts some before main: once more without.
static bool is_alone(char **argv)
{
    static const char *const name[] = {"fsdpmark", NULL};
    const char *before = getenv(BLAS_THREADS_BEFORE), *threads = getenv(BLAS_THREADS);
    if (before != NULL) {
        before[0] != 0 ? setenv(BLAS_THREADS, before, 1) : unsetenv(BLAS_THREADS);
        unsetenv(BLAS_THREADS_BEFORE);
        return true;
    }
    if (threads != NULL && strcmp(threads, "1") == 0)
        return true;
    setenv(BLAS_THREADS_BEFORE, threads != NULL ? threads : "", 1);
    setenv(BLAS_THREADS, "1", 1);
    execv("/proc/self/exe", argv_append(argv_append(NULL, name), (const char *const *)argv));
    return false;
}

static bool enter(const char *id, int host, char **argv)
{
    char user[64];
    struct fabric_namespaces of;
    pid_t holder, parent = getppid();
    int at_death = 0;
    if (!place_lives(id, &holder)) {
        fprintf(stderr, "fsdpmark: the place %s is gone\n", id);
        return false;
    }
    snprintf(user, sizeof user, "/proc/%ld/ns/user", (long)holder);
    place_namespaces(holder, host, &of);
    prctl(PR_GET_PDEATHSIG, &at_death);
    if ((!same_user_namespace(user) && (!is_alone(argv) || enter_path(user, CLONE_NEWUSER) != 0)) || enter_path(of.net, CLONE_NEWNET) != 0 ||
        enter_path(of.name, CLONE_NEWUTS) != 0)
        return false;
    // A change of credentials may have taken the request back.
    prctl(PR_SET_PDEATHSIG, at_death);
    return (at_death == 0 || getppid() == parent) && setenv(PLACE_VARIABLE, id, 1) == 0;
}

static char *join(char **words)
{
    char *line = memory_text("");
    for (; *words != NULL; words++) {
        char *longer = memory_format("%s%s%s", line, line[0] ? " " : "", *words);
        free(line);
        line = longer;
    }
    return line;
}

// The last number of an address is one more than the host's.
static int host_of(const char *text, bool is_address)
{
    struct in_addr address;
    char *end;
    long number = is_address ? (inet_pton(AF_INET, text, &address) == 1 ? (long)(ntohl(address.s_addr) & 0xff) - 1 : -1) : strtol(text, &end, 10);
    return number >= 0 && number < FABRIC_HOSTS_MOST && (is_address || (end > text && *end == 0)) ? (int)number : -1;
}

int fabric_enter_main(int argc, char **argv)
{
    bool is_agent = strcmp(argv[0], "__agent") == 0;
    int host = argc > 3 ? host_of(argv[2], is_agent) : -1;
    if (host < 0) {
        fprintf(stderr, "%s: expected PLACE %s COMMAND...; for the use of launchers only\n", argv[0], is_agent ? "ADDRESS" : "HOST");
        return 2;
    }
    if (!enter(argv[1], host, argv))
        return 2;
    if (is_agent) {
        char *line = join(argv + 3);
        execl("/bin/sh", "sh", "-c", line, NULL);
    } else {
        execvp(argv[3], argv + 3);
    }
    fprintf(stderr, "%s: cannot be executed: %s\n", argv[3], strerror(errno));
    return 127;
}
