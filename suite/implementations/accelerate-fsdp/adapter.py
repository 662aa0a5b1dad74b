"""Hugging Face Accelerate with its FullyShardedDataParallelPlugin under the worker protocol, used as its documentation
says: prepare(model, optimizer), accelerator.backward, no_sync, clip_grad_norm_, save_state and load_state.

FSDP_VERSION, Accelerate's own variable, chooses fully_shard (2) or FullyShardedDataParallel (1). Blocks are wrapped by their
class. On a CPU Accelerate takes no notice of the plugin and trains with DistributedDataParallel (state.py,
AcceleratorState.__init__: only device kinds of a list get DistributedType.FSDP). So that its code for FSDP can be judged there, its
state is told that the ranks have GPUs before the Accelerator is made; option unaided=true leaves that out. Options use_orig_params and
state_dict are the plugin's; strategy_by names its argument that tells FullyShardedDataParallel's strategy.
"""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import accelerate
import torch
from accelerate import Accelerator, DistributedType, FullyShardedDataParallelPlugin, PartialState
from accelerate.state import AcceleratorState, GradientState
from torch.distributed.fsdp import FSDPModule, MixedPrecision, MixedPrecisionPolicy

from fsdpmark_adapter.sibling import adapter
from fsdpmark_adapter.subject import DTYPE_NAMES, DTYPES, Subject
from fsdpmark_adapter.worker import serve

VERSION = os.environ.get("FSDP_VERSION", "1")
Base = adapter("pytorch-fsdp2").Fsdp2 if VERSION == "2" else adapter("pytorch-fsdp1").Fsdp1
WORDS = {"f32": "no", "bf16": "bf16", "f16": "fp16"}
BLOCKS = {"witness": "WitnessUnit", "mlp": "Linear", "transformer": "Block"}
STRATEGIES = {"none": "NO_SHARD", "grad": "SHARD_GRAD_OP", "full": "FULL_SHARD"}


class Accelerated(Base):
    implementation = "accelerate-fsdp"
    version = accelerate.__version__
    use_orig_params = "false"  # the plugin's default
    options = {"strategy_by": str, "unaided": bool, "use_orig_params": bool, "state_dict": str}

    @classmethod
    def unsupported_sharded(cls, case):
        sharding, precision = case.sharding, case.precision
        reduced = precision.reduce != precision.parameter
        if sharding.wrap.policy not in ("block", "root"):
            return "the plugin wraps by class or by size, not by name and not several blocks as one unit"
        if precision.parameter != "f32" and precision.compute != precision.parameter:
            return "Accelerate upcasts parameters to float32 where mixed precision is on"
        if precision.loss_scale.mode != "none" and not torch.cuda.is_available():
            return "Accelerate makes no GradScaler on a CPU (Accelerator.__init__)"
        if precision.compute == "f16" and reduced and not torch.cuda.is_available():
            return "Accelerate has no fp16 mixed precision on a CPU"
        if sharding.offload == "cpu" and not torch.cuda.is_available():
            return "the plugin's offload pins memory, which needs a GPU"
        if sharding.reshard_ranks:
            return "the plugin takes a bool for reshard_after_forward, no number of ranks"
        if VERSION == "2" and sharding.prefetch.forward:
            return "the plugin has no forward prefetch for fully_shard"
        if VERSION == "2" and sharding.wrap.policy == "root" and sharding.reshard_after_forward and sharding.strategy != "grad":
            return "Accelerate leaves the root to fully_shard's default, which keeps it gathered after the forward"
        if VERSION == "2" and sharding.strategy == "hybrid" and sharding.mesh[1] == 1:
            return "Accelerate refuses a ParallelismConfig without ranks to shard over"
        if VERSION == "1" and sharding.strategy == "hybrid":
            return "the plugin gives FullyShardedDataParallel no mesh for its hybrid strategies"
        return super().unsupported_sharded(case)

    # ---- wrapping ----
    def plugin(self):
        sharding, precision = self.case.sharding, self.case.precision
        kept = sharding.strategy == "grad" or not sharding.reshard_after_forward
        settings = {
            "auto_wrap_policy": "transformer_based_wrap" if sharding.wrap.policy == "block" else "no_wrap",
            "transformer_cls_names_to_wrap": [BLOCKS[self.case.model.kind]], "cpu_offload": sharding.offload == "cpu",
            "activation_checkpointing": sharding.activation_checkpointing}
        if self.option("state_dict", ""):
            settings["state_dict_type"] = self.case.options["state_dict"].upper() + "_STATE_DICT"
        policy = MixedPrecisionPolicy if VERSION == "2" else MixedPrecision
        if precision.compute != precision.reduce:  # the plugin's own policy has one type for both
            settings["mixed_precision_policy"] = policy(param_dtype=self.compute, reduce_dtype=DTYPES[precision.reduce])
        if VERSION == "2":
            return FullyShardedDataParallelPlugin(reshard_after_forward=not kept, **settings)
        settings[self.option("strategy_by", "sharding_strategy")] = "SHARD_GRAD_OP" if kept else STRATEGIES[sharding.strategy]
        return FullyShardedDataParallelPlugin(
            forward_prefetch=sharding.prefetch.forward > 0,
            backward_prefetch="BACKWARD_PRE" if sharding.prefetch.backward else "NO_PREFETCH",
            use_orig_params=self.option("use_orig_params", False), sync_module_states=self.case.divergent_init, **settings)

    def make_accelerator(self):
        """A fresh one for each case: its state is shared by the process."""
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        on_cpu = self.world.device.type == "cpu"
        PartialState(cpu=on_cpu)
        if on_cpu and not self.option("unaided", False):
            # also without an index: FullyShardedDataParallel takes cpu:0 for another device than cpu
            PartialState._shared_state.update(distributed_type=DistributedType.MULTI_GPU, device=self.world.device)
        mixed = self.case.precision.compute != self.case.precision.parameter
        kinds = {}
        if self.case.sharding.strategy == "hybrid":
            replicas, shards = self.case.sharding.mesh
            kinds["parallelism_config"] = accelerate.ParallelismConfig(dp_replicate_size=replicas, dp_shard_size=shards)
        return Accelerator(cpu=on_cpu, mixed_precision=WORDS[self.case.precision.compute] if mixed else "no", fsdp_plugin=self.plugin(), **kinds)

    def build(self, initial):
        if self.plain:
            return super().build(initial)
        self.accelerator = self.make_accelerator()
        self.model = self.make_model(initial)
        self.parameters = Subject.named_parameters(self)
        if VERSION == "1" and not self.option("use_orig_params", False):
            self.model = self.accelerator.prepare(self.model)  # the optimizer is made of flat parameters, which are there only now
            self.parameters = self.named_parameters()
            self.optimizer = self.accelerator.prepare(self.make_optimizer())
        else:
            self.model, self.optimizer = self.accelerator.prepare(self.model, self.make_optimizer())
            self.parameters = self.named_parameters()
        self.scaler = self.accelerator.scaler
        units = [m for m in self.model.modules() if isinstance(m, FSDPModule)]
        self.units = units[1:] + units[:1]  # the root last: it has settings of its own

    def checkpoint_blocks(self, model):
        if self.plain:
            super().checkpoint_blocks(model)  # else the plugin does it

    # ---- training ----
    def named_parameters(self):
        if not self.plain and self.accelerator.distributed_type != DistributedType.FSDP:
            return {name.removeprefix("module."): p for name, p in Subject.named_parameters(self).items()}
        return super().named_parameters()

    def backward(self, loss):
        super().backward(loss) if self.plain else self.accelerator.backward(loss)

    def unscale(self):
        if self.plain:
            return super().unscale()
        if self.scaler and not self.unscaled:
            self.accelerator.unscale_gradients()
            self.unscaled = True

    def step(self):
        if self.plain:
            return super().step()
        scale = self.scaler.get_scale() if self.scaler else 1.0
        self.optimizer.step()
        self.unscaled = False
        return self.optimizer.step_was_skipped, scale

    def communication(self, sync):
        return nullcontext() if sync or self.plain else self.accelerator.no_sync(self.model)

    def clip(self, norm, limit):
        if self.plain:
            return super().clip(norm, limit)
        total = self.accelerator.clip_grad_norm_(self.model.parameters(), limit, norm_type=float(norm))
        return float(total.full_tensor() if hasattr(total, "full_tensor") else total)

    def save(self, folder):
        super().save(folder) if self.plain else self.accelerator.save_state(folder)

    def load(self, folder):
        super().load(folder) if self.plain else self.accelerator.load_state(folder)

    # ---- what is held ----
    def held(self, name):
        whole = not self.plain and self.accelerator.distributed_type != DistributedType.FSDP
        return Subject.held(self, name) if whole else super().held(name)

    def configured(self):
        if self.plain:
            return super().configured()
        kind = self.accelerator.distributed_type
        if kind != DistributedType.FSDP:
            p = next(iter(self.parameters.values()))
            return {"strategy": "none", "mesh": f"{self.world.size}x1", "parameter": DTYPE_NAMES[p.dtype], "distributed_type": kind.value,
                    "model": type(self.model).__name__}
        return {**super().configured(), "distributed_type": kind.value, "fsdp_version": VERSION,
                "mixed_precision": self.accelerator.mixed_precision, "autocast": str(self.accelerator.native_amp).lower(),
                "gradient_accumulation_steps": str(self.accelerator.gradient_accumulation_steps)}


if __name__ == "__main__":
    serve(Accelerated)
