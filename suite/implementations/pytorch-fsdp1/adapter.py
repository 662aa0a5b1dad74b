"""torch.distributed.fsdp.FullyShardedDataParallel (FSDP1) under the worker protocol.

Strategies: full is FULL_SHARD; grad, and full without reshard_after_forward, are SHARD_GRAD_OP (parameters
stay gathered from the forward to the backward); none is NO_SHARD; hybrid is HYBRID_SHARD on a 2-D mesh, _HYBRID_SHARD_ZERO2 without
reshard_after_forward. A unit's parameters are concatenated, padded and cut equally. Options: use_orig_params (true: the optimizer sees
each parameter as a view; false: a unit's flat parameter), state_dict (sharded, or full: whole tensors in one file of rank 0).
"""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch
from torch.distributed.fsdp import (BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig,
                                    FullyShardedDataParallel, MixedPrecision, ShardingStrategy, StateDictType)
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

from fsdpmark_adapter import flat
from fsdpmark_adapter.models import clean
from fsdpmark_adapter.subject import DTYPE_NAMES, DTYPES, STATE_KEYS, Subject, word
from fsdpmark_adapter.worker import serve

STRATEGIES = {"none": ShardingStrategy.NO_SHARD, "grad": ShardingStrategy.SHARD_GRAD_OP, "full": ShardingStrategy.FULL_SHARD,
              "hybrid": ShardingStrategy.HYBRID_SHARD}
KEPT = {"full": ShardingStrategy.SHARD_GRAD_OP, "hybrid": ShardingStrategy._HYBRID_SHARD_ZERO2}  # without reshard after the forward
FILL = 42  # what FSDP1 puts between parameters to align them (torch/distributed/fsdp/_flat_param.py, _FLAT_PARAM_PADDING_VALUE)
NAMES = {strategy: name for name, strategy in [*KEPT.items(), *STRATEGIES.items()]}


class Fsdp1(Subject):
    implementation = "pytorch-fsdp1"
    options = {"use_orig_params": bool, "state_dict": str}
    use_orig_params = "true"  # unless the option says otherwise
    note = f"padding_max counts the distance from {FILL} where FSDP1 fills the space between parameters with it"

    @classmethod
    def unsupported_sharded(cls, case):
        sharding = case.sharding
        if sharding.strategy not in STRATEGIES:
            return f"FullyShardedDataParallel has no strategy {sharding.strategy}"
        if sharding.layout == "per_parameter":
            return "FullyShardedDataParallel shards flat, asked for the per_parameter layout"
        if not torch.cuda.is_available() and sharding.offload == "cpu":
            return "FullyShardedDataParallel pins the memory of offloaded parameters, which needs a GPU"
        if not torch.cuda.is_available() and case.divergent_init:
            return "sync_module_states, its initial synchronisation, needs parameters on a GPU"
        if case.options.get("use_orig_params", cls.use_orig_params) == "false" and case.optimizer.no_decay:
            return "without use_orig_params the optimizer sees a unit's flat parameter, which cannot be in two groups of decay"
        if sharding.wrap.policy == "size":
            return "FullyShardedDataParallel wraps one module at a time, not several blocks as one unit"
        if sharding.prefetch.forward > 1 or sharding.prefetch.backward > 1:
            return "FullyShardedDataParallel prefetches one unit at most"
        return None

    def wrap(self, model):
        sharding, precision = self.case.sharding, self.case.precision
        strategy = (STRATEGIES if sharding.reshard_after_forward else STRATEGIES | KEPT)[sharding.strategy]
        mixed = (precision.compute, precision.reduce) != (precision.parameter, precision.parameter)
        settings = {
            "sharding_strategy": strategy, "use_orig_params": self.option("use_orig_params", self.use_orig_params == "true"), "device_id": self.world.device,
            "device_mesh": self.world.mesh(sharding.mesh if sharding.strategy == "hybrid" else [self.world.size]),
            "backward_prefetch": BackwardPrefetch.BACKWARD_PRE if sharding.prefetch.backward else None,
            "forward_prefetch": sharding.prefetch.forward > 0, "sync_module_states": self.case.divergent_init,
            "cpu_offload": CPUOffload(offload_params=True) if sharding.offload == "cpu" else None,
            "mixed_precision": MixedPrecision(param_dtype=self.compute, reduce_dtype=DTYPES[precision.reduce]) if mixed else None}
        units = {id(module) for group in self.wrap_groups(model) for module in group}
        for name, module in reversed([(n, m) for n, m in model.named_modules() if id(m) in units]):
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, FullyShardedDataParallel(module, **settings))
        return FullyShardedDataParallel(model, **settings)

    def named_parameters(self):
        """Also where each one lies in the flat parameter of its unit: the unit's handle and the index in it. Without
        use_orig_params the flat parameters themselves, by the name of their first."""
        self.places = {}
        if not self.plain:
            for prefix, unit in self.model.named_modules():
                if isinstance(unit, FullyShardedDataParallel) and unit._handle:
                    for i, name in enumerate(unit._handle.flat_param._fqns):
                        self.places[clean(f"{prefix}.{name}".removeprefix("."))] = unit._handle, i
        self.flat = bool(self.places) and not any(handle._use_orig_params for handle, _ in self.places.values())
        if not self.flat:
            return super().named_parameters()
        return {name: handle.flat_param for name, (handle, i) in self.places.items() if i == 0}

    def require_grad(self, pattern, wanted):
        if not self.flat:
            return super().require_grad(pattern, wanted)
        flat.require_grad({name: handle.flat_param for name, (handle, _) in self.places.items()}, pattern, wanted)

    # ---- checkpoints ----
    def full_state(self, rank0_only):
        settings = {"offload_to_cpu": rank0_only and self.world.size > 1, "rank0_only": rank0_only}
        return FullyShardedDataParallel.state_dict_type(self.model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(**settings),
                                                        FullOptimStateDictConfig(**settings))

    def save(self, folder):
        if self.plain or self.option("state_dict", "sharded") != "full":
            return super().save(folder)
        os.makedirs(folder, exist_ok=True)
        with self.full_state(rank0_only=True):
            state = {"model": self.model.state_dict(), "optimizer": FullyShardedDataParallel.optim_state_dict(self.model, self.optimizer)}
        if self.world.rank == 0:
            torch.save(state, Path(folder, "checkpoint.pt"))
        self.world.barrier()

    def load(self, folder):
        if self.plain or self.option("state_dict", "sharded") != "full":
            return super().load(folder)
        state = torch.load(Path(folder, "checkpoint.pt"), map_location=self.world.device)
        with self.full_state(rank0_only=False):
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(self.model, self.optimizer, state["optimizer"]))

    # ---- training ----
    def scaler_class(self):
        return torch.amp.GradScaler if self.plain else ShardedGradScaler

    def communication(self, sync):
        return nullcontext() if sync or self.plain else self.model.no_sync()

    def clip(self, norm, limit):
        return super().clip(norm, limit) if self.plain else float(self.model.clip_grad_norm_(limit, norm_type=float(norm)))

    # ---- what is held ----
    def span(self, name):
        """(offset in the parameter, offset in the rank's shard, length); length 0 where the rank holds nothing of it."""
        handle, i = self.places[name]
        info = handle.flat_param._shard_param_infos[i]
        return (info.intra_param_start_idx, info.offset_in_shard, info.numel_in_shard) if info.in_shard else (0, 0, 0)

    def held(self, name):
        if self.plain:
            return super().held(name)
        offset, _, length = self.span(name)
        return offset, length

    def shard(self, handle):
        """The rank's storage of a unit, padding included, whether or not the unit is gathered now. The framework
        sets the attribute at the first forward pass; before, the flat parameter is the shard."""
        return getattr(handle.flat_param, "_local_shard", handle.flat_param.data)

    def local(self, name, what):
        if self.plain or what != "param" and not self.flat:
            return super().local(name, what)
        _, begin, length = self.span(name)
        handle = self.places[name][0]
        whole = self.shard(handle) if what == "param" else self.flat_tensor(handle, what)
        return None if whole is None else whole.detach()[begin:begin + length]

    def flat_tensor(self, handle, what):
        """The rank's part of a unit's gradient or state, padding included."""
        whole = handle.flat_param
        return whole.grad if what in ("grad", "clipped") else self.state(whole).get(STATE_KEYS[what])

    def padding(self, of):
        """Also the elements between parameters, which FSDP1 puts there to align their addresses. They hold a
        constant, so it is the distance from it that would show a trained one. With use_orig_params states are of each parameter by itself, without any."""
        spans, elements, largest = {}, 0, 0.0
        for handle, _ in self.places.values():
            spans[id(handle)] = handle, []
        for name, (handle, _) in self.places.items():
            spans[id(handle)][1].append(self.span(name)[1:])
        for handle, used in spans.values():
            rest = handle.flat_param.grad if of == "gradient" else self.shard(handle) if of == "parameter" else self.flat_state(handle)
            if rest is None or rest.numel() == 0:
                continue
            rest = rest.detach().clone()
            elements += rest.numel() - sum(length for _, length in used)
            for begin, length in used:
                rest[begin:begin + length] = 0
            filled = (rest - FILL).abs() if of == "parameter" else rest.abs()
            largest = max(largest, float(torch.minimum(rest.abs(), filled).max()))
        return elements, largest

    def flat_state(self, handle):
        """One of the tensors that the optimizer keeps for a flat parameter."""
        return next((self.flat_tensor(handle, what) for what in STATE_KEYS if self.flat_tensor(handle, what) is not None), None)

    def configured(self):
        if self.plain:
            return super().configured()
        root, handle = self.model, self.places[next(iter(self.places))][0]
        strategy = root.sharding_strategy
        hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
        replicas = root._inter_node_pg.size() if hybrid else 1
        mesh = (root.process_group.size(), 1) if strategy == ShardingStrategy.NO_SHARD else (replicas, handle.world_size)
        parameter = self.case.precision.parameter
        mixed = root.mixed_precision
        named = NAMES[strategy]
        if self.case.sharding.strategy == "full" and strategy == ShardingStrategy.SHARD_GRAD_OP:
            named = "full"  # full without reshard after the forward is this strategy
        reshards = {"reshard_after_forward": word(strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD))}
        if self.world.size == 1:  # FSDP1 calls every strategy on one rank NO_SHARD: they are the same there
            named, reshards = self.case.sharding.strategy, {}
        return {**super().configured(), "strategy": named, "mesh": f"{mesh[0]}x{mesh[1]}", "layout": "flat",
                "fsdp_strategy": strategy.name, "use_orig_params": word(not self.flat),
                "state_dict": self.option("state_dict", "sharded"), **reshards,
                "wrap": self.case.sharding.wrap.policy, "units": str(len(FullyShardedDataParallel.fsdp_modules(root))),
                "compute": DTYPE_NAMES[mixed.param_dtype] if mixed.param_dtype else parameter,
                "reduce": DTYPE_NAMES[mixed.reduce_dtype] if mixed.reduce_dtype else parameter,
                "offload": "cpu" if root.cpu_offload.offload_params else "none",
                "prefetch_forward": str(int(root.forward_prefetch)), "prefetch_backward": str(int(root.backward_prefetch is not None))}


if __name__ == "__main__":
    serve(Fsdp1)
