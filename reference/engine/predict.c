// The memory of a rank, predicted from the case alone: layouts, types, schedule and the model's sizes.
//
// With P_u elements of unit u, p_u = this rank's part, and w, c, r, g, a, k the bytes of an element at rest, computed,
// reduced, of gradients at rest, accumulated, and of optimizer state (each buffer rounded up to 64 bytes):
//
//   PARAM      sum_u w p_u  (+ c P_u where full parameters stay, which holds the shard itself where it can)
//   GRAD       sum_u g p_u; strategies none and optimizer: sum_u g P_u where the mean can lie in the full gradients (buffers_gradient_in_place)
//   OPTIM      states sum_u k p_u
//   UNSHARDED  c (root + turns * largest other unit) for parameters, the same for gradients; or c sum_u P_u without
//              resharding after forward; + c sum_u of this rank's part of k of P_u with reshard_ranks k; + a sum_u P_u where gradients wait for a synchronisation
//   ACT        microbatches in flight * (outputs + saved; and the batch, on a device that is not the host), two gradients of activations, scratch, two numbers
//   COMM       what is sent or received in another order or type; S parts of the largest unit for its sum
#include "reference/engine/buffers.h"
#include "reference/engine/fault.h"

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void predict_unit(const struct engine *e, const struct unit *u, struct arena_plan *device, struct arena_plan *home)
{
    int64_t P = u->layout.full_count, p = u->count;
    size_t w = dtype_size(e->parameter), c = dtype_size(e->compute), g = dtype_size(e->gradient), k = dtype_size(e->state_type);
    if (u->resident)
        arena_plan_add(device, ARENA_PARAM, P, c);
    if (!u->aliased)
        arena_plan_add(home, ARENA_PARAM, p, w);
    bool in_place = buffers_gradient_in_place(e);
    arena_plan_add(in_place ? device : home, ARENA_GRAD, in_place ? P : FAULT(gradients_kept_whole) ? most(P, p) : p, g);
    for (int s = 0; s < e->state_count; s++)
        arena_plan_add(home, ARENA_OPTIM, FAULT(states_of_all_shards) ? most(P, p) : p, k);
    if (buffers_accumulate(e) && !in_place)
        arena_plan_add(device, ARENA_UNSHARDED, P, dtype_size(e->accumulation));
    if (buffers_own_parameters(e, u)) {
        arena_plan_add(device, ARENA_UNSHARDED, P, c);
        if (buffers_reorder(e) && !buffers_share_receive(e))
            arena_plan_add(device, ARENA_COMM, P, c);
    }
    if (u->near_counts)
        arena_plan_add(device, ARENA_UNSHARDED, u->near_counts[e->comm.near->rank], c);
    if (buffers_own_gradient(e, u))
        arena_plan_add(device, ARENA_UNSHARDED, P, c);
}

static void predict_shared(const struct engine *e, struct arena_plan *device, struct arena_plan *host)
{
    int64_t P = 0, p = 0, parameters = 0, gradients = 0, replica = 0;
    size_t c = dtype_size(e->compute), r = dtype_size(e->reduce);
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        P = most(P, u->layout.full_count);
        p = most(p, u->count);
        replica = most(replica, backend_all_reduce_work(u->count, e->mesh.replicas));
        parameters = buffers_pooled_parameters(e, u) ? most(parameters, u->layout.full_count) : parameters;
        gradients = buffers_pooled_gradient(e, u) ? most(gradients, u->layout.full_count) : gradients;
    }
    for (int turn = 0; turn < buffers_parameter_turns(e); turn++) {
        arena_plan_add(device, ARENA_UNSHARDED, parameters, c);
        arena_plan_add(device, ARENA_COMM, buffers_reorder(e) ? parameters : 0, c);
    }
    for (int turn = 0; turn < buffers_gradient_turns(e); turn++)
        arena_plan_add(device, ARENA_UNSHARDED, gradients, c);
    bool one = (e->unit_count > 0 && e->units[0].resident) || buffers_share_receive(e);
    arena_plan_add(device, ARENA_COMM, one && buffers_reorder(e) ? P : 0, c);
    arena_plan_add(device, ARENA_COMM, buffers_pack(e) ? P : 0, r);
    arena_plan_add(device, ARENA_COMM, e->mesh.shards > 1 ? p * e->mesh.shards : 0, r);
    arena_plan_add(device, ARENA_COMM, e->mesh.replicas > 1 ? replica : 0, r);
    arena_plan_add(host, ARENA_COMM, e->offload ? p : 0, r);
    arena_plan_add(host, ARENA_COMM, buffers_cast_at_home(e) ? p : 0, c);
}

static void predict_activations(const struct engine *e, struct arena_plan *device)
{
    const struct model *m = &e->model;
    int64_t rows = e->rows_end - e->rows_first, out = 0, saved = 0;
    bool checkpointing = e->c->sharding.activation_checkpointing;
    for (int call = 0; call < m->call_count; call++) {
        int64_t o = (int64_t)model_out_bytes(m, call, rows), s = (int64_t)model_saved_bytes(m, call, rows);
        out = most(out, o);
        saved = most(saved, s);
        for (int i = 0; i < e->activation_count; i++) {
            arena_plan_add(device, ARENA_ACT, o, 1);
            arena_plan_add(device, ARENA_ACT, checkpointing ? 0 : s, 1);
        }
    }
    for (int i = 0; i < e->activation_count && !e->on->host; i++)
        arena_plan_add(device, ARENA_ACT, (int64_t)model_batch_bytes(e->c, rows), 1);
    arena_plan_add(device, ARENA_ACT, 2, sizeof *e->loss);
    arena_plan_add(device, ARENA_ACT, checkpointing ? saved : 0, 1);
    for (int i = 0; i < 2 + checkpointing; i++)
        arena_plan_add(device, ARENA_ACT, out, 1);
    arena_plan_add(device, ARENA_ACT, (int64_t)model_scratch_bytes(m, rows), 1);
}

void predict_memory(const struct engine *e, struct arena_plan *device, struct arena_plan *host)
{
    for (int i = 0; i < e->unit_count; i++)
        predict_unit(e, &e->units[i], device, e->offload ? host : device);
    predict_shared(e, device, host);
    predict_activations(e, device);
}
