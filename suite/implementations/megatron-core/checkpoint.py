"""Checkpoints by megatron.core.dist_checkpointing, which loads them on other ranks than it saved them on.

The case's module is no MegatronModule and has no sharded_state_dict, so the ShardedTensors are made here as sharded_state_dict_default
(transformer/utils.py) makes them for such modules, each with the dimension that tensor ranks cut. The last stage's copy of a tied embedding is a
replica of the first one's, as LanguageModule.tie_embeddings_and_output_weights_state_dict has it. DistributedOptimizer's own state is saved in its
format `fully_reshardable`, the one that other numbers of stages and tensor ranks can load.
"""

import os
from contextlib import nullcontext

import torch
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.utils import make_sharded_tensor_for_checkpoint, make_tp_sharded_tensor_for_checkpoint


def sharded(name, tensor, cuts, tied):
    if name in cuts:
        return make_tp_sharded_tensor_for_checkpoint(tensor, name, cuts[name])
    if name in tied:
        replica = 1, 0, parallel_state.get_data_parallel_rank(with_context_parallel=True)
        return make_sharded_tensor_for_checkpoint(tensor, tied[name], replica_id=replica)
    return make_sharded_tensor_for_checkpoint(tensor, name)


def state(subject, loading):
    tied = {p.name: p.tied_to for p in subject.case.parameters if p.tied_to}
    model = {name: sharded(name, p, subject.cuts, tied) for name, p in subject.model.module.named_parameters()}
    metadata = {"distrib_optim_sharding_type": subject.option("checkpoint_format", "dp_reshardable")}
    return {"model": model, "optimizer": subject.optimizer.sharded_state_dict(model, is_loading=loading, metadata=metadata)}


def save(subject, folder):
    os.makedirs(folder, exist_ok=True)
    subject.world.barrier()
    dist_checkpointing.save(state(subject, loading=False), folder)


def load(subject, folder):
    loaded = dist_checkpointing.load(state(subject, loading=True), folder)
    subject.model.module.load_state_dict(loaded["model"], strict=not any(p.tied_to for p in subject.case.parameters))
    with torch.no_grad() if subject.option("load_without_grad", False) else nullcontext():
        subject.optimizer.load_state_dict(loaded["optimizer"])
