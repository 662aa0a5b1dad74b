// The keeper of a template: spawns it, passes starts on, notes how ranks end, ends what a start leaves (see template.h).
//
// The template is the parent of the ranks and the only one who can tell how they ended; the keeper is their adoptive grandparent and finds
// through /proc what is left of a start. Its patience with the template has an end: one that does not fork, or does not tell
// of ranks that are gone, is ended. A template that ends before it was ready ends its start as a command that fails ends a rank of the launcher
// `local`: the ranks get its end. One that ends later takes the start along, which is told in template.end.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/launch/namespaces.h"
#include "harness/launch/template.h"

// Time of helpers that outlive all ranks, and of all at the end of the harness [s].
static const double LINGER_S = 1.0, ORPHAN_GRACE_S = 1.0;
// Between two looks for ranks that are gone, at most [s]. A look costs about a millisecond.
static const double LOOK_S = 1.0;

struct start {
    bool running, asked, forked, stopping;
    bool enters;           // each rank its host
    int ranks, left;       // ranks whose end is unknown
    char folder[4096];
    double fork_by_s, kill_at_s, look_at_s, gone_s; // gone_s: since when no rank was seen, INFINITY where one was
};

struct template_keeper {
    const struct keeper_task *task;
    double patience_s;
    int harness, channel, signals;
    pid_t pid;             // of the template, -1 once it has ended
    bool ready, closing;   // closing: all ends, the template too
    double kill_at_s;      // of closing
    char line[4096];       // what the template says; the pids of all ranks are one line
    size_t used;
    struct start start;
};

static void close_all(struct template_keeper *k, double grace_s)
{
    if (!k->closing && grace_s > 0)
        descendants_signal(SIGTERM, 0);
    double at = launch_now() + grace_s;
    k->kill_at_s = !k->closing || at < k->kill_at_s ? at : k->kill_at_s;
    k->closing = true;
}

// Ends a template that does not do as it should; its log tells why.
static void end_template(struct template_keeper *k, const char *why, const char *said)
{
    int fd = open(k->task->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dprintf(fd, "fsdpmark: the template is ended: %s%s\n", why, said);
        close(fd);
    }
    kill(k->pid, SIGKILL);
}

static void stop_start(struct template_keeper *k, double grace_s)
{
    struct start *s = &k->start;
    if (!s->running)
        return;
    if (!s->stopping)
        descendants_signal(SIGTERM, k->ready ? k->pid : 0);
    double at = launch_now() + grace_s;
    s->kill_at_s = !s->stopping || at < s->kill_at_s ? at : s->kill_at_s;
    s->stopping = true;
}

static void say(struct template_keeper *k, const char *word)
{
    k->start.running = false;
    send(k->harness, word, strlen(word), MSG_NOSIGNAL);
}

// ---- what the template says ----

static void ask(struct template_keeper *k)
{
    char line[4200];
    int size = snprintf(line, sizeof line, "%s %d %s\n", k->start.enters ? "enter" : "start", k->start.ranks, k->start.folder);
    k->start.asked = true;
    k->start.fork_by_s = launch_now() + k->patience_s;
    if (send(k->channel, line, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) != size)
        end_template(k, "it does not read its channel", "");
}

// With the pids of ranks that have entered their hosts; whether they have is looked at here.
static bool hear_started(struct template_keeper *k, const char *line)
{
    static const char word[] = "started";
    struct start *s = &k->start;
    char why[128] = "";
    if (strncmp(line, word, sizeof word - 1) != 0 || !s->asked || s->forked)
        return false;
    s->forked = true;
    line += sizeof word - 1;
    for (int r = 0, pid, used = 0; s->enters && r < s->ranks && why[0] == 0; r++, line += used)
        if (sscanf(line, " %d%n", &pid, &used) != 1)
            return false;
        else if (!namespaces_hold(s->folder, r, pid, why, sizeof why))
            end_template(k, "a rank is not on its host: ", why);
    return *line == 0 || why[0] != 0;
}

static bool hear_end(struct start *s, const char *line)
{
    int rank, number, used = 0;
    char how[8], path[4200];
    if (sscanf(line, "ended %d %7s %d%n", &rank, how, &number, &used) != 3 || line[used] != 0 || !s->running || !s->forked)
        return false;
    bool exited = strcmp(how, "exit") == 0, signaled = strcmp(how, "signal") == 0;
    snprintf(path, sizeof path, "%s/rank%d.end", s->folder, rank);
    if (rank < 0 || rank >= s->ranks || number < 0 || number > (exited ? 255 : 64) || exited == signaled || access(path, F_OK) == 0)
        return false;
    keeper_write_end(path, exited ? W_EXITCODE(number, 0) : W_EXITCODE(0, number));
    s->left--;
    return true;
}

static void hear_line(struct template_keeper *k, const char *line)
{
    struct start *s = &k->start;
    if (strcmp(line, "ready") == 0 && !k->ready) {
        k->ready = true;
        if (s->running)
            ask(k);
    } else if (!hear_started(k, line) && !hear_end(s, line)) {
        end_template(k, s->enters ? "expected ready, 'started PID...' with the pid of each rank, 'ended RANK exit STATUS' or 'ended RANK signal NUMBER' in their order, found "
                                  : "expected ready, started, 'ended RANK exit STATUS' or 'ended RANK signal NUMBER' in their order, found ", line);
    }
}

static void hear(struct template_keeper *k)
{
    ssize_t size;
    while (k->channel >= 0 && (size = recv(k->channel, k->line + k->used, sizeof k->line - 1 - k->used, MSG_DONTWAIT)) >= 0) {
        char *from = k->line, *newline;
        if (size == 0) {
            close(k->channel);
            k->channel = -1;
            if (k->pid > 0)
                end_template(k, k->used + 1 == sizeof k->line ? "it says a line without an end" : "it has closed its channel", "");
            return;
        }
        k->used += (size_t)size;
        k->line[k->used] = 0;
        for (; (newline = strchr(from, '\n')) != NULL; from = newline + 1) {
            *newline = 0;
            hear_line(k, from);
        }
        k->used -= (size_t)(from - k->line);
        memmove(k->line, from, k->used);
    }
}

// ---- what the harness says ----

static void obey(struct template_keeper *k)
{
    char packet[4300];
    int ranks, tenths, used = 0;
    ssize_t size = recv(k->harness, packet, sizeof packet - 1, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    packet[size > 0 ? size : 0] = 0;
    if (size <= 0) {
        k->harness = -1;
        close_all(k, ORPHAN_GRACE_S);
    } else if (sscanf(packet, "stop %d", &tenths) == 1) {
        stop_start(k, tenths * 0.1);
    } else if (sscanf(packet, "start %d %n", &ranks, &used) == 1 || sscanf(packet, "enter %d %n", &ranks, &used) == 1) {
        k->start = (struct start){.running = true, .enters = packet[0] == 'e', .ranks = ranks, .left = ranks, .gone_s = INFINITY};
        snprintf(k->start.folder, sizeof k->start.folder, "%s", packet + used);
        if (k->ready)
            ask(k);
    }
}

// ---- what time says ----

// True where nothing but the template lives below this process. Twice: a list of processes is not taken at one moment, and who
// changes its parent meanwhile may be missed.
static bool nothing_left(const struct template_keeper *k)
{
    return descendants_signal(0, k->pid) == 0 && descendants_signal(0, k->pid) == 0;
}

static double look_s(const struct template_keeper *k)
{
    return k->patience_s / 4 < LOOK_S ? k->patience_s / 4 : LOOK_S;
}

static void look_for_ranks(struct template_keeper *k, double now_s)
{
    struct start *s = &k->start;
    if (now_s < s->look_at_s)
        return;
    s->look_at_s = now_s + look_s(k);
    if (!nothing_left(k))
        s->gone_s = INFINITY;
    else if (isinf(s->gone_s))
        s->gone_s = now_s;
    // A start that is being stopped has had its time.
    else if (s->stopping || now_s > s->gone_s + k->patience_s)
        end_template(k, "it does not tell how its ranks ended", "");
}

static void tick(struct template_keeper *k)
{
    struct start *s = &k->start;
    double now_s = launch_now();
    if (k->closing) {
        if (now_s >= k->kill_at_s)
            descendants_signal(SIGKILL, 0);
        return;
    }
    if (!s->running)
        return;
    if (!s->forked) {
        if (s->stopping || (s->asked && now_s > s->fork_by_s))
            end_template(k, s->asked ? "it has not forked" : "it was not ready", " in time");
        return;
    }
    if (s->left == 0 && nothing_left(k)) {
        say(k, "over");
        return;
    }
    if (s->left == 0 && !s->stopping)
        stop_start(k, LINGER_S);
    if (s->stopping && now_s >= s->kill_at_s)
        descendants_signal(SIGKILL, k->pid);
    if (s->left > 0)
        look_for_ranks(k, now_s);
}

static void template_ended(struct template_keeper *k, int status)
{
    struct start *s = &k->start;
    char path[4200];
    k->pid = -1;
    hear(k);
    keeper_write_end(k->task->end, status);
    for (int r = 0; s->running && !s->asked && r < s->ranks; r++) {
        snprintf(path, sizeof path, "%s/rank%d.end", s->folder, r);
        link(k->task->end, path);
    }
    snprintf(path, sizeof path, "%s/template.end", s->folder);
    if (s->running && s->asked)
        link(k->task->end, path);
    close_all(k, 0);
}

// False once no child is left.
static bool reap(struct template_keeper *k)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == k->pid)
            template_ended(k, status);
    return pid == 0;
}

static void listen_once(struct template_keeper *k)
{
    struct pollfd p[3] = {{k->signals, POLLIN, 0}, {k->harness, POLLIN, 0}, {k->channel, POLLIN, 0}};
    poll(p, 3, k->closing || k->start.stopping ? 20 : k->start.running ? (int)(1e3 * look_s(k)) : -1);
    struct signalfd_siginfo info;
    while (read(k->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            close_all(k, ORPHAN_GRACE_S);
    if (p[1].revents != 0)
        obey(k);
    if (p[2].revents != 0)
        hear(k);
}

_Noreturn void template_keep(struct keeper_task *task, double patience_s, int lifeline, pid_t harness)
{
    int pair[2];
    struct template_keeper k = {.task = task, .patience_s = patience_s, .harness = KEEPER_LIFELINE, .signals = keeper_become(lifeline, harness)};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        _exit(126);
    k.channel = pair[0];
    task->channel = pair[1];
    k.pid = keeper_spawn(task);
    close(pair[1]);
    while (reap(&k)) {
        tick(&k);
        listen_once(&k);
    }
    // Its ranks have ended as far as they ever will; without this word the start is lost.
    if (k.start.running && (!k.start.asked || k.start.left == 0))
        say(&k, "gone");
    _exit(0);
}
