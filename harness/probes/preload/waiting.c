// The waits of the thread that sets the marks, joined into records. See waiting.h.
//
// How:  the mark itself tells which thread that is: it sets a flag of its own. So a wait of any other thread costs a test of that flag. The wait
//       that is not written yet lies in `open_wait`; the next wait or the next mark writes it.
// At a mark also the processor time since the last such note is noted, of the process and of this thread: who waits while other threads of its
// process compute does not wait for communication alone. Two system calls of about 3 us: so not at every mark of a short step.
#include "harness/probes/waiting.h"

#include <errno.h>
#include <time.h>

#include "harness/probes/recorder.h"

enum { PROCESSOR_EVERY_NS = 10000000 };

#define EXPORT __attribute__((visibility("default")))
#define STATIC_TLS __thread __attribute__((tls_model("initial-exec")))

static STATIC_TLS bool marking;
static STATIC_TLS unsigned depth;
static STATIC_TLS struct { uint64_t begin, end, calls; int call; } open_wait;
static STATIC_TLS struct { uint64_t process, thread, at; } spent;

static uint64_t clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void write_open(void)
{
    uint64_t took = open_wait.end - open_wait.begin;
    struct probe_record r = {.time_ns = open_wait.begin, .kind = PROBE_WAIT, .call = (uint16_t)open_wait.call, .count = (int64_t)open_wait.calls,
                             .duration_ns = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX};
    if (open_wait.calls > 0 && took >= WAITING_LEAST_NS)
        probe_append(&r);
    open_wait.calls = 0;
}

EXPORT uint64_t waiting_begin(uint64_t now)
{
    if (!marking || !probe_recording())
        return 0;
    if (depth++ > 0)
        return 1;
    uint64_t begin = now != 0 ? now : probe_now();
    if (open_wait.calls > 0 && begin - open_wait.end >= WAITING_GAP_NS)
        write_open();
    return begin;
}

EXPORT void waiting_end(int call, uint64_t begin, uint64_t now)
{
    if (begin == 0 || --depth > 0)
        return;
    if (open_wait.calls++ == 0)
        open_wait.begin = begin, open_wait.call = call;
    open_wait.end = now != 0 ? now : probe_now();
}

// The first mark of a thread has no phase before it.
void waiting_mark(uint64_t now)
{
    if (marking)
        write_open();
    if (marking && now - spent.at < PROCESSOR_EVERY_NS)
        return;
    int before = errno;
    uint64_t process = clock_of(CLOCK_PROCESS_CPUTIME_ID), own = clock_of(CLOCK_THREAD_CPUTIME_ID);
    if (marking)
        probe_append(&(struct probe_record){.kind = PROBE_PROCESSOR, .bytes = (int64_t)(process - spent.process), .count = (int64_t)(own - spent.thread)});
    marking = true;
    spent.process = process, spent.thread = own, spent.at = now;
    errno = before;
}
