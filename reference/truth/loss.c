// The factor of a rank's loss. See loss.h and "The loss" in docs/protocol.md.
#include "reference/truth/loss.h"

#include "reference/models/model.h"

static double inverse(double weights)
{
    return weights == 0 ? 0 : 1 / weights;
}

double loss_rank_factor(const struct fsdp_case *c, const struct tensors *data, int step, int micro, int rank, int n)
{
    int64_t first, end;
    double whole = 0;
    switch (c->loss) {
    case LOSS_SUM: return n;
    case LOSS_MEAN_OF_TOKENS:
        for (int m = 0; m < c->data.micros; m++)
            whole += model_weight_sum(c, data, step, m, 0, c->global_rows);
        return n * inverse(whole);
    case LOSS_MEAN_OF_RANKS:
        case_rows(c, rank, n, &first, &end);
        return inverse(model_weight_sum(c, data, step, micro, first, end));
    }
    return 0;
}
