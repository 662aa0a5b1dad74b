// Starts and ends: environment, statuses, deadlines, and that nothing survives, whoever dies.
#include "harness/launch/tests/place.h"
#include "harness/launch/tests/template_program.h"

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
static void fork_environment(void **state) { check_environment(*state, "fork"); }

static void check_statuses(struct place *p, const char *launcher)
{
    struct launch l;
    char text[128];
    start(p, launcher, "case $RANK in 0) exit 7;; 1) kill -SEGV $$;; esac", 3, &l);
    await_over(&l);
    assert_string_equal(rank_end_text(&l.ends[0], text, sizeof text), "exit status 7");
    assert_string_equal(rank_end_text(&l.ends[1], text, sizeof text), "signal 11 (Segmentation fault)");
    assert_string_equal(rank_end_text(&l.ends[2], text, sizeof text), "exit status 0");
    launch_free(&l);
}

static void local_statuses(void **state) { check_statuses(*state, "local"); }
static void fork_statuses(void **state) { check_statuses(*state, "fork"); }

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
    struct launch_plan plan = {"local", "", command, NULL, p->folder, 2, NULL, NULL};
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
    struct launch_plan plan = {"teleport", "", command, NULL, p->folder, 1, NULL, NULL};
    struct launch l;
    struct error error = {0};
    assert_false(launch_start(&plan, &l, &error));
    assert_string_equal(error.text, "launcher 'teleport': unknown, expected fork, local, mpirun or srun");
    launch_free(&l);
}

static void check_stop(struct place *p, const char *launcher)
{
    struct launch l;
    start(p, launcher, stubborn, 2, &l);
    await_survivors(p->marker, 6 + kept(launcher), 20);
    double began = launch_now();
    launch_stop(&l, 0.3);
    assert_true(launch_now() - began < 5);
    assert_true(l.over);
    assert_false(l.lost);
    assert_int_equal(survivors(p->marker), kept(launcher));
    launch_free(&l);
}

static void local_stop(void **state) { check_stop(*state, "local"); }
static void mpirun_stop(void **state) { check_stop(*state, "mpirun"); }
static void fork_stop(void **state) { check_stop(*state, "fork"); }

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
    await_survivors(p->marker, 6 + kept(launcher), 20);
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    double killed = launch_now();
    await_survivors(p->marker, 0, 0);
    assert_true(launch_now() - killed < 5);
}

static void local_orphans(void **state) { check_orphans(*state, "local"); }
static void mpirun_orphans(void **state) { check_orphans(*state, "mpirun"); }
static void fork_orphans(void **state) { check_orphans(*state, "fork"); }

static void check_keeper_killed(struct place *p, const char *launcher)
{
    struct launch l;
    start(p, launcher, "sleep 600; echo", 2, &l);
    await_survivors(p->marker, 2 + kept(launcher), 2 + kept(launcher));
    kill(l.keeper, SIGKILL);
    await_over(&l);
    await_survivors(p->marker, 0, 0);
    launch_free(&l);
}

static void local_keeper_killed(void **state) { check_keeper_killed(*state, "local"); }
static void fork_keeper_killed(void **state) { check_keeper_killed(*state, "fork"); }

static void check_leftovers(struct place *p, const char *launcher)
{
    struct launch l;
    start(p, launcher, "setsid sh -c \"sleep 600; echo $0\" $0 & exit 0", 1, &l);
    await_over(&l);
    assert_int_equal(l.ends[0].status, 0);
    assert_int_equal(survivors(p->marker), kept(launcher));
    launch_free(&l);
}

static void local_leftovers(void **state) { check_leftovers(*state, "local"); }
static void fork_leftovers(void **state) { check_leftovers(*state, "fork"); }

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

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "template") == 0)
        return template_program(argv[2], argv[3]);
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(local_environment), TEST(mpirun_environment), TEST(fork_environment), TEST(local_statuses), TEST(fork_statuses),
        TEST(mpirun_statuses), TEST(no_such_command), TEST(unknown_launcher), TEST(local_stop), TEST(mpirun_stop), TEST(fork_stop),
        TEST(local_orphans), TEST(mpirun_orphans), TEST(fork_orphans), TEST(local_keeper_killed), TEST(fork_keeper_killed),
        TEST(local_leftovers), TEST(fork_leftovers), TEST(capture),
    };
    // A test must not outlive its own patience.
    alarm(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
