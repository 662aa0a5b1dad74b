// A real Slurm of two nodes for a test, started by slurm_cluster.sh under a keeper, so that it goes with the test however that ends.
#ifndef HARNESS_LAUNCH_TESTS_SLURM_H
#define HARNESS_LAUNCH_TESTS_SLURM_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/launch/launchers.h"

static const double SLURM_PATIENCE_S = 90;

// reason: why there is none; "" where it is up.
struct slurm { char folder[64], conf[96], reason[400]; struct launch daemons; };

// Processes whose environment names the configuration of this cluster: its daemons, steps and tasks.
static int slurm_processes(const struct slurm *s)
{
    static char text[1 << 17];
    int count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
        FILE *file = atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() ? fopen(path, "re") : NULL;
        size_t n = file != NULL ? fread(text, 1, sizeof text, file) : 0;
        count += n > 0 && memmem(text, n, s->conf, strlen(s->conf)) != NULL;
        if (file != NULL)
            fclose(file);
    }
    closedir(proc);
    return count;
}

// What a command of Slurm prints, "" where it fails.
static const char *slurm_ask(const char *const *command)
{
    static char text[1 << 14];
    struct error error = {0};
    int status = 1;
    return launch_capture(command, NULL, "/", SLURM_PATIENCE_S, text, sizeof text, &status, &error) && status == 0 ? text : "";
}

static bool slurm_is_up(void)
{
    static const char *const command[] = {"sinfo", "--noheader", "--Node", "--format=%N:%t", NULL};
    const char *text = slurm_ask(command);
    return strstr(text, "n0:idle") != NULL && strstr(text, "n1:idle") != NULL;
}

static void last_line(const char *path, char *out, size_t size)
{
    char line[400];
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (file != NULL)
        fclose(file);
}

static bool slurm_is_installed(struct slurm *s)
{
    char path[4096];
    snprintf(path, sizeof path, "%s:/usr/sbin", getenv("PATH")); // which an ordinary user's lacks
    setenv("PATH", path, 1);
    static const char *const programs[] = {"munged", "mungekey", "slurmctld", "slurmd", "srun", "salloc", "sbatch", NULL};
    for (int i = 0; programs[i] != NULL; i++) {
        char script[64];
        const char *const command[] = {"sh", "-c", script, NULL};
        snprintf(script, sizeof script, "command -v %s", programs[i]);
        if (!slurm_ask(command)[0]) {
            snprintf(s->reason, sizeof s->reason, "found no %s; remedy: apt-get install slurmctld slurmd slurm-client munge", programs[i]);
            return false;
        }
    }
    return true;
}

static bool slurm_begin(struct slurm *s, struct error *error)
{
    char ports[3][16], *script = realpath("harness/launch/tests/slurm_cluster.sh", NULL);
    for (int i = 0; i < 3; i++)
        snprintf(ports[i], sizeof ports[i], "%d", launcher_free_port());
    const char *const command[] = {"sh", script, s->folder, ports[0], ports[1], ports[2], NULL};
    struct launch_plan plan = {.launcher = "local", .program = "", .command = command, .folder = s->folder, .ranks = 1};
    bool ok = script != NULL && launch_start(&plan, &s->daemons, error);
    free(script);
    return ok;
}

// Starts the cluster and sets SLURM_CONF. False with the reason.
static bool slurm_start(struct slurm *s)
{
    struct error error = {0};
    char log[128];
    *s = (struct slurm){.folder = "/tmp/fsdpmark.slurm.XXXXXX", .daemons = {.keeper = -1, .lifeline = -1, .over = true}};
    if (!slurm_is_installed(s))
        return false;
    if (mkdtemp(s->folder) == NULL) {
        snprintf(s->reason, sizeof s->reason, "%s: %s", s->folder, strerror(errno));
        return false;
    }
    snprintf(s->conf, sizeof s->conf, "SLURM_CONF=%s/slurm.conf", s->folder);
    setenv("SLURM_CONF", strchr(s->conf, '=') + 1, 1);
    bool up = false;
    if (slurm_begin(s, &error))
        for (double until = launch_now() + SLURM_PATIENCE_S; !s->daemons.over && !(up = slurm_is_up()) && launch_now() < until; launch_poll(&s->daemons))
            usleep(200000);
    if (up)
        return true;
    snprintf(s->reason, sizeof s->reason, "Slurm does not start: %s", error.text);
    snprintf(log, sizeof log, "%s/rank0.log", s->folder);
    last_line(log, s->reason + strlen(s->reason), sizeof s->reason - strlen(s->reason));
    return false;
}

static void slurm_stop(struct slurm *s)
{
    launch_stop(&s->daemons, 3);
    launch_free(&s->daemons);
    unsetenv("SLURM_CONF");
}

#endif
