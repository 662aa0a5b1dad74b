// Claim: on every mesh R x S, size-1 axes included, the gradient is the mean over all R S ranks.
// Source: FSDP, section 3.2.2 (hybrid sharding): reduce-scatter within the shard group, all-reduce across replicas, divided by R S.
// How: gradients of hybrid cases against the truth, bitwise; scales R, S and N and the mean over one axis only are named.
// Catches: Z02 Z03 Z01
// Blind to: strategies without a mesh (step-bitwise judges them)
#include "harness/judge/exact.h"
#include "suite/checks/check.h"

static bool applies(const struct evidence *e)
{
    return exact_case(e) && (e->c->sharding.strategy == STRATEGY_HYBRID || case_data_ranks(e->c) == 1);
}

static void judge(const struct evidence *e, struct finding *f) { exact_judge(e, f, OBSERVE_GRAD, NULL, "Z02"); }

const struct check check_mesh_gradient = {
    .name = "mesh-gradient", .number = 6, .claim = "grad on mesh (R, S) = (1/(R S)) sum over all ranks, bitwise",
    .source = "FSDP section 3.2.2", .catches = "Z02 Z03 Z01", .blind = "strategies without a mesh", .applies = applies, .judge = judge};
