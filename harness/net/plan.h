// Which points a run of `fsdpmark net` measures, from what was asked for. One row a measure in plan.c.
#ifndef HARNESS_NET_PLAN_H
#define HARNESS_NET_PLAN_H

#include "harness/net/point.h"
#include "harness/net/sizes.h"
#include "harness/net/units.h"

enum net_measure {
    NET_SWEEP,      // the four collectives by size
    NET_DIRECTIONS, // one way and both ways, between pairs of ranks
    NET_LINKS,      // from each rank to the next
    NET_MIXED,      // gathers of bfloat16
    NET_FORMS,      // nonblocking; in place
    NET_SHARDS,     // uneven and empty shards
    NET_ALIGNMENT,  // sizes and addresses around multiples of 16 bytes
    NET_TOGETHER,   // all-gather and reduce-scatter at the same time
    NET_TIERS,      // hybrid's two tiers, alone and at once
    NET_COMPUTE,    // beside a matrix product
    NET_UNIT_SIZES, // the units of a model
    NET_MEASURES
};
extern const char *const net_measure_names[NET_MEASURES + 1];

struct net_request {
    int ranks;
    int within;             // ranks of the inner tier; 0: no tiers
    unsigned measures;      // bit i: enum net_measure
    struct sizes sizes;     // of the sweep
    struct sizes few;       // of the other measures
    const struct net_units *units; // or NULL
};
struct net_plan { int count; struct net_point *points; };

// "sweep,together"; "all". Errors: the unknown name with the nearest.
bool net_measures_parse(const char *text, unsigned *out, struct error *error);
// Sizes that suit a line rate [byte/s], 0: unknown: from 8 bytes to 16 MiB, or what passes the line in 1.4 s: there what ends and begins a call, some 10 ms on
// an emulated line, is little beside it.
struct sizes net_default_sizes(double rate);
// Of the other measures: 64 KiB, 1 MiB and 8 MiB as far as the sweep goes, and on a slow line what passes it in a twentieth of a second; else the sweep's largest.
struct sizes net_default_few(const struct sizes *sweep, double rate);
// Errors: nothing to measure.
bool net_plan_make(const struct net_request *r, struct net_plan *out, struct error *error);
void net_plan_free(struct net_plan *p);

#endif
