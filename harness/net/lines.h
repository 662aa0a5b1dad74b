// Which line the bytes of a point pass: the slowest on the ways between the ranks that talk to each other, and what it lets through at once.
//
// A line that several ranks share, of a host or of a group of hosts, counts whole: a ring passes it once, so that the ranks together may fill it.
#ifndef HARNESS_NET_LINES_H
#define HARNESS_NET_LINES_H

#include "harness/fabric/fabric.h"
#include "harness/net/point.h"

struct net_line { double rate, burst; }; // byte/s, bytes; 0: none is passed, or it is not known

// NULL: of a ring over all ranks. within: ranks of NET_WITHIN.
struct net_line net_line_of(const struct fabric_place *place, int ranks, int within, const struct net_point *point);

#endif
