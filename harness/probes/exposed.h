// Exposed communication of a case, from its records: how long the thread that trains waited in each step.
//
// Of a step on a rank: the waits within its phases forward, backward, clip and step; and how long these phases lasted. Both are means over the
// ranks, for a rank that is early waits for one that is late. The result is the median over the steps with its interval; the first two
// steps are left out, in which frameworks lay out what they keep.
// It is an upper bound: a wait for anything else counts too, and communication that makes computation slower does not.
#ifndef HARNESS_PROBES_EXPOSED_H
#define HARNESS_PROBES_EXPOSED_H

#include "harness/statistics/statistics.h"
#include "harness/probes/summary.h"

enum { EXPOSED_SETTLED = 2 };      // steps that are left out

struct exposed {
    int steps;                     // that the figures are of
    struct interval waited_s, step_s, share;
    unsigned probes;               // those of them that saw the waits
};

// False with the reason where it was not seen: that is not 0.
bool exposed_of(const struct probe_case *by_rank, int ranks, struct exposed *out, char why[256]);

#endif
