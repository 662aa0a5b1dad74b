// A rank's records as the checks read them: one case, phase by phase.
//
// A phase lasts from its mark to the next one, on whatever thread. Phases of one name are kept apart and in order: the two forwards of two
// microbatches are two phases. What a rank records before the first mark of a case belongs to none.
#ifndef HARNESS_PROBES_SUMMARY_H
#define HARNESS_PROBES_SUMMARY_H

#include <stdbool.h>

#include "harness/protocol/error.h"
#include "harness/probes/record.h"

// Bytes and calls of one kind of collective, or of a direction of point to point or of the sockets.
struct probe_traffic {
    enum probe_kind kind;  // PROBE_COLLECTIVE, PROBE_POINT, PROBE_SEND, PROBE_RECEIVE
    enum probe_op op;
    enum probe_type type;
    int size;              // ranks of the communicator, 0: sockets
    uint64_t peer;         // sockets: address << 16 | port; else 0
    int64_t calls, bytes, wire; // as in record.h, added up
    double seconds;        // within the calls
    bool number;           // of collectives of at most 8 bytes a rank: a norm, a count of tokens
};

// Live bytes at the begin and the end of the phase, and the largest in it. From the first mark of the case on; it may be negative.
struct probe_live { int64_t begin, end, peak; };

// reason: 0, or PAPI's error where the event is not available; then there is no value.
struct probe_counter { const char *event; int64_t value; enum probe_scope scope; int reason; };

struct probe_phase {
    const char *name;          // "forward"
    int step;
    double begin_s, end_s;     // CLOCK_MONOTONIC; end of the last: its last record
    struct probe_live heap, map, device;
    int64_t unseen;            // calls in it that move bytes which no probe counts
    int64_t waits;             // calls in which the thread that sets the marks waited,
    double wait_s;             // and for how long
    double process_s, thread_s;// processor time of all its threads, and of that one
    bool on_device;            // some communication runs on a device: NCCL's
    int traffic_count;
    struct probe_traffic *traffic;
    int counter_count;
    struct probe_counter *counters;
};

struct probe_case {
    int rank;
    unsigned probes;           // bits of enum probe_id that were loaded
    int64_t lost;              // records for which there was no room
    int64_t unseen;            // calls that move bytes which no probe counts
    const char *unseen_call;   // the first of them
    int64_t untracked;         // calls after which memory may come or go that no probe counts
    const char *untracked_call;
    int phase_count;
    struct probe_phase *phases;
    void *owned;
};

// Reads the phases of the case with that place in job.json. Errors: no file, no header, damaged records, no mark of the case.
bool probe_read(const char *path, int place, struct probe_case *out, struct error *error);
void probe_case_free(struct probe_case *p);

// Whether a phase is of training: not "case", "observe", "save", "load" or the end; and of those that make an optimizer step: "forward", "backward",
// "clip", "step". Of an unknown phase neither.
bool probe_trains(const char *phase);
bool probe_of_step(const char *phase);
// Error: a phase that docs/probes.md does not have, whose records no check would take for anything.
bool probe_phases_known(const struct probe_case *p, struct error *error);
// Did the rank make calls in its training that may move bytes which no probe counts? Those at the start (a store that ranks meet at) are none of it.
bool probe_uncounted(const struct probe_case *p);
// Whether sums over a rank's training are of all that it moved, or held: no record is lost, and nothing is known to be missed.
bool probe_traffic_whole(const struct probe_case *p);
bool probe_memory_whole(const struct probe_case *p);
// Sums over phases whose name is `phase` (NULL: all of training) of steps >= first_step. Collectives with
// PROBE_OP_NONE: any; with PROBE_OP_SEND or _RECEIVE: point to point. Type and size of a sum of different ones: other and 0.
struct probe_traffic probe_collective(const struct probe_case *p, enum probe_op op, const char *phase, int first_step);
struct probe_traffic probe_wire(const struct probe_case *p, enum probe_kind kind, const char *phase, int first_step); // sockets, or all of MPI

// "heap,mpi" or "none" as a set of bits. Errors: another word.
bool probe_set(const char *words, unsigned *set, struct error *error);
void probe_set_text(unsigned set, char text[64]); // the other way; "" for none
const char *probe_name(enum probe_id id);      // "heap"
const char *probe_op_name(enum probe_op op);   // "all-gather"
const char *probe_type_name(enum probe_type t);// "f32", "other"
int probe_type_bytes(enum probe_type t);       // 0: other

#endif
