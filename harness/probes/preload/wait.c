// The wait probe: when the thread that sets the marks waited in the C library.
//
// What: wraps the calls in which a thread may wait (wait_calls.h). Of that thread alone, and only while something is recorded, they are noted as
//       waits (waiting.h); for any other thread a call costs a test of a flag.
// Why:  gloo communicates in threads of its own, and the training thread waits for them in std::condition_variable, which calls
//       pthread_cond_wait through the dynamic linker: the only thing of it that can be seen from outside.
// Blind to: a program's own system calls (libgomp's barriers, Go), spinning without a call, a mutex that is held by another.
// Blocking reads of a socket are the socket probe's calls and no waits here: gloo's and Open MPI's sockets do not block.
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/probes/preload/calls.h"
#include "harness/probes/preload/wait_calls.h"
#include "harness/probes/recorder.h"
#include "harness/probes/waiting.h"

#define NAME(name, ...) CALL_##name,
enum { CALL_FIRST = CALLS_WAIT - 1, WAIT_CALLS(NAME) WAIT_OTHERS(NAME) CALL_END };
#undef NAME

__attribute__((constructor)) static void load(void) { probe_loaded(PROBE_WAITS); }

// The next library's function. glibc keeps condition variables of two layouts under one name: the one of GLIBC_2.3.2 is what programs of x86-64
// are linked with, and dlsym alone gives the older one in glibc before 2.29. Where there is no such version, there is but one.
static void *real(const char *name)
{
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}
#define REAL(name) __extension__({ static _Atomic(void *) real_; if (real_ == NULL) real_ = real(#name); (__typeof__(&name))real_; })

#pragma GCC visibility push(default) // to the end: what the worker calls
int __poll_chk(struct pollfd *f, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *f, nfds_t n, const struct timespec *t, const sigset_t *s, size_t room);

#define WRAPPER(name, type, parameters, arguments) \
    type name parameters \
    { \
        uint64_t begin = waiting_begin(0); \
        type result = REAL(name) arguments; \
        waiting_end(CALL_##name, begin, 0); \
        return result; \
    }
WAIT_CALLS(WRAPPER)

static bool is_wait(long number, long operation)
{
    operation &= FUTEX_CMD_MASK;
    return number == SYS_futex && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET || operation == FUTEX_LOCK_PI);
}

long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    uint64_t begin = is_wait(number, a[1]) ? waiting_begin(0) : 0;
    long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    waiting_end(CALL_futex, begin, 0);
    return result;
}
