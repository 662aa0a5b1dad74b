// What the worker tells the harness about a running engine: the events of docs/protocol.md.
#ifndef REFERENCE_WORKER_ANSWERS_H
#define REFERENCE_WORKER_ANSWERS_H

#include "harness/protocol/answer.h"
#include "reference/engine/engine.h"

// c NULL: the case could not be read; e NULL: the engine is not open.
bool answers_hello(struct answer_writer *w, const char *id, const struct fsdp_case *c, const struct engine *e,
                   const struct comm_world *world);
// The three shards events, with the largest value found in the padding.
bool answers_shards(struct answer_writer *w, const struct engine *e);
bool answers_memory(struct answer_writer *w, const struct engine *e);
bool answers_traffic(struct answer_writer *w, const struct engine *e);
// An observe instruction: local parts first, then the full tensors. Collective.
bool answers_observe(struct answer_writer *w, struct engine *e, const struct instruction *in, struct error *error);

#endif
