// The holder of a place: makes its namespaces, keeps them open, and waits for the end of the harness.
//
// As root the namespaces are its own; else it makes a user namespace first, in which it is root, and all that enters is too. A user's own
// identity would do for the workers, but a program that enters must have the right to, after any number of execs.
// Source: user_namespaces(7), "defining user and group ID mappings": an own mapping of one id, after setgroups is denied.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/fabric/place.h"
#include "harness/launch/keeper.h"

static bool write_text(const char *path, const char *text, struct error *error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (!ok)
        error_set(error, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool become_root_of_own(struct error *error)
{
    char users[48], groups[48];
    snprintf(users, sizeof users, "0 %ld 1", (long)geteuid());
    snprintf(groups, sizeof groups, "0 %ld 1", (long)getegid());
    if (unshare(CLONE_NEWUSER) != 0)
        return error_set(error, "the kernel refuses a user namespace: %s", strerror(errno));
    return write_text("/proc/self/setgroups", "deny", error) && write_text("/proc/self/uid_map", users, error) &&
           write_text("/proc/self/gid_map", groups, error);
}

static bool keep_open(const char *path, int as, struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && dup3(fd, as, O_CLOEXEC) == as;
    if (!ok)
        error_set(error, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

// A network namespace and a name of its own for each host, and at last back in that of the switch.
static bool make_namespaces(const struct place_plan *plan, struct error *error)
{
    char address[32];
    if (unshare(CLONE_NEWNET) != 0 && (errno != EPERM || !become_root_of_own(error) || unshare(CLONE_NEWNET) != 0))
        return error_set(error, "the kernel refuses a network namespace: %s", strerror(errno));
    if (!keep_open("/proc/self/ns/net", HOLD_SWITCH, error))
        return false;
    for (int h = 0; h < plan->hosts; h++) {
        int at = HOLD_HOSTS + HOLD_PER_HOST * h;
        // The host is called as its address is, so that what looks its own name up finds the address without a name service.
        snprintf(address, sizeof address, "10.%u.%u.%d", plan->net[0], plan->net[1], h + 1);
        if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0 || sethostname(address, strlen(address)) != 0)
            return error_set(error, "the kernel refuses the namespaces of host %d: %s", h, strerror(errno));
        if (!keep_open("/proc/self/ns/net", at + HOLD_NET, error) || !keep_open("/proc/self/ns/uts", at + HOLD_NAME, error))
            return false;
    }
    return setns(HOLD_SWITCH, CLONE_NEWNET) == 0 || error_set(error, "cannot go back to the switch: %s", strerror(errno));
}

static bool make(const struct place_plan *plan, struct error *error)
{
    int fd = open(plan->program, O_PATH | O_CLOEXEC);
    if (fd < 0 || dup3(fd, HOLD_PROGRAM, O_CLOEXEC) != HOLD_PROGRAM)
        return error_set(error, "%s: %s", plan->program, strerror(errno));
    close(fd);
    return make_namespaces(plan, error) && topology_make(plan, error);
}

static bool has_ended(int signals, int lifeline)
{
    struct pollfd p[2] = {{signals, POLLIN, 0}, {lifeline, POLLIN, 0}};
    struct signalfd_siginfo info;
    bool asked = poll(p, 2, -1) > 0 && p[1].revents != 0;
    while (read(signals, &info, sizeof info) == sizeof info)
        asked |= info.ssi_signo != SIGCHLD;
    return asked;
}

_Noreturn void place_hold(const struct place_plan *plan, int lifeline, pid_t harness)
{
    struct error error = {0};
    char id[PLACE_ID];
    // The program's path, and all else of the plan, is memory of this fork; of descriptors only the lifeline is left.
    int low = keeper_become(lifeline, harness), signals = fcntl(low, F_DUPFD_CLOEXEC, HOLD_HOSTS + HOLD_PER_HOST * FABRIC_HOSTS_MOST);
    if (low < 0 || signals < 0)
        _exit(126);
    close(low);
    prctl(PR_SET_NAME, "fsdpmark-fabric");
    bool made = make(plan, &error);
    send(KEEPER_LIFELINE, error.text, strlen(error.text) + 1, MSG_NOSIGNAL);
    while (made && !has_ended(signals, KEEPER_LIFELINE))
        continue;
    // Who entered has no network any more.
    place_id(getpid(), id);
    place_clear(id);
    _exit(0);
}
