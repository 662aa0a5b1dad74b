// Looking at the engine's state: this rank's parts, and full tensors gathered to rank 0.
//
// Not part of a step: memory is allocated as needed, and the collectives are not counted as training traffic.
#ifndef REFERENCE_ENGINE_OBSERVE_H
#define REFERENCE_ENGINE_OBSERVE_H

#include "reference/engine/engine.h"

// kind is one enum observe_bit of case.h. CLIPPED is the gradient as it stands.
bool observe_present(const struct engine *e, enum observe_bit kind, int parameter);
enum dtype observe_dtype(const struct engine *e, enum observe_bit kind);
// The unit's array at rest (count) of that kind, on the engine's device `home`.
void *observe_shard(const struct engine *e, const struct unit *u, enum observe_bit kind);
// n of its elements from `first` on, to the host's memory.
void observe_read(const struct engine *e, const struct unit *u, enum observe_bit kind, int64_t first, int64_t n, void *to);
// True where this rank holds the whole of parameters, in the type of the parameters at rest.
bool observe_holds_all(const struct engine *e, enum observe_bit kind);
// Largest absolute value in the padding of all shards, gradients and states of a kind.
double observe_padding(const struct engine *e, enum observe_bit kind);

// what: a set of kinds. Adds "<kind>/<name>": this rank's part, one-dimensional; reads no other rank. The tensors own copies.
bool observe_local(const struct engine *e, unsigned what, struct tensors *out, struct error *error);
// Adds full tensors on rank 0, nothing on the others. Collective.
bool observe_full(struct engine *e, unsigned what, struct tensors *out, struct error *error);

#endif
