// The recorder where things go wrong: forks, a rank that is killed, a full file, a full disk; and many threads at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "harness/probes/file.h"
#include "harness/probes/tests/preloaded.h"

static int files_in(const char *folder)
{
    DIR *d = opendir(folder);
    int count = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

// Through a volatile, or the compiler leaves both calls out.
static void allocate(size_t bytes)
{
    void *volatile p = malloc(bytes);
    free(p);
}
static void *volatile kept;

// ---- forks ----
static int ended_well(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

// A child without a rank of its own is unseen, also where it marks a phase; a child that is a rank has its own file.
static int act_fork(void)
{
    actor_mark("case", 0);
    pid_t child = fork();
    if (child == 0) {
        allocate(1 << 20);
        actor_mark("forward", 7);
        allocate(1 << 20);
        _exit(0);
    }
    if (ended_well(child) != 0)
        return 1;
    actor_mark("forward", 0);
    kept = malloc(5000);
    if ((child = fork()) == 0) {
        setenv("RANK", "1", 1);
        actor_mark("case", 0);
        kept = malloc(70000);
        actor_mark("end", -1);
        _exit(0);
    }
    if (ended_well(child) != 0)
        return 2;
    actor_mark("end", -1);
    return 0;
}

static void test_fork(void **state)
{
    (void)state;
    char output[256];
    const char *folder = preloaded_job();
    struct probe_case c = preloaded_watch("fork", "heap", folder, NULL, output);
    assert_int_equal(c.phase_count, 3);
    assert_true(c.phases[1].heap.peak >= 5000 && c.phases[1].heap.peak < 60000);
    assert_int_equal(files_in(folder), 2);
    probe_case_free(&c);
    c = preloaded_read(folder, 1, 0);
    assert_int_equal(c.rank, 1);
    assert_int_equal(c.phase_count, 2);
    assert_true(c.phases[0].heap.end >= 70000 && c.phases[0].heap.end < 80000);
    probe_case_free(&c);
}

// A template opens nothing before it forks.
static int act_template(void)
{
    kept = malloc(1 << 20);
    for (int r = 0; r < 2; r++)
        if (fork() == 0) {
            setenv("RANK", r == 0 ? "0" : "1", 1);
            actor_mark("case", 0);
            actor_mark("end", -1);
            _exit(0);
        }
    return wait(NULL) > 0 && wait(NULL) > 0 ? 0 : 1;
}

static void test_template(void **state)
{
    (void)state;
    char output[256];
    const char *folder = preloaded_job();
    struct probe_case c = preloaded_watch("template", "heap", folder, NULL, output);
    probe_case_free(&c);
    c = preloaded_read(folder, 1, 0);
    assert_int_equal(c.rank, 1);
    probe_case_free(&c);
    assert_int_equal(files_in(folder), 2);
}

// ---- killed in the middle ----
static void *hammer(void *rounds)
{
    for (int64_t i = 0; i < (int64_t)(intptr_t)rounds; i++)
        allocate(2000);
    return NULL;
}

static int act_killed(void)
{
    pthread_t threads[4];
    actor_mark("case", 0);
    kept = malloc(123456);
    actor_mark("forward", 3);
    for (int t = 0; t < 4; t++)
        pthread_create(&threads[t], NULL, hammer, (void *)(intptr_t)(1 << 30));
    usleep(50000);
    kill(getpid(), SIGKILL);
    return 0;
}

static void test_killed(void **state)
{
    (void)state;
    char output[256];
    const char *folder = preloaded_job();
    int status = preloaded_run("killed", "heap", folder, NULL, output, sizeof output);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct probe_case c = preloaded_read(folder, 0, 0);
    assert_int_equal(c.phase_count, 2);
    assert_int_equal(c.phases[1].step, 3);
    assert_true(c.phases[1].heap.begin >= 123456);
    assert_true(c.phases[1].heap.peak >= 123456 + 2000);
    probe_case_free(&c);
}

// ---- many threads ----
enum { HAMMERS = 8, ROUNDS = 20000 };
static int act_hammer(void)
{
    pthread_t threads[HAMMERS];
    actor_mark("case", 0);
    for (int t = 0; t < HAMMERS; t++)
        pthread_create(&threads[t], NULL, hammer, (void *)(intptr_t)ROUNDS);
    for (int t = 0; t < HAMMERS; t++)
        pthread_join(threads[t], NULL);
    actor_mark("end", -1);
    return 0;
}

// Every record is whole, each thread has its own number, and they are as many as the calls.
static void test_hammer(void **state)
{
    (void)state;
    char output[256], path[4096];
    const char *folder = preloaded_job();
    struct probe_case c = preloaded_watch("hammer", "heap", folder, NULL, output);
    assert_int_equal(c.lost, 0);
    assert_true(c.phases[0].heap.end < 20000); // what threads keep of their own
    probe_case_free(&c);
    struct probe_file f;
    struct error error = {""};
    snprintf(path, sizeof path, "%s/probes.rank0", folder);
    assert_true(probe_file_open(path, &f, &error));
    struct { uint32_t thread; int64_t records, bytes; } seen[64] = {{0}};
    const struct probe_record *r;
    int64_t blocks = 0;
    for (uint64_t i = 0; i < f.count; i++) {
        assert_true(probe_file_record(&f, i, &r, &error));
        assert_non_null(r);
        if (r->kind != PROBE_HEAP_LIVE)
            continue;
        int64_t size = r->bytes < 0 ? -r->bytes : r->bytes;
        int k = 0;
        while (k < 63 && seen[k].thread != 0 && seen[k].thread != r->thread)
            k++;
        seen[k].thread = r->thread;
        seen[k].records += size >= 2000 && size < 2048;
        blocks += size >= 2000 && size < 2048;
    }
    assert_int_equal(blocks, 2 * HAMMERS * ROUNDS);
    int hammers = 0;
    for (int k = 0; k < 64; k++)
        hammers += seen[k].records == 2 * ROUNDS;
    assert_int_equal(hammers, HAMMERS);
    probe_file_close(&f);
}

// The marking thread waits now and then, and asks for room for its records when the others do: what it does meanwhile is no wait of the worker's.
enum { CROWD = 3, CROWD_ROUNDS = 100000 };
static _Atomic int crowd_left = CROWD;
static void *crowd(void *unused)
{
    hammer((void *)(intptr_t)CROWD_ROUNDS);
    crowd_left--;
    return unused;
}

static int act_crowded(void)
{
    pthread_t threads[CROWD];
    actor_mark("case", 0);
    for (int t = 0; t < CROWD; t++)
        pthread_create(&threads[t], NULL, crowd, NULL);
    while (crowd_left > 0) {
        usleep(1);
        for (int i = 0; i < 20; i++)
            allocate(2000);
    }
    for (int t = 0; t < CROWD; t++)
        pthread_join(threads[t], NULL);
    actor_mark("end", -1);
    return 0;
}

static void test_crowded(void **state)
{
    (void)state;
    char output[256];
    struct probe_case c = preloaded_watch("crowded", "heap,wait", preloaded_job(), NULL, output);
    assert_int_equal(c.lost, 0);
    assert_true(c.phases[0].waits > 0);
    probe_case_free(&c);
}

// ---- no room ----
static int act_overflow(void)
{
    actor_mark("case", 0);
    hammer((void *)(intptr_t)500);
    actor_mark("end", -1);
    return 0;
}

static void overflows(const char *const *more, int64_t least, int64_t most)
{
    char output[256];
    struct probe_case c = preloaded_watch("overflow", "heap", preloaded_job(), more, output);
    if (c.lost < least || c.lost > most)
        fail_msg("found %lld lost records, expected %lld to %lld", (long long)c.lost, (long long)least, (long long)most);
    assert_int_equal(c.phase_count, 1);
    probe_case_free(&c);
}

static void test_full_file(void **state)
{
    (void)state;
    overflows((const char *const[]){"FSDPMARK_PROBE_RECORDS=100", NULL}, 1002 - 100, 1002 - 100 + 20); // and what the C library does at the end
}

// Files may not grow beyond 32 KiB: no SIGXFSZ, but room for (32768 - 4096) / 64 = 448 records.
static int act_limited(void)
{
    struct rlimit limit = {32768, 32768};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 ? act_overflow() : 1;
}

static void test_limited_file(void **state)
{
    (void)state;
    char output[256];
    struct probe_case c = preloaded_watch("limited", "heap", preloaded_job(), NULL, output);
    assert_in_range(c.lost, 1002 - 448, 1002 - 448 + 20);
    probe_case_free(&c);
}

// A file system of 2 MiB: the first chunk of 1 MiB fits, the second does not.
static int act_disk(void)
{
    const char *folder = getenv("FSDPMARK_JOB");
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", 0, "size=1600k") != 0)
        return 77;
    actor_mark("case", 0);
    hammer((void *)(intptr_t)20000); // 40000 records: 2.5 MiB
    actor_mark("end", -1);
    char path[4096], error[1200];
    struct probe_case c;
    struct error e = {""};
    snprintf(path, sizeof path, "%s/probes.rank0", folder);
    if (!probe_read(path, 0, &c, &e))
        return snprintf(error, sizeof error, "%s", e.text), puts(error), 2;
    printf("%lld %d %lld\n", (long long)c.lost, c.phase_count, (long long)c.phases[0].heap.peak);
    return 0;
}

static void test_full_disk(void **state)
{
    (void)state;
    char output[256];
    long long lost, peak;
    int phases, status = preloaded_run("disk", "heap", preloaded_job(), NULL, output, sizeof output);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); // may not mount
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("wait status %x: %s", (unsigned)status, output);
    assert_int_equal(sscanf(output, "%lld %d %lld", &lost, &phases, &peak), 3);
    assert_in_range(lost, 40001 - 16384, 40001 - 16384 + 100);
    assert_int_equal(phases, 1);
    assert_true(peak >= 2000);
}

// ---- a pause ----
static int act_pause(void)
{
    void (*pause)(int) = NULL;
    *(void **)&pause = dlsym(RTLD_DEFAULT, "fsdpmark_pause");
    pause(1); // before the first mark: nothing
    pause(0);
    actor_mark("case", 0);
    actor_mark("forward", 0);
    allocate(5000);
    pause(1);
    pause(1);
    actor_mark("backward", 0);
    allocate(1 << 20);
    pause(0);
    pause(0);
    actor_mark("step", 0);
    allocate(7000);
    return 0;
}

static void test_pause(void **state)
{
    (void)state;
    char output[256];
    struct probe_case c = preloaded_watch("pause", "heap", preloaded_job(), NULL, output);
    assert_int_equal(c.phase_count, 3);
    assert_string_equal(c.phases[1].name, "forward");
    assert_string_equal(c.phases[2].name, "step");
    assert_in_range(c.phases[1].heap.peak, 5000, 60000);
    assert_in_range(c.phases[2].heap.peak, 7000, 60000);
    probe_case_free(&c);
}

// ---- where nothing is asked for ----
static void test_not_asked(void **state)
{
    (void)state;
    char output[256];
    const char *folder = preloaded_job();
    int status = preloaded_run("overflow", "heap", folder, (const char *const[]){"FSDPMARK_PROBES", NULL}, output, sizeof output);
    assert_int_equal(status, 0);
    assert_int_equal(files_in(folder), 0);
    status = preloaded_run("overflow", "heap", "/nowhere", NULL, output, sizeof output);
    assert_int_equal(status, 0); // says so on standard error, and the rank goes on
}

// ---- the clock ----
// The time that the probes note, by its symbol, between two readings of the clock. Taken again where something came between: the narrowest of ten.
static int64_t off_clock(void)
{
    uint64_t (*now)(void);
    int64_t off = 0, narrowest = INT64_MAX;
    *(void **)&now = dlsym(RTLD_DEFAULT, "probe_now");
    for (int i = 0; i < 10; i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        int64_t noted = (int64_t)now();
        clock_gettime(CLOCK_MONOTONIC, &b);
        int64_t from = a.tv_sec * 1000000000ll + a.tv_nsec, to = b.tv_sec * 1000000000ll + b.tv_nsec;
        if (to - from < narrowest)
            narrowest = to - from, off = noted < from ? noted - from : noted > to ? noted - to : 0;
    }
    return off;
}

// A child that is a rank has the same time, and a rank's times never go back.
static int act_clock(void)
{
    enum { ALLOWED_NS = 2000, ROUNDS = 300 };
    int64_t worst = llabs(off_clock()); // before the first mark
    actor_mark("case", 0);
    for (int i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 2 && fork() == 0)
            setenv("RANK", "1", 1), actor_mark("case", 0);
        actor_mark("forward", i);
        int64_t off = llabs(off_clock());
        worst = off > worst ? off : worst;
        usleep(i % 50 == 0 ? 20000 : 500);
    }
    if (worst > ALLOWED_NS)
        fprintf(stderr, "rank %s: found a time that is %" PRId64 " ns off the clock, expected at most %d\n", getenv("RANK"), worst, ALLOWED_NS);
    if (strcmp(getenv("RANK"), "1") == 0)
        _exit(worst > ALLOWED_NS);
    int child = 0;
    return wait(&child) < 0 || child != 0 || worst > ALLOWED_NS;
}

static void test_clock(void **state)
{
    (void)state;
    char output[256], path[4096];
    struct probe_file file;
    struct error error;
    const char *folder = preloaded_job();
    struct probe_case c = preloaded_watch("clock", "heap", folder, NULL, output);
    probe_case_free(&c);
    snprintf(path, sizeof path, "%s/probes.rank0", folder);
    assert_true(probe_file_open(path, &file, &error));
    uint64_t last = 0, marks = 0;
    for (uint64_t i = 0; i < file.count; i++) {
        if (file.records[i].kind != PROBE_MARK)
            continue;
        assert_true(file.records[i].time_ns >= last);
        last = file.records[i].time_ns, marks++;
    }
    assert_int_equal(marks, 301);
    probe_file_close(&file);
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"fork", act_fork}, {"clock", act_clock}, {"template", act_template}, {"killed", act_killed}, {"hammer", act_hammer}, {"crowded", act_crowded},
                                          {"overflow", act_overflow}, {"limited", act_limited}, {"disk", act_disk}, {"pause", act_pause}, {NULL, NULL}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork), cmocka_unit_test(test_clock), cmocka_unit_test(test_template), cmocka_unit_test(test_killed), cmocka_unit_test(test_hammer), cmocka_unit_test(test_crowded),
        cmocka_unit_test(test_full_file), cmocka_unit_test(test_limited_file), cmocka_unit_test(test_full_disk), cmocka_unit_test(test_pause),
        cmocka_unit_test(test_not_asked),
    };
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
