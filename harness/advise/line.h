// Collectives in flight on shared lines, and the clock of one rank. Private to the cost model.
//
// What: a flight is a collective as a chain of phases (exchange.c). Flights whose phase has bytes on a line share it equally; latencies pass side by side.
//       The clock moves by computing, by waiting for a flight, and by calls of the library, which begin the next phase of what has ended one.
// How:  time goes from event to event: a latency, the bytes of a line or what may move unattended is used up. While the rank waits, the library is called all the
//       time; while it computes, only what the machine moves without a call does (struct machine: unattended_bytes, eager_bytes).
#ifndef HARNESS_ADVISE_LINE_H
#define HARNESS_ADVISE_LINE_H

#include "harness/advise/model.h"

enum { FLIGHTS = 40 };
struct flight {
    bool active;
    int phase, phase_count;
    struct phase phases[PHASES];
    int calls_needed;           // before anything of the phase moves
    double alpha_left, bytes_left[TIERS];
    double unattended_left;
};
struct line {
    const struct machine *m;
    double now, line_s;
    double credit[TIERS];       // bytes saved up: struct tier, burst_s
    int count, events, collectives;
    struct flight *flights[FLIGHTS];
};

void line_start(struct line *l, struct flight *f); // phases are filled in; none: it has ended at once
void line_compute(struct line *l, double seconds);
void line_call(struct line *l);                    // the library is called once
void line_wait(struct line *l, struct flight *f);

#endif
