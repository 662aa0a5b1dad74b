"""torch.distributed.fsdp.fully_shard (FSDP2) under the worker protocol.

Strategies: full; grad is reshard_after_forward=False, and set_reshard_after_backward(False) for all microbatches of a
step but the last (parameters stay gathered from the first forward to the last backward, and are sharded between steps);
hybrid is a 2-D mesh (replicate, shard). Each parameter is sharded by itself, by chunks of dim 0. A case's reshard_ranks is reshard_after_forward as a number: the size of the groups to reshard to. Option
compile: the torch.compile backend that each block is compiled with, whole, before it is sharded.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from fsdpmark_adapter import models
from fsdpmark_adapter.subject import DTYPE_NAMES, DTYPES, Subject, word
from fsdpmark_adapter.worker import serve


class Fsdp2(Subject):
    implementation = "pytorch-fsdp2"
    options = {"compile": str}

    @classmethod
    def unsupported_sharded(cls, case):
        sharding = case.sharding
        if sharding.strategy in ("none", "optimizer"):
            return f"fully_shard always shards parameters, asked for strategy {sharding.strategy}"
        if sharding.layout == "flat":
            return "fully_shard shards each parameter by itself, asked for the flat layout"
        if case.divergent_init:
            return "fully_shard shards what each rank holds and has no initial synchronisation"
        return None

    def data_mesh(self):
        sharding = self.case.sharding
        return self.world.mesh(sharding.mesh if sharding.strategy == "hybrid" else sharding.mesh[1:])

    def wrap(self, model):
        sharding, precision = self.case.sharding, self.case.precision
        keep = sharding.strategy == "grad" or not sharding.reshard_after_forward
        mixed = (precision.compute, precision.reduce) != (precision.parameter, precision.parameter)
        settings = {
            "mesh": self.data_mesh(),
            "reshard_after_forward": sharding.reshard_ranks or not keep,
            "mp_policy": MixedPrecisionPolicy(param_dtype=self.compute, reduce_dtype=DTYPES[precision.reduce])
            if mixed else MixedPrecisionPolicy(),
            "offload_policy": CPUOffloadPolicy(pin_memory=False) if sharding.offload == "cpu" else OffloadPolicy()}
        self.compile_blocks(model)
        groups = self.wrap_groups(model)
        for group in groups:
            fully_shard(group if len(group) > 1 else group[0], **settings)
        fully_shard(model, **settings)
        self.units = [model, *(group[0] for group in groups)]
        self.set_prefetch(sharding.prefetch)
        return model

    def compile_blocks(self, model):
        """Without graph breaks: what cannot be compiled is an error. Wrapped, so that fully_shard's hooks stay outside
        (a block's own compile() would trace them). Shapes of other cases are forgotten."""
        backend = self.option("compile", "")
        if backend:
            torch._dynamo.reset()
            for name in models.units(self.case):
                parent, _, leaf = name.rpartition(".")
                holder = model.get_submodule(parent)
                setattr(holder, leaf, torch.compile(holder.get_submodule(leaf), backend=backend, fullgraph=True))

    def set_prefetch(self, prefetch):
        """Explicit lists. By itself fully_shard prefetches one unit in the backward: that is what 1 means;
        a list that names only the unit itself, gathered already, turns it off."""
        for i, unit in enumerate(self.units):
            if prefetch.forward:
                unit.set_modules_to_forward_prefetch(self.units[i + 1:i + 1 + prefetch.forward])
            if prefetch.backward != 1:
                before = self.units[max(i - prefetch.backward, 0):i][::-1]
                unit.set_modules_to_backward_prefetch(before or [unit])

    def communication(self, sync):
        """Strategy grad keeps what is gathered until the step, as it would without sharded parameters."""
        if not self.plain:
            self.model.set_requires_gradient_sync(sync)
        if not self.plain and self.case.sharding.strategy == "grad":
            self.model.set_reshard_after_backward(self.ends_step)
        return nullcontext()

    def clip(self, norm, limit):
        total = torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), limit, norm_type=float(norm))
        return float(total.full_tensor() if isinstance(total, DTensor) else total)

    def held(self, name):
        if self.plain:
            return super().held(name)
        p = self.parameters[name]
        shape, offset = compute_local_shape_and_global_offset(p.shape, p.device_mesh, p.placements)
        row = torch.Size(p.shape[1:]).numel()
        length = torch.Size(shape).numel()
        return (offset[0] * row if length else 0), length

    def flatten(self, tensor):
        return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).reshape(-1)

    def shard_shape(self):
        """(whether there is a replicate axis, [R, S]) of the mesh that a parameter lies on."""
        mesh = next(iter(self.parameters.values())).device_mesh
        return mesh.ndim == 2, list(mesh.shape) if mesh.ndim == 2 else [1, mesh.size()]

    def configured(self):
        if self.plain:
            return super().configured()
        states = [unit._get_fsdp_state() for unit in self.units]
        group = next(group for state in states for group in state._fsdp_param_groups)
        hybrid, shape = self.shard_shape()
        policy = group.fsdp_params[0].mp_policy
        parameter = self.case.precision.parameter
        after = group.post_forward_mesh_info
        whole = after is None or after.shard_mesh_size == shape[1]
        offloaded = isinstance(group.offload_policy, CPUOffloadPolicy)
        backward = max(len([s for s in state._states_to_backward_prefetch if s is not state]) for state in states)
        implicit = not any(state._states_to_backward_prefetch for state in states)
        return {**super().configured(),
                "strategy": "hybrid" if hybrid else self.case.sharding.strategy,
                "mesh": f"{shape[0]}x{shape[1]}", "layout": "per_parameter",
                "reshard_after_forward": word(after is not None), "reshard_ranks": "0" if whole else str(after.shard_mesh_size),
                "wrap": self.case.sharding.wrap.policy, "units": str(sum(isinstance(m, FSDPModule) for m in self.model.modules())),
                "compute": DTYPE_NAMES[policy.param_dtype] if policy.param_dtype else parameter,
                "reduce": DTYPE_NAMES[policy.reduce_dtype] if policy.reduce_dtype else parameter,
                "compile": self.option("compile", "none"), "offload": "cpu" if offloaded else "none",
                "prefetch_forward": str(max(len(state._states_to_forward_prefetch) for state in states)),
                "prefetch_backward": "1" if implicit else str(backward)}


if __name__ == "__main__":
    serve(Fsdp2)
