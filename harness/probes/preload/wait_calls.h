// The table of the C library's calls in which a thread may wait, one row each.
//
// X(name, result type, parameters, arguments). Included by wait.c, which makes the wrappers of it, and by calls.c for the names. Functions that
// the C library calls itself, such as the futex inside pthread_cond_wait, do not pass here twice.
#ifndef HARNESS_PROBES_PRELOAD_WAIT_CALLS_H
#define HARNESS_PROBES_PRELOAD_WAIT_CALLS_H

#define WAIT_CALLS(X) \
    X(pthread_cond_wait, int, (pthread_cond_t *c, pthread_mutex_t *m), (c, m)) \
    X(pthread_cond_timedwait, int, (pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t), (c, m, t)) \
    X(pthread_cond_clockwait, int, (pthread_cond_t *c, pthread_mutex_t *m, clockid_t k, const struct timespec *t), (c, m, k, t)) \
    X(sem_wait, int, (sem_t *s), (s)) \
    X(sem_timedwait, int, (sem_t *s, const struct timespec *t), (s, t)) \
    X(sem_clockwait, int, (sem_t *s, clockid_t k, const struct timespec *t), (s, k, t)) \
    X(pthread_join, int, (pthread_t thread, void **value), (thread, value)) \
    X(pthread_barrier_wait, int, (pthread_barrier_t *b), (b)) \
    X(poll, int, (struct pollfd *f, nfds_t n, int timeout), (f, n, timeout)) \
    X(ppoll, int, (struct pollfd *f, nfds_t n, const struct timespec *t, const sigset_t *s), (f, n, t, s)) \
    X(__poll_chk, int, (struct pollfd *f, nfds_t n, int timeout, size_t room), (f, n, timeout, room)) \
    X(__ppoll_chk, int, (struct pollfd *f, nfds_t n, const struct timespec *t, const sigset_t *s, size_t room), (f, n, t, s, room)) \
    X(select, int, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t), (n, r, w, e, t)) \
    X(pselect, int, (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t, const sigset_t *s), (n, r, w, e, t, s)) \
    X(epoll_wait, int, (int fd, struct epoll_event *e, int n, int timeout), (fd, e, n, timeout)) \
    X(epoll_pwait, int, (int fd, struct epoll_event *e, int n, int timeout, const sigset_t *s), (fd, e, n, timeout, s)) \
    X(sched_yield, int, (void), ()) \
    X(nanosleep, int, (const struct timespec *t, struct timespec *left), (t, left)) \
    X(clock_nanosleep, int, (clockid_t k, int flags, const struct timespec *t, struct timespec *left), (k, flags, t, left)) \
    X(usleep, int, (useconds_t us), (us))

// With a wrapper of its own: a futex by the C library's `syscall`, as std::future and std::atomic wait.
#define WAIT_OTHERS(X) X(futex)

#endif
