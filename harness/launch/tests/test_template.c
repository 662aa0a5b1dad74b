// Templates: that they serve one start after another, and what becomes of a start whose template dies, hangs or says nonsense.
#include "harness/launch/tests/place.h"
#include "harness/launch/tests/template_program.h"

static void await_lost(struct launch *l)
{
    double began = launch_now();
    await_over(l);
    assert_true(l->lost);
    assert_true(launch_now() - began < 4 * TEMPLATE_PATIENCE_S + 5);
}

// The number on a line of a rank's log.
static int number_in_log(const struct place *p, int rank)
{
    char text[256];
    read_log(p, rank, text, sizeof text);
    return atoi(text);
}

static pid_t keeper; // of the last start

// Starts a script that ends at once; returns its parent.
static int serve_one(struct place *p, int ranks)
{
    struct launch l;
    next_job(p);
    start(p, "fork", "echo $PPID $RANK of $WORLD_SIZE in $FSDPMARK_JOB", ranks, &l);
    await_over(&l);
    assert_false(l.lost);
    int parent = number_in_log(p, 0);
    for (int r = 0; r < ranks; r++) {
        char expected[256];
        snprintf(expected, sizeof expected, "%d %d of %d in %s\n", parent, r, ranks, p->folder);
        assert_log(p, r, expected);
        assert_true(l.ends[r].ended);
        assert_int_equal(l.ends[r].status, 0);
    }
    keeper = l.keeper;
    launch_free(&l);
    assert_int_equal(survivors(p->marker), 1);
    return parent;
}

static void starts_in_a_row(void **state)
{
    int template = serve_one(*state, 2);
    assert_int_equal(serve_one(*state, 5), template);
    assert_int_equal(serve_one(*state, 1), template);
}

static void another_environment(void **state)
{
    struct place *p = *state;
    const char *const command[] = {self_path(), "template", "echo $PPID $GIVEN", p->marker, NULL};
    const char *const given[] = {"GIVEN=a", "GIVEN=a", "GIVEN=b"};
    int template[3];
    for (int i = 0; i < 3; i++) {
        struct launch l;
        char expected[64];
        next_job(p);
        start_command(p, "fork", command, given[i], 1, &l);
        await_over(&l);
        template[i] = number_in_log(p, 0);
        snprintf(expected, sizeof expected, "%d %s\n", template[i], given[i] + strlen("GIVEN="));
        assert_log(p, 0, expected);
        launch_free(&l);
    }
    assert_int_equal(template[0], template[1]);
    assert_int_not_equal(template[0], template[2]);
    assert_int_equal(survivors(p->marker), 1);
}

// One rank crashes, the other hangs: the stop ends what is left, and the template serves on.
static void rank_crashes(void **state)
{
    struct place *p = *state;
    struct launch l;
    int template = serve_one(p, 1);
    next_job(p);
    start(p, "fork", "echo $PPID; test $RANK = 1 && kill -SEGV $$; sleep 600; echo", 3, &l);
    for (double until = launch_now() + PATIENCE_S; !l.ends[1].ended && launch_now() < until; usleep(1000))
        launch_poll(&l);
    assert_int_equal(l.ends[1].signal, SIGSEGV);
    assert_false(l.over || l.ends[0].ended);
    launch_stop(&l, 0.5);
    assert_false(l.lost);
    assert_int_equal(l.ends[0].signal, SIGTERM);
    // Another script is another command, and so another template.
    assert_int_not_equal(number_in_log(p, 0), template);
    assert_int_equal(survivors(p->marker), 1);
    launch_free(&l);
}

static void expect_ends(struct place *p, const char *const *command, const char *end)
{
    struct launch l;
    char text[128];
    next_job(p);
    start_command(p, "fork", command, "A=1", 2, &l);
    await_over(&l);
    assert_false(l.lost);
    for (int r = 0; r < 2; r++)
        assert_string_equal(rank_end_text(&l.ends[r], text, sizeof text), end);
    launch_free(&l);
}

// Before it is ready a template that ends is what a worker that ends is with the launcher `local`.
static void template_never_ready(void **state)
{
    struct place *p = *state;
    const char *const none[] = {"/nonexistent/worker", NULL}, *const fails[] = {"sh", "-c", "exit 7", p->marker, NULL},
                      *const dies[] = {"sh", "-c", "kill -9 $$", p->marker, NULL};
    expect_ends(p, none, "cannot be executed: No such file or directory");
    expect_ends(p, fails, "exit status 7");
    expect_ends(p, dies, "signal 9 (Killed)");
    assert_int_equal(survivors(p->marker), 0);
    serve_one(p, 2);
}

static void template_hangs_at_import(void **state)
{
    struct place *p = *state;
    struct launch l;
    const char *const command[] = {"sh", "-c", "trap '' TERM; sleep 600; echo $0", p->marker, NULL};
    start_command(p, "fork", command, "A=1", 2, &l);
    await_survivors(p->marker, 1, 1);
    double began = launch_now();
    launch_stop(&l, 0.2);
    assert_true(l.over && launch_now() - began < 5);
    assert_int_equal(survivors(p->marker), 0);
    launch_free(&l);
    serve_one(p, 2);
}

static void expect_lost(struct place *p, struct launch *l, int signal, int status)
{
    await_lost(l);
    assert_true(l->template_end.ended);
    assert_int_equal(l->template_end.signal, signal);
    assert_int_equal(l->template_end.status, status);
    launch_free(l);
    await_survivors(p->marker, 0, 0);
    serve_one(p, 3);
}

static void template_dies_in_a_start(void **state)
{
    struct place *p = *state;
    struct launch l;
    start(p, "fork", "test $RANK = 1 && kill -9 $PPID; (setsid sh -c 'sleep 600; echo $0' $0) & sleep 600; echo", 2, &l);
    expect_lost(p, &l, SIGKILL, -1);
}

static void template_leaves_when_asked(void **state)
{
    struct place *p = *state;
    struct launch l;
    const char *const command[] = {"sh", "-c", "echo ready >&$FSDPMARK_TEMPLATE; read line <&3; exit 5", p->marker, NULL};
    start_command(p, "fork", command, "A=1", 2, &l);
    expect_lost(p, &l, 0, 5);
}

static void template_does_not_fork(void **state)
{
    struct place *p = *state;
    struct launch l;
    const char *const command[] = {"sh", "-c", "echo ready >&3; sleep 600; echo", p->marker, NULL};
    start_command(p, "fork", command, "A=1", 2, &l);
    expect_lost(p, &l, SIGKILL, -1);
}

static void template_does_not_tell(void **state)
{
    struct place *p = *state;
    struct launch l;
    start(p, "fork", "test $RANK = 0 && kill -STOP $PPID; exit 0", 2, &l);
    expect_lost(p, &l, SIGKILL, -1);
}

static void template_dies_between_starts(void **state)
{
    struct place *p = *state;
    int template = serve_one(p, 2);
    kill(template, SIGKILL);
    // A start that is asked for before the keeper has seen the end is lost.
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)keeper, &info, WEXITED | WNOWAIT), 0);
    assert_int_not_equal(serve_one(p, 2), template);
}

static void template_hangs_between_starts(void **state)
{
    struct place *p = *state;
    struct launch l;
    int template = serve_one(p, 2);
    kill(template, SIGSTOP);
    next_job(p);
    start(p, "fork", "echo $PPID $RANK of $WORLD_SIZE in $FSDPMARK_JOB", 2, &l);
    expect_lost(p, &l, SIGKILL, -1);
}

static void template_says_nonsense(void **state)
{
    struct place *p = *state;
    struct launch l;
    static const char *const said[] = {"start", "ended 0 exit 0", "started\\nready", "started\\nended 2 exit 0", "started\\nended 0 exit 256",
                                       "started\\nended 0 signal 9 at night", "started\\nended 0 exit 0\\nended 0 exit 0", "started\\n\\n"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char script[256], path[128], text[2048];
        snprintf(script, sizeof script, "echo ready >&3; read line <&3; printf '%s\\n' >&3; sleep 600; echo", said[i]);
        const char *const command[] = {"sh", "-c", script, p->marker, NULL};
        next_job(p);
        start_command(p, "fork", command, "A=1", 2, &l);
        await_lost(&l);
        assert_int_equal(l.template_end.signal, SIGKILL);
        launch_free(&l);
        snprintf(path, sizeof path, "%s/template.log", p->folder);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        assert_non_null(strstr(text, "fsdpmark: the template is ended: expected ready, started, 'ended RANK exit STATUS' or"));
    }
    assert_int_equal(survivors(p->marker), 0);
}

// The harness is killed while its template waits for a start.
static void orphaned_template(void **state)
{
    struct place *p = *state;
    fflush(NULL);
    pid_t harness = fork();
    if (harness == 0) {
        serve_one(p, 2);
        for (;;)
            pause();
    }
    await_survivors(p->marker, 1, 4);
    usleep(300000);
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    await_survivors(p->marker, 0, 0);
}

static void no_template(void **state)
{
    struct place *p = *state;
    const char *const command[] = {"true", NULL};
    struct launch_plan plan = {"fork", "", command, NULL, p->folder, 1, NULL, NULL};
    struct launch l;
    struct error error = {0};
    assert_false(launch_start(&plan, &l, &error));
    assert_string_equal(error.text, "launcher 'fork': found no template in the plan of the start, expected one");
    launch_free(&l);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "template") == 0)
        return template_program(argv[2], argv[3]);
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(starts_in_a_row), TEST(another_environment), TEST(rank_crashes), TEST(template_never_ready), TEST(template_hangs_at_import),
        TEST(template_dies_in_a_start), TEST(template_leaves_when_asked), TEST(template_does_not_fork), TEST(template_does_not_tell),
        TEST(template_dies_between_starts), TEST(template_hangs_between_starts), TEST(template_says_nonsense), TEST(orphaned_template),
        TEST(no_template),
    };
    // A test must not outlive its own patience.
    alarm(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
