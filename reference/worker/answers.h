// What the worker tells the harness about a running engine: the events of docs/protocol.md, through libfsdpmark.
#ifndef REFERENCE_WORKER_ANSWERS_H
#define REFERENCE_WORKER_ANSWERS_H

#include "harness/library/fsdpmark.h"
#include "reference/engine/engine.h"
#include "reference/worker/overlap.h"

// e NULL: the engine is not open, and what the case asks for is told.
bool answers_hello(fsdpmark *f, const struct fsdp_case *c, const struct engine *e, const struct comm_world *world);
// The three shards events, with the largest value found in the padding.
bool answers_shards(fsdpmark *f, const struct engine *e);
bool answers_memory(fsdpmark *f, const struct engine *e);
// o->steps 0: exposed communication was not measured.
bool answers_traffic(fsdpmark *f, const struct engine *e, const struct overlap *o);
// An observe instruction: local parts first, then the full tensors. Collective.
bool answers_observe(fsdpmark *f, struct engine *e, const struct fsdpmark_instruction *in, struct error *error);

#endif
