// Starts and ends: environment, statuses, deadlines, and that nothing survives, whoever dies.
//
// Workers are shell scripts that carry a marker of this test in their command lines, so that survivors can be counted in /proc.
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/launch/keeper.h"
#include "harness/launch/launch.h"
#include "harness/run/scratch.h"

static const double PATIENCE_S = 20;

struct place { char folder[64], marker[64]; };

static int make_place(void **state)
{
    static int serial;
    struct place *p = calloc(1, sizeof *p);
    snprintf(p->folder, sizeof p->folder, "/tmp/fsdpmark.test.XXXXXX");
    snprintf(p->marker, sizeof p->marker, "marker-%d-%d", (int)getpid(), serial++);
    *state = p;
    return mkdtemp(p->folder) == NULL;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    scratch_remove(p->folder);
    free(p);
    return 0;
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

static void start(struct place *p, const char *launcher, const char *script, int ranks, struct launch *l)
{
    static char program[4096];
    struct error error = {0};
    snprintf(program, sizeof program, "%s/fsdpmark", getenv("FSDPMARK_BUILD") != NULL ? getenv("FSDPMARK_BUILD") : "build");
    char *absolute = realpath(program, NULL);
    const char *const command[] = {"sh", "-c", script, p->marker, NULL};
    const char *const environment[] = {"GIVEN=by the manifest", NULL};
    struct launch_plan plan = {launcher, absolute != NULL ? absolute : program, command, environment, p->folder, ranks};
    bool ok = launch_start(&plan, l, &error);
    if (!ok)
        print_error("%s\n", error.text);
    free(absolute);
    assert_true(ok);
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

static void assert_log(const struct place *p, int rank, const char *expected)
{
    char path[128], text[4096];
    snprintf(path, sizeof path, "%s/rank%d.log", p->folder, rank);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, expected);
}

static void check_environment(struct place *p, const char *launcher)
{
    struct launch l;
    char expected[512];
    setenv("NOT_ON_THE_LIST", "leaks", 1);
    start(p, launcher, "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS "
                       "$GIVEN [$NOT_ON_THE_LIST] $FSDPMARK_JOB; echo $OMPI_MCA_orte_tmpdir_base; pwd; test $MASTER_PORT -gt 1023 || echo no port; echo err >&2", 3, &l);
    await_over(&l);
    for (int r = 0; r < 3; r++) {
        snprintf(expected, sizeof expected, "%d 3 %d 3 127.0.0.1 1 1 by the manifest [] %s\n%s\n%s\nerr\n", r, r, p->folder, p->folder, p->folder);
        assert_log(p, r, expected);
        assert_true(l.ends[r].ended);
        assert_int_equal(l.ends[r].status, 0);
    }
    launch_free(&l);
}

static void local_environment(void **state) { check_environment(*state, "local"); }
static void mpirun_environment(void **state) { check_environment(*state, "mpirun"); }

static void statuses(void **state)
{
    struct launch l;
    char text[128];
    start(*state, "local", "case $RANK in 0) exit 7;; 1) kill -SEGV $$;; esac", 3, &l);
    await_over(&l);
    assert_string_equal(rank_end_text(&l.ends[0], text, sizeof text), "exit status 7");
    assert_string_equal(rank_end_text(&l.ends[1], text, sizeof text), "signal 11 (Segmentation fault)");
    assert_string_equal(rank_end_text(&l.ends[2], text, sizeof text), "exit status 0");
    launch_free(&l);
}

static void mpirun_statuses(void **state)
{
    struct launch l;
    char text[128];
    // Rank 1 waits to be ended by mpirun for rank 0's sake.
    start(*state, "mpirun", "if [ $RANK = 0 ]; then sleep 0.3; exit 7; fi; sleep 60", 2, &l);
    await_over(&l);
    assert_string_equal(rank_end_text(&l.ends[0], text, sizeof text), "exit status 7");
    assert_true(!l.ends[1].ended || l.ends[1].signal != 0);
    launch_free(&l);
    await_survivors(((struct place *)*state)->marker, 0, 0);
}

static void no_such_command(void **state)
{
    struct place *p = *state;
    const char *const command[] = {"/nonexistent/worker", NULL};
    struct launch_plan plan = {"local", "", command, NULL, p->folder, 2};
    struct launch l;
    struct error error = {0};
    char text[128];
    assert_true(launch_start(&plan, &l, &error));
    await_over(&l);
    assert_string_equal(rank_end_text(&l.ends[1], text, sizeof text), "cannot be executed: No such file or directory");
    assert_log(p, 0, "/nonexistent/worker: cannot be executed: No such file or directory\n");
    launch_free(&l);
}

static void unknown_launcher(void **state)
{
    struct place *p = *state;
    const char *const command[] = {"true", NULL};
    struct launch_plan plan = {"teleport", "", command, NULL, p->folder, 1};
    struct launch l;
    struct error error = {0};
    assert_false(launch_start(&plan, &l, &error));
    assert_string_equal(error.text, "launcher 'teleport': unknown, expected local or mpirun");
    launch_free(&l);
}

// A worker that ignores SIGTERM, a child of it, and a daemon in a session of its own.
static const char stubborn[] = "trap '' TERM; (trap '' TERM; sleep 600; echo $0) & setsid sh -c \"sleep 600; echo $0\" $0 & sleep 600; sleep 600";

static void check_stop(struct place *p, const char *launcher)
{
    struct launch l;
    start(p, launcher, stubborn, 2, &l);
    await_survivors(p->marker, 6, 20);
    double began = launch_now();
    launch_stop(&l, 0.3);
    assert_true(launch_now() - began < 5);
    assert_true(l.over);
    assert_int_equal(survivors(p->marker), 0);
    launch_free(&l);
}

static void local_stop(void **state) { check_stop(*state, "local"); }
static void mpirun_stop(void **state) { check_stop(*state, "mpirun"); }

// The harness is killed with SIGKILL while its workers run.
static void check_orphans(struct place *p, const char *launcher)
{
    fflush(NULL);
    pid_t harness = fork();
    if (harness == 0) {
        struct launch l;
        start(p, launcher, stubborn, 2, &l);
        for (;;)
            pause();
    }
    await_survivors(p->marker, 6, 20);
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    double killed = launch_now();
    await_survivors(p->marker, 0, 0);
    assert_true(launch_now() - killed < 5);
}

static void local_orphans(void **state) { check_orphans(*state, "local"); }
static void mpirun_orphans(void **state) { check_orphans(*state, "mpirun"); }

static void keeper_killed(void **state)
{
    struct place *p = *state;
    struct launch l;
    start(p, "local", "sleep 600; echo", 2, &l);
    await_survivors(p->marker, 2, 2);
    kill(l.keeper, SIGKILL);
    await_over(&l);
    await_survivors(p->marker, 0, 0);
    launch_free(&l);
}

static void leftovers_of_ended_ranks(void **state)
{
    struct place *p = *state;
    struct launch l;
    start(p, "local", "setsid sh -c \"sleep 600; echo $0\" $0 & exit 0", 1, &l);
    await_over(&l);
    assert_int_equal(l.ends[0].status, 0);
    assert_int_equal(survivors(p->marker), 0);
    launch_free(&l);
}

static void capture(void **state)
{
    (void)state;
    char text[64];
    int status = -1;
    struct error error = {0};
    const char *const fine[] = {"sh", "-c", "echo one; echo two >&2; exit 3", NULL}, *const slow[] = {"sleep", "60", NULL},
                      *const none[] = {"/nonexistent", NULL}, *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    assert_true(launch_capture(fine, NULL, "/", 10, text, sizeof text, &status, &error));
    assert_string_equal(text, "one\ntwo\n");
    assert_int_equal(status, 3);
    assert_true(launch_capture(killed, NULL, "/", 10, text, sizeof text, &status, &error));
    assert_int_equal(status, 137);
    double began = launch_now();
    assert_false(launch_capture(slow, NULL, "/", 0.3, text, sizeof text, &status, &error));
    assert_string_equal(error.text, "'sleep' did not end within 0.3 s");
    assert_true(launch_now() - began < 3);
    error.text[0] = 0;
    assert_false(launch_capture(none, NULL, "/", 10, text, sizeof text, &status, &error));
    assert_string_equal(error.text, "'/nonexistent' cannot be executed: No such file or directory");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(local_environment), TEST(mpirun_environment), TEST(statuses), TEST(mpirun_statuses), TEST(no_such_command),
        TEST(unknown_launcher), TEST(local_stop), TEST(mpirun_stop), TEST(local_orphans), TEST(mpirun_orphans), TEST(keeper_killed),
        TEST(leftovers_of_ended_ranks), TEST(capture),
    };
    // A test must not outlive its own patience.
    alarm(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
