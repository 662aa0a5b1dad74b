// The table of calls that move bytes through a socket, one row each.
//
// X(name, result type, parameters, arguments, direction, descriptor, bytes): bytes is an expression of the parameters and `result`; a row
// notes something only where it is above 0. Included by socket.c, which makes the wrappers of it, and by calls.c for the names.
#ifndef HARNESS_PROBES_PRELOAD_SOCKET_CALLS_H
#define HARNESS_PROBES_PRELOAD_SOCKET_CALLS_H

#define SOCKET_SENDS(X) \
    X(send, ssize_t, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags), SEND, fd, result) \
    X(sendto, ssize_t, (int fd, const void *data, size_t size, int flags, __CONST_SOCKADDR_ARG to, socklen_t length), \
      (fd, data, size, flags, to, length), SEND, fd, result) \
    X(sendmsg, ssize_t, (int fd, const struct msghdr *message, int flags), (fd, message, flags), SEND, fd, result) \
    X(sendmmsg, int, (int fd, struct mmsghdr *messages, unsigned count, int flags), (fd, messages, count, flags), SEND, fd, \
      messages_bytes(messages, result)) \
    X(write, ssize_t, (int fd, const void *data, size_t size), (fd, data, size), SEND, fd, result) \
    X(writev, ssize_t, (int fd, const struct iovec *parts, int count), (fd, parts, count), SEND, fd, result) \
    X(sendfile, ssize_t, (int fd, int from, off_t *offset, size_t size), (fd, from, offset, size), SEND, fd, result) \
    X(sendfile64, ssize_t, (int fd, int from, off64_t *offset, size_t size), (fd, from, offset, size), SEND, fd, result)

// What is only looked at (MSG_PEEK), and what comes from the queue of errors, is not received.
#define SOCKET_RECEIVES(X) \
    X(recv, ssize_t, (int fd, void *data, size_t size, int flags), (fd, data, size, flags), RECEIVE, fd, taken(result, flags)) \
    X(recvfrom, ssize_t, (int fd, void *data, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *length), \
      (fd, data, size, flags, from, length), RECEIVE, fd, taken(result, flags)) \
    X(recvmsg, ssize_t, (int fd, struct msghdr *message, int flags), (fd, message, flags), RECEIVE, fd, \
      taken(handed_over(message, result), flags)) \
    X(recvmmsg, int, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout), \
      (fd, messages, count, flags, timeout), RECEIVE, fd, taken(messages_bytes(messages, result), flags)) \
    X(read, ssize_t, (int fd, void *data, size_t size), (fd, data, size), RECEIVE, fd, result) \
    X(readv, ssize_t, (int fd, const struct iovec *parts, int count), (fd, parts, count), RECEIVE, fd, result) \
    X(__read_chk, ssize_t, (int fd, void *data, size_t size, size_t room), (fd, data, size, room), RECEIVE, fd, result) \
    X(__recv_chk, ssize_t, (int fd, void *data, size_t size, size_t room, int flags), (fd, data, size, room, flags), RECEIVE, fd, \
      taken(result, flags)) \
    X(__recvfrom_chk, ssize_t, (int fd, void *data, size_t size, size_t room, int flags, __SOCKADDR_ARG from, socklen_t *length), \
      (fd, data, size, room, flags, from, length), RECEIVE, fd, taken(result, flags))

#define SOCKET_CALLS(X) SOCKET_SENDS(X) SOCKET_RECEIVES(X)

// Calls with a wrapper of their own that note something too.
#define SOCKET_OTHERS(X) X(connect) X(accept) X(accept4) X(splice) X(fdopen) X(io_uring_setup) X(io_uring_enter)

#endif
