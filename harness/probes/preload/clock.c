// The time of records: CLOCK_MONOTONIC, by the processor's own counter where the kernel itself takes that for its clock. See recorder.h.
//
// Why:  a step asks for the time more often than for anything else (before and after every call that may wait), and the counter is asked for a third
//       of what the C library's clock costs, which also has its code and data in places that a step has driven from the caches.
// How:  a time is the one at which the file was opened, and the counts since then at the rate that the clock itself showed from then to the last look
//       at it. The next look comes after as long again, or 10 ms: so a reading that was off by 50 ns makes no time wrong by more than twice that.
//       Where the kernel's clock is another (current_clocksource), or the processor has no such counter, the clock is asked each time.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/probes/preload/clock.h"
#include "harness/probes/recorder.h"

enum { FIRST_LOOK_NS = 20000, LOOK_EVERY_NS = 10000000, READINGS = 5 };

struct reading { int64_t count, ns; };

static struct reading opened;
static _Atomic double rate;            // [ns per count]; 0: not by the counter
static _Atomic int64_t look_at = INT64_MAX; // [counts]; while one thread looks the others go on by the old rate

static int64_t by_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef __x86_64__
static int64_t counter(void) { return (int64_t)__builtin_ia32_rdtsc(); }

// The kernel does so only where the counter's rate is constant and it is the same on all processors. By system calls: a probe wraps read.
static bool kernel_trusts_counter(void)
{
    char name[8] = "";
    long file = syscall(SYS_openat, AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC, 0);
    if (file < 0)
        return false;
    long got = syscall(SYS_read, file, name, sizeof name);
    syscall(SYS_close, file);
    return got == 4 && memcmp(name, "tsc\n", 4) == 0;
}
#else
static int64_t counter(void) { return 0; }
static bool kernel_trusts_counter(void) { return false; }
#endif

// Both at once: the reading that least came between.
static struct reading both(void)
{
    struct reading best = {0};
    int64_t narrowest = INT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        int64_t from = counter(), ns = by_clock(), width = counter() - from;
        if (width < narrowest)
            narrowest = width, best = (struct reading){from + width / 2, ns};
    }
    return best;
}

static void look(void)
{
    struct reading now = both();
    double ns = (double)(now.ns - opened.ns) / (double)(now.count - opened.count);
    int64_t after = now.count - opened.count, most = (int64_t)(LOOK_EVERY_NS / ns);
    atomic_store_explicit(&rate, ns, memory_order_release);
    atomic_store_explicit(&look_at, now.count + (after < most ? after : most), memory_order_release);
}

void clock_open(void)
{
    int before = errno;
    if (atomic_load(&rate) != 0) { // a forked child, which may have been forked from within a look
        look();
    } else if (kernel_trusts_counter()) {
        opened = both();
        while (by_clock() - opened.ns < FIRST_LOOK_NS)
            continue;
        look();
    }
    errno = before;
}

__attribute__((visibility("default"))) uint64_t probe_now(void)
{
    double ns = atomic_load_explicit(&rate, memory_order_acquire);
    if (ns == 0)
        return (uint64_t)by_clock();
    int64_t at = counter();
    if (__builtin_expect(at >= atomic_load_explicit(&look_at, memory_order_relaxed), 0) && atomic_exchange(&look_at, INT64_MAX) != INT64_MAX) {
        look();
        ns = atomic_load_explicit(&rate, memory_order_relaxed);
    }
    return (uint64_t)(opened.ns + (int64_t)((double)(at - opened.count) * ns));
}
