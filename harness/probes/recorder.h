// The library that all probes of a rank share (libfsdpmark-probe.so): the file, its records, and the phase marks.
//
// The file is $FSDPMARK_JOB/probes.rank$RANK; without FSDPMARK_PROBES nothing is recorded. It is opened by the first mark, so that a rank
// which was forked from a template has its own environment by then (docs/protocol.md, Templates).
// Every function may be called from any thread and inside malloc: none of them allocates.
#ifndef HARNESS_PROBES_RECORDER_H
#define HARNESS_PROBES_RECORDER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/probes/record.h"

// True once there is a file: what comes before the first mark is not of interest.
bool probe_recording(void);
// In a constructor of each probe.
void probe_loaded(enum probe_id id);
uint64_t probe_now(void); // CLOCK_MONOTONIC [ns], to 0.1 us
// Appends a copy of the record, with this thread's number; time_ns 0: now. Where it lies, or NULL: nothing is recorded, or the file is full.
struct probe_record *probe_append(const struct probe_record *r);
// Notes a call after which sums miss something (PROBE_UNSEEN). call: in the probe's table, else 0; time_ns 0: now.
void probe_unseen(enum probe_missed what, int call, const char *name, uint64_t time_ns);
// What an appended record is of lasts from its start until now [ns].
void probe_ended(struct probe_record *r, uint64_t now);
// Live bytes of blocks below header.small_bytes.
void probe_small(int64_t change);
int64_t probe_small_limit(void);
// Called at each mark, before its record is written: what PROBE_PAPI reads its counters in. At most four.
void probe_at_mark(void (*function)(const char *phase, int step));
// The function that `wrapper` stands before. Slow: keep what it returns. RTLD_NEXT is next to the library that asks, so this is inline; where
// the library was opened for its opener alone it is not found so (real.c). Ends the process where there is none.
void *probe_real_elsewhere(const char *name, const void *wrapper);
static inline void *probe_real(const char *name, const void *wrapper)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found != NULL && found != wrapper ? found : probe_real_elsewhere(name, wrapper);
}

// The symbol that workers look for: a phase begins, and lasts to the next mark.
void fsdpmark_mark(const char *phase, int step);
// For a benchmark of the probes alone: while it is paused nothing is recorded, live bytes neither. Before the first mark: nothing.
void fsdpmark_pause(int pause);

#endif
