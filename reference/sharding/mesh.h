// Where a rank sits: N = R x S ranks, R replicas of S shards each.
//
//   strategy            R  S
//   none                N  1    every rank holds everything; gradients are all-reduced over R
//   optimizer,grad,full 1  N    reduce-scatter and all-gather over S
//   hybrid              R  S    reduce-scatter over S, then all-reduce over R
//
// Rank r is shard r % S of replica r / S, so neighbours share a replica and the frequent traffic stays near.
#ifndef REFERENCE_SHARDING_MESH_H
#define REFERENCE_SHARDING_MESH_H

struct mesh { int replicas, shards, replica, shard; };

static inline struct mesh mesh_at(int replicas, int shards, int rank)
{
    return (struct mesh){replicas, shards, rank / shards, rank % shards};
}

#endif
