// The gate of a case: the same training at one rank without sharding.
#ifndef HARNESS_GATE_H
#define HARNESS_GATE_H

#include "harness/protocol/case.h"

// Makes the gate of a finished case under an id (where another case saves what it loads: of that one). Model, data, precision, optimizer, loss, rows and program stay;
// sharding, ranks, missing syncs and local observations go.
void gate_make(struct fsdp_case *gate, const struct fsdp_case *c, const char *id);

#endif
