// Waits of the thread that sets the marks, which several probes see: MPI's own, and the C library's (docs/probes.md, Exposed communication).
//
// Only the outermost of nested waits counts (MPI_Wait may poll or yield inside), and waits with less than WAITING_GAP_NS between them are one record:
// a program that waits by a loop of tests makes thousands in a millisecond. By the clock on the wall, which costs nothing to ask: the clock of
// processor time is a system call, and a step may test between any two of its computations. What is shorter than WAITING_LEAST_NS is dropped.
#ifndef HARNESS_PROBES_WAITING_H
#define HARNESS_PROBES_WAITING_H

#include <stdint.h>

enum { WAITING_GAP_NS = 5000, WAITING_LEAST_NS = 1000 };

// Around a call that may wait. Begin tells when, 0 where it does not count: another thread, or nothing is recorded. Errno stays.
uint64_t waiting_begin(void);
void waiting_end(int call, uint64_t begin);

#endif
