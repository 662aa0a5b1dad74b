// kill -9 at random moments: after the next start no process, namespace or temporary file of the killed one is left.
//
// Every process of a run has the run's TMPDIR in its environment, a folder of this test, so that it is found whatever has become of its
// parents. Who is killed: the program, the program with the holder of its place, with the keepers of its workers, or all at once as when a
// machine goes down. FSDPMARK_KILLS=100 makes it long; the seed of the moments is FSDPMARK_SEED.
#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/fabric/fabric.h"
#include "harness/run/scratch.h"

static char folder[] = "/tmp/fsdpmark.test.XXXXXX", temporary[64];
static bool cannot;
enum who { PROGRAM, WITH_HOLDER, WITH_KEEPERS, ALL, WHOS };

static int set_up(void **state)
{
    (void)state;
    struct fabric f;
    struct error error = {0};
    if (!command_folder(folder) || !fabric_read("virtual-100m", "suite", &f, &error))
        return -1;
    char *reason = fabric_unavailable(&f);
    cannot = reason != NULL;
    if (cannot)
        fprintf(stderr, "SKIP: %s\n", reason);
    free(reason);
    fabric_free(&f);
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    setenv("TMPDIR", temporary, 1);
    return scratch_folder(temporary, &error) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

// Whether a process has this test's TMPDIR; name: of the process.
static bool is_marked(const char *pid, char name[64])
{
    static char text[1 << 16];
    char path[64], pair[80];
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    snprintf(pair, sizeof pair, "TMPDIR=%s", temporary);
    FILE *file = atoi(pid) != getpid() ? fopen(path, "re") : NULL;
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    bool marked = false;
    text[size] = 0;
    if (file != NULL)
        fclose(file);
    for (const char *at = text; at < text + size && !marked; at += strlen(at) + 1)
        marked = strcmp(at, pair) == 0;
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    name[0] = 0;
    file = marked ? fopen(path, "re") : NULL;
    if (file != NULL && fgets(name, 64, file) != NULL)
        name[strcspn(name, "\n")] = 0;
    if (file != NULL)
        fclose(file);
    return marked;
}

// Sends SIGKILL to the marked processes of a name (NULL: all; "": to none) and returns how many there were.
static int kill_marked(const char *wanted)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char name[64];
        if (!isdigit((unsigned char)e->d_name[0]) || !is_marked(e->d_name, name))
            continue;
        count++;
        if (wanted == NULL || strcmp(wanted, name) == 0)
            kill(atoi(e->d_name), SIGKILL);
    }
    closedir(proc);
    return count;
}

static pid_t begin(void)
{
    char program[4096];
    assert_true(command_program(program));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(folder) != 0 || freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        setsid();
        execl(program, program, "check", "-i", "reference", "-p", "tiny", "-f", "virtual-100m", (char *)NULL);
        _exit(99);
    }
    return pid;
}

static void kill_some(pid_t program, enum who who)
{
    if (who == ALL)
        kill_marked(NULL);
    kill(program, SIGKILL);
    if (who == WITH_HOLDER)
        kill_marked("fsdpmark-fabric");
    if (who == WITH_KEEPERS)
        kill_marked("fsdpmark-keeper");
    waitpid(program, NULL, 0);
}

// Names of a folder that begin so.
static int entries(const char *where, const char *begin_with, char *one, size_t size)
{
    int count = 0;
    DIR *d = opendir(where);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strncmp(e->d_name, begin_with, strlen(begin_with)) == 0) {
            snprintf(one, size, "%s/%s", where, e->d_name);
            count++;
        }
    if (d != NULL)
        closedir(d);
    return count;
}

// The next start, to its end: all of what was killed is gone, and the start itself was not hindered.
static void nothing_is_left(pid_t program, int round)
{
    static struct command_result r;
    static const char *const next[] = {"check", "-i", "reference", "-k", "exact-mlp.none.n2", "-f", "virtual-100m", "--no-gate", NULL};
    char left[400] = "", begin_with[64];
    command_run(folder, next, 100, &r);
    if (r.status != 0)
        fail_msg("round %d: the next start ended with %d: %s%s", round, r.status, r.out, r.err);
    int processes = 1;
    for (int i = 0; i < 100 && (processes = kill_marked("")) > 0; i++)
        usleep(50000);
    assert_int_equal(processes, 0);
    snprintf(begin_with, sizeof begin_with, "fsdpmark.%ld.", (long)program);
    if (entries(temporary, "", left, sizeof left) + entries("/dev/shm", begin_with, left, sizeof left) > 0)
        fail_msg("round %d: %s is left", round, left);
}

static void killed_at_random(void **state)
{
    (void)state;
    if (cannot)
        skip();
    const char *rounds_given = getenv("FSDPMARK_KILLS"), *seed_given = getenv("FSDPMARK_SEED");
    int rounds = rounds_given != NULL ? atoi(rounds_given) : 20;
    unsigned seed = seed_given != NULL ? (unsigned)atoi(seed_given) : 1;
    for (int i = 0; i < rounds; i++) {
        double wait_s = 2.5 * rand_r(&seed) / RAND_MAX;
        pid_t program = begin();
        usleep((useconds_t)(wait_s * 1e6));
        fprintf(stderr, "round %d: after %.3f s, who: %d\n", i, wait_s, i % WHOS);
        kill_some(program, (enum who)(i % WHOS));
        nothing_is_left(program, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_random)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
