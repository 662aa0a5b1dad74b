// Shared by the tests of launchers: a job folder, workers that are shell scripts, and who of them is alive.
//
// The scripts carry a marker of the test in their command lines, so that survivors can be counted in /proc.
#ifndef HARNESS_LAUNCH_TESTS_PLACE_H
#define HARNESS_LAUNCH_TESTS_PLACE_H

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/launch/template.h"
#include "harness/run/scratch.h"

static const double PATIENCE_S = 20, TEMPLATE_PATIENCE_S = 1.5;

// hosts: where ranks go; NULL: nowhere. folder: of the job. Its template, where the launcher `fork` makes one, is this program (template_program) and carries the marker too.
struct place { char base[64], folder[80], marker[64]; struct template *template; const struct fabric_place *hosts; };

static const char *self_path(void)
{
    static char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    return path;
}

static int make_place(void **state)
{
    static int serial;
    struct place *p = calloc(1, sizeof *p);
    char path[80];
    snprintf(p->base, sizeof p->base, "/tmp/fsdpmark.test.XXXXXX");
    snprintf(p->marker, sizeof p->marker, "marker-%d-%d", (int)getpid(), serial++);
    *state = p;
    if (mkdtemp(p->base) == NULL)
        return -1;
    snprintf(p->folder, sizeof p->folder, "%s/job", p->base);
    snprintf(path, sizeof path, "%s/template", p->base);
    p->template = template_new(path, TEMPLATE_PATIENCE_S);
    return p->template == NULL || mkdir(p->folder, 0700) != 0;
}

static int survivors(const char *marker)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char path[300], text[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        FILE *file = atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() ? fopen(path, "re") : NULL;
        if (file == NULL)
            continue;
        size_t n = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        for (size_t i = 0; i < n; i++)
            text[i] = text[i] == 0 ? ' ' : text[i];
        text[n] = 0;
        count += strstr(text, marker) != NULL;
    }
    closedir(proc);
    return count;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    template_free(p->template);
    assert_int_equal(survivors(p->marker), 0);
    scratch_remove(p->base);
    free(p);
    return 0;
}

static void await_survivors(const char *marker, int wanted_at_least, int wanted_at_most)
{
    double until = launch_now() + PATIENCE_S;
    int count = survivors(marker);
    while ((count < wanted_at_least || count > wanted_at_most) && launch_now() < until) {
        usleep(10000);
        count = survivors(marker);
    }
    assert_in_range(count, wanted_at_least, wanted_at_most);
}

// What is left of the launcher when a start is over.
static int kept(const char *launcher)
{
    return strcmp(launcher, "fork") == 0;
}

static void start_command(struct place *p, const char *launcher, const char *const *command, const char *given, int ranks, struct launch *l)
{
    static char program[4096];
    struct error error = {0};
    snprintf(program, sizeof program, "%s/fsdpmark", getenv("FSDPMARK_BUILD") != NULL ? getenv("FSDPMARK_BUILD") : "build");
    char *absolute = realpath(program, NULL);
    const char *const environment[] = {given, NULL};
    struct launch_plan plan = {launcher, absolute != NULL ? absolute : program, command, environment, p->folder, ranks, p->template, p->hosts};
    bool ok = launch_start(&plan, l, &error);
    if (!ok)
        print_error("%s\n", error.text);
    free(absolute);
    assert_true(ok);
}

static inline void start(struct place *p, const char *launcher, const char *script, int ranks, struct launch *l)
{
    const char *const plain[] = {"sh", "-c", script, p->marker, NULL}, *const forked[] = {self_path(), "template", script, p->marker, NULL};
    start_command(p, launcher, kept(launcher) ? forked : plain, "GIVEN=by the manifest", ranks, l);
}

// A job folder of its own for the next start.
static inline void next_job(struct place *p)
{
    static int serial;
    snprintf(p->folder, sizeof p->folder, "%s/job%d", p->base, serial++);
    assert_int_equal(mkdir(p->folder, 0700), 0);
}

static void await_over(struct launch *l)
{
    double until = launch_now() + PATIENCE_S;
    while (!l->over && launch_now() < until) {
        launch_poll(l);
        usleep(1000);
    }
    assert_true(l->over);
    launch_poll(l);
}

static void read_log(const struct place *p, int rank, char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/rank%d.log", p->folder, rank);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static void assert_log(const struct place *p, int rank, const char *expected)
{
    char text[4096];
    read_log(p, rank, text, sizeof text);
    assert_string_equal(text, expected);
}

// A worker that ignores SIGTERM, a child of it, and a daemon in a session of its own.
static const char stubborn[] = "trap '' TERM; (trap '' TERM; sleep 600; echo $0) & setsid sh -c \"sleep 600; echo $0\" $0 & sleep 600; sleep 600";

#endif
