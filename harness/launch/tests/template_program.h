// A template in C: what a test program is when it is started as `PROGRAM template SCRIPT MARKER`. Its ranks execute the script.
#ifndef HARNESS_LAUNCH_TESTS_TEMPLATE_PROGRAM_H
#define HARNESS_LAUNCH_TESTS_TEMPLATE_PROGRAM_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEMPLATE_RANKS = 64 };

// The rank's environment takes the place of the template's; its texts live as long as the process.
static void take_environment(const char *folder, int rank)
{
    char path[4200];
    static char text[1 << 16];
    snprintf(path, sizeof path, "%s/rank%d.environ", folder, rank);
    FILE *file = fopen(path, "re");
    size_t size = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        fclose(file);
    clearenv();
    for (char *at = text; at < text + size; at += strlen(at) + 1)
        putenv(at);
}

// Into the namespaces of the rank's host: this process, and so what it forks.
static int enter_host(const char *folder, int rank)
{
    char path[4200], kind[8];
    int ok = 1;
    snprintf(path, sizeof path, "%s/rank%d.namespaces", folder, rank);
    FILE *file = fopen(path, "re");
    while (file != NULL && ok && fscanf(file, "%7s %4199s %*u\n", kind, path) == 2) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ok = fd >= 0 && setns(fd, strcmp(kind, "net") == 0 ? CLONE_NEWNET : CLONE_NEWUTS) == 0;
        close(fd);
    }
    if (file != NULL)
        fclose(file);
    return ok && file != NULL;
}

static void become_rank(const char *folder, int rank, pid_t template)
{
    char path[4200];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof path, "%s/rank%d.log", folder, rank);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (getppid() != template || log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || chdir(folder) != 0)
        _exit(125);
    take_environment(folder, rank);
}

// Serves one start after another; returns in a rank, with true, and at the end of the channel.
static int template_forks(FILE *in, int out)
{
    char line[4200], folder[4200], verb[8], said[16 * TEMPLATE_RANKS];
    int ranks, status;
    pid_t pid, pids[TEMPLATE_RANKS], self = getpid();
    dprintf(out, "ready\n");
    while (fgets(line, sizeof line, in) != NULL && sscanf(line, "%7s %d %4199[^\n]", verb, &ranks, folder) == 3) {
        int enters = strcmp(verb, "enter") == 0;
        size_t used = (size_t)snprintf(said, sizeof said, "started");
        for (int r = 0; r < ranks; r++) {
            if (enters && !enter_host(folder, r))
                return 0;
            if ((pids[r] = fork()) == 0) {
                become_rank(folder, r, self);
                return 1;
            }
            if (enters)
                used += (size_t)snprintf(said + used, sizeof said - used, " %d", (int)pids[r]);
        }
        dprintf(out, "%s\n", said);
        for (int left = ranks; left > 0 && (pid = wait(&status)) > 0;)
            for (int r = 0; r < ranks; r++)
                if (pids[r] == pid) {
                    left--;
                    dprintf(out, "ended %d %s %d\n", r, WIFSIGNALED(status) ? "signal" : "exit",
                            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                }
    }
    return 0;
}

static int template_serve(void)
{
    int channel = atoi(getenv("FSDPMARK_TEMPLATE"));
    fcntl(channel, F_SETFD, FD_CLOEXEC);
    return template_forks(fdopen(channel, "re"), channel);
}

static inline int template_program(const char *script, const char *marker)
{
    if (template_serve())
        execlp("sh", "sh", "-c", script, marker, (char *)NULL);
    return 0;
}

#endif
