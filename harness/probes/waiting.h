// Waits of the thread that sets the marks, which several probes see: MPI's own, and the C library's (docs/probes.md, Exposed communication).
//
// Only the outermost of nested waits counts (MPI_Wait may poll or yield inside), and waits with less than WAITING_GAP_NS between them are one record:
// a program that waits by a loop of tests makes thousands in a millisecond. By the time on the wall, since a step may test between any two of its
// computations, and the clock of processor time is a system call. What is shorter than WAITING_LEAST_NS is dropped.
#ifndef HARNESS_PROBES_WAITING_H
#define HARNESS_PROBES_WAITING_H

#include <stdint.h>

enum { WAITING_GAP_NS = 5000, WAITING_LEAST_NS = 1000 };

// Around a call that may wait. Begin tells what end is given, 0 where it does not count: another thread, or nothing is recorded. Errno stays.
// Now: of probe_now, where the caller has asked already, else 0.
uint64_t waiting_begin(uint64_t now);
void waiting_end(int call, uint64_t begin, uint64_t now);
// For the recorder: at each mark, before its record.
void waiting_mark(uint64_t now);

#endif
