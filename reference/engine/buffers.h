// Which buffers a case needs: the decisions that the plan of the memory and its allocation share.
//
// Why: predict.c adds up sizes by these rules, buffers.c takes memory by them, and the arenas check one against the other.
#ifndef REFERENCE_ENGINE_BUFFERS_H
#define REFERENCE_ENGINE_BUFFERS_H

#include "reference/engine/engine.h"

// Unsynchronised gradients are kept full: strategy optimizer, or a program with a microbatch that does not synchronise.
bool buffers_accumulate(const struct engine *e);
// The mean takes the place of the full gradients that it was made of: where both are whole, and no backward comes between a reduction and zero_grad.
bool buffers_gradient_in_place(const struct engine *e);
// One buffer receives the shards of all units that keep their parameters, one after another: no gather is started before the last has ended.
bool buffers_share_receive(const struct engine *e);
// The unit gathers into a buffer of its own: the root, and all where nothing is dropped after forward.
bool buffers_own_parameters(const struct engine *e, const struct unit *u);
bool buffers_pooled_parameters(const struct engine *e, const struct unit *u);
// The unit's full gradient is a buffer of its own: the root, and units that a pass reads again later.
bool buffers_own_gradient(const struct engine *e, const struct unit *u);
bool buffers_pooled_gradient(const struct engine *e, const struct unit *u);
// Turns in the pools: what one call reads, and what is in flight beside it.
int buffers_parameter_turns(const struct engine *e);
int buffers_gradient_turns(const struct engine *e);
// Gradients are copied, in another order or type, before they are sent.
bool buffers_pack(const struct engine *e);
// The shards of a gather arrive in another order than that of the full buffer.
bool buffers_reorder(const struct engine *e);
// Shards that are cast on their way from the host to a device are cast in a buffer of the host.
bool buffers_cast_at_home(const struct engine *e);

// Takes everything from the arenas. Errors: no memory; a figure that is not the predicted one.
bool buffers_create(struct engine *e, struct error *error);
void buffers_free(struct engine *e);

#endif
