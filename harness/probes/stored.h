// What the probes of a case saw, as the results store keeps it: JSON of phases and of one step's calls, which the reports read back.
//
// {"ranks": [{"rank", "probes": "heap,mpi", "lost", "unseen", "unseen_call", "untracked", "untracked_call",
//             "phases": [{"name", "step", "us": [begin, end], "heap": [begin, end, peak], "map", "device",
//                         "traffic": [[kind, op, type, size, calls, bytes, wire, us]], "unseen", "wait": [calls, us], "counters": {event: value}}],
//             "step", "spans": [[kind, op, begin us, end us, bytes]]}]}
// Times count from the first mark of the case on any rank. What is 0 or empty is left out. Traffic of a phase is added up over peers.
// Spans are the communication and the waits of one step in the order of time, those of one kind with less than 1/500 of the step between them joined.
#ifndef HARNESS_PROBES_STORED_H
#define HARNESS_PROBES_STORED_H

#include <jansson.h>

#include "harness/probes/summary.h"

// Communication between two moments, seconds as in probe_phase.
struct probe_span { enum probe_kind kind; enum probe_op op; double begin_s, end_s; int64_t bytes; };

// Spans of a rank's file that begin within [begin_s, end_s]; owned by the caller. None where the file cannot be read.
int probe_spans(const char *path, double begin_s, double end_s, struct probe_span **out);
// The step that a timeline is drawn of: the last one that rank 0 ended, so that it is a warm one; -1: none. And when it began and ended there.
int probe_timeline_step(const struct probe_case *rank0);
bool probe_step_times(const struct probe_case *p, int step, double *begin_s, double *end_s);

// paths: of the ranks' files, for the spans; NULL: without.
json_t *probe_store(const struct probe_case *by_rank, int ranks, const char *const *paths);

struct probe_stored {
    int ranks;
    struct probe_case *by_rank;  // for probe_collective and its kin; not for probe_case_free
    int step;                    // of the spans, -1: none
    int *span_count;             // by rank
    struct probe_span **spans;
};
// False where it is not what probe_store makes; out is empty then. The texts are the JSON's own: it must stay.
bool probe_stored_read(json_t *stored, struct probe_stored *out);
void probe_stored_free(struct probe_stored *s);

#endif
