// What a probe writes: one file per rank, a header and records of 64 bytes, mapped and shared.
//
// What: the file $FSDPMARK_JOB/probes.rank<R> (docs/probes.md). Every probe of a rank appends to the same file, in the order of the calls.
// How:  a record is claimed by adding 1 to header.next and is there once its `kind` is not 0, which is written last. So a rank may die
//       at any moment: what it had written stays, and a half-written record is one that is not there. A file that is full counts what
//       it lost. Nothing is computed here: sums, peaks and slopes are the harness's (summary.h).
// Both sides are on one machine and of one build: numbers are in its own byte order.
#ifndef HARNESS_PROBES_RECORD_H
#define HARNESS_PROBES_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#define PROBE_MAGIC "fsdpprb1"
#define PROBE_VERSION 3u
enum { PROBE_HEADER_BYTES = 4096, PROBE_RECORD_BYTES = 64, PROBE_PHASE_BYTES = 24 };

// A preloaded library each. Bit 1 << id of header.probes: it is loaded.
enum probe_id { PROBE_HEAP, PROBE_SOCKET, PROBE_MPI, PROBE_NCCL, PROBE_CUDA, PROBE_PAPI, PROBE_WAITS, PROBE_IDS };

enum probe_kind {
    PROBE_NOTHING,     // not, or not wholly, written
    PROBE_MARK,        // a phase begins: phase, step
    PROBE_COUNTER,     // value of a hardware or software counter over the phase that ends: PROBE_PAPI
    PROBE_HEAP_LIVE,   // bytes: change of the live bytes of the heap (usable size of the block), address: the block
    PROBE_MAP_LIVE,    // the same of anonymous mappings
    PROBE_DEVICE_LIVE, // the same of device memory
    PROBE_SEND,        // bytes that a socket has taken; address: the peer (below)
    PROBE_RECEIVE,     // bytes that a socket has given
    PROBE_CONNECT,     // a connection: address: the peer; or a communicator of NCCL: size, peer: this rank
    PROBE_COLLECTIVE,  // of MPI or NCCL: op, type, count, bytes, size
    PROBE_POINT,       // point to point of MPI or NCCL: op SEND or RECEIVE, peer
    PROBE_UNSEEN,      // a call whose bytes this probe cannot count; counter.event is its name, op: enum probe_missed
    PROBE_WAIT,        // the thread that sets the marks waited: time, duration; call: the first of it; count: calls in it
    PROBE_PROCESSOR,   // at a mark, since the note before, of 10 ms or more: bytes: processor time of the process [ns], count: of the thread that sets the marks
    PROBE_KINDS
};

// Collectives by what they do, whoever offers them; blocking and nonblocking alike.
enum probe_op {
    PROBE_OP_NONE, PROBE_ALL_GATHER, PROBE_REDUCE_SCATTER, PROBE_ALL_REDUCE, PROBE_BROADCAST, PROBE_REDUCE, PROBE_GATHER, PROBE_SCATTER,
    PROBE_ALL_TO_ALL, PROBE_BARRIER, PROBE_OP_SEND, PROBE_OP_RECEIVE, PROBE_OPS
};
enum probe_type { PROBE_TYPE_OTHER, PROBE_F32, PROBE_F64, PROBE_BF16, PROBE_F16, PROBE_BYTE, PROBE_I32, PROBE_I64,
                  PROBE_U16, PROBE_TYPES }; // U16: MPI has neither bf16 nor f16, so both travel as this
// What a reduction of NCCL's does; NONE where a call reduces nothing or does not say.
enum probe_reduction { PROBE_REDUCTION_NONE, PROBE_SUM, PROBE_PRODUCT, PROBE_MAX, PROBE_MIN, PROBE_AVERAGE, PROBE_REDUCTION_OTHER };

// A PROBE_COUNTER: `op` says what its value is of, `type` whether there is one.
enum probe_scope {
    PROBE_OF_PROCESS, // change over the phase, of all threads
    PROBE_OF_THREAD,  // of the thread that sets the marks alone
    PROBE_OF_MACHINE, // of everything on the machine: the same on all its ranks
    PROBE_LEVEL       // no change: the level at the end of the phase
};
enum probe_told { PROBE_COUNTED, PROBE_UNCOUNTED }; // UNCOUNTED: the event is not available, value is PAPI's error

enum probe_missed { PROBE_MISSED_TRAFFIC, PROBE_MISSED_MEMORY };

struct probe_record {
    uint64_t time_ns;    // CLOCK_MONOTONIC at the start of the call
    uint32_t kind;       // enum probe_kind; written last
    uint16_t call;       // place in the probe's table of calls: probe_calls
    uint8_t op, type;    // enum probe_op, probe_type
    union {
        struct {
            int64_t bytes;       // payload of this rank: see below; heap: negative where memory was freed
            int64_t count;       // elements of `bytes`; 0 where the call knows none
            uint64_t address;    // block; peer of a socket: IPv4 address << 16 | port, both in host order, 0: not IPv4; communicator
            uint64_t wire;       // collective: bytes that go to other ranks where each part is sent once, from the call's own counts
            uint32_t duration_ns;// of the call, at most UINT32_MAX; of a nonblocking one of MPI: see below
            uint16_t size;       // ranks of the communicator
            uint16_t peer;       // rank in it
            uint32_t thread;     // gettid
            uint8_t reduction;   // enum probe_reduction
            uint8_t grouped;     // 1: within ncclGroupStart and ncclGroupEnd
            uint16_t reserved;
        };
        struct { char phase[PROBE_PHASE_BYTES]; int32_t step; uint32_t mark_thread; int64_t small_live, small_peak; } mark;
        struct { char event[40]; int64_t value; } counter;
    };
};
_Static_assert(sizeof(struct probe_record) == PROBE_RECORD_BYTES, "a record is 64 bytes");
// Payload: bytes of the whole result of an all-gather and of the whole input of a reduce-scatter (all ranks' parts), of the buffer of
// the others; of what this rank sends to all, itself included, in an all-to-all.
// A nonblocking call of MPI lasts from its start until a wait or a test told the program that it is over, which is written into its record then: 0 as
// long as that has not been seen. Of persistent requests, and of NCCL, which only puts work on a stream, the call alone.

struct probe_header {
    char magic[8];
    uint32_t version, rank;
    uint64_t capacity;               // records that fit
    _Atomic uint64_t next, lost;     // claimed; not written for want of room
    _Atomic uint32_t probes;         // bits of enum probe_id
    uint32_t pid;
    int64_t small_bytes;             // heap blocks below this size have no record of their own:
    _Atomic int64_t small_live;      // their live bytes, which each mark notes, with
    _Atomic int64_t small_peak;      // their largest since the mark before
    _Atomic uint64_t room;           // records for which the file system has given room, at most capacity; the rest are holes
};

#endif
