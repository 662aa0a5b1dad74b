// What a fabric's own figures say against each other, in words: guidelines that a good collective library keeps, and what is lost where it does not.
//
// Each rule compares medians with their intervals: it holds against a figure only where the whole interval of the one lies beyond that of the other by more than
// the rule's tolerance, and both have samples enough (six) for an interval of 95 %. Source of the guidelines: Traeff, Gropp and Thakur, Self-Consistent MPI Performance Guidelines, IEEE TPDS 2010.
#ifndef HARNESS_NET_CONSISTENCY_H
#define HARNESS_NET_CONSISTENCY_H

#include "harness/net/rows.h"

enum { FINDINGS_MOST = 64, FINDING_TEXT = 480 };
struct net_finding {
    const char *rule;         // name of the row in consistency.c
    char text[FINDING_TEXT];  // one sentence
    bool violation;           // false: worth knowing
    double factor;            // how far, at the worst place
};
struct net_findings { int count; struct net_finding items[FINDINGS_MOST]; };

void net_consistency(const struct net_rows *rows, struct net_findings *out);

// fits.c: seconds = alpha + beta * bytes on the line, over the sizes of the sweep, for each collective of even shards that was measured at two sizes or more.
//
// A line that saves up what it may send lets a burst through at once: messages that fit into it tell nothing of its rate. Where two sizes or more are beyond the
// burst, those within that take more than NET_FIT_SHORT of the line are left out: beta is that of the line, and alpha that of the messages for which the rate hardly counts.
struct net_fit {
    enum net_op op;
    int points, beyond, left_out;   // sizes of the fit; those of them beyond the burst; those left out
    int64_t first, last;            // sizes [byte]
    double line_rate, burst;        // as those of a row
    struct alpha_beta fit;
};
enum { NET_FITS = NET_OPS };
static const double NET_FIT_SHORT = 0.1;
double net_fit_share(const struct net_fit *f); // of the line rate; 0 where that is not known
int net_fits(const struct net_rows *rows, struct net_fit fits[NET_FITS]);

#endif
