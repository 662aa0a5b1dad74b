// Templates on the hosts of a virtual cluster: each rank is where it belongs and talks over its host's line, and nobody is left.
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "harness/fabric/place.h"
#include "harness/fabric/tests/traffic.h"
#include "harness/launch/tests/place.h"
#include "harness/launch/tests/template_program.h"

static char program[4096], *cannot;
static struct fabric fabric;

static int set_up(void **state)
{
    (void)state;
    char path[4096];
    struct error error = {0};
    snprintf(path, sizeof path, "%s/fsdpmark", getenv("FSDPMARK_BUILD") != NULL ? getenv("FSDPMARK_BUILD") : "build");
    if (realpath(path, program) == NULL || !fabric_read("virtual-100m", "suite", &fabric, &error))
        return -1;
    cannot = fabric_unavailable(&fabric);
    if (cannot != NULL)
        fprintf(stderr, "SKIP: %s\n", cannot);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(cannot);
    fabric_free(&fabric);
    return 0;
}

static struct fabric_place *bring_up(int hosts)
{
    struct error error = {0};
    struct fabric_place *place = NULL;
    if (!fabric_open(&fabric, hosts, program, &place, &error))
        fail_msg("%s", error.text);
    return place;
}

static unsigned long net_of(const struct fabric_place *place, int host)
{
    struct fabric_namespaces of;
    struct stat info;
    assert_true(fabric_place_namespaces(place, host, &of));
    assert_int_equal(stat(of.net, &info), 0);
    return (unsigned long)info.st_ino;
}

static const char where[] = "echo $PPID $(readlink /proc/self/ns/net) $(uname -n) $MASTER_ADDR $GLOO_SOCKET_IFNAME $LOCAL_RANK of $LOCAL_WORLD_SIZE $FSDPMARK_PLACE";

// A start whose ranks tell where they are; returns their template.
static int tell_where(struct place *p, int ranks)
{
    struct launch l;
    char text[256], expected[512];
    int template;
    next_job(p);
    start(p, "fork", where, ranks, &l);
    await_over(&l);
    assert_false(l.lost);
    read_log(p, 0, text, sizeof text);
    template = atoi(text);
    for (int r = 0; r < ranks; r++) {
        int host = fabric_place_host(p->hosts, r, ranks), locals = 0, local = 0;
        for (int other = 0; other < ranks; other++) {
            locals += fabric_place_host(p->hosts, other, ranks) == host;
            local += other < r && fabric_place_host(p->hosts, other, ranks) == host;
        }
        snprintf(expected, sizeof expected, "%d net:[%lu] %s %s eth0 %d of %d %s\n", template, net_of(p->hosts, host), fabric_place_address(p->hosts, host),
                 fabric_place_address(p->hosts, 0), local, locals, fabric_place_enter(p->hosts, 0)[2]);
        assert_log(p, r, expected);
        assert_int_equal(l.ends[r].status, 0);
    }
    launch_free(&l);
    assert_int_equal(survivors(p->marker), 1);
    return template;
}

static void take_down(struct place *p)
{
    fabric_close((struct fabric_place *)p->hosts);
    p->hosts = NULL;
    // The template lived in the place.
    await_survivors(p->marker, 0, 0);
}

static void each_on_its_host(void **state)
{
    struct place *p = *state;
    if (cannot != NULL)
        skip();
    p->hosts = bring_up(3);
    int template = tell_where(p, 3);
    assert_int_equal(tell_where(p, 5), template);
    assert_int_equal(tell_where(p, 2), template);
    take_down(p);
}

static void two_places(void **state)
{
    struct place *p = *state;
    if (cannot != NULL)
        skip();
    struct fabric_place *a = bring_up(2), *b = bring_up(2);
    int of_a, of_b;
    p->hosts = a;
    of_a = tell_where(p, 2);
    p->hosts = b;
    of_b = tell_where(p, 2);
    assert_int_not_equal(of_a, of_b);
    fabric_close(a);
    assert_int_equal(tell_where(p, 4), of_b);
    take_down(p);
    // And one that is nowhere.
    struct launch l;
    char text[64], own[64] = "";
    next_job(p);
    start(p, "fork", "readlink /proc/self/ns/net", 1, &l);
    await_over(&l);
    read_log(p, 0, text, sizeof text);
    assert_true(readlink("/proc/self/ns/net", own, sizeof own - 1) > 0);
    assert_memory_equal(text, own, strlen(own));
    launch_free(&l);
}

// Bytes that the hosts of a place have sent, by the counters of eth0.
static double sent_by(const struct fabric_place *place, int host)
{
    static const char *const command[] = {"sed", "-n", "s/ *eth0://p", "/proc/net/dev", NULL};
    double column[9] = {0};
    FILE *output = NULL;
    int status, columns = 0;
    pid_t pid = traffic_start(place, host, command, &output);
    assert_non_null(output);
    while (columns < 9 && fscanf(output, "%lf", &column[columns]) == 1)
        columns++;
    fclose(output);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(columns, 9);
    return column[8];
}

static void over_the_line(void **state)
{
    struct place *p = *state;
    struct launch l;
    char script[8400], text[64];
    if (cannot != NULL)
        skip();
    p->hosts = bring_up(2);
    double before = sent_by(p->hosts, 1);
    snprintf(script, sizeof script, "if [ $RANK = 0 ]; then exec %s sink 20000 %.3f 1; fi; exec %s source $MASTER_ADDR 20000", self_path(), launch_now() + 1.5, self_path());
    start(p, "fork", script, 2, &l);
    await_over(&l);
    read_log(p, 0, text, sizeof text);
    double mbit = atof(text), bytes = sent_by(p->hosts, 1) - before;
    print_message("%.1f Mbit/s, %.0f bytes sent by host 1\n", mbit, bytes);
    assert_true(mbit > 1 && mbit <= 101);
    assert_true(bytes >= mbit * 1e6 / 8);
    launch_free(&l);
    take_down(p);
}

// ---- what goes wrong ----

static void expect_ended_for(struct place *p, const char *const *command, const char *why)
{
    struct launch l;
    char path[128], text[2048];
    next_job(p);
    start_command(p, "fork", command, "A=1", 2, &l);
    await_over(&l);
    assert_true(l.lost);
    assert_int_equal(l.template_end.signal, SIGKILL);
    launch_free(&l);
    snprintf(path, sizeof path, "%s/template.log", p->folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    if (strstr(text, why) == NULL)
        fail_msg("expected '%s' in: %s", why, text);
    assert_int_equal(survivors(p->marker), 0);
}

// Templates that fork where they are: the first host is that of rank 0, and not that of rank 1.
static void not_on_its_host(void **state)
{
    struct place *p = *state;
    char why[128];
    static const char forks[] = "echo ready >&3; read line <&3; sleep 600 & a=$!; sleep 600 & echo started $a $! >&3; wait; echo";
    const char *const stays[] = {"sh", "-c", forks, p->marker, NULL};
    const char *const unaware[] = {"sh", "-c", "echo ready >&3; read line <&3; sleep 600 & sleep 600 & echo started >&3; wait; echo", p->marker, NULL};
    if (cannot != NULL)
        skip();
    p->hosts = bring_up(2);
    snprintf(why, sizeof why, ", is in net:[%lu], expected [%lu]", net_of(p->hosts, 0), net_of(p->hosts, 1));
    expect_ended_for(p, stays, "the template is ended: a rank is not on its host: rank 1, process ");
    expect_ended_for(p, stays, why);
    expect_ended_for(p, unaware, "the template is ended: expected ready, 'started PID...' with the pid of each rank, ");
    tell_where(p, 2);
    take_down(p);
}

static void template_is_killed(void **state)
{
    struct place *p = *state;
    struct launch l;
    if (cannot != NULL)
        skip();
    p->hosts = bring_up(2);
    start(p, "fork", "test $RANK = 1 && kill -9 $PPID; (setsid sh -c 'sleep 600; echo $0' $0) & sleep 600; echo", 2, &l);
    await_over(&l);
    assert_true(l.lost);
    assert_int_equal(l.template_end.signal, SIGKILL);
    launch_free(&l);
    await_survivors(p->marker, 0, 0);
    tell_where(p, 4);
    take_down(p);
}

static void holder_is_killed(void **state)
{
    struct place *p = *state;
    struct launch l;
    struct error error = {0};
    const char *const command[] = {"true", NULL};
    pid_t holder;
    if (cannot != NULL)
        skip();
    p->hosts = bring_up(2);
    tell_where(p, 2);
    assert_true(place_lives(fabric_place_enter(p->hosts, 0)[2], &holder));
    kill(holder, SIGKILL);
    for (int i = 0; i < 1000 && fabric_place_up(p->hosts); i++)
        usleep(5000);
    struct launch_plan plan = {"fork", program, command, NULL, p->folder, 2, p->template, p->hosts};
    assert_false(launch_start(&plan, &l, &error));
    assert_string_equal(error.text, "the process that holds the fabric virtual-100m has ended");
    launch_free(&l);
    // Nobody was left to end who is inside: the next start does.
    fabric_sweep();
    take_down(p);
}

// The harness is killed under ranks that do not want to end.
static void harness_is_killed(void **state)
{
    struct place *p = *state;
    struct launch l;
    if (cannot != NULL)
        skip();
    fflush(NULL);
    pid_t harness = fork();
    if (harness == 0) {
        p->hosts = bring_up(2);
        start(p, "fork", stubborn, 2, &l);
        for (;;)
            pause();
    }
    // Of each rank a shell, its child and one in a session of its own, whose shell may have become its sleep; and the template.
    await_survivors(p->marker, 7, 9);
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    await_survivors(p->marker, 0, 0);
}

// ---- without root ----

enum { NOBODY = 65534, CANNOT = 77 };

static int as_nobody(void)
{
    void *state;
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 || access(program, X_OK) != 0 || access("/proc/self/exe", X_OK) != 0)
        return CANNOT;
    char *reason = fabric_unavailable(&fabric);
    if (reason != NULL) {
        fprintf(stderr, "%s\n", reason);
        return strstr(reason, "refuses") != NULL ? CANNOT : 1;
    }
    if (make_place(&state) != 0)
        return 2;
    struct place *p = state;
    p->hosts = bring_up(2);
    int template = tell_where(p, 2);
    assert_int_equal(tell_where(p, 4), template);
    take_down(p);
    return remove_place(&state);
}

// An ordinary user's place lies in a user namespace, and so does the template. Where the tests are run by one, all of them are that test.
static void ordinary_user(void **state)
{
    (void)state;
    int status;
    if (geteuid() != 0)
        skip();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(as_nobody());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        fprintf(stderr, "SKIP: this kernel gives nobody no user namespace, or the programs are hidden from others\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "template") == 0)
        return template_program(argv[2], argv[3]);
    int status = traffic_main(argc, argv);
    if (status >= 0)
        return status;
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(each_on_its_host), TEST(two_places), TEST(over_the_line), TEST(not_on_its_host), TEST(template_is_killed), TEST(holder_is_killed),
        TEST(harness_is_killed), cmocka_unit_test(ordinary_user),
    };
    // A test must not outlive its own patience.
    alarm(240);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
