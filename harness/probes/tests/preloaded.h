// Tests of what is preloaded: the test program starts itself again with the probes before it, as an actor that does known things.
//
// Include cmocka.h first. An actor is a function by name; what it says on its standard output the test reads. Its file is where the harness would look.
#ifndef HARNESS_PROBES_TESTS_PRELOADED_H
#define HARNESS_PROBES_TESTS_PRELOADED_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/probes/summary.h"
#include "harness/protocol/tests/temporary.h"

struct actor { const char *name; int (*run)(void); };

// fsdpmark_mark of the probes; as a worker finds it.
static inline void actor_mark(const char *phase, int step)
{
    void (*mark)(const char *, int) = NULL;
    *(void **)&mark = dlsym(RTLD_DEFAULT, "fsdpmark_mark");
    if (mark == NULL) {
        fprintf(stderr, "found no fsdpmark_mark, expected the probes to be loaded\n");
        _exit(3);
    }
    mark(phase, step);
}

// The folder that the programs were built into: the test lies in its tests/harness/probes.
static inline void preloaded_build(char folder[4096])
{
    ssize_t size = readlink("/proc/self/exe", folder, 4095);
    folder[size > 0 ? size : 0] = 0;
    char *end = strstr(folder, "/tests/");
    if (end != NULL)
        *end = 0;
}

// Runs the actor with "heap", "heap,cuda" or so and the environment's further pairs ("A=B"; "A" takes A away; NULL ends them): wait status, its output.
static inline int preloaded_run(const char *actor, const char *probes, const char *job, const char *const *more, char *output, size_t room)
{
    static char build[4096], loads[16384], program[4096];
    int pipe_ends[2], status = -1;
    preloaded_build(build);
    program[readlink("/proc/self/exe", program, sizeof program - 1)] = 0;
    size_t used = (size_t)snprintf(loads, sizeof loads, "%s/libfsdpmark-probe.so", build);
    for (const char *p = probes; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
        used += (size_t)snprintf(loads + used, sizeof loads - used, ":%s/libfsdpmark-probe-%.*s.so", build, (int)strcspn(p, ","), p);
    if (pipe(pipe_ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], 1);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        setenv("FSDPMARK_JOB", job, 1);
        setenv("FSDPMARK_PROBES", probes, 1);
        setenv("RANK", "0", 1);
        setenv("LD_PRELOAD", loads, 1);
        // A sanitizer wants to be first; the probes hand on to it.
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
        for (int i = 0; more != NULL && more[i] != NULL; i++)
            putenv(strdup(more[i])); // a name alone is taken away
        execl(program, program, actor, (char *)NULL);
        _exit(127);
    }
    close(pipe_ends[1]);
    size_t filled = 0;
    for (ssize_t got; filled + 1 < room && (got = read(pipe_ends[0], output + filled, room - 1 - filled)) > 0;)
        filled += (size_t)got;
    output[filled] = 0;
    close(pipe_ends[0]);
    if (waitpid(child, &status, 0) != child)
        return -1;
    return status;
}

// A new job folder, gone when the test ends.
static inline const char *preloaded_job(void)
{
    static char folder[64];
    strcpy(folder, "/tmp/fsdpmark-test-probes-XXXXXX");
    return temporary_make(folder);
}

// A case of a rank, whose probe_case_free is the caller's.
static inline struct probe_case preloaded_read(const char *folder, int rank, int place)
{
    char path[4096];
    struct probe_case c;
    struct error error = {""};
    snprintf(path, sizeof path, "%s/probes.rank%d", folder, rank);
    if (!probe_read(path, place, &c, &error))
        fail_msg("%s", error.text);
    return c;
}

// The actor's case 0, where the actor ended well.
static inline struct probe_case preloaded_watch(const char *actor, const char *probes, const char *folder, const char *const *more, char output[256])
{
    int status = preloaded_run(actor, probes, folder, more, output, 256);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: wait status %x: %s", actor, (unsigned)status, output);
    return preloaded_read(folder, 0, 0);
}

// In main: true where this process is an actor, whose status is *status.
static inline bool preloaded_act(int argc, char **argv, const struct actor *actors, int *status)
{
    for (int i = 0; argc > 1 && actors[i].name != NULL; i++)
        if (strcmp(argv[1], actors[i].name) == 0) {
            *status = actors[i].run();
            return true;
        }
    return false;
}

#endif
