// The socket probe: every call of its table on a TCP connection over loopback, with its bytes and its peer; what must not be counted; Open MPI over
// TCP, where what one rank sent is what the other got; and the kernel's own counters of a network namespace.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "harness/probes/tests/preloaded.h"
#include "harness/probes/tests/seen.h"

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "rank %s: line %d: %s: %s\n", getenv("RANK"), __LINE__, #condition, strerror(errno)), exit(1)))

// ---- every call, over loopback -------------------------------------------------------------------
static uint64_t peer; // of the connection in use

static void moved(int line, const char *call, enum probe_kind kind, int64_t bytes)
{
    uint64_t at = seen_count;
    seen_at(line, call, (struct probe_record){.kind = kind, .bytes = bytes, .wire = kind == PROBE_SEND ? (uint64_t)bytes : 0});
    if (seen_file.records[at].address != peer)
        SEEN_FAIL("%s: found peer %" PRIx64 ", expected %" PRIx64, call, seen_file.records[at].address, peer);
}
#define SENT(call, bytes) moved(__LINE__, call, PROBE_SEND, bytes)
#define GOT(call, bytes) moved(__LINE__, call, PROBE_RECEIVE, bytes)
#define CONNECTED(call) moved(__LINE__, call, PROBE_CONNECT, 0)

static uint64_t address_of(const struct sockaddr_in *a) { return (uint64_t)ntohl(a->sin_addr.s_addr) << 16 | ntohs(a->sin_port); }

// A listening socket on loopback and its address.
static int listener(struct sockaddr_in *at)
{
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fd, (struct sockaddr *)at, sizeof *at) == 0 && listen(fd, 4) == 0 && getsockname(fd, (struct sockaddr *)at, &size) == 0);
    return fd;
}

static void sends(int fd, int other)
{
    char data[100] = "", name[] = "/tmp/fsdpmark-test-probes-file-XXXXXX";
    struct iovec parts[2] = {{data, 30}, {data, 12}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 2}}, {.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}}};
    int file = mkstemp(name), ends[2];
    off_t from = 0;
    off64_t from64 = 0;
    unlink(name);
    CHECK(write(file, data, 100) == 100 && pipe(ends) == 0 && write(ends[1], data, 7) == 7);
    seen_nothing(); // a file and a pipe
    CHECK(send(fd, data, 1, 0) == 1), SENT("send", 1);
    CHECK(sendto(fd, data, 2, 0, NULL, 0) == 2), SENT("sendto", 2);
    CHECK(sendmsg(fd, &messages[0].msg_hdr, 0) == 42), SENT("sendmsg", 42);
    CHECK(sendmmsg(fd, messages, 2, 0) == 2), SENT("sendmmsg", 72);
    CHECK(write(fd, data, 3) == 3), SENT("write", 3);
    CHECK(writev(fd, parts, 2) == 42), SENT("writev", 42);
    CHECK(sendfile(fd, file, &from, 90) == 90), SENT("sendfile", 90);
    CHECK(sendfile64(fd, file, &from64, 91) == 91), SENT("sendfile64", 91);
    CHECK(splice(ends[0], NULL, fd, NULL, 7, 0) == 7), SENT("splice", 7);
    seen_nothing();
    for (int left = 1 + 2 + 42 + 72 + 3 + 42 + 90 + 91 + 7; left > 0;)
        left -= (int)recv(other, data, left < 100 ? (size_t)left : 100, MSG_WAITALL), seen_next();
    close(file), close(ends[0]), close(ends[1]);
}

// Every time 50 bytes lie ready; what a call leaves is taken by the next row's.
static void ready(int other)
{
    char data[50] = "";
    CHECK(send(other, data, 50, 0) == 50);
    seen_next();
}

ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);

static void receives(int fd, int other)
{
    char data[100];
    struct iovec parts[2] = {{data, 20}, {data + 20, 30}};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = parts, .msg_iovlen = 2}};
    int ends[2];
    CHECK(pipe(ends) == 0);
    ready(other), CHECK(recv(fd, data, 100, MSG_PEEK) > 0 && recv(fd, data, 50, MSG_WAITALL) == 50), GOT("recv", 50); // looking is not taking
    ready(other), CHECK(recvfrom(fd, data, 50, MSG_WAITALL, NULL, NULL) == 50), GOT("recvfrom", 50);
    ready(other), CHECK(recvmsg(fd, &message.msg_hdr, MSG_WAITALL) == 50), GOT("recvmsg", 50);
    ready(other), CHECK(recvmmsg(fd, &message, 1, MSG_WAITALL, NULL) == 1), GOT("recvmmsg", 50);
    ready(other), CHECK(read(fd, data, 100) == 50), GOT("read", 50);
    ready(other), CHECK(readv(fd, parts, 2) == 50), GOT("readv", 50);
    ready(other), CHECK(__read_chk(fd, data, 60, 100) == 50), GOT("__read_chk", 50);
    ready(other), CHECK(__recv_chk(fd, data, 60, 100, 0) == 50), GOT("__recv_chk", 50);
    ready(other), CHECK(__recvfrom_chk(fd, data, 60, 100, 0, NULL, NULL) == 50), GOT("__recvfrom_chk", 50);
    ready(other), CHECK(splice(fd, NULL, ends[1], NULL, 50, 0) == 50), GOT("splice", 50);
    seen_nothing();
    CHECK(recv(fd, data, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN), seen_nothing(); // the error is the call's own
    CHECK(send(fd, data, 0, 0) == 0 && write(fd, data, 0) == 0), seen_nothing();
    close(ends[0]), close(ends[1]);
}

// A number that means something else than before, and what is no stream of TCP.
static void others(int fd, int other)
{
    char data[10] = "";
    int copy = dup(fd), pair[2], datagrams = socket(AF_INET, SOCK_DGRAM, 0), where;
    CHECK(send(copy, data, 1, 0) == 1), SENT("send", 1);
    close(copy);
    copy = 200;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], data, 4) == 4 && read(pair[1], data, 4) == 4), seen_nothing();
    CHECK(dup2(pair[0], copy) == copy && write(copy, data, 4) == 4), seen_nothing(); // the copy's number is a UNIX socket now
    CHECK(dup2(fd, copy) == copy && write(copy, data, 2) == 2), SENT("write", 2);     // and now the connection
    CHECK(dup3(pair[0], copy, O_CLOEXEC) == copy && write(copy, data, 4) == 4), seen_nothing();
    close(copy);
    CHECK((where = fcntl(fd, F_DUPFD, copy)) == copy && write(where, data, 2) == 2), SENT("write", 2);
    CHECK(close_range((unsigned)where, (unsigned)where, 0) == 0 && (where = fcntl(pair[0], F_DUPFD_CLOEXEC, copy)) == copy && write(where, data, 2) == 2), seen_nothing();
    // A descriptor that comes in a message.
    union { char room[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec part = {data, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    CHECK(read(pair[1], data, 10) == 10 && sendmsg(pair[0], &message, 0) == 1);
    close(where);
    memset(&control, 0, sizeof control);
    CHECK(recvmsg(pair[1], &message, 0) == 1 && control.header.cmsg_type == SCM_RIGHTS);
    memcpy(&where, CMSG_DATA(&control.header), sizeof where);
    CHECK(write(where, data, 5) == 5), SENT("write", 5);
    close(where);
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof self;
    CHECK(bind(datagrams, (struct sockaddr *)&self, size) == 0 && getsockname(datagrams, (struct sockaddr *)&self, &size) == 0);
    CHECK(connect(datagrams, (struct sockaddr *)&self, size) == 0 && send(datagrams, data, 8, 0) == 8 && recv(datagrams, data, 8, 0) == 8), seen_nothing();
    FILE *stream = fdopen(dup(fd), "w");
    seen_at(__LINE__, "fdopen", (struct probe_record){.kind = PROBE_UNSEEN});
    fclose(stream);
    for (int left = 10; left > 0; seen_next())
        left -= (int)recv(other, data, 8, 0);
    close(pair[0]), close(pair[1]), close(datagrams);
}

// A socket of IPv6: to an address of IPv4 the peer is that one; to another it is 0.
static void six(int listening, const struct sockaddr_in *at)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = at->sin_port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0), passive = socket(AF_INET6, SOCK_STREAM, 0), got;
    if (fd < 0)
        return (void)fprintf(stderr, "no IPv6 here: not tested\n");
    CHECK(inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr) == 1 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    peer = address_of(at);
    CONNECTED("connect");
    CHECK(write(fd, "ab", 2) == 2), SENT("write", 2);
    close(fd);
    CHECK((got = accept(listening, NULL, NULL)) >= 0), seen_next();
    close(got);
    to.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT, to.sin6_port = 0;
    socklen_t size = sizeof to;
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (bind(passive, (struct sockaddr *)&to, size) != 0)
        fprintf(stderr, "no ::1 here: not tested\n");
    else {
        CHECK(listen(passive, 1) == 0 && getsockname(passive, (struct sockaddr *)&to, &size) == 0 && connect(fd, (struct sockaddr *)&to, size) == 0);
        peer = 0;
        CONNECTED("connect");
        CHECK(write(fd, "ab", 2) == 2), SENT("write", 2);
    }
    close(fd), close(passive);
}

static int act_calls(void)
{
    struct sockaddr_in at, from;
    socklen_t size = sizeof from;
    int listening = listener(&at), fd = socket(AF_INET, SOCK_STREAM, 0), other;
    actor_mark("case", 0);
    seen_open();
    peer = address_of(&at);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0), CONNECTED("connect");
    CHECK((other = accept(listening, (struct sockaddr *)&from, &size)) >= 0);
    peer = address_of(&from), CONNECTED("accept");
    CHECK(getsockname(fd, (struct sockaddr *)&from, &size) == 0 && address_of(&from) == peer);
    peer = address_of(&at);
    sends(fd, other);
    receives(fd, other);
    others(fd, other);
    close(fd);
    signal(SIGPIPE, SIG_IGN);
    CHECK(recv(other, &size, 1, 0) == 0), seen_nothing(); // the end of the connection
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS), CONNECTED("connect");
    close(other), size = sizeof from;
    CHECK((other = accept4(listening, (struct sockaddr *)&from, &size, 0)) >= 0);
    peer = address_of(&from), CONNECTED("accept4");
    peer = address_of(&at);
    CHECK(send(fd, "x", 1, 0) == 1), SENT("send", 1);
    six(listening, &at);
    struct { char room[256]; } parameters = {""};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters), refused = errno;
    if (ring >= 0)
        seen_at(__LINE__, "io_uring_setup", (struct probe_record){.kind = PROBE_UNSEEN});
    else
        fprintf(stderr, "io_uring_setup: %s: only its refusal was tested\n", strerror(refused));
    seen_nothing();
    seen_all(CALLS_SOCKET, ring >= 0 ? "io_uring_enter" : "io_uring_setup io_uring_enter"); // enter submits nothing here
    return 0;
}

static void calls(void **state)
{
    (void)state;
    char output[256];
    assert_int_equal(preloaded_run("calls", "socket", preloaded_job(), NULL, output, sizeof output), 0);
}

// ---- the kernel's counters of a network namespace --------------------------------------------------
// Two ranks, each in a namespace of its own, joined by a pair of virtual interfaces. A namespace has no name and is gone with its process.
enum { SEGMENT_HEADERS = 66, EXCHANGE = 24 << 20 }; // Ethernet 14, IPv4 20, TCP 20 and its timestamps 12

// Bytes and packets of the interface: received, sent. /proc/net is of the process' own namespace.
static void counters(int64_t bytes[2], int64_t packets[2])
{
    char line[512];
    FILE *f = fopen("/proc/thread-self/net/dev", "r");
    long long b[2], p[2], x[6];
    bool found = false;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *at = strstr(line, "fsdpmark0:");
        if (at != NULL)
            found = sscanf(at + 10, "%lld %lld %lld %lld %lld %lld %lld %lld %lld %lld", &b[0], &p[0], &x[0], &x[1], &x[2], &x[3], &x[4], &x[5], &b[1], &p[1]) == 10;
    }
    if (f != NULL)
        fclose(f);
    CHECK(found);
    for (int i = 0; i < 2; i++)
        bytes[i] = b[i], packets[i] = p[i];
}

static void move(int fd, char *data, int64_t size, bool out)
{
    for (int64_t done = 0; done < size;) {
        int64_t most = size - done < 1 << 20 ? size - done : 1 << 20;
        ssize_t n = out ? send(fd, data, (size_t)most, 0) : recv(fd, data, (size_t)most, 0);
        CHECK(n > 0);
        done += n;
    }
}

static int connection(int rank)
{
    struct sockaddr_in first = {.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr.s_addr = htonl(0x0a4d0001)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), other = -1;
    if (rank == 0) {
        CHECK(bind(fd, (struct sockaddr *)&first, sizeof first) == 0 && listen(fd, 1) == 0 && (other = accept(fd, NULL, NULL)) >= 0);
        close(fd);
        return other;
    }
    for (int i = 0; connect(fd, (struct sockaddr *)&first, sizeof first) != 0; i++) { // the other may not listen yet
        CHECK(i < 300);
        usleep(100000);
        close(fd);
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    return fd;
}

static bool agree(const char *what, int64_t probe, int64_t kernel)
{
    double off = kernel > 0 ? (double)(probe - kernel) / (double)kernel : 1;
    fprintf(stderr, "rank %s: %s: probe %" PRId64 " bytes, interface without headers %" PRId64 ": %+.3f %%\n", getenv("RANK"), what, probe, kernel, 100 * off);
    return off < 0.03 && off > -0.03;
}

static int act_namespace(void)
{
    static char data[1 << 20];
    int rank = atoi(getenv("RANK"));
    int64_t bytes[2][2], packets[2][2], probe[2] = {0, 0};
    const struct probe_record *r;
    actor_mark("case", 0);
    seen_open();
    int fd = connection(rank);
    while ((r = seen_next()) != NULL)
        CHECK(r->kind == PROBE_CONNECT && (rank == 1 ? r->address == ((uint64_t)0x0a4d0001 << 16 | 7000) : r->address >> 16 == 0x0a4d0002));
    counters(bytes[0], packets[0]);
    move(fd, data, EXCHANGE, rank == 0); // one way, then a third of it back
    move(fd, data, EXCHANGE / 3, rank == 1);
    usleep(300000); // the last acknowledgements
    counters(bytes[1], packets[1]);
    while ((r = seen_next()) != NULL)
        if (r->kind == PROBE_RECEIVE || r->kind == PROBE_SEND)
            probe[r->kind == PROBE_SEND] += r->bytes;
    CHECK(probe[rank == 0] == EXCHANGE && probe[rank == 1] == EXCHANGE / 3);
    bool fine = true;
    for (int i = 0; i < 2; i++)
        fine = agree(i ? "sent" : "received", probe[i], bytes[1][i] - bytes[0][i] - SEGMENT_HEADERS * (packets[1][i] - packets[0][i])) && fine;
    close(fd);
    return !fine;
}

// A process in a new namespace that waits for a byte before it becomes the actor; -1: not allowed, with the reason.
static pid_t in_namespace(int rank, const char *job, const int go[2], char *reason)
{
    static char build[4096], loads[9000], program[4200];
    int told[2];
    char word = 0;
    preloaded_build(build);
    snprintf(loads, sizeof loads, "%s/libfsdpmark-probe.so:%s/libfsdpmark-probe-socket.so", build, build);
    snprintf(program, sizeof program, "%s/tests/harness/probes/test_socket", build);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        char command[200];
        close(go[1]); // or it would never see that nobody tells it
        alarm(60);
        word = unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
        if (write(told[1], &word, 1) != 1 || word == 'n' || read(go[0], &word, 1) != 1)
            _exit(1);
        snprintf(command, sizeof command, "ip addr add 10.77.0.%d/24 dev fsdpmark0 && ip link set fsdpmark0 up && ip link set lo up", rank + 1);
        if (system(command) != 0)
            _exit(1);
        setenv("RANK", rank ? "1" : "0", 1);
        setenv("FSDPMARK_JOB", job, 1);
        setenv("FSDPMARK_PROBES", "socket", 1);
        setenv("LD_PRELOAD", loads, 1);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
        execl(program, program, "namespace", (char *)NULL);
        _exit(127);
    }
    close(told[1]);
    if (read(told[0], &word, 1) != 1 || word == 'n') {
        snprintf(reason, 200, "unshare(CLONE_NEWNET) is not allowed to user %d", (int)getuid());
        waitpid(child, NULL, 0);
        child = -1;
    }
    close(told[0]);
    return child;
}

static void namespaces(void **state)
{
    (void)state;
    const char *job = preloaded_job();
    char reason[200] = "", command[300];
    int go[2], status = 0;
    pid_t ranks[2];
    assert_int_equal(pipe(go), 0);
    for (int r = 0; r < 2; r++)
        ranks[r] = in_namespace(r, job, go, reason);
    snprintf(command, sizeof command, "ip link add fsdpmark0 netns %d type veth peer name fsdpmark0 netns %d 2>&1", (int)ranks[0], (int)ranks[1]);
    if (reason[0] == 0 && system(command) != 0)
        snprintf(reason, sizeof reason, "ip made no pair of virtual interfaces");
    if (reason[0] == 0 && write(go[1], "gg", 2) != 2)
        snprintf(reason, sizeof reason, "the ranks did not start");
    close(go[0]), close(go[1]); // ranks that were not told end here
    bool fine = true;
    for (int r = 0; r < 2; r++)
        if (ranks[r] > 0)
            fine = waitpid(ranks[r], &status, 0) == ranks[r] && WIFEXITED(status) && WEXITSTATUS(status) == 0 && fine;
    if (reason[0] != 0) {
        print_message("skipped: %s\n", reason);
        skip();
    }
    assert_true(fine);
}

// ---- Open MPI over TCP -----------------------------------------------------------------------------
static int act_mpi(void)
{
    static char data[1 << 20];
    int me;
    setenv("RANK", getenv("OMPI_COMM_WORLD_RANK"), 1);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Sendrecv_replace(data, 1, MPI_BYTE, !me, 0, !me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // connects
    MPI_Barrier(MPI_COMM_WORLD);
    actor_mark("case", 0);
    actor_mark("forward", 0);
    for (int i = 0; i < 8; i++)
        if (me == 0)
            MPI_Send(data, sizeof data, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(data, sizeof data, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    actor_mark("end", -1);
    MPI_Finalize();
    return 0;
}

// Bytes of the phase in which a rank sends or receives most, to or from one peer.
static int64_t most(const char *job, int rank, enum probe_kind kind)
{
    struct probe_case c = preloaded_read(job, rank, 0);
    int64_t bytes = 0;
    for (int p = 0; p < c.phase_count; p++)
        for (int t = 0; strcmp(c.phases[p].name, "forward") == 0 && t < c.phases[p].traffic_count; t++)
            if (c.phases[p].traffic[t].kind == kind && c.phases[p].traffic[t].bytes > bytes)
                bytes = c.phases[p].traffic[t].bytes;
    probe_case_free(&c);
    return bytes;
}

static void open_mpi(void **state)
{
    (void)state;
    const char *job = preloaded_job();
    char build[4096], command[20000];
    preloaded_build(build);
    snprintf(command, sizeof command,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec timeout 120 mpirun --oversubscribe --mca btl_base_warn_component_unused 0"
             " --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo -n 2 -x FSDPMARK_JOB=%s -x FSDPMARK_PROBES=socket"
             " -x ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"
             " -x LD_PRELOAD=%s/libfsdpmark-probe.so:%s/libfsdpmark-probe-socket.so %s/tests/harness/probes/test_socket mpi",
             job, build, build, build);
    assert_int_equal(system(command), 0);
    int64_t sent = most(job, 0, PROBE_SEND), got = most(job, 1, PROBE_RECEIVE), data = 8 << 20;
    print_message("8 MiB by Open MPI: sent %" PRId64 ", received %" PRId64 "\n", sent, got);
    assert_int_equal(sent, got);
    assert_true(sent >= data && sent < data + data / 100); // its own headers are below 1 %
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"calls", act_calls}, {"namespace", act_namespace}, {"mpi", act_mpi}, {0}};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls), cmocka_unit_test(namespaces), cmocka_unit_test(open_mpi)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
