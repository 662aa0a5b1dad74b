"""Megatron-FSDP (package megatron-fsdp) under the worker protocol.

Strategies: none is its no_shard, optimizer its optim, grad its optim_grads, full its optim_grads_params; hybrid is the last one
with an outer data-parallel dimension that replicates.
A unit's parameters lie in flat buffers, widest rows first and aligned to them, that are padded and cut equally.

Option api says how it is wrapped: `two_calls` is fully_shard_model and fully_shard_optimizer, `fully_shard` the one call for both,
`class` MegatronFSDP with its config, driven as a training loop of Megatron does.
On the CPU torch.cuda is a stand-in's (cuda_stand_in.py).
"""

import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from fsdpmark_adapter import cuda_stand_in

STAND_IN = cuda_stand_in.install()
sys.modules["megatron"] = None  # megatron-fsdp alone, also where megatron-core is installed: the two differ in their configs

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from megatron_fsdp import (DistributedDataParallelConfig, FSDPDistributedIndex, MegatronFSDP, MixedPrecisionPolicy,
                           __version__, fully_shard, fully_shard_model, fully_shard_optimizer)
from megatron_fsdp.uneven_dtensor import preprocess_state_dict_for_uneven_dtensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from fsdpmark_adapter import models
from fsdpmark_adapter.subject import DTYPE_NAMES, DTYPES, Subject, word
from fsdpmark_adapter.worker import serve

STRATEGIES = {"none": "no_shard", "optimizer": "optim", "grad": "optim_grads", "full": "optim_grads_params", "hybrid": "optim_grads_params"}
NAMES = {"no_shard": "none", "optim": "optimizer", "optim_grads": "grad", "optim_grads_params": "full"}
UNITS = {"witness": models.WitnessUnit, "mlp": torch.nn.Linear, "transformer": models.Block}
MESHES = {}
PATIENCE = timedelta(seconds=8)


class MegatronFsdp(Subject):
    implementation = "megatron-fsdp"
    version = __version__
    note = "; ".join(filter(None, [STAND_IN, "padding_max counts the distance from what lay there at first, which Megatron-FSDP leaves to chance"]))
    options = {"api": str, "average_in_collective": bool, "overlap_grad_reduce": bool, "overlap_param_gather": bool,
               "main_params": bool, "expert_mesh": bool}

    @classmethod
    def unsupported_sharded(cls, case):
        sharding = case.sharding
        syncs = [i.sync for i in case.program if i.verb in ("micro", "backward")]
        accumulates = max((i.micro for i in case.program if i.verb in ("micro", "forward")), default=0) > 0
        if sharding.layout != "any":
            return f"Megatron-FSDP has a layout of its own, asked for {sharding.layout}"
        if "f64" in (case.precision.parameter, case.precision.compute, case.precision.reduce):
            return "ParamAndGradBuffer has no buffer for float64"
        if sharding.wrap.policy in ("size", "pattern"):
            return "Megatron-FSDP is told its units by their class, not block by block"
        if case.options.get("main_params") == "false" and case.precision.compute != case.precision.parameter:
            return f"without main weights the parameters are of the compute type, asked for {case.precision.parameter} and {case.precision.compute}"
        if case.divergent_init:
            return "fully_shard shards what each rank holds and has no initial synchronisation"
        if sharding.strategy in ("grad", "full") and not all(syncs):
            return "with sharded gradients every backward reduces (MegatronFSDP.no_sync: there will actually always be gradient sync happening)"
        if accumulates and all(syncs) and (sharding.strategy in ("none", "optimizer", "hybrid")):
            return ("its documentation forbids to synchronise gradients more than once a step where a buffer is reduced in place "
                    "(MegatronFSDP.set_model_auto_sync: no_shard, optim, HSDP)")
        return None

    # ---- wrapping ----
    def mesh(self):
        """(replicate, shard, tensor parallel of 1), or without the first; the group of all ranks for hybrid."""
        hybrid = self.case.sharding.strategy == "hybrid"
        shape = (*self.case.sharding.mesh, 1) if hybrid else (self.world.size, 1)
        if shape not in MESHES:
            names = ("dp_outer", "dp_shard", "tp") if hybrid else ("dp_shard", "tp")
            made = init_device_mesh(self.world.device.type, shape, mesh_dim_names=names)
            MESHES[shape] = made, made["dp_outer", "dp_shard"]._flatten("hybrid").get_group() if hybrid else None
        made, whole = MESHES[shape]
        experts = {"expt_device_mesh": made, **({"hybrid_fsdp_expt_group": whole} if hybrid else {})} if self.option("expert_mesh", False) else {}
        return {"device_mesh": made, "dp_shard_dim": "dp_shard", "tp_dim": "tp", **experts,
                **({"dp_outer_dim": "dp_outer", "hybrid_fsdp_group": whole} if hybrid else {})}

    def unit_classes(self, model):
        return [type(model)] if self.case.sharding.wrap.policy == "root" else [UNITS[self.case.model.kind]]

    def policy(self):
        precision = self.case.precision
        return MixedPrecisionPolicy(
            main_params_dtype=DTYPES[precision.parameter] if self.option("main_params", True) else None,
            main_grads_dtype=DTYPES[precision.parameter],
            grad_comm_dtype=DTYPES[precision.reduce] if precision.reduce != precision.parameter else None)

    def narrow(self, model):
        """The compute type is the model's own. Main weights start from it, rounded, unless a parameter tells its
        values before rounding: the interface that Transformer Engine's quantised parameters have."""
        if self.compute == DTYPES[self.case.precision.parameter]:
            return model
        wide = {name: p.detach().clone() for name, p in model.named_parameters()}
        model = model.to(self.compute)
        for name, p in model.named_parameters():
            p.get_high_precision_init_val = lambda value=wide[name]: value
            p.clear_high_precision_init_val = lambda: None
        return model

    def wrap(self, model):
        self.api, strategy = self.option("api", "two_calls"), STRATEGIES[self.case.sharding.strategy]
        model, classes = self.narrow(model), self.unit_classes(model)
        communication = {"overlap_grad_reduce": self.option("overlap_grad_reduce", True),
                         "overlap_param_gather": self.option("overlap_param_gather", True),
                         "average_in_collective": self.option("average_in_collective", False)}
        if self.api == "class":
            mesh = self.mesh()
            config = DistributedDataParallelConfig(data_parallel_sharding_strategy=strategy, **communication)
            return MegatronFSDP(model, FSDPDistributedIndex(**mesh), ddp_config=config,
                                mixed_precision_policy=self.policy(), fsdp_unit_modules=classes, device=self.world.device)
        self.settings = {**self.mesh(), "fsdp_unit_modules": classes, "zero_dp_strategy": strategy,
                         "device": self.world.device,
                         "mixed_precision_policy": self.policy(), **communication}
        return model if self.api == "fully_shard" else fully_shard_model(model, **self.settings)

    def named_parameters(self):
        """What the optimizer updates, by name in the parameter table."""
        parameters = {name.removeprefix("module."): p for name, p in super().named_parameters().items()}
        self.places, self.spaces = {}, {}
        if not self.plain and isinstance(self.model, MegatronFSDP):
            buffer = self.model.param_and_grad_buffer
            parameters = {models.clean(name): p for name, p in buffer.optimizer_named_parameters}
            for p in parameters.values():
                group = buffer.parameter_groups[buffer.param_to_param_group[p.orig_param]]
                self.places[id(p)] = group, next(i for i, q in enumerate(group.params) if q is p.orig_param)
        return parameters

    def make_optimizer(self):
        optimizer = super().make_optimizer()
        if self.plain or self.api == "class":
            if not self.plain:
                optimizer.register_step_post_hook(lambda *_: self.model.install_optimized_model_weights())
            return optimizer
        if self.api == "two_calls":
            return fully_shard_optimizer(optimizer)
        self.model, optimizer = fully_shard(self.model, optimizer, **self.settings)
        self.parameters = self.named_parameters()
        return optimizer

    # ---- training ----
    def communication(self, sync):
        if self.plain:
            return nullcontext()
        if self.api == "class":
            self.model.is_last_microbatch = sync
            return nullcontext()
        self.model.set_model_auto_sync(sync)
        return nullcontext() if sync else self.model.no_sync()

    def unscale(self):
        """The class leaves the end of a step's gradients to its caller."""
        if not self.plain and self.api == "class" and self.model.microbatch_count:
            self.model.finish_grad_sync()
        super().unscale()

    def clip(self, norm, limit):
        """torch's own, since Megatron-FSDP has none. Ranks whose collectives do not match find it out after PATIENCE, not after minutes."""
        if self.plain:
            return super().clip(norm, limit)
        groups = [group for group in (self.model.dist_index.get_fsdp_group(), self.model.dist_index.get_outer_fsdp_group()) if group]
        for group in groups:
            dist.distributed_c10d._set_pg_timeout(PATIENCE, group)
        total = torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), limit, norm_type=float(norm))
        total = float(total.full_tensor() if isinstance(total, DTensor) else total)
        for group in groups:
            dist.distributed_c10d._set_pg_timeout(timedelta(minutes=5), group)
        return total

    def zero_grad(self):
        super().zero_grad()
        if not self.plain and self.api == "class":
            self.model.zero_grad_buffer()

    # ---- checkpoints, as its documentation has them ----
    def checkpoint(self):
        if self.plain or self.api != "class":
            return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        self.make_states()
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        # what fully_shard_model and fully_shard_optimizer hook to state_dict: the chunks are told by all ranks, then those without any leave
        preprocess_state_dict_for_uneven_dtensor(state["optimizer"] if self.model.data_parallel_sharding_strategy == "no_shard" else state)
        states = state["optimizer"]["state"]
        for index in [i for i, own in states.items() if not all(self.flatten(t).numel() for t in own.values())]:
            del states[index]
        return state

    def make_states(self):
        """The optimizer's state of every parameter that has none yet, on all ranks, before a checkpoint."""
        adam = self.case.optimizer.kind == "adamw"
        moments = ("exp_avg", "exp_avg_sq") if adam else ("momentum_buffer",) if self.case.optimizer.momentum else ()
        for p in self.parameters.values():
            if moments and not self.optimizer.state[p]:
                self.optimizer.state[p] = {**({"step": torch.tensor(0.0)} if adam else {}), **{key: torch.zeros_like(p) for key in moments}}

    def load(self, folder):
        state = self.checkpoint()
        dcp.load(state, checkpoint_id=folder)
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])

    # ---- what is held ----
    def held(self, name):
        """The slice of the parameter in the rank's part of the buffer that the optimizer updates."""
        p = self.parameters[name]
        if self.plain:
            return super().held(name)
        group, item = self.places[id(p)]
        buffer = group.main_weight_buffer or group.model_weight_buffer
        if self.model.data_parallel_sharding_strategy == "no_shard" or buffer is None:
            return 0, p.numel()
        begin, end = buffer._get_item_slice_in_shard(item)
        return (begin, end - begin) if end > begin else (0, 0)

    def space(self, of, group):
        """The elements of the rank's part of a buffer that belong to no parameter, copied."""
        buffer = group.main_grad_buffer if of == "gradient" else group.main_weight_buffer or group.model_weight_buffer
        if buffer is None:
            return torch.empty(0)
        part, first = buffer.get_shard_from_local_buffer(), buffer.shard_bucket_index.global_data_index
        free = torch.ones(part.numel(), dtype=torch.bool)
        for index in buffer.item_index_map.values():
            begin = index.global_data_index - first
            free[max(begin, 0):max(begin + index.size, 0)] = False
        return part[free].clone()

    def padding(self, of):
        """Gradients' padding starts at 0; what weights have there is never written, and counts by its distance from what it was.
        States lie in tensors of their own, beside the main weights."""
        if self.plain or self.model.data_parallel_sharding_strategy == "no_shard":
            return 0, 0.0
        spaces = [self.space(of, group) for group in self.model.param_and_grad_buffer.parameter_groups]
        before = [torch.zeros_like(space) for space in spaces] if of == "gradient" else self.spaces.setdefault(of, spaces)
        moved = [space.isfinite() & (space != old) | (space.isfinite() != old.isfinite()) for space, old in zip(spaces, before)]
        largest = max((float((space - old).abs()[m].max()) for space, old, m in zip(spaces, before, moved) if m.any()), default=0.0)
        return sum(space.numel() for space in spaces), largest

    def flatten(self, tensor):
        return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).reshape(-1)

    def elements(self, which):
        """What a kind of buffer keeps on this rank between steps, of how many elements there are."""
        buffers = [getattr(group, which) for group in self.model.param_and_grad_buffer.parameter_groups]
        buffers = [buffer for buffer in buffers if buffer is not None]
        return f"{sum(b.data.numel() for b in buffers)} of {sum(b.bucket_index.size for b in buffers)}"

    def configured(self):
        if self.plain:
            return super().configured()
        model, index = self.model, self.model.dist_index
        groups = model.param_and_grad_buffer.parameter_groups
        shards, outer = index.get_fsdp_group().size(), index.outer_fsdp_group.size() if index.use_hybrid_fsdp else 1
        strategy = "hybrid" if index.use_hybrid_fsdp else NAMES[model.data_parallel_sharding_strategy]
        raw, p = next(iter(model.raw_param.values())), next(iter(self.parameters.values()))
        after = {"reshard_after_forward": "true"} if strategy in ("full", "hybrid") else {}
        return {**super().configured(), "strategy": strategy, "mesh": f"{shards}x1" if strategy == "none" else f"{outer}x{shards}",
                "compute": DTYPE_NAMES[raw.dtype], "parameter": DTYPE_NAMES[p.dtype],
                "reduce": DTYPE_NAMES[model.mp_policy.grad_comm_dtype or groups[0].main_grad_buffer.dtype],
                "wrap": self.case.sharding.wrap.policy, "layout": "any", **after,
                "api": self.api, "zero_dp_strategy": model.ddp_config.data_parallel_sharding_strategy,
                "outer_dp_sharding_strategy": model.ddp_config.outer_dp_sharding_strategy,
                "average_in_collective": word(model.ddp_config.average_in_collective),
                "overlap_grad_reduce": word(model.ddp_config.overlap_grad_reduce), "overlap_param_gather": word(model.ddp_config.overlap_param_gather),
                "units": str(len({group.fsdp_unit_id for group in groups} - {None})),
                "outside_units": str(sum(p.numel() for group in groups if group.fsdp_unit_id is None for p in group.params)),
                "held_gradients": self.elements("main_grad_buffer"),
                **({"held_weights": self.elements("model_weight_buffer")} if groups[0].model_weight_buffer else {}),
                **({"held_main_weights": self.elements("main_weight_buffer")} if groups[0].main_weight_buffer else {})}


if __name__ == "__main__":
    serve(MegatronFsdp)
