// The NCCL probe: what a worker asks of NCCL, call by call.
//
// What: a wrapper of every collective and point-to-point call (nccl_calls.h), and of what makes communicators. One record a call that NCCL
//       took; a new communicator is a record too. Calls between ncclGroupStart and ncclGroupEnd are marked `grouped`.
// How:  the payload is of the call's arguments; size and rank are asked of NCCL, ncclCommCount and ncclCommUserRank, as it is on this machine:
//       no header of NCCL is needed to build this. The numbers of types and operators are those of nccl.h 2.30; what it does not have is unseen or another.
// Blind to: ncclPutSignal, noted as unseen; kernels that use NCCL's device interface; what NCCL moves for itself. Time is that of the
//       call, which only puts work on a stream.
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/probes/preload/calls.h"
#include "harness/probes/preload/nccl_calls.h"
#include "harness/probes/recorder.h"

// nccl.h's types, as they are passed: enums are ints, handles are pointers.
typedef int nccl_result, nccl_type, nccl_op;
typedef struct ncclComm *nccl_comm;
typedef struct CUstream_st *nccl_stream;
typedef struct { char internal[128]; } nccl_id;
enum { no_reduction = -1, no_peer = UINT16_MAX, NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

#define NAMES(name, ...) CALL_##name,
enum { CALL_FIRST = CALLS_NCCL - 1, NCCL_CALLS(NAMES) NCCL_COMMUNICATORS(NAMES) NCCL_ONE_SIDED(NAMES) CALL_END };

#define REAL(name) __extension__({ \
    static _Atomic(void *) real_; \
    if (real_ == NULL) \
        real_ = probe_real(#name, (const void *)name); \
    (__typeof__(&name))real_; })

static const struct { enum probe_type type; int size; } types[] = {
    {PROBE_BYTE, 1}, {PROBE_BYTE, 1}, {PROBE_I32, 4}, {PROBE_TYPE_OTHER, 4}, {PROBE_I64, 8}, {PROBE_TYPE_OTHER, 8},
    {PROBE_F16, 2}, {PROBE_F32, 4}, {PROBE_F64, 8}, {PROBE_BF16, 2}, {PROBE_TYPE_OTHER, 1}, {PROBE_TYPE_OTHER, 1}}; // by ncclDataType_t
static const uint8_t reductions[] = {PROBE_SUM, PROBE_PRODUCT, PROBE_MAX, PROBE_MIN, PROBE_AVERAGE}; // by ncclRedOp_t

#pragma GCC visibility push(default) // what the worker calls
static _Thread_local int depth;  // of ncclGroupStart
static _Thread_local int inside; // of calls here: NCCL makes some of its calls by others (ncclBcast by ncclBroadcast)

__attribute__((constructor)) static void load(void) { probe_loaded(PROBE_NCCL); }

// Of the outermost call; 0: nothing is noted.
static uint64_t start_of_call(void) { return inside++ == 0 && probe_recording() ? probe_now() : 0; }
static nccl_result done(nccl_result result)
{
    inside--;
    return result;
}

static void note(struct probe_record *r, uint64_t start)
{
    uint64_t took = probe_now() - start;
    r->time_ns = start;
    r->duration_ns = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    r->grouped = depth > 0;
    probe_append(r);
}

nccl_result ncclCommCount(nccl_comm comm, int *count);
nccl_result ncclCommUserRank(nccl_comm comm, int *rank);

// NCCL's own two questions; false where there is no answer (a communicator that is still being made).
static bool members(nccl_comm comm, int64_t *n, int64_t *me)
{
    static _Atomic(void *) count, rank;
    int size = 0, place = 0;
    if (count == NULL)
        count = probe_real("ncclCommCount", NULL);
    if (rank == NULL)
        rank = probe_real("ncclCommUserRank", NULL);
    if (((__typeof__(&ncclCommCount))count)(comm, &size) != NCCL_SUCCESS || ((__typeof__(&ncclCommUserRank))rank)(comm, &place) != NCCL_SUCCESS)
        return false;
    *n = size;
    *me = place;
    return size > 0;
}

static uint8_t reduction_of(int f)
{
    if (f == no_reduction)
        return PROBE_REDUCTION_NONE;
    return f >= 0 && f < (int)sizeof reductions ? reductions[f] : PROBE_REDUCTION_OTHER;
}

// A type of a version that is not known yet has no size: unseen.
#define WRAPPER(name, parameters, arguments, kind_, op_, reduction_, count_, wire_, peer_) \
    nccl_result name parameters; \
    nccl_result name parameters \
    { \
        uint64_t start = start_of_call(); \
        nccl_result result = done(REAL(name) arguments); \
        int64_t n = 0, me = 0; \
        if (start == 0 || (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)) \
            return result; \
        if (t < 0 || t >= (int)(sizeof types / sizeof *types) || !members(comm, &n, &me)) { \
            probe_unseen(PROBE_MISSED_TRAFFIC, CALL_##name, #name, start); \
            return result; \
        } \
        int64_t count = (int64_t)c, size = types[t].size, elements = count_, bytes = elements * size; \
        note(&(struct probe_record){.kind = PROBE_##kind_, .call = CALL_##name, .op = PROBE_##op_, .type = (uint8_t)types[t].type, .bytes = bytes, \
                                    .count = elements, .address = (uint64_t)(uintptr_t)comm, .wire = (uint64_t)(wire_), .size = (uint16_t)n, \
                                    .peer = (uint16_t)(peer_), .reduction = reduction_of(reduction_)}, \
             start); \
        return result; \
    }
NCCL_CALLS(WRAPPER)

// ---- communicators -----------------------------------------------------------------------------
// Within a group, or where making it does not wait, the communicator is not there yet: then `size` and `peer` are the call's, or 0.
static nccl_result made(int call, nccl_result result, nccl_comm *comm, int64_t n, int64_t me, uint64_t start)
{
    if (start == 0 || (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS))
        return result;
    if (n == 0 && result == NCCL_SUCCESS && depth == 0 && *comm != NULL)
        members(*comm, &n, &me);
    note(&(struct probe_record){.kind = PROBE_CONNECT, .call = (uint16_t)call, .address = (uint64_t)(uintptr_t)*comm, .size = (uint16_t)n,
                                .peer = (uint16_t)me},
         start);
    return result;
}

#define COMMUNICATOR(name, parameters, arguments, comm, n, me) \
    nccl_result name parameters; \
    nccl_result name parameters \
    { \
        uint64_t start = start_of_call(); \
        return made(CALL_##name, done(REAL(name) arguments), comm, n, me, start); \
    }
COMMUNICATOR(ncclCommInitRank, (nccl_comm *comm, int n, nccl_id id, int me), (comm, n, id, me), comm, n, me)
COMMUNICATOR(ncclCommInitRankConfig, (nccl_comm *comm, int n, nccl_id id, int me, void *config), (comm, n, id, me, config), comm, n, me)
COMMUNICATOR(ncclCommInitRankScalable, (nccl_comm *comm, int n, int me, int count, nccl_id *ids, void *config), (comm, n, me, count, ids, config), comm,
             n, me)
COMMUNICATOR(ncclCommSplit, (nccl_comm old, int color, int key, nccl_comm *comm, void *config), (old, color, key, comm, config), comm, 0, 0)
COMMUNICATOR(ncclCommShrink, (nccl_comm old, int *without, int count, nccl_comm *comm, void *config, int flags),
             (old, without, count, comm, config, flags), comm, 0, 0)

nccl_result ncclCommInitAll(nccl_comm *comms, int n, const int *devices);
nccl_result ncclCommInitAll(nccl_comm *comms, int n, const int *devices)
{
    uint64_t start = start_of_call();
    nccl_result result = done(REAL(ncclCommInitAll)(comms, n, devices));
    for (int i = 0; i < n; i++)
        made(CALL_ncclCommInitAll, result, &comms[i], n, i, start);
    return result;
}

// The end of one is noted as one of no ranks.
#define END(name) \
    nccl_result name(nccl_comm comm); \
    nccl_result name(nccl_comm comm) \
    { \
        uint64_t start = start_of_call(); \
        nccl_result result = done(REAL(name)(comm)); \
        if (start != 0 && result == NCCL_SUCCESS) \
            note(&(struct probe_record){.kind = PROBE_CONNECT, .call = CALL_##name, .address = (uint64_t)(uintptr_t)comm}, start); \
        return result; \
    }
END(ncclCommDestroy)
END(ncclCommAbort)

// ---- groups ------------------------------------------------------------------------------------
nccl_result ncclGroupStart(void);
nccl_result ncclGroupStart(void)
{
    nccl_result result = REAL(ncclGroupStart)();
    depth += result == NCCL_SUCCESS;
    return result;
}

nccl_result ncclGroupEnd(void);
nccl_result ncclGroupEnd(void)
{
    depth -= depth > 0;
    return REAL(ncclGroupEnd)();
}

// ---- one-sided ---------------------------------------------------------------------------------
nccl_result ncclPutSignal(const void *s, size_t c, nccl_type t, int to, void *window, size_t at, int signal, int context, unsigned flags,
                          nccl_comm comm, nccl_stream q);
nccl_result ncclPutSignal(const void *s, size_t c, nccl_type t, int to, void *window, size_t at, int signal, int context, unsigned flags,
                          nccl_comm comm, nccl_stream q)
{
    uint64_t start = start_of_call();
    nccl_result result = done(REAL(ncclPutSignal)(s, c, t, to, window, at, signal, context, flags, comm, q));
    if (start != 0 && result == NCCL_SUCCESS)
        probe_unseen(PROBE_MISSED_TRAFFIC, CALL_ncclPutSignal, "ncclPutSignal", start);
    return result;
}
