// The MPI probe: what a worker asks of MPI, call by call.
//
// What: a wrapper of every collective and point-to-point call (mpi_calls.h) by the profiling interface (MPI 3.1, section 14.2): the program
//       calls MPI_X, which is here, and PMPI_X does it. One record a call that succeeded, from the call's own arguments.
// Why:  the payload is what a strategy is judged by, and it is the same whatever carries it. Between ranks of one machine Open MPI uses
//       shared memory, of which a socket sees nothing.
// Blind to: one-sided calls and collectives between two groups (intercommunicators), which are noted as unseen; Fortran's names; files;
//       what MPI sends for itself. When a wait or a test tells the program that a nonblocking call is over, its record gets its duration.
//       Blocking calls and waits are noted as waits besides (waiting.h).
#include <stdbool.h>
#include <string.h>

#include "harness/probes/preload/calls.h"
#include "harness/probes/preload/mpi_calls.h"
#include "harness/probes/preload/mpi_data.h"
#include "harness/probes/waiting.h"

#define STATIC_TLS __thread __attribute__((tls_model("initial-exec"))) // no allocation at a thread's first access

#define COLLECTIVE_NAMES(name, nonblocking, ...) CALL_##name, CALL_##nonblocking,
#define SEND_NAMES(name, nonblocking, persistent) CALL_##name, CALL_##nonblocking, CALL_##persistent,
#define NAMES(name, ...) CALL_##name,
enum { CALL_FIRST = CALLS_MPI - 1, MPI_COLLECTIVES(COLLECTIVE_NAMES) MPI_SENDS(SEND_NAMES) MPI_RECEIVES(NAMES) MPI_ONE_SIDED(NAMES)
       MPI_COMPLETIONS(NAMES) CALL_END };

enum { NO_PEER = UINT16_MAX, PERSISTENT = 1024, MEMBERS_KEPT = 16, UNDER_WAY = 1024 };

static atomic_uint communicators_freed;

__attribute__((constructor)) static void load(void) { probe_loaded(PROBE_MPI); }

static uint64_t start_of_call(void) { return probe_recording() ? probe_now() : 0; }

static const MPI_Request *const no_request = NULL;
// A call that starts something does not wait for it.
static uint64_t waits(uint64_t start, const MPI_Request *request) { return start != 0 && request == NULL ? waiting_begin(start) : 0; }
// After the call; of one that only starts something the end comes later.
static uint64_t end_of_call(uint64_t start, const MPI_Request *request) { return start != 0 && request == NULL ? probe_now() : 0; }

// ---- what is under way -------------------------------------------------------------------------
static atomic_flag busy = ATOMIC_FLAG_INIT; // of both tables of requests
static void lock(void) { while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) continue; }
static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

// Started and not known to be over. Where there are more, the end of some is not recorded.
static struct { MPI_Request request; struct probe_record *record; } under_way[UNDER_WAY];
static _Atomic int under_way_count;

static int place_under_way(MPI_Request request)
{
    int i = 0;
    while (i < under_way_count && under_way[i].request != request)
        i++;
    return i;
}

// Its record, or NULL where that is not known.
static struct probe_record *forget(MPI_Request request)
{
    struct probe_record *r = NULL;
    lock();
    int i = place_under_way(request);
    if (i < under_way_count) {
        r = under_way[i].record;
        under_way[i] = under_way[--under_way_count];
    }
    unlock();
    return r;
}

// A handle that is there already is used again: its old end was not seen.
static void remember(MPI_Request request, struct probe_record *r)
{
    lock();
    int i = place_under_way(request);
    if (i < UNDER_WAY) {
        under_way_count += i == under_way_count;
        under_way[i].request = request;
        under_way[i].record = r;
    }
    unlock();
}

static void ended(int count, const MPI_Request before[], const MPI_Request after[])
{
    for (int i = 0; i < count; i++) {
        struct probe_record *r = before[i] != after[i] ? forget(before[i]) : NULL;
        if (r != NULL)
            probe_ended(r, probe_now());
    }
}

#define COMPLETION(name, parameters, arguments, requests_) \
    int MPI_##name parameters \
    { \
        int requests = under_way_count > 0 ? requests_ : 0; \
        MPI_Request *all = FIRST_REQUEST_##requests_; \
        requests = requests < UNDER_WAY ? requests : UNDER_WAY; \
        MPI_Request before[requests + 1]; \
        if (requests > 0) \
            memcpy(before, all, (size_t)requests * sizeof *before); \
        uint64_t begin = waiting_begin(0); \
        int code = PMPI(name) arguments; \
        waiting_end(CALL_##name, begin, 0); \
        ended(requests, before, all); \
        return code; \
    }
#define FIRST_REQUEST_0 NULL
#define FIRST_REQUEST_1 q
#define FIRST_REQUEST_n q
MPI_COMPLETIONS(COMPLETION)

struct span { uint64_t start, end; }; // [ns]; end 0: it is not over

// request: of a nonblocking call, else NULL.
static void note(struct probe_record *r, struct span at, const MPI_Request *request)
{
    r->time_ns = at.start;
    struct probe_record *written = probe_append(r);
    if (written != NULL && at.end != 0)
        probe_ended(written, at.end);
    if (written != NULL && request != NULL)
        remember(*request, written);
}

// ---- collectives -------------------------------------------------------------------------------
struct members { MPI_Comm of; unsigned freed; int size, me, two_groups; };

// Asked once per thread and communicator, until one is freed, whose handle may come again.
static const struct members *members_of(MPI_Comm comm)
{
    static STATIC_TLS struct members kept[MEMBERS_KEPT];
    unsigned freed = atomic_load_explicit(&communicators_freed, memory_order_relaxed) + 1; // 0: an empty place
    struct members *m = &kept[(uintptr_t)comm / sizeof(uint64_t) % MEMBERS_KEPT];
    if (m->of == comm && m->freed == freed)
        return m;
    *m = (struct members){.of = comm, .freed = freed, .two_groups = 1};
    PMPI(Comm_test_inter)(comm, &m->two_groups);
    PMPI(Comm_size)(comm, &m->size);
    PMPI(Comm_rank)(comm, &m->me);
    return m;
}

#define FREES(name) \
    int MPI_##name(MPI_Comm *comm) \
    { \
        atomic_fetch_add(&communicators_freed, 1); \
        return PMPI(name)(comm); \
    }
FREES(Comm_free)
FREES(Comm_disconnect)

// False between two groups: their calls mean something else by root, count and rank.
static bool members(MPI_Comm comm, int64_t *n, int64_t *me)
{
    const struct members *m = members_of(comm);
    *n = m->size;
    *me = m->me;
    return !m->two_groups;
}

static void collective(int call, enum probe_op op, struct data_kind kind, int64_t count, int64_t wire, MPI_Comm comm, int64_t n, struct span at,
                       const MPI_Request *request)
{
    note(&(struct probe_record){.kind = PROBE_COLLECTIVE, .call = (uint16_t)call, .op = (uint8_t)op, .type = (uint8_t)kind.type,
                                .bytes = count * kind.size, .count = count, .address = (uint64_t)(uintptr_t)comm, .wire = (uint64_t)wire,
                                .size = (uint16_t)n, .peer = NO_PEER},
         at, request);
}

#define UNWRAP(...) __VA_ARGS__
#define WITH(list, ...) (UNWRAP list, __VA_ARGS__)
#define COLLECTIVE_BODY(name, arguments, op_, kind_, count_, wire_, request_) \
    { \
        uint64_t start = start_of_call(), begin = waits(start, request_); \
        int64_t n, me; \
        int code = PMPI(name) arguments; \
        uint64_t end = end_of_call(start, request_); \
        waiting_end(CALL_##name, begin, end); \
        if (start == 0 || code != MPI_SUCCESS) \
            return code; \
        if (!members(comm, &n, &me)) { \
            probe_unseen(PROBE_MISSED_TRAFFIC, CALL_##name, "MPI_" #name, start); \
            return code; \
        } \
        struct data_kind kind = kind_; \
        int64_t elements = count_, size = kind.size, bytes = elements * size; \
        (void)size, (void)bytes; \
        collective(CALL_##name, PROBE_##op_, kind, elements, wire_, comm, n, (struct span){start, end}, request_); \
        return code; \
    }
#define COLLECTIVE(name, nonblocking, parameters, arguments, op, kind, count, wire) \
    int MPI_##name parameters COLLECTIVE_BODY(name, arguments, op, kind, count, wire, no_request) \
    int MPI_##nonblocking WITH(parameters, MPI_Request *request) \
        COLLECTIVE_BODY(nonblocking, WITH(arguments, request), op, kind, count, wire, request)
MPI_COLLECTIVES(COLLECTIVE)

// ---- point to point ----------------------------------------------------------------------------
struct message { enum probe_op op; struct data_kind kind; int64_t count; int peer; MPI_Comm comm; };

static void point(int call, struct message m, struct span at, const MPI_Request *request)
{
    int64_t bytes = m.count * m.kind.size;
    if (m.peer == MPI_PROC_NULL)
        return;
    const struct members *in = members_of(m.comm);
    bool to_other = m.op == PROBE_OP_SEND && (in->two_groups || m.peer != in->me);
    note(&(struct probe_record){.kind = PROBE_POINT, .call = (uint16_t)call, .op = (uint8_t)m.op, .type = (uint8_t)m.kind.type, .bytes = bytes,
                                .count = m.count, .address = (uint64_t)(uintptr_t)m.comm, .wire = to_other ? (uint64_t)bytes : 0,
                                .size = (uint16_t)in->size, .peer = m.peer < 0 ? NO_PEER : (uint16_t)m.peer},
         at, request);
}

static struct message sending(int count, MPI_Datatype type, int to, MPI_Comm comm)
{
    return (struct message){PROBE_OP_SEND, kind_of(type), count, to, comm};
}
static struct message room(int count, MPI_Datatype type, int from, MPI_Comm comm)
{
    return (struct message){PROBE_OP_RECEIVE, kind_of(type), count, from, comm};
}
// What came, which may be less than there was room for.
static struct message came(const MPI_Status *status, int most, MPI_Datatype type, MPI_Comm comm)
{
    int count = MPI_UNDEFINED;
    struct message m = room(most, type, status->MPI_SOURCE, comm);
    if (PMPI(Get_count)(status, type, &count) == MPI_SUCCESS && count != MPI_UNDEFINED)
        m.count = count;
    return m;
}

// Persistent requests: what each start of one sends or offers room for.
static struct { MPI_Request request; struct message message; } persistent[PERSISTENT];
static int persistent_count;

static int place_of(MPI_Request request)
{
    for (int i = 0; i < persistent_count; i++)
        if (persistent[i].request == request)
            return i;
    return -1;
}

// Made before the first mark too: it may be started after it.
static void keep(MPI_Request request, struct message m)
{
    lock();
    if (persistent_count < PERSISTENT) {
        persistent[persistent_count].request = request;
        persistent[persistent_count++].message = m;
    }
    unlock();
}

static void started(int call, const char *name, MPI_Request request, uint64_t begin)
{
    lock();
    int i = place_of(request);
    struct message m = i >= 0 ? persistent[i].message : (struct message){0};
    unlock();
    if (i >= 0)
        point(call, m, (struct span){begin, probe_now()}, NULL);
    else
        probe_unseen(PROBE_MISSED_TRAFFIC, call, name, begin);
}

int MPI_Request_free(MPI_Request *request)
{
    lock();
    int i = place_of(*request);
    if (i >= 0)
        persistent[i] = persistent[--persistent_count];
    unlock();
    forget(*request);
    return PMPI(Request_free)(request);
}

int MPI_Start(MPI_Request *request)
{
    uint64_t start = start_of_call();
    int code = PMPI(Start)(request);
    if (start != 0 && code == MPI_SUCCESS)
        started(CALL_Start, "MPI_Start", *request, start);
    return code;
}

int MPI_Startall(int count, MPI_Request requests[])
{
    uint64_t start = start_of_call();
    int code = PMPI(Startall)(count, requests);
    for (int i = 0; start != 0 && code == MPI_SUCCESS && i < count; i++)
        started(CALL_Startall, "MPI_Startall", requests[i], start);
    return code;
}

// Runs the call, and notes `what` where it succeeded; request: of a nonblocking call, else NULL and it is a wait.
#define CALLED(name, arguments, what, request) \
    uint64_t start = start_of_call(), begin = waits(start, request); \
    int code = PMPI(name) arguments; \
    uint64_t end = end_of_call(start, request); \
    waiting_end(CALL_##name, begin, end); \
    if (start != 0 && code == MPI_SUCCESS) \
        point(CALL_##name, what, (struct span){start, end}, request); \
    return code
#define SENDER(name, nonblocking, lasting) \
    int MPI_##name(const void *b, int c, MPI_Datatype t, int to, int tag, MPI_Comm comm) \
    { \
        CALLED(name, (b, c, t, to, tag, comm), sending(c, t, to, comm), no_request); \
    } \
    int MPI_##nonblocking(const void *b, int c, MPI_Datatype t, int to, int tag, MPI_Comm comm, MPI_Request *request) \
    { \
        CALLED(nonblocking, (b, c, t, to, tag, comm, request), sending(c, t, to, comm), request); \
    } \
    int MPI_##lasting(const void *b, int c, MPI_Datatype t, int to, int tag, MPI_Comm comm, MPI_Request *request) \
    { \
        int code = PMPI(lasting)(b, c, t, to, tag, comm, request); \
        if (code == MPI_SUCCESS) \
            keep(*request, sending(c, t, to, comm)); \
        return code; \
    }
MPI_SENDS(SENDER)

int MPI_Recv_init(void *b, int c, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI(Recv_init)(b, c, t, from, tag, comm, request);
    if (code == MPI_SUCCESS)
        keep(*request, room(c, t, from, comm));
    return code;
}

int MPI_Irecv(void *b, int c, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    CALLED(Irecv, (b, c, t, from, tag, comm, request), room(c, t, from, comm), request);
}

int MPI_Recv(void *b, int c, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Status *wanted)
{
    MPI_Status own, *status = wanted != MPI_STATUS_IGNORE ? wanted : &own;
    CALLED(Recv, (b, c, t, from, tag, comm, status), came(status, c, t, comm), no_request);
}

// A matched message's communicator is not asked for: the receive is noted without.
static void matched(int call, int64_t count, MPI_Datatype type, int peer, struct span at, const MPI_Request *request)
{
    struct data_kind kind = kind_of(type);
    if (peer != MPI_PROC_NULL)
        note(&(struct probe_record){.kind = PROBE_POINT, .call = (uint16_t)call, .op = PROBE_OP_RECEIVE, .type = (uint8_t)kind.type,
                                    .bytes = count * kind.size, .count = count, .peer = peer < 0 ? NO_PEER : (uint16_t)peer},
             at, request);
}

int MPI_Mrecv(void *b, int c, MPI_Datatype t, MPI_Message *message, MPI_Status *wanted)
{
    uint64_t start = start_of_call(), begin = waits(start, no_request);
    MPI_Status own, *status = wanted != MPI_STATUS_IGNORE ? wanted : &own;
    int code = PMPI(Mrecv)(b, c, t, message, status), count = c;
    uint64_t end = end_of_call(start, no_request);
    waiting_end(CALL_Mrecv, begin, end);
    if (start != 0 && code == MPI_SUCCESS) {
        PMPI(Get_count)(status, t, &count);
        matched(CALL_Mrecv, count == MPI_UNDEFINED ? c : count, t, status->MPI_SOURCE, (struct span){start, end}, NULL);
    }
    return code;
}

int MPI_Imrecv(void *b, int c, MPI_Datatype t, MPI_Message *message, MPI_Request *request)
{
    uint64_t start = start_of_call();
    int code = PMPI(Imrecv)(b, c, t, message, request);
    if (start != 0 && code == MPI_SUCCESS)
        matched(CALL_Imrecv, c, t, MPI_ANY_SOURCE, (struct span){start, 0}, request);
    return code;
}

int MPI_Sendrecv(const void *s, int sn, MPI_Datatype st, int to, int to_tag, void *r, int rn, MPI_Datatype rt, int from, int from_tag, MPI_Comm comm,
                 MPI_Status *wanted)
{
    uint64_t start = start_of_call(), begin = waits(start, no_request);
    MPI_Status own, *status = wanted != MPI_STATUS_IGNORE ? wanted : &own;
    int code = PMPI(Sendrecv)(s, sn, st, to, to_tag, r, rn, rt, from, from_tag, comm, status);
    uint64_t end = end_of_call(start, no_request);
    waiting_end(CALL_Sendrecv, begin, end);
    if (start != 0 && code == MPI_SUCCESS) {
        point(CALL_Sendrecv, sending(sn, st, to, comm), (struct span){start, end}, NULL);
        point(CALL_Sendrecv, came(status, rn, rt, comm), (struct span){start, end}, NULL);
    }
    return code;
}

int MPI_Sendrecv_replace(void *b, int c, MPI_Datatype t, int to, int to_tag, int from, int from_tag, MPI_Comm comm, MPI_Status *wanted)
{
    uint64_t start = start_of_call(), begin = waits(start, no_request);
    MPI_Status own, *status = wanted != MPI_STATUS_IGNORE ? wanted : &own;
    int code = PMPI(Sendrecv_replace)(b, c, t, to, to_tag, from, from_tag, comm, status);
    uint64_t end = end_of_call(start, no_request);
    waiting_end(CALL_Sendrecv_replace, begin, end);
    if (start != 0 && code == MPI_SUCCESS) {
        point(CALL_Sendrecv_replace, sending(c, t, to, comm), (struct span){start, end}, NULL);
        point(CALL_Sendrecv_replace, came(status, c, t, comm), (struct span){start, end}, NULL);
    }
    return code;
}

// ---- one-sided ---------------------------------------------------------------------------------
#define ONE_SIDED(name, parameters, arguments) \
    int MPI_##name parameters \
    { \
        uint64_t start = start_of_call(); \
        int code = PMPI(name) arguments; \
        if (start != 0 && code == MPI_SUCCESS) \
            probe_unseen(PROBE_MISSED_TRAFFIC, CALL_##name, "MPI_" #name, start); \
        return code; \
    }
MPI_ONE_SIDED(ONE_SIDED)
