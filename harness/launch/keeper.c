// The keeper's life: spawn the tasks, reap everything, end the tree when told or when the harness is gone.
//
// It runs in a fork of the harness without exec, so it touches none of the harness's state: it closes every
// inherited descriptor but the lifeline and ends by _exit only.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/launch/keeper.h"

// Time that helpers which outlive all ranks get to end by themselves, and the grace of an orphaned tree [s].
static const double LINGER_S = 1.0, ORPHAN_GRACE_S = 1.0;

double launch_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_end_text(const char *path, const char *text)
{
    // O_EXCL: the child that could not execute its command has said so already.
    char temporary[4200];
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    // link fails where the file exists, and the file is never seen half written.
    if (whole && link(temporary, path) != 0 && errno != EEXIST)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    unlink(temporary);
}

void keeper_write_end(const char *path, int wait_status)
{
    char text[64];
    bool signaled = WIFSIGNALED(wait_status);
    snprintf(text, sizeof text, "%s %d %.6f\n", signaled ? "signal" : "exit",
             signaled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status), launch_now());
    write_end_text(path, text);
}

static void default_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void redirect(const char *log)
{
    int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    close(in);
    close(out);
}

static _Noreturn void execute(const struct keeper_task *t, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have died before the request was made.
    if (getppid() != parent)
        _exit(125);
    default_signals();
    redirect(t->log);
    // dup2 clears the close-on-exec flag, but not of a descriptor that is in its place already.
    if (t->channel > 0 && (t->channel == KEEPER_CHANNEL ? fcntl(KEEPER_CHANNEL, F_SETFD, 0) : dup2(t->channel, KEEPER_CHANNEL)) < 0)
        _exit(126);
    int failure = 0;
    if (chdir(t->folder) != 0) {
        failure = errno;
    } else {
        execvpe(t->argv[0], t->argv, t->envp);
        failure = errno;
    }
    char text[64];
    snprintf(text, sizeof text, "exec %d %.6f\n", failure, launch_now());
    if (t->end != NULL)
        write_end_text(t->end, text);
    dprintf(2, "%s: cannot be executed: %s\n", t->argv[0], strerror(failure));
    _exit(127);
}

pid_t keeper_spawn(const struct keeper_task *t)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        execute(t, parent);
    return pid;
}

struct keeper {
    int lifeline, signals;
    int left;           // tasks that have not ended
    bool stopping;
    double kill_at_s;
    pid_t *pids;
};

static void stop(struct keeper *k, double grace_s)
{
    if (!k->stopping)
        descendants_signal(SIGTERM, 0);
    k->stopping = true;
    double at = launch_now() + grace_s;
    k->kill_at_s = at < k->kill_at_s ? at : k->kill_at_s;
}

// False once no child is left.
static bool reap(struct keeper *k, const struct keeper_task *tasks, int count)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < count; i++)
            if (k->pids[i] == pid) {
                k->left--;
                k->pids[i] = -1;
                if (tasks[i].end != NULL)
                    keeper_write_end(tasks[i].end, status);
            }
    return pid == 0;
}

static void listen_once(struct keeper *k)
{
    struct pollfd p[2] = {{k->signals, POLLIN, 0}, {k->lifeline, POLLIN, 0}};
    poll(p, k->lifeline >= 0 ? 2 : 1, k->stopping ? 20 : 500);
    struct signalfd_siginfo info;
    while (read(k->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            stop(k, ORPHAN_GRACE_S);
    if (k->lifeline >= 0 && p[1].revents != 0) {
        unsigned char tenths;
        if (read(k->lifeline, &tenths, 1) == 1) {
            stop(k, tenths * 0.1);
        } else {
            stop(k, ORPHAN_GRACE_S);
            k->lifeline = -1;
        }
    }
}

int keeper_become(int lifeline, pid_t harness)
{
    setsid();
    prctl(PR_SET_NAME, "fsdpmark-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != harness)
        _exit(125);
    dup2(lifeline, KEEPER_LIFELINE);
    close_range(KEEPER_LIFELINE + 1, ~0U, 0);
    fcntl(KEEPER_LIFELINE, F_SETFD, FD_CLOEXEC);
    default_signals();
    sigset_t watched;
    sigemptyset(&watched);
    const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&watched, numbers[i]);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        _exit(126);
    return signals;
}

static _Noreturn void keep(const struct keeper_task *tasks, int count, int lifeline, pid_t harness)
{
    struct keeper k = {KEEPER_LIFELINE, keeper_become(lifeline, harness), count, false, INFINITY, calloc((size_t)count, sizeof *k.pids)};
    if (k.pids == NULL)
        _exit(126);
    for (int i = 0; i < count; i++)
        if ((k.pids[i] = keeper_spawn(&tasks[i])) < 0)
            stop(&k, 0);
    while (reap(&k, tasks, count)) {
        if (k.left == 0 && !k.stopping)
            stop(&k, LINGER_S);
        if (k.stopping && launch_now() >= k.kill_at_s)
            descendants_signal(SIGKILL, 0);
        listen_once(&k);
    }
    _exit(0);
}

bool keeper_start(const struct keeper_task *tasks, int count, struct launch *launch, struct error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(error, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t harness = getpid(), pid = fork();
    if (pid == 0)
        keep(tasks, count, ends[0], harness);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return error_set(error, "cannot start a process: %s", strerror(errno));
    }
    launch->keeper = pid;
    launch->lifeline = ends[1];
    return true;
}

void keeper_task_free(struct keeper_task *t)
{
    environment_free(t->argv);
    environment_free(t->envp);
    free(t->folder);
    free(t->log);
    free(t->end);
    *t = (struct keeper_task){0};
}
