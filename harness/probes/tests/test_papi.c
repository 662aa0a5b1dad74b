// The papi probe against page faults that are known: of the marking thread, of one that lived before the first mark, and of one that came after.
//
// PAPI attaches to threads only where it can open a hardware counter first, for a trial. Machines without one are many, so an actor stands
// between PAPI and the kernel and makes that trial succeed; the counting itself is the kernel's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "harness/probes/tests/preloaded.h"

#ifdef __SANITIZE_ADDRESS__
enum { STRAY = 1200 }; // it makes itself tables for each thread
#else
enum { STRAY = 400 };
#endif
enum { PAGE = 4096, OWN = 500, OLD = 2000, NEW = 3000 };

static bool pretend, refuse; // a trial of the hardware; what is asked for the older thread
static _Atomic long older_thread;

// Before the C library's for all libraries of this program.
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    struct perf_event_attr *attr = (struct perf_event_attr *)a[0];
    if (pretend && number == SYS_perf_event_open && attr->type == PERF_TYPE_HARDWARE) {
        attr->type = PERF_TYPE_SOFTWARE;
        attr->config = PERF_COUNT_SW_DUMMY;
    }
    if (refuse && number == SYS_perf_event_open && a[1] == older_thread) {
        errno = EMFILE;
        return -1;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void touch(int pages)
{
    char *p = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, (size_t)pages * PAGE, MADV_NOHUGEPAGE); // a fault a page
    for (int i = 0; p != MAP_FAILED && i < pages; i++)
        *(volatile char *)(p + (size_t)i * PAGE) = 1;
    munmap(p, (size_t)pages * PAGE);
}

static pthread_barrier_t barrier;

static void *older(void *unused)
{
    (void)unused;
    older_thread = gettid();
    pthread_barrier_wait(&barrier); // it lives
    pthread_barrier_wait(&barrier); // the case is marked
    touch(OLD);
    return NULL;
}

static void *newer(void *unused)
{
    (void)unused;
    touch(NEW);
    return NULL;
}

static int act_faults(void)
{
    pthread_t a, b;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&a, NULL, older, NULL);
    pthread_barrier_wait(&barrier);
    actor_mark("case", 0);
    pthread_barrier_wait(&barrier);
    pthread_create(&b, NULL, newer, NULL);
    touch(OWN);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    actor_mark("forward", 0);
    touch(2 * OWN);
    actor_mark("end", -1);
    return 0;
}

static int act_pretended(void)
{
    pretend = true;
    return act_faults();
}

static int act_refused(void)
{
    refuse = true;
    return act_pretended();
}

static const struct probe_counter *counter(const struct probe_case *c, int phase, const char *event)
{
    assert_true(phase < c->phase_count);
    for (int i = 0; i < c->phases[phase].counter_count; i++)
        if (strcmp(c->phases[phase].counters[i].event, event) == 0)
            return &c->phases[phase].counters[i];
    fail_msg("phase %d has no record of %s", phase, event);
    return NULL;
}

static struct probe_case watch(const char *actor, const char *folder, const char *events)
{
    static char pair[400], output[256];
    const char *more[] = {pair, NULL};
    snprintf(pair, sizeof pair, "FSDPMARK_COUNTERS=%s", events);
    struct probe_case c = preloaded_watch(actor, "papi", folder, more, output);
    assert_true(c.probes & 1u << PROBE_PAPI);
    assert_int_equal(c.phase_count, 3);
    assert_int_equal(c.phases[2].counter_count, 0); // no mark behind it
    return c;
}

static void assert_about(int64_t value, int64_t expected)
{
    assert_true(value >= expected);
    assert_true(value <= expected + STRAY);
}

static void every_thread_is_counted_where_PAPI_attaches(void **state)
{
    (void)state;
    const char *folder = preloaded_job();
    struct probe_case c = watch("pretended", folder, "perf::PAGE-FAULTS,perf::TASK-CLOCK");
    const struct probe_counter *faults = counter(&c, 0, "perf::PAGE-FAULTS");
    if (faults->reason != 0) // a machine where nobody may count
        skip();
    assert_int_equal(faults->scope, PROBE_OF_PROCESS);
    assert_about(faults->value, OWN + OLD + NEW);
    assert_about(counter(&c, 1, "perf::PAGE-FAULTS")->value, 2 * OWN); // the change, not the sum
    assert_true(counter(&c, 0, "perf::TASK-CLOCK")->value > 0);
    probe_case_free(&c);
}

// Too many files are open for the sets of all threads: the sum of those that were made would be too small.
static void a_sum_over_some_threads_is_none(void **state)
{
    (void)state;
    const char *folder = preloaded_job();
    struct probe_case c = watch("pretended", folder, "perf::PAGE-FAULTS");
    if (counter(&c, 0, "perf::PAGE-FAULTS")->reason != 0)
        skip();
    probe_case_free(&c);
    folder = preloaded_job();
    c = watch("refused", folder, "perf::PAGE-FAULTS");
    for (int phase = 0; phase < 2; phase++)
        assert_true(counter(&c, phase, "perf::PAGE-FAULTS")->reason < 0);
    probe_case_free(&c);
}

// Where it cannot, the record says that only the marking thread is in it.
static void else_the_marking_thread_and_it_is_said(void **state)
{
    (void)state;
    const char *folder = preloaded_job();
    struct probe_case c = watch("faults", folder, "perf::PAGE-FAULTS");
    const struct probe_counter *faults = counter(&c, 0, "perf::PAGE-FAULTS");
    if (faults->reason != 0)
        skip();
    if (faults->scope == PROBE_OF_PROCESS) { // a machine with hardware counters
        assert_about(faults->value, OWN + OLD + NEW);
    } else {
        assert_int_equal(faults->scope, PROBE_OF_THREAD);
        assert_about(faults->value, OWN);
    }
    assert_about(counter(&c, 1, "perf::PAGE-FAULTS")->value, 2 * OWN);
    probe_case_free(&c);
}

static void what_cannot_be_counted_has_a_reason(void **state)
{
    (void)state;
    const char *folder = preloaded_job();
    struct probe_case c = watch("faults", folder, "perf::NO-SUCH-EVENT,sde:::fsdpmark::steps,perf::PAGE-FAULTS");
    for (int phase = 0; phase < 2; phase++) {
        assert_int_equal(c.phases[phase].counter_count, 3); // none is left out
        assert_true(counter(&c, phase, "perf::NO-SUCH-EVENT")->reason < 0);
        assert_true(counter(&c, phase, "sde:::fsdpmark::steps")->reason < 0); // this program publishes nothing
    }
    probe_case_free(&c);
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"faults", act_faults}, {"pretended", act_pretended}, {"refused", act_refused}, {0}};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
#ifdef FSDPMARK_PAPI
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_is_counted_where_PAPI_attaches),
        cmocka_unit_test(a_sum_over_some_threads_is_none),
        cmocka_unit_test(else_the_marking_thread_and_it_is_said),
        cmocka_unit_test(what_cannot_be_counted_has_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    puts("ok 1 - # SKIP this build has no PAPI, and so no such probe");
    (void)every_thread_is_counted_where_PAPI_attaches, (void)a_sum_over_some_threads_is_none, (void)else_the_marking_thread_and_it_is_said, (void)what_cannot_be_counted_has_a_reason;
    return 0;
#endif
}
