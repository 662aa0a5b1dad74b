// Places of virtual fabrics: they come up, carry what their file says, see no other, and are gone without a trace.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/fabric/place.h"
#include "harness/fabric/tests/traffic.h"

static char program[4096], folder[] = "/tmp/fsdpmark.test.XXXXXX", *cannot;

static int set_up(void **state)
{
    (void)state;
    char path[4096];
    struct fabric f;
    struct error error = {0};
    snprintf(path, sizeof path, "%s/fsdpmark", getenv("FSDPMARK_BUILD") != NULL ? getenv("FSDPMARK_BUILD") : "build");
    if (realpath(path, program) == NULL || mkdtemp(folder) == NULL || chmod(folder, 0777) != 0 || !fabric_read("virtual-100m", "suite", &f, &error))
        return -1;
    cannot = fabric_unavailable(&f);
    if (cannot != NULL)
        fprintf(stderr, "SKIP: %s\n", cannot);
    fabric_free(&f);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(cannot);
    return rmdir(folder);
}

struct up { struct fabric f; struct fabric_place *place; char id[PLACE_ID]; pid_t holder; ino_t net; };

static void bring_up(struct up *u, const char *name, int hosts)
{
    struct error error = {0};
    struct stat info;
    char path[64];
    if (!fabric_read(name, "suite", &u->f, &error) || !fabric_open(&u->f, hosts, program, &u->place, &error))
        fail_msg("%s", error.text);
    snprintf(u->id, sizeof u->id, "%s", fabric_place_enter(u->place, 0)[2]);
    assert_true(place_lives(u->id, &u->holder));
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)u->holder, HOLD_HOSTS + HOLD_NET);
    assert_int_equal(stat(path, &info), 0);
    u->net = info.st_ino;
}

// Whether some process is in a network namespace, or holds it open.
static bool is_held(ino_t net)
{
    bool held = false;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc)) != NULL && !held;) {
        char path[600];
        struct stat info;
        snprintf(path, sizeof path, "/proc/%s/ns/net", e->d_name);
        held = atoi(e->d_name) > 0 && stat(path, &info) == 0 && info.st_ino == net;
        snprintf(path, sizeof path, "/proc/%s/fd", e->d_name);
        DIR *fds = atoi(e->d_name) > 0 && !held ? opendir(path) : NULL;
        for (struct dirent *d; fds != NULL && !held && (d = readdir(fds)) != NULL;) {
            char text[64] = "", wanted[64];
            snprintf(path, sizeof path, "/proc/%s/fd/%s", e->d_name, d->d_name);
            snprintf(wanted, sizeof wanted, "net:[%lu]", (unsigned long)net);
            ssize_t n = readlink(path, text, sizeof text - 1);
            held = n > 0 && strcmp(text, wanted) == 0;
        }
        if (fds != NULL)
            closedir(fds);
    }
    closedir(proc);
    return held;
}

static void take_down(struct up *u)
{
    pid_t holder;
    fabric_close(u->place);
    assert_false(place_lives(u->id, &holder));
    assert_false(is_held(u->net));
    fabric_free(&u->f);
}

// What a shell command prints in a host, one line.
static void ask(const struct fabric_place *p, int host, const char *command, char *line, size_t size)
{
    const char *const words[] = {"sh", "-c", command, NULL};
    FILE *output;
    int status;
    pid_t pid = traffic_start(p, host, words, &output);
    assert_non_null(output);
    line[0] = 0;
    if (fgets(line, (int)size, output) != NULL)
        line[strcspn(line, "\n")] = 0;
    fclose(output);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void up_and_down(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up u;
    char line[200];
    bring_up(&u, "virtual-100m", 3);
    assert_int_equal(fabric_place_hosts(u.place), 3);
    assert_true(is_held(u.net));
    for (int h = 0; h < 3; h++) {
        // The host's name is its address.
        ask(u.place, h, "uname -n", line, sizeof line);
        assert_string_equal(line, fabric_place_address(u.place, h));
        ask(u.place, h, "grep -c : /proc/net/dev", line, sizeof line);
        assert_string_equal(line, "2"); // lo and eth0
    }
    const int of_four[] = {0, 0, 1, 2}, of_two[] = {0, 1};
    for (int r = 0; r < 4; r++)
        assert_int_equal(fabric_place_host(u.place, r, 4), of_four[r]);
    for (int r = 0; r < 2; r++)
        assert_int_equal(fabric_place_host(u.place, r, 2), of_two[r]);
    take_down(&u);
}

// What two processes reach without any line between them tells whether the machine has time for them at all.
static bool is_busy(const struct fabric_place *p)
{
    static const double free_mbit = 4000;
    struct flow loopback = {0, 0, 0};
    bool measured = traffic_measure(p, &loopback, 1, 0.5);
    fprintf(stderr, "the loopback interface: %.0f Mbit/s\n", loopback.mbit);
    return !measured || loopback.mbit < free_mbit;
}

// Nobody gets more than the line rate, ever; nearly all of it at least once in a few tries, those not counted in which the machine had no time.
static void rates_are(const struct fabric_place *p, struct flow *flows, int count, const double *rates)
{
    bool reached[8] = {false};
    int fair = 0;
    for (int attempt = 0; attempt < 8 && fair < 4; attempt++) {
        bool all = true;
        assert_true(traffic_measure(p, flows, count, 1.5));
        for (int i = 0; i < count; i++) {
            assert_true(flows[i].mbit <= rates[i] * 1.01);
            reached[i] |= flows[i].mbit >= rates[i] * 0.93;
            all &= reached[i];
        }
        if (all)
            return;
        for (int i = 0; i < count; i++)
            fprintf(stderr, "host %d to %d: %.1f of %.0f Mbit/s\n", flows[i].from, flows[i].to, flows[i].mbit, rates[i]);
        fair += !is_busy(p);
    }
    if (fair == 0) {
        fprintf(stderr, "SKIP: the machine is too busy to measure a rate\n");
        skip();
    }
    fail_msg("the line rate was not reached");
}

static void both_ways(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up u;
    struct flow flows[] = {{0, 1, 0}, {1, 0, 0}};
    const double rates[] = {100, 100};
    bring_up(&u, "virtual-100m", 2);
    rates_are(u.place, flows, 1, rates);
    rates_are(u.place, flows, 2, rates);
    take_down(&u);
}

// Two that send to one share what its port can take.
static void into_one(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up u;
    struct flow flows[] = {{1, 0, 0}, {2, 0, 0}};
    bring_up(&u, "virtual-100m", 3);
    double sum = 0;
    bool busy = true;
    for (int attempt = 0; attempt < 8 && sum < 93; attempt++) {
        assert_true(traffic_measure(u.place, flows, 2, 1.5));
        sum = flows[0].mbit + flows[1].mbit;
        assert_true(sum <= 101);
        busy &= sum < 93 && is_busy(u.place);
    }
    take_down(&u);
    if (sum < 93 && busy)
        skip();
    assert_true(sum >= 93);
}

static void slow_host(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up u;
    struct flow out[] = {{0, 1, 0}}, in[] = {{1, 0, 0}}, others[] = {{1, 2, 0}};
    const double slow[] = {25}, fast[] = {100};
    bring_up(&u, "virtual-slow-host", 3);
    assert_true(fabric_place_rate(u.place, 0) == 25e6 && fabric_place_rate(u.place, 1) == 100e6);
    rates_are(u.place, out, 1, slow);
    rates_are(u.place, in, 1, slow);
    rates_are(u.place, others, 1, fast);
    take_down(&u);
    struct error error = {0};
    struct fabric f;
    assert_true(fabric_read("virtual-slow-host", "suite", &f, &error));
    f.slow_host = 2;
    assert_false(fabric_open(&f, 2, program, &u.place, &error));
    assert_string_equal(error.text, "fabric virtual-slow-host: found 2 hosts, expected more than 2, since host 2 is the slow one");
    fabric_free(&f);
}

static void two_tiers(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up u;
    struct flow inside[] = {{0, 1, 0}}, between[] = {{2, 0, 0}}, shared[] = {{0, 2, 0}, {1, 3, 0}};
    const double fast[] = {200}, slow[] = {50};
    bring_up(&u, "virtual-two-tier", 4);
    rates_are(u.place, inside, 1, fast);
    rates_are(u.place, between, 1, slow);
    // All of a group share its way out.
    assert_true(traffic_measure(u.place, shared, 2, 1.5));
    assert_true(shared[0].mbit + shared[1].mbit <= 50.5);
    assert_true(shared[0].mbit > 5 && shared[1].mbit > 5);
    take_down(&u);
}

static void two_at_once(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up a, b;
    char command[300], line[200];
    bring_up(&a, "virtual-100m", 2);
    bring_up(&b, "virtual-50m", 2);
    assert_string_not_equal(fabric_place_address(a.place, 0), fabric_place_address(b.place, 0));
    // Neither sees the other.
    snprintf(command, sizeof command, "ip route get %s 2>&1 || /usr/sbin/ip route get %s 2>&1", fabric_place_address(b.place, 0), fabric_place_address(b.place, 0));
    ask(a.place, 0, command, line, sizeof line);
    assert_non_null(strstr(line, "unreachable"));
    struct flow flows[] = {{0, 1, 0}};
    const double fast[] = {100}, slow[] = {50};
    rates_are(a.place, flows, 1, fast);
    rates_are(b.place, flows, 1, slow);
    take_down(&a);
    ask(b.place, 1, "uname -n", line, sizeof line);
    assert_string_equal(line, fabric_place_address(b.place, 1));
    take_down(&b);
}

static void bad_agents(void **state)
{
    (void)state;
    const char *const commands[] = {"__enter", "__enter 1.1 0 true", "__agent 1.1 10.0.0.1 true", "__enter 1.1 x true", "__agent 1.1 host true"};
    const char *const said[] = {"expected PLACE HOST COMMAND", "the place 1.1 is gone", "the place 1.1 is gone", "expected PLACE HOST COMMAND", "expected PLACE ADDRESS COMMAND"};
    for (int i = 0; i < 5; i++) {
        char line[4400];
        snprintf(line, sizeof line, "'%s' %s 2>&1", program, commands[i]);
        FILE *output = popen(line, "r");
        assert_non_null(fgets(line, sizeof line, output));
        assert_non_null(strstr(line, said[i]));
        assert_int_equal(WEXITSTATUS(pclose(output)), 2);
    }
}

// ---- what is left ----

static void holder_is_killed(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    struct up u;
    struct error error = {0};
    struct launch launch;
    static const char *const command[] = {"true", NULL};
    bring_up(&u, "virtual-100m", 2);
    assert_true(fabric_place_up(u.place));
    assert_int_equal(kill(u.holder, SIGKILL), 0);
    for (int i = 0; i < 1000 && fabric_place_up(u.place); i++)
        usleep(5000);
    assert_false(fabric_place_up(u.place));
    struct launch_plan plan = {.launcher = "local", .program = program, .command = command, .folder = folder, .ranks = 1, .place = u.place};
    assert_false(launch_start(&plan, &launch, &error));
    assert_string_equal(error.text, "the process that holds the fabric virtual-100m has ended");
    launch_free(&launch);
    take_down(&u);
}

static bool sleeps(pid_t pid)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    FILE *file = fopen(path, "re");
    bool is = file != NULL && fgets(text, sizeof text, file) != NULL && strcmp(text, "sleep\n") == 0;
    if (file != NULL)
        fclose(file);
    return is;
}

// A process that opens a place, starts a sleep in it and is killed together with the holder; tells the place.
static void abandon(char id[PLACE_ID], pid_t *sleeper)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct { char id[PLACE_ID]; pid_t sleeper; } said;
        struct up u;
        bring_up(&u, "virtual-100m", 2);
        const char *const *enter = fabric_place_enter(u.place, 1);
        memcpy(said.id, u.id, PLACE_ID);
        if ((said.sleeper = fork()) == 0) {
            setsid();
            execl(enter[0], enter[0], enter[1], enter[2], enter[3], "sleep", "1000", (char *)NULL);
            _exit(127);
        }
        for (int i = 0; i < 1000 && !sleeps(said.sleeper); i++)
            usleep(10000);
        ssize_t n = write(ends[1], &said, sizeof said);
        kill(u.holder, SIGKILL);
        kill(getpid(), n > 0 ? SIGKILL : SIGTERM);
    }
    struct { char id[PLACE_ID]; pid_t sleeper; } said;
    assert_int_equal(read(ends[0], &said, sizeof said), sizeof said);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
    memcpy(id, said.id, PLACE_ID);
    *sleeper = said.sleeper;
}

static void abandoned_is_swept(void **state)
{
    (void)state;
    if (cannot != NULL)
        skip();
    char id[PLACE_ID], path[64];
    struct stat info;
    pid_t sleeper, holder;
    struct up living;
    bring_up(&living, "virtual-50m", 2);
    abandon(id, &sleeper);
    for (int i = 0; i < 500 && place_lives(id, &holder); i++) // the kernel takes its time with who was killed
        usleep(10000);
    assert_false(place_lives(id, &holder));
    assert_true(sleeps(sleeper));
    snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)sleeper);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(fabric_sweep(), 1);
    for (int i = 0; i < 200 && sleeps(sleeper); i++)
        usleep(10000);
    assert_false(sleeps(sleeper));
    assert_false(is_held(info.st_ino));
    // One that lives is left alone.
    assert_true(fabric_place_up(living.place));
    take_down(&living);
}

// ---- without root ----

enum { NOBODY = 65534, CANNOT = 77 };

static int as_nobody(void)
{
    struct up u;
    struct error error = {0};
    struct flow flows[] = {{0, 1, 0}};
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 || access(program, X_OK) != 0 || access("/proc/self/exe", X_OK) != 0)
        return CANNOT;
    if (!fabric_read("virtual-100m", "suite", &u.f, &error) || !fabric_open(&u.f, 2, program, &u.place, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return strstr(error.text, "refuses") != NULL ? CANNOT : 1;
    }
    bool ok = traffic_measure(u.place, flows, 1, 1) && flows[0].mbit > 50 && flows[0].mbit <= 101;
    fprintf(stderr, "as nobody: %.1f Mbit/s\n", flows[0].mbit);
    fabric_close(u.place);
    fabric_free(&u.f);
    return ok ? 0 : 2;
}

// An ordinary user's place lies in a user namespace. Where the tests are run by one, all of them are that test.
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
    int status = traffic_main(argc, argv);
    if (status >= 0)
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_and_down), cmocka_unit_test(both_ways), cmocka_unit_test(into_one), cmocka_unit_test(slow_host), cmocka_unit_test(two_tiers),
        cmocka_unit_test(two_at_once), cmocka_unit_test(bad_agents), cmocka_unit_test(holder_is_killed), cmocka_unit_test(abandoned_is_swept),
        cmocka_unit_test(ordinary_user),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
