// Waits of the thread that sets the marks: every call of the wait probe's table, waits of other threads, joined, nested and short ones, and MPI's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <linux/futex.h>
#include <math.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

#include "harness/probes/file.h"
#include "harness/probes/preload/calls.h"
#include "harness/probes/tests/preloaded.h"
#include "harness/probes/waiting.h"

enum { LONG_MS = 20, CALL_COUNT = 21 };
static const struct timespec a_while = {.tv_nsec = LONG_MS * 1000000L};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct timespec later(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += a_while.tv_nsec;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

// So much processor time of this thread, however busy the machine is.
static void compute(double seconds)
{
    struct timespec t;
    double end = -1;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        end = end < 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds : end;
    } while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end);
}

// ---- actors ------------------------------------------------------------------------------------
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static _Atomic int word, go;

// Ends every wait that has no time of its own, a while after it began.
static void *wakes(void *which)
{
    nanosleep(&a_while, NULL);
    switch (*(int *)which) {
    case 0:
        pthread_mutex_lock(&mutex);
        go = 1;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        break;
    case 1: sem_post(&semaphore); break;
    case 2: pthread_barrier_wait(&barrier); break;
    case 3:
        word = 1;
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        break;
    default: break;
    }
    return NULL;
}

static void condition_wait(int timed)
{
    struct timespec until = later(timed == 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME);
    int code = 0;
    go = 0;
    pthread_mutex_lock(&mutex);
    while (!go && code == 0)
        code = timed == 0 ? pthread_cond_wait(&condition, &mutex) : timed == 1 ? pthread_cond_timedwait(&condition, &mutex, &until)
                                                                               : pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&mutex);
}

static pthread_t start(int what)
{
    static int kinds[] = {0, 1, 2, 3, 4};
    pthread_t t;
    if (pthread_create(&t, NULL, wakes, &kinds[what]) != 0)
        _exit(4);
    return t;
}

// The calls in the order of the table, a phase each: "forward", step = place in the table.
static int every_call(void)
{
    pthread_t t;
    struct timespec until;
    struct timeval tv;
    struct epoll_event event;
    sigset_t none;
    int epoll = epoll_create1(0);
    int (*chk)(struct pollfd *, nfds_t, int, size_t) = NULL;
    int (*pchk)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t) = NULL;
    struct pollfd nothing = {.fd = -1};
    *(void **)&chk = dlsym(RTLD_DEFAULT, "__poll_chk");
    *(void **)&pchk = dlsym(RTLD_DEFAULT, "__ppoll_chk");
    sigemptyset(&none);
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    actor_mark("case", 0);
#define CALL(place, before, call, after) before; actor_mark("forward", place); call; actor_mark("observe", place); after
#define ALONE(place, call) CALL(place, (void)0, call, (void)0)
    CALL(0, t = start(0), condition_wait(0), pthread_join(t, NULL));
    ALONE(1, condition_wait(1));
    ALONE(2, condition_wait(2));
    CALL(3, t = start(1), sem_wait(&semaphore), pthread_join(t, NULL));
    CALL(4, until = later(CLOCK_REALTIME), sem_timedwait(&semaphore, &until), (void)0);
    CALL(5, until = later(CLOCK_MONOTONIC), sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until), (void)0);
    CALL(6, t = start(4), pthread_join(t, NULL), (void)0);
    CALL(7, t = start(2), pthread_barrier_wait(&barrier), pthread_join(t, NULL));
    ALONE(8, poll(&nothing, 1, LONG_MS));
    ALONE(9, ppoll(&nothing, 1, &a_while, &none));
    ALONE(10, chk(&nothing, 1, LONG_MS, sizeof nothing));
    ALONE(11, pchk(&nothing, 1, &a_while, &none, sizeof nothing));
    tv = (struct timeval){.tv_usec = LONG_MS * 1000};
    ALONE(12, select(0, NULL, NULL, NULL, &tv));
    ALONE(13, pselect(0, NULL, NULL, NULL, &a_while, &none));
    ALONE(14, epoll_wait(epoll, &event, 1, LONG_MS));
    ALONE(15, epoll_pwait(epoll, &event, 1, LONG_MS, &none));
    ALONE(16, for (double end = now() + 1e-3 * LONG_MS; now() < end;) sched_yield());
    ALONE(17, nanosleep(&a_while, NULL));
    ALONE(18, clock_nanosleep(CLOCK_MONOTONIC, 0, &a_while, NULL));
    ALONE(19, usleep(1000 * LONG_MS));
    CALL(20, t = start(3), syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), pthread_join(t, NULL));
    return 0;
}

static void *waits_elsewhere(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++)
        nanosleep(&a_while, NULL);
    return NULL;
}

// Another thread waits while this one computes; nothing of it counts. And its processor time is told apart.
static void *computes_elsewhere(void *unused)
{
    (void)unused;
    compute(0.1);
    return NULL;
}

static int elsewhere(void)
{
    pthread_t a, b;
    actor_mark("case", 0);
    pthread_create(&a, NULL, waits_elsewhere, NULL);
    pthread_create(&b, NULL, computes_elsewhere, NULL);
    actor_mark("forward", 0);
    compute(0.1);
    actor_mark("observe", 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    actor_mark("end", -1);
    return 0;
}

// Many short waits after each other are one; those with a pause of computing are two; the phase that ends cuts.
static int joined(void)
{
    actor_mark("case", 0);
    actor_mark("forward", 0);
    for (int i = 0; i < 500; i++)
        sched_yield();
    actor_mark("backward", 0);
    nanosleep(&a_while, NULL);
    compute(0.001);
    nanosleep(&a_while, NULL);
    actor_mark("step", 0);
    actor_mark("end", -1);
    return 0;
}

// ---- tests -------------------------------------------------------------------------------------
static void every_call_is_a_wait(void **state)
{
    (void)state;
    char output[256], path[4096];
    const char *job = preloaded_job();
    struct probe_file file;
    struct error error;
    struct probe_case c = preloaded_watch("every_call", "wait", job, NULL, output);
    assert_true(c.probes >> PROBE_WAITS & 1);
    int calls = 0;
    for (int p = 0; p < c.phase_count; p++) {
        const struct probe_phase *ph = &c.phases[p];
        if (strcmp(ph->name, "forward") != 0)
            continue;
        double took = ph->end_s - ph->begin_s;
        if (ph->wait_s < 0.6e-3 * LONG_MS || ph->wait_s > took || ph->waits == 0)
            fail_msg("%s: found %g s of waiting in %g s, %lld calls", probe_call_name(CALLS_WAIT + (unsigned)ph->step), ph->wait_s, took, (long long)ph->waits);
        assert_int_equal(ph->step, calls++);
    }
    assert_int_equal(calls, CALL_COUNT);
    assert_string_equal(probe_call_name(CALLS_WAIT + CALL_COUNT), "unknown call");
    // Each record in such a phase is of the call.
    snprintf(path, sizeof path, "%s/probes.rank0", job);
    assert_true(probe_file_open(path, &file, &error));
    int step = -1;
    bool forward = false;
    for (uint64_t i = 0; i < file.count; i++) {
        const struct probe_record *r = &file.records[i];
        if (r->kind == PROBE_MARK)
            forward = strcmp(r->mark.phase, "forward") == 0, step = r->mark.step;
        if (r->kind == PROBE_WAIT && forward)
            assert_string_equal(probe_call_name(r->call), probe_call_name(CALLS_WAIT + (unsigned)step));
    }
    probe_file_close(&file);
    probe_case_free(&c);
}

static void other_threads_do_not_count(void **state)
{
    (void)state;
    char output[256];
    struct probe_case c = preloaded_watch("elsewhere", "wait", preloaded_job(), NULL, output);
    const struct probe_phase *forward = &c.phases[1], *observe = &c.phases[2];
    assert_string_equal(forward->name, "forward");
    assert_true(forward->waits == 0 && forward->wait_s == 0);
    // Of 0.1 s each; a mark within 10 ms of the last note has none.
    assert_true(forward->thread_s > 0.085);
    assert_true(forward->process_s + observe->process_s > forward->thread_s + observe->thread_s + 0.085);
    probe_case_free(&c);
}

static void neighbours_are_joined(void **state)
{
    (void)state;
    char output[256], path[4096];
    const char *job = preloaded_job();
    struct probe_file file;
    struct error error;
    struct probe_case c = preloaded_watch("joined", "wait", job, NULL, output);
    const struct probe_phase *forward = &c.phases[1], *backward = &c.phases[2];
    assert_true(forward->waits > 300 && forward->waits <= 500); // one that is short and alone is dropped
    assert_int_equal(backward->waits, 2);
    assert_true(backward->wait_s > 1.9e-3 * LONG_MS && backward->end_s - backward->begin_s - backward->wait_s > 0.9e-3);
    assert_true(c.phases[3].waits == 0 && c.phases[3].wait_s == 0);
    snprintf(path, sizeof path, "%s/probes.rank0", job);
    assert_true(probe_file_open(path, &file, &error));
    int records = 0, in_backward = 0;
    bool is_backward = false;
    uint64_t last = 0;
    for (uint64_t i = 0; i < file.count; i++) {
        const struct probe_record *r = &file.records[i];
        if (r->kind == PROBE_MARK)
            is_backward = strcmp(r->mark.phase, "backward") == 0;
        if (r->kind != PROBE_WAIT)
            continue;
        in_backward += is_backward;
        assert_true(r->time_ns >= last && r->duration_ns >= WAITING_LEAST_NS); // never two at once
        last = r->time_ns + r->duration_ns;
        records++;
    }
    assert_int_equal(in_backward, 2);
    assert_true(records < 250);
    probe_file_close(&file);
    probe_case_free(&c);
}

// ---- MPI ---------------------------------------------------------------------------------------
// Rank 1 is late by 60 ms in each phase; rank 0 waits for it, blocking and in all ways of waiting and testing.
enum { LATE_MS = 60, WAYS = 13, STARTED = 8 };
static int act_as_rank(void)
{
    static float a[4], b[8];
    int me, flag = 0, i, some[2];
    MPI_Request q[2];
    MPI_Message message;
    bool yields = strstr(getenv("FSDPMARK_PROBES"), "wait") != NULL; // what the mpi probe alone does not see
    setenv("RANK", getenv("OMPI_COMM_WORLD_RANK"), 1);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Barrier(MPI_COMM_WORLD);
    actor_mark("case", 0);
    for (int way = 0; way < WAYS; way++) {
        MPI_Barrier(MPI_COMM_WORLD);
        actor_mark("forward", way);
        if (me == 1)
            compute(1e-3 * LATE_MS);
        q[1] = MPI_REQUEST_NULL;
        if (way < STARTED)
            MPI_Iallgather(a, 4, MPI_FLOAT, b, 4, MPI_FLOAT, MPI_COMM_WORLD, &q[0]);
        switch (way) {
        case 0: MPI_Wait(&q[0], MPI_STATUS_IGNORE); break;
        case 1: MPI_Waitall(2, q, MPI_STATUSES_IGNORE); break;
        case 2: MPI_Waitany(2, q, &i, MPI_STATUS_IGNORE); break;
        case 3: MPI_Waitsome(2, q, &i, some, MPI_STATUSES_IGNORE); break;
        case 4:
            for (flag = 0; !flag;)
                MPI_Test(&q[0], &flag, MPI_STATUS_IGNORE);
            break;
        case 5:
            for (flag = 0; !flag;)
                MPI_Testall(2, q, &flag, MPI_STATUSES_IGNORE);
            break;
        case 6:
            for (flag = 0; !flag; yields ? sched_yield() : 0)
                MPI_Testany(2, q, &i, &flag, MPI_STATUS_IGNORE);
            break;
        case 7:
            for (i = 0; i == 0;)
                MPI_Testsome(2, q, &i, some, MPI_STATUSES_IGNORE);
            break;
        case 8: MPI_Allgather(a, 4, MPI_FLOAT, b, 4, MPI_FLOAT, MPI_COMM_WORLD); break;
        case 9: case 10: case 11:
            if (me == 1)
                MPI_Send(a, 4, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
            if (me == 0 && way == 10)
                MPI_Probe(1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (me == 0 && way == 11)
                MPI_Mprobe(1, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE), MPI_Mrecv(b, 4, MPI_FLOAT, &message, MPI_STATUS_IGNORE);
            if (me == 0 && way < 11)
                MPI_Recv(b, 4, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
        default:
            MPI_Sendrecv(a, 4, MPI_FLOAT, !me, 0, b, 4, MPI_FLOAT, !me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        actor_mark("observe", way);
    }
    MPI_Finalize();
    return 0;
}

static const char *run_ranks(const char *probes, const char *loads)
{
    const char *job = preloaded_job();
    char build[4096], command[24000];
    preloaded_build(build);
    snprintf(command, sizeof command,
             "B=%s; OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec timeout 120 mpirun --oversubscribe --mca btl_base_warn_component_unused 0"
             " -n 2 -x FSDPMARK_JOB=%s -x FSDPMARK_PROBES=%s -x ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"
             " -x LD_PRELOAD=$B/libfsdpmark-probe.so%s $B/tests/harness/probes/test_wait rank",
             build, job, probes, loads);
    assert_int_equal(system(command), 0);
    return job;
}

static int ended_in(const char *job, int rank, double *shortest_s)
{
    char path[4096];
    struct probe_file file;
    struct error error;
    int count = 0;
    snprintf(path, sizeof path, "%s/probes.rank%d", job, rank);
    assert_true(probe_file_open(path, &file, &error));
    *shortest_s = INFINITY;
    for (uint64_t i = 0; i < file.count; i++) {
        const struct probe_record *r = &file.records[i];
        if (strcmp(probe_call_name(r->call), "MPI_Iallgather") != 0)
            continue;
        assert_true(r->kind == PROBE_COLLECTIVE && r->bytes == 32);
        *shortest_s = fmin(*shortest_s, 1e-9 * r->duration_ns);
        count++;
    }
    probe_file_close(&file);
    return count;
}

static void mpi_waits(void **state)
{
    const char *both = *state, *job = *both ? run_ranks("mpi,wait", ":$B/libfsdpmark-probe-mpi.so:$B/libfsdpmark-probe-wait.so") : run_ranks("mpi", ":$B/libfsdpmark-probe-mpi.so");
    for (int rank = 0; rank < 2; rank++) {
        struct probe_case c = preloaded_read(job, rank, 0);
        int seen = 0;
        for (int p = 0; p < c.phase_count; p++) {
            const struct probe_phase *ph = &c.phases[p];
            if (strcmp(ph->name, "forward") != 0)
                continue;
            double took = ph->end_s - ph->begin_s;
            if (ph->wait_s > took)
                fail_msg("rank %d, way %d: found %g s of waiting in %g s", rank, ph->step, ph->wait_s, took);
            if (rank == 0 && ph->wait_s < 0.3e-3 * LATE_MS)
                fail_msg("way %d: found %g s of waiting for a rank that is %d ms late", ph->step, ph->wait_s, LATE_MS);
            if (rank == 1 && took - ph->wait_s < 0.9e-3 * LATE_MS)
                fail_msg("way %d: found %g s of waiting in %g s, of which %d ms were computed", ph->step, ph->wait_s, took, LATE_MS);
            seen++;
        }
        assert_int_equal(seen, WAYS);
        probe_case_free(&c);
    }
    double shortest_s;
    assert_int_equal(ended_in(job, 1, &shortest_s), STARTED);
    assert_int_equal(ended_in(job, 0, &shortest_s), STARTED);
    assert_true(shortest_s > 0.3e-3 * LATE_MS); // from its start to the answer that it is over
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"every_call", every_call}, {"elsewhere", elsewhere}, {"joined", joined}, {"rank", act_as_rank}, {0}};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_a_wait), cmocka_unit_test(other_threads_do_not_count), cmocka_unit_test(neighbours_are_joined),
        {"waits of MPI, by the mpi probe", mpi_waits, NULL, NULL, (void *)(uintptr_t)""},
        {"waits of MPI, by the mpi and the wait probe", mpi_waits, NULL, NULL, (void *)(uintptr_t)"1"}};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
