// The links of a virtual fabric: a bridge for each group of hosts, a veth pair for each host, a rate at both of its ends.
//
// Both ends since a port has two directions: tbf shapes what leaves an interface, so the host's own end limits what it sends and the
// bridge's end what it gets, also from several hosts at once. With two tiers each group's bridge has a pair of its own to the core
// bridge, shaped in the same way. IPv6 stays off: its own packets would be counted, and MPI would find two addresses.
// Source: tc-tbf(8), ip-link(8), veth(4).
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fabric/place.h"
#include "harness/launch/launch.h"

static const double TOOL_DEADLINE_S = 10;
enum { TOOL_WORDS = 24 };

static _Noreturn void execute(char **argv, int output, int net)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const char *path = getenv("PATH");
    char longer[8192];
    // An ordinary user's PATH often lacks the folders of ip and tc.
    snprintf(longer, sizeof longer, "%s:/usr/sbin:/sbin", path != NULL ? path : "/usr/bin:/bin");
    setenv("PATH", longer, 1);
    unsetenv("LD_PRELOAD");
    int in = open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || (net >= 0 && setns(net, CLONE_NEWNET) != 0))
        _exit(126);
    execvp(argv[0], argv);
    dprintf(2, "cannot be executed: %s; package iproute2 has it", strerror(errno));
    _exit(127);
}

// All that the tool prints, up to its end or the deadline.
static void read_output(int fd, pid_t pid, char *text, size_t size)
{
    double until = launch_now() + TOOL_DEADLINE_S;
    size_t used = 0;
    for (ssize_t n = 1; n > 0 && used + 1 < size; used += n > 0 ? (size_t)n : 0) {
        struct pollfd p = {fd, POLLIN, 0};
        double left_s = until - launch_now();
        if (poll(&p, 1, left_s > 0 ? (int)(left_s * 1e3) : 0) <= 0) {
            kill(pid, SIGKILL);
            break;
        }
        n = read(fd, text + used, size - 1 - used);
    }
    while (used > 0 && text[used - 1] == '\n')
        used--;
    text[used] = 0;
}

// Runs a command of words without blanks in the switch (net < 0) or a host.
static bool tool(struct error *error, int net, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool tool(struct error *error, int net, const char *format, ...)
{
    char line[512], words[512], text[512], *argv[TOOL_WORDS + 1] = {0}, *state = NULL;
    int ends[2], count = 0, status = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    memcpy(words, line, sizeof words);
    for (char *word = strtok_r(words, " ", &state); word != NULL && count < TOOL_WORDS; word = strtok_r(NULL, " ", &state))
        argv[count++] = word;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(error, "%s: %s", line, strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        execute(argv, ends[1], net);
    close(ends[1]);
    if (pid > 0)
        read_output(ends[0], pid, text, sizeof text);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return error_set(error, "%s: %s", line, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    text[strcspn(text, "\n")] = 0;
    return error_set(error, "%s: %s", line, text[0] ? text : WIFSIGNALED(status) ? "it did not end in time" : "it failed and said nothing");
}

// Tokens that nobody took while the kernel was late are lost beyond this, and with them the line rate; what is idle for as long sends as much
// at once without a limit. So it is as short as a busy machine allows, and no shorter than the largest packet [s] [bytes].
static const double BURST_S = 0.01;
static const long BURST_LEAST_BYTES = 64 << 10;

// Jumbo frames, as the networks of clusters have them: headers take 0.7 % of the line, with 1500 bytes they take 4.4 %.
enum { MTU = 9000 };

long topology_burst(const struct fabric *f, double rate_bits)
{
    long bytes = (long)(rate_bits / 8 * BURST_S);
    return f->burst_bytes > 0 ? f->burst_bytes : bytes > BURST_LEAST_BYTES ? bytes : BURST_LEAST_BYTES;
}

static bool shape(struct error *error, const struct fabric *f, int net, const char *device, double rate_bits)
{
    return tool(error, net, "tc qdisc add dev %s root tbf rate %.0fbit burst %ld limit %ld", device, rate_bits,
                topology_burst(f, rate_bits), f->limit_bytes);
}

// The largest packet that a host hands to its interface at once. The kernel's own 64 KiB take 5 ms at 100 Mbit/s, in which what
// the other direction waits for (an acknowledgement, the word that a receiver is ready) lies behind them [s] [bytes].
static const double PACKET_S = 0.001;
enum { PACKET_LEAST_BYTES = 16 << 10, PACKET_MOST_BYTES = 64 << 10 };

static long packet_bytes(double rate_bits)
{
    double bytes = rate_bits / 8 * PACKET_S;
    return bytes < PACKET_LEAST_BYTES ? PACKET_LEAST_BYTES : bytes > PACKET_MOST_BYTES ? PACKET_MOST_BYTES : (long)bytes;
}

double topology_rate(const struct fabric *f, int host)
{
    return host == f->slow_host ? f->slow_rate_bits : f->rate_bits;
}

static bool make_host(const struct place_plan *plan, int host, struct error *error)
{
    const struct fabric *f = plan->fabric;
    int at = HOLD_HOSTS + HOLD_PER_HOST * host + HOLD_NET, group = f->group > 0 ? host / f->group : 0;
    char port[16];
    snprintf(port, sizeof port, "host%d", host);
    return tool(error, -1, "ip link add %s mtu %d type veth peer name eth0 mtu %d netns /proc/%ld/fd/%d", port, MTU, MTU, (long)getpid(), at) &&
           tool(error, -1, "ip link set %s addrgenmode none master group%d up", port, group) &&
           tool(error, at, "ip link set lo up") &&
           tool(error, at, "ip link set eth0 addrgenmode none gso_max_size %ld", packet_bytes(topology_rate(f, host))) &&
           tool(error, at, "ip address add 10.%u.%u.%d/24 dev eth0", plan->net[0], plan->net[1], host + 1) &&
           tool(error, at, "ip link set eth0 up") && shape(error, f, -1, port, topology_rate(f, host)) &&
           shape(error, f, at, "eth0", topology_rate(f, host));
}

static bool make_uplink(const struct place_plan *plan, int group, struct error *error)
{
    const struct fabric *f = plan->fabric;
    char up[16], down[16];
    snprintf(up, sizeof up, "up%d", group);
    snprintf(down, sizeof down, "down%d", group);
    return tool(error, -1, "ip link add %s mtu %d type veth peer name %s mtu %d", up, MTU, down, MTU) &&
           tool(error, -1, "ip link set %s addrgenmode none master group%d up", up, group) &&
           tool(error, -1, "ip link set %s addrgenmode none master core up", down) &&
           shape(error, f, -1, up, f->between_rate_bits) && shape(error, f, -1, down, f->between_rate_bits);
}

static bool make_bridge(const char *name, struct error *error)
{
    return tool(error, -1, "ip link add %s type bridge mcast_snooping 0", name) && tool(error, -1, "ip link set %s addrgenmode none up", name);
}

bool topology_make(const struct place_plan *plan, struct error *error)
{
    const struct fabric *f = plan->fabric;
    int groups = f->group > 0 ? (plan->hosts + f->group - 1) / f->group : 1;
    char name[16];
    bool ok = groups == 1 || make_bridge("core", error);
    for (int g = 0; ok && g < groups; g++) {
        snprintf(name, sizeof name, "group%d", g);
        ok = make_bridge(name, error) && (groups == 1 || make_uplink(plan, g, error));
    }
    for (int h = 0; ok && h < plan->hosts; h++)
        ok = make_host(plan, h, error);
    return ok;
}
