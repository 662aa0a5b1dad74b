// Which parameters are gathered, freed and reduced together: the FSDP units.
//
// What: a case's parameters name the block that they belong to ("" for none). A policy groups blocks into units:
//         block    every block is a unit;
//         root     there is one unit, the root;
//         size     consecutive blocks are merged until a unit has at least min_parameters elements;
//         pattern  the blocks whose name matches the glob are units.
//       What no unit takes is the root's. A tied parameter has no storage of its own and is in no unit.
// Why:  small units cost a collective's latency each, large ones cost memory while they are gathered.
#ifndef REFERENCE_SHARDING_WRAPPING_H
#define REFERENCE_SHARDING_WRAPPING_H

#include "harness/protocol/case.h"

struct wrapping {
    int unit_count;
    char **names;       // [unit_count] "" for the root
    int *unit_of;       // [parameter_count] unit that holds the parameter's storage (a tied one: of the shared storage)
    int *members;       // storages grouped by unit, in table order: unit u has members[first[u]] .. members[first[u + 1] - 1]
    int *first;         // [unit_count + 1]
};

// The root is unit 0 if it has parameters; the others follow in table order. Errors: no memory.
bool wrapping_create(struct wrapping *w, const struct fsdp_case *c, struct error *error);
void wrapping_free(struct wrapping *w);

#endif
