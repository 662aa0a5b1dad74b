// Cases that one line may go through: those of a run that differ in the sizes of the model and in ranks alone.
#ifndef HARNESS_JUDGE_ALIKE_H
#define HARNESS_JUDGE_ALIKE_H

#include "harness/protocol/case.h"

// All but sizes, ranks, mesh and rows: the model's kind, the strategy and its options, precision, optimizer, program, the adapter's options.
bool alike_setting(const struct fsdp_case *a, const struct fsdp_case *b);
// Ranks, replicas and shards.
bool alike_mesh(const struct fsdp_case *a, const struct fsdp_case *b);

#endif
