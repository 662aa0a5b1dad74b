// The FSDP units of a model: how many elements are gathered and reduced together, and in which types.
#ifndef HARNESS_NET_UNITS_H
#define HARNESS_NET_UNITS_H

#include "harness/protocol/case.h"

enum { NET_UNITS = 32 };
struct net_unit { char label[64]; int64_t count; int times; }; // of the first unit of that size, and how many there are
struct net_units {
    char *name;                  // of the case
    enum dtype gather, reduce;   // of the gathered parameters and of the reduction
    int count;
    struct net_unit units[NET_UNITS];
};

// From a case: the units of its wrapping policy, those of equal size as one. Errors: more than NET_UNITS sizes.
bool net_units_of(const struct fsdp_case *c, struct net_units *out, struct error *error);
// file: a case.json, a YAML file of cases, or NULL for the suite's own; pattern: which of them, the first whose id matches the glob or holds the text; NULL: the first.
bool net_units_read(const char *file, const char *pattern, const char *suite, struct net_units *out, struct error *error);
void net_units_free(struct net_units *u);

#endif
