// What a rank differentiates, so that the mean of the gradients over ranks is right.
//
//   sum             N sum_r(w l)
//   mean_of_tokens  N sum_r(w l) / W, W = sum of w over all ranks and microbatches of the step: all-reduced once a step
//   mean_of_ranks   sum_r(w l) / sum_r(w), both over the rank's own rows of the microbatch; 0 where it has no weight
//
// times the loss scale. The share reported is that over N and without the loss scale.
#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

static double own_weight(const struct engine *e, int step, int micro)
{
    return model_weight_sum(e->c, e->data, step, micro, e->rows_first, e->rows_end);
}

static bool count_tokens(struct engine *e, int step, struct error *error)
{
    const struct tensor *weight = tensors_find(e->data, "weight");
    if (e->tokens_step == step)
        return true;
    if (!weight || weight->dims < 2)
        return error_set(error, "data: no tensor 'weight' (steps, micros, rows, ...)");
    e->tokens = 0;
    for (int micro = 0; micro < weight->shape[1]; micro++)
        e->tokens += own_weight(e, step, micro);
    e->tokens_step = step;
    if (FAULT(tokens_of_own_rank)) {
        e->tokens *= e->ranks;
        return true;
    }
    return comm_scalars(&e->comm, &e->comm.world->all, REDUCE_SUM, &e->tokens, 1, error);
}

bool loss_prepare(struct engine *e, int step, int micro, struct activation *a, struct error *error)
{
    double scale = e->ranks;
    if (!model_batch_at(e->c, e->data, step, micro, e->rows_first, e->rows_end, a->x, &a->batch, error))
        return false;
    if (e->c->loss == LOSS_MEAN_OF_TOKENS) {
        if (!count_tokens(e, step, error))
            return false;
        scale = e->ranks / e->tokens;
    }
    if (e->c->loss == LOSS_MEAN_OF_RANKS) {
        double weight = own_weight(e, step, micro);
        scale = weight > 0 ? 1 / weight : 0;
    }
    a->share = scale / e->ranks;
    if (a->batch_memory)
        model_batch_upload(e->c, e->on, a->batch_memory, a->x, &a->batch);
    a->batch.scale = scale * e->scale.value;
    return true;
}
