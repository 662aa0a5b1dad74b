// Gates: an implementation is judged unsharded at one rank before any of its sharded cases. See gate.h.
//
// Why: a difference there is the adapter's or the framework's arithmetic and must not be reported as a
// sharding fault. At one rank the rank owns all rows, so the data, given by global row, stays meaningful.
#include "harness/cases/gate.h"

#include <stdlib.h>

#include "harness/protocol/memory.h"

void gate_make(struct fsdp_case *gate, const struct fsdp_case *c, const char *id)
{
    case_copy(gate, c);
    free(gate->id);
    free(gate->family);
    free(gate->sharding.wrap_pattern);
    gate->id = memory_text(id);
    gate->family = memory_text(id);
    gate->world_size = 1;
    gate->divergent_init = false;
    gate->sharding = (struct sharding_spec){.strategy = STRATEGY_NONE, .replicas = 1, .shards = 1, .tensor = 1, .pipeline = 1, .layout = SHARD_ANY,
                                            .reshard_after_forward = true, .wrap = WRAP_BLOCK, .wrap_pattern = memory_text("")};
    for (int i = 0; i < gate->program_length; i++) {
        gate->program[i].local = false;
        gate->program[i].sync = gate->program[i].verb == VERB_MICRO || gate->program[i].verb == VERB_BACKWARD;
    }
}
