// The socket probe: bytes that TCP connections took and gave, by peer.
//
// What: wraps the C library's calls on sockets (socket_calls.h). A call counts where its descriptor is a stream socket of IPv4 or IPv6;
//       UNIX sockets, pipes and files pass through. One record a call: its bytes, its peer, its time.
// How:  what a descriptor is, is asked of the kernel at its first bytes and remembered until the number may mean something else: close,
//       dup2, a new socket. Forgetting too much costs a question; so every doubt forgets.
// Blind to: io_uring (noted as unseen), streams of stdio over a socket (unseen, at fdopen), a program's own system calls, datagrams.
// Why the C library's names: gloo, Open MPI's TCP transport and Python all call them through the dynamic linker.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness/probes/preload/calls.h"
#include "harness/probes/preload/socket_calls.h"
#include "harness/probes/recorder.h"

enum { DESCRIPTORS = 65536 }; // those above are asked for at every call
#define NAME(name, ...) CALL_##name,
enum { CALL_FIRST = CALLS_SOCKET - 1, SOCKET_CALLS(NAME) SOCKET_OTHERS(NAME) CALL_END };
#undef NAME

// The next library's function of that name: the C library's.
#define REAL(name) __extension__({ static _Atomic(void *) real_; if (real_ == NULL) real_ = dlsym(RTLD_NEXT, #name); (__typeof__(&name))real_; })

// What a descriptor is known to be: 0 nothing yet, else one of these, with the peer below.
static const uint64_t not_counted = UINT64_C(1) << 62, counted = UINT64_C(1) << 63;
static _Atomic uint64_t known[DESCRIPTORS];

__attribute__((constructor)) static void load(void) { probe_loaded(PROBE_SOCKET); }

static void forget(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS)
        atomic_store_explicit(&known[fd], 0, memory_order_relaxed);
}

// record.h: IPv4 address << 16 | port; 0: another family.
static uint64_t peer_of(const struct sockaddr_storage *address)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    memcpy(&four, address, sizeof four);
    memcpy(&six, address, sizeof six);
    if (address->ss_family == AF_INET)
        return (uint64_t)ntohl(four.sin_addr.s_addr) << 16 | ntohs(four.sin_port);
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        return 0;
    memcpy(&four.sin_addr.s_addr, &six.sin6_addr.s6_addr[12], 4);
    return (uint64_t)ntohl(four.sin_addr.s_addr) << 16 | ntohs(six.sin6_port);
}

static bool is_counted(int fd)
{
    int domain, type;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || (domain != AF_INET && domain != AF_INET6))
        return false;
    size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

// `counted` and the peer, or `not_counted`. A connection that has ended already has no peer: 0, and nothing is remembered.
static uint64_t look_up(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    if (fd < 0)
        return not_counted;
    uint64_t is = fd < DESCRIPTORS ? atomic_load_explicit(&known[fd], memory_order_relaxed) : 0;
    if (is != 0)
        return is;
    int before = errno;
    bool peer = false;
    is = not_counted;
    if (is_counted(fd)) {
        peer = getpeername(fd, (struct sockaddr *)&address, &size) == 0;
        is = counted | (peer ? peer_of(&address) : 0);
    }
    if (fd < DESCRIPTORS && (is == not_counted || peer))
        atomic_store_explicit(&known[fd], is, memory_order_relaxed);
    errno = before;
    return is;
}

static void note(int call, enum probe_kind kind, uint64_t peer, int64_t bytes, uint64_t start)
{
    uint64_t took = probe_now() - start;
    struct probe_record r = {.time_ns = start, .kind = kind, .call = (uint16_t)call, .bytes = bytes, .address = peer,
                             .duration_ns = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX};
    if (kind == PROBE_SEND)
        r.wire = (uint64_t)bytes;
    probe_append(&r);
}

static void moved(int call, enum probe_kind kind, int fd, int64_t bytes, uint64_t start)
{
    uint64_t is = look_up(fd);
    if (is & counted)
        note(call, kind, is & ~counted, bytes, start);
}

static int64_t taken(int64_t result, int flags) { return flags & (MSG_PEEK | MSG_ERRQUEUE) ? 0 : result; }

static int64_t messages_bytes(const struct mmsghdr *messages, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += messages[i].msg_len;
    return bytes;
}

// Descriptors may come in a message: their numbers are new.
static int64_t handed_over(struct msghdr *message, int64_t result)
{
    for (struct cmsghdr *c = result >= 0 ? CMSG_FIRSTHDR(message) : NULL; c != NULL; c = CMSG_NXTHDR(message, c))
        for (size_t at = CMSG_LEN(0); c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (char *)c + at, sizeof fd);
            forget(fd);
        }
    return result;
}

// ---- the table's wrappers ----------------------------------------------------------------------
#pragma GCC visibility push(default) // to the end: what the worker calls
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, __SOCKADDR_ARG from, socklen_t *length);

#define WRAPPER(name, type, parameters, arguments, direction, descriptor, bytes) \
    type name parameters \
    { \
        uint64_t start = probe_recording() ? probe_now() : 0; \
        type result = REAL(name) arguments; \
        int64_t moved_bytes = (bytes); \
        if (start != 0 && result > 0 && moved_bytes > 0) \
            moved(CALL_##name, PROBE_##direction, descriptor, moved_bytes, start); \
        return result; \
    }
SOCKET_CALLS(WRAPPER)

// Both ends may be sockets.
ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags)
{
    uint64_t start = probe_recording() ? probe_now() : 0;
    ssize_t result = REAL(splice)(from, from_offset, to, to_offset, size, flags);
    if (start != 0 && result > 0) {
        moved(CALL_splice, PROBE_RECEIVE, from, result, start);
        moved(CALL_splice, PROBE_SEND, to, result, start);
    }
    return result;
}

// ---- connections -------------------------------------------------------------------------------
// A connection that does not wait (EINPROGRESS) has begun: its peer is in the argument, and getpeername does not know it yet.
int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t length)
{
    struct sockaddr_storage address = {0};
    uint64_t start = probe_recording() ? probe_now() : 0;
    forget(fd);
    int result = REAL(connect)(fd, to, length), after = errno;
    if (start != 0 && (result == 0 || after == EINPROGRESS) && is_counted(fd)) {
        memcpy(&address, to.__sockaddr__, length < sizeof address ? length : sizeof address);
        note(CALL_connect, PROBE_CONNECT, peer_of(&address), 0, start);
    }
    errno = after;
    return result;
}

static int accepted(int call, int fd, uint64_t start)
{
    forget(fd);
    uint64_t is = start != 0 && fd >= 0 ? look_up(fd) : 0;
    if (is & counted)
        note(call, PROBE_CONNECT, is & ~counted, 0, start);
    return fd;
}
int accept(int fd, __SOCKADDR_ARG from, socklen_t *length)
{
    uint64_t start = probe_recording() ? probe_now() : 0;
    return accepted(CALL_accept, REAL(accept)(fd, from, length), start);
}
int accept4(int fd, __SOCKADDR_ARG from, socklen_t *length, int flags)
{
    uint64_t start = probe_recording() ? probe_now() : 0;
    return accepted(CALL_accept4, REAL(accept4)(fd, from, length, flags), start);
}

// ---- what gives a number another meaning -------------------------------------------------------
int socket(int domain, int type, int protocol)
{
    int fd = REAL(socket)(domain, type, protocol);
    forget(fd);
    return fd;
}
int close(int fd)
{
    forget(fd);
    return REAL(close)(fd);
}
int fclose(FILE *stream)
{
    forget(fileno(stream));
    return REAL(fclose)(stream);
}
int close_range(unsigned first, unsigned last, int flags)
{
    for (unsigned fd = first; fd <= last && fd < DESCRIPTORS; fd++)
        forget((int)fd);
    return REAL(close_range)(first, last, flags);
}
void closefrom(int first)
{
    for (int fd = first > 0 ? first : 0; fd < DESCRIPTORS; fd++)
        forget(fd);
    REAL(closefrom)(first);
}
int dup(int fd)
{
    int copy = REAL(dup)(fd);
    forget(copy);
    return copy;
}
int dup2(int fd, int copy)
{
    forget(copy);
    return REAL(dup2)(fd, copy);
}
int dup3(int fd, int copy, int flags)
{
    forget(copy);
    return REAL(dup3)(fd, copy, flags);
}
#define DUPLICATES(name) \
    int name(int fd, int command, ...) \
    { \
        va_list list; \
        va_start(list, command); \
        void *argument = va_arg(list, void *); \
        va_end(list); \
        int result = REAL(name)(fd, command, argument); \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
            forget(result); \
        return result; \
    }
DUPLICATES(fcntl)
DUPLICATES(fcntl64)

// ---- unseen ------------------------------------------------------------------------------------
// The bytes of a stream of stdio leave by calls within the C library.
FILE *fdopen(int fd, const char *mode)
{
    if (probe_recording() && look_up(fd) & counted)
        probe_unseen(PROBE_MISSED_TRAFFIC, CALL_fdopen, "fdopen", 0);
    return REAL(fdopen)(fd, mode);
}

long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result >= 0 && number == SYS_io_uring_setup && probe_recording())
        probe_unseen(PROBE_MISSED_TRAFFIC, CALL_io_uring_setup, "io_uring_setup", 0);
    if (result > 0 && number == SYS_io_uring_enter && probe_recording())
        probe_unseen(PROBE_MISSED_TRAFFIC, CALL_io_uring_enter, "io_uring_enter", 0);
    return result;
}
