"""fairscale.nn.FullyShardedDataParallel under the worker protocol.

Strategies: full; grad is reshard_after_forward=False (parameters stay gathered from the forward to the backward). A unit's parameters
are one flat parameter, cut by torch.chunk and padded; the optimizer sees the flat parameters. On a CPU it runs through the package's
stand-in for torch.cuda, with streams made where it makes them for a GPU only (`_setup_streams`).
"""

import functools
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch

from fsdpmark_adapter import cuda_stand_in, flat, models

NOTE = cuda_stand_in.install()

import fairscale
from fairscale.nn import FullyShardedDataParallel, checkpoint_wrapper

from fsdpmark_adapter.subject import DTYPE_NAMES, STATE_KEYS, Subject, word
from fsdpmark_adapter.worker import serve

PREFIXES = ("_fsdp_wrapped_module.", "_fpw_module.")


class Fsdp(FullyShardedDataParallel):
    def _setup_streams(self):
        with patch("torch.cuda.is_available", lambda: True) if NOTE else nullcontext():
            super()._setup_streams()


class Fairscale(Subject):
    implementation = "fairscale-fsdp"
    version = fairscale.__version__
    note = NOTE

    @classmethod
    def unsupported_sharded(cls, case):
        sharding, precision = case.sharding, case.precision
        if sharding.strategy not in ("full", "grad"):
            return f"FairScale's FullyShardedDataParallel has no strategy {sharding.strategy}"
        if sharding.layout == "per_parameter":
            return "FairScale's FullyShardedDataParallel shards flat, asked for the per_parameter layout"
        if precision.parameter != "f32":
            return "FairScale's FullyShardedDataParallel takes parameters in float32 (or all in fp16)"
        if precision.reduce not in ("f32", precision.compute) or (precision.compute == "f32" and precision.reduce != "f32"):
            return f"FairScale's FullyShardedDataParallel reduces in the compute type or in float32, asked for {precision.reduce}"
        if precision.loss_scale.mode != "none" and not torch.cuda.is_available():
            return "FairScale's ShardedGradScaler is torch.cuda.amp's, which is off without a GPU"
        if sharding.offload == "cpu" and not torch.cuda.is_available():
            return "FairScale's FullyShardedDataParallel pins the memory of offloaded parameters, which needs a GPU"
        if case.divergent_init:
            return "FairScale's FullyShardedDataParallel has no initial synchronisation"
        if case.optimizer.no_decay:
            return "the optimizer sees a unit's flat parameter, which cannot be in two groups of decay"
        if sharding.wrap.policy == "size":
            return "FairScale's FullyShardedDataParallel wraps one module at a time, not several blocks as one unit"
        return None

    # ---- wrapping ----
    def checkpoint_blocks(self, model):
        for unit in models.units(self.case):
            checkpoint_wrapper(model.get_submodule(unit))

    def wrap(self, model):
        sharding, precision = self.case.sharding, self.case.precision
        mixed = precision.compute != precision.parameter
        settings = {
            "reshard_after_forward": sharding.strategy == "full" and sharding.reshard_after_forward, "mixed_precision": mixed,
            "compute_dtype": self.compute, "fp32_reduce_scatter": mixed and precision.reduce == "f32", "compute_device": self.world.device,
            "disable_reshard_on_root": sharding.wrap.policy != "root"}
        units = {id(module) for group in self.wrap_groups(model) for module in group}
        for name, module in reversed([(n, m) for n, m in model.named_modules() if id(m) in units]):
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, Fsdp(module, **settings))
        return Fsdp(model, **settings)

    def named_parameters(self):
        """The flat parameters, by the name of their first tensor; places: name -> (flat parameter, offset in it, elements)."""
        self.places, first = {}, {}
        if self.plain:
            return super().named_parameters()
        for path, unit in self.model.named_modules():
            if not isinstance(unit, FullyShardedDataParallel):
                continue
            for parameter in unit.params:
                offset = 0
                for name, count in zip(parameter.metadata()[0], parameter.metadata()[2]):
                    name = functools.reduce(lambda n, prefix: n.replace(prefix, ""), PREFIXES, f"{path}.{name}".removeprefix("."))
                    self.places[models.clean(name)] = parameter, offset, count
                    if offset == 0:
                        first[models.clean(name)] = parameter
                    offset += count
        return first

    # ---- training ----
    def communication(self, sync):
        return nullcontext() if sync or self.plain else self.model.no_sync()

    def clip(self, norm, limit):
        return super().clip(norm, limit) if self.plain else float(self.model.clip_grad_norm_(limit, norm_type=float(norm)))

    def require_grad(self, pattern, wanted):
        if self.plain:
            return super().require_grad(pattern, wanted)
        flat.require_grad({name: parameter for name, (parameter, _, _) in self.places.items()}, pattern, wanted)

    # ---- checkpoints: whole tensors, in one file of rank 0 ----
    def save(self, folder):
        if self.plain:
            return super().save(folder)
        os.makedirs(folder, exist_ok=True)
        state = {"model": self.model.state_dict(), "optimizer": self.model.gather_full_optim_state_dict(self.optimizer)}
        if self.world.rank == 0:
            torch.save(state, Path(folder, "checkpoint.pt"))
        self.world.barrier()

    def load(self, folder):
        if self.plain:
            return super().load(folder)
        state = torch.load(Path(folder, "checkpoint.pt"), map_location=self.world.device)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(self.model.get_shard_from_optim_state_dict(state["optimizer"]))

    # ---- what is held ----
    def storage(self, parameter):
        return getattr(parameter, "_fp32_shard", parameter.data)

    def span(self, name):
        parameter, offset, count = self.places[name]
        return flat.overlap(offset, count, self.world.rank, self.storage(parameter).numel())

    def held(self, name):
        if self.plain:
            return super().held(name)
        offset, _, length = self.span(name)
        return offset, length

    def kept(self, parameter, what):
        if what == "param":
            return self.storage(parameter)
        return parameter.grad if what in ("grad", "clipped") else self.state(parameter).get(STATE_KEYS[what])

    def local(self, name, what):
        if self.plain:
            return super().local(name, what)
        whole, (_, begin, length) = self.kept(self.places[name][0], what), self.span(name)
        return None if whole is None else whole.detach()[begin:begin + length]

    def padding(self, of):
        """What each flat parameter's part on this rank has beyond its tensors."""
        whats = {"parameter": ["param"], "gradient": ["grad"], "optimizer": list(STATE_KEYS)}[of]
        elements, largest = 0, 0.0
        for parameter in {id(p): p for p, _, _ in self.places.values()}.values():
            used = sum(self.span(name)[2] for name, (owner, _, _) in self.places.items() if owner is parameter)
            whole = next((self.kept(parameter, what) for what in whats if self.kept(parameter, what) is not None), None)
            if whole is not None and whole.numel() > used:
                elements += whole.numel() - used
                largest = max(largest, float(whole.detach()[used:].abs().max()))
        return elements, largest

    def configured_checkpointing(self):
        if self.plain:
            return super().configured_checkpointing()
        return {"activation_checkpointing": word(any(isinstance(m.__dict__.get("forward"), functools.partial) for m in self.model.modules()))}

    def configured(self):
        if self.plain:
            return super().configured()
        units = [m for m in self.model.modules() if isinstance(m, FullyShardedDataParallel)]
        unit = units[-1]
        return {**super().configured(), "strategy": self.case.sharding.strategy, "mesh": f"1x{unit.world_size}", "layout": "flat",
                "reshard_after_forward": word(unit.reshard_after_forward), "compute": DTYPE_NAMES[unit.compute_dtype],
                "reduce": "f32" if unit.fp32_reduce_scatter else DTYPE_NAMES[unit.compute_dtype], "wrap": self.case.sharding.wrap.policy,
                "units": str(len(units)), "divides": f"by {unit.gradient_predivide_factor:g} before the sum, by {unit.gradient_postdivide_factor:g} after it"}


if __name__ == "__main__":
    serve(Fairscale)
