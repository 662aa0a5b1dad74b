// Runs build/fsdpmark and captures what it says, with a deadline.
#ifndef HARNESS_CLI_TESTS_COMMAND_H
#define HARNESS_CLI_TESTS_COMMAND_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/launch/launch.h"

enum { COMMAND_OUTPUT = 1 << 18 };

struct command_result { int status; char out[COMMAND_OUTPUT], err[COMMAND_OUTPUT]; };

// The program under test; false where it is not built.
static bool command_program(char path[4096])
{
    const char *build = getenv("FSDPMARK_BUILD");
    char relative[4096];
    snprintf(relative, sizeof relative, "%s/fsdpmark", build != NULL ? build : "build");
    return realpath(relative, path) != NULL;
}

// Makes the folder (a template of mkdtemp) that commands run in: the suite is this tree's, cache and store are of the folder.
static __attribute__((unused)) bool command_folder(char *folder)
{
    char path[4200], program[4096], *suite = realpath("suite", NULL);
    bool fine = suite != NULL && command_program(program) && mkdtemp(folder) != NULL;
    if (fine) {
        setenv("FSDPMARK_SUITE", suite, 1);
        snprintf(path, sizeof path, "%s/cache", folder);
        setenv("FSDPMARK_CACHE", path, 1);
        snprintf(path, sizeof path, "%s/results.db", folder);
        setenv("FSDPMARK_STORE", path, 1);
    }
    free(suite);
    return fine;
}

static __attribute__((unused)) void command_write(const char *folder, const char *name, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static void command_slurp(const char *path, char *text)
{
    FILE *file = fopen(path, "re");
    size_t n = file == NULL ? 0 : fread(text, 1, COMMAND_OUTPUT - 1, file);
    text[n] = 0;
    if (file != NULL)
        fclose(file);
    unlink(path);
}

enum { COMMAND_WORDS = 256 };
// words: arguments, NULL at the end. Status 128 + signal; -1 where it passed the limit [s].
static void command_run(const char *folder, const char *const *words, double limit_s, struct command_result *r)
{
    char program[4096], out[4200], err[4200];
    const char *argv[COMMAND_WORDS] = {program};
    int n = 1, status = 0;
    pid_t done = 0;
    command_program(program);
    for (int i = 0; words[i] != NULL && n < COMMAND_WORDS - 1; i++)
        argv[n++] = words[i];
    snprintf(out, sizeof out, "%s/stdout", folder);
    snprintf(err, sizeof err, "%s/stderr", folder);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(folder) != 0 || freopen(out, "w", stdout) == NULL || freopen(err, "w", stderr) == NULL)
            _exit(99);
        execv(program, (char **)argv);
        _exit(99);
    }
    for (double until = launch_now() + limit_s; done != pid && launch_now() < until; usleep(2000))
        done = waitpid(pid, &status, WNOHANG);
    if (done != pid) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    r->status = done != pid ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    command_slurp(out, r->out);
    command_slurp(err, r->err);
}

#endif
