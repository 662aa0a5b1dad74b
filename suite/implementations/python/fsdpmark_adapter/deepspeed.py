"""DeepSpeed's engine under the worker protocol: what its four ZeRO stages share.

The case's optimizer is a torch.optim one that the engine takes over (`deepspeed.initialize(optimizer=...)`). Every
backward is `engine.backward`, every update `engine.step`, which also unscales, clips and clears the gradients: so the
verb `clip` runs the engine's whole step, and the verb `step` after it only reports. What the optimizer saw is copied by a hook before
its step. The microbatches of a step are bounded by `engine.set_gradient_accumulation_boundary`; without communication in
each of them by `engine.coalesce_grad_reduction` where a stage reduces gradients in every backward by itself.

What lies where is in deepspeed_stages.py. Settings away from DeepSpeed's defaults are in `config`, each with its reason.
"""

import io
import math
import os
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest.mock import patch

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DS_BUILD_OPS", "0")

import deepspeed
import deepspeed.module_inject.auto_ep_layer
import deepspeed.runtime.zero.muon.muon_optimizer  # noqa: F401  both are imported by every first step: here once for all forked ranks
from deepspeed.accelerator import get_accelerator
from deepspeed.checkpoint import ds_to_universal
from deepspeed.utils import logger

from .models import clean
from .subject import DTYPE_NAMES, Subject

WORDS = {"f32": "fp32", "bf16": "bf16", "f16": "fp16"}
TAG = "fsdpmark"
logger.setLevel("ERROR")
# No operators to compile: else a CPU's first start compiles a kernel for inference_all_reduce (deepspeed/comm/torch.py, build_shm_op).
deepspeed.ops.__compatible_ops__ = {}


class DeepSpeed(Subject):
    version = deepspeed.__version__
    stage = strategy = None
    offloads = ()  # what this stage can keep in host memory
    accumulates = ()  # gradient accumulation types beside the model's
    options = {"reduce_bucket_size": int, "persistence_threshold": int, "prefetch_bucket_size": int, "offload_optimizer": bool, "offload_param": bool,
               "grad_accum_dtype": str, "overlap_comm": bool, "round_robin_gradients": bool, "set_masters": bool, "fp16_anywhere": bool}

    def __init__(self, case, world):
        super().__init__(case, world)
        self.seen = None       # id of what the optimizer updates -> its gradient at the last step, clipped
        self.norm = None       # where DeepSpeed computes a norm and does not report it
        self.stepped = None    # (skipped, scale) of a step that the verb clip has run
        self.coalescing = None
        self.pending = False   # whether there are gradients that no step has taken
        self.backwards = 0
        self.ends = ends_of_steps(case.program)

    # ---- what it cannot do ----
    @classmethod
    def unsupported_sharded(cls, case):
        sharding, precision = case.sharding, case.precision
        if sharding.strategy != cls.strategy:
            return f"ZeRO stage {cls.stage} is strategy {cls.strategy}, asked for {sharding.strategy}"
        if precision.compute == "f16" and not get_accelerator().is_fp16_supported() and case.options.get("fp16_anywhere") != "true":
            return "DeepSpeed refuses fp16 on this processor (is_fp16_supported of its accelerator); its variant fp16 lifts that check"
        return cls.unsupported_precision(precision) or cls.unsupported_scale(precision) or cls.unsupported_stage(case)

    @classmethod
    def unsupported_precision(cls, precision):
        if "f64" in (precision.parameter, precision.compute, precision.reduce):
            return "DeepSpeed trains in fp32, bf16 or fp16"
        if precision.parameter == "f16" or (precision.parameter == "bf16" and precision.compute != "bf16"):
            return f"DeepSpeed has no mode with parameters in {precision.parameter} and compute in {precision.compute}"
        if precision.parameter == "bf16" and cls.stage == 0:
            return "bf16_optimizer_states belongs to the ZeRO optimizers: without ZeRO masters are in float32"
        return None

    @classmethod
    def unsupported_scale(cls, precision):
        scale = precision.loss_scale
        if scale.mode == "none":
            return None if precision.compute != "f16" else "fp16 without a loss scale: DeepSpeed's 0 means dynamic"
        if precision.compute != "f16":
            return "DeepSpeed scales the loss in fp16 only"
        if scale.mode == "dynamic" and (scale.growth, scale.backoff) != (2, 0.5):
            return "DeepSpeed's loss scale doubles and halves"
        if scale.mode == "dynamic" and not math.log2(scale.initial).is_integer():
            return "DeepSpeed's initial loss scale is a power of two"
        return None

    @classmethod
    def unsupported_stage(cls, case):
        return None

    # ---- the engine ----
    def build(self, initial):
        if self.plain:
            return super().build(initial)
        if not deepspeed.comm.is_initialized():
            deepspeed.init_distributed(dist_backend="gloo" if self.world.device.type == "cpu" else "nccl", verbose=False)
        self.raw = self.make_model(initial)
        self.parameters = self.raw_parameters()
        optimizer = self.make_optimizer()
        self.lift_check()
        self.model, self.optimizer, _, _ = deepspeed.initialize(model=self.raw, optimizer=optimizer, config=self.config())
        self.engine = self.model
        self.parameters = self.raw_parameters()
        self.base = self.engine.basic_optimizer
        self.base.register_step_pre_hook(self.watch)
        if self.option("set_masters", False):
            self.set_masters(initial)

    def lift_check(self):
        """DeepSpeed refuses fp16 on processors without its instructions, where torch computes it all the same. It asks in the backward
        too, so the check stays lifted: what it is lifted for has processes of its own."""
        if self.option("fp16_anywhere", False) and self.world.device.type == "cpu":
            get_accelerator().is_fp16_supported = lambda: True

    def raw_parameters(self):
        return {clean(name): p for name, p in self.raw.named_parameters()}

    def set_masters(self, initial):
        """The way around masters that are made from rounded weights: DeepSpeed's own setter, of which each rank keeps its own piece."""
        for name, p in self.parameters.items():
            value = initial[name].to(self.world.device, torch.float32, copy=True)
            torch.distributed.broadcast(value, 0)  # as initialize does with the weights
            deepspeed.utils.safe_set_full_fp32_param(p, value)

    def config(self):
        """DeepSpeed's configuration. A key that is not here has its default."""
        case, precision = self.case, self.case.precision
        made = {
            "train_micro_batch_size_per_gpu": 1,  # required; DeepSpeed counts samples with it
            "gradient_accumulation_steps": max(i.micro for i in case.program if hasattr(i, "micro")) + 1 if case.program else 1,
            "steps_per_print": 10 ** 9,  # it prints at step 10
            "zero_allow_untested_optimizer": True,  # SGD is not on its list
            "zero_force_ds_cpu_optimizer": False,  # offloading with torch.optim instead of a compiled CPU Adam
            "gradient_clipping": case.clip.limit if case.clip else 0.0,
            "zero_optimization": {"stage": self.stage, **self.zero()},
            "checkpoint": {"load_universal": self.loads_from_elsewhere()},
        }
        if precision.reduce != precision.compute:
            made["communication_data_type"] = WORDS[precision.reduce]  # it reduces in the compute type
        accumulate = self.option("grad_accum_dtype", precision.reduce if precision.reduce in self.accumulates else "")
        if accumulate and accumulate != precision.compute:
            made["data_types"] = {"grad_accum_dtype": WORDS[accumulate]}  # it accumulates in the compute type
        if precision.compute == "bf16":
            made["bf16"] = {"enabled": True}
            if precision.parameter == "bf16":
                made["bf16"] |= {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
        if precision.compute == "f16":
            made["fp16"] = {"enabled": True, **self.scaling(precision.loss_scale)}
        return made

    def scaling(self, scale):
        if scale.mode == "static":
            return {"loss_scale": scale.initial}
        return {"loss_scale": 0, "initial_scale_power": int(math.log2(scale.initial)), "loss_scale_window": scale.interval,
                "hysteresis": 1}  # 2: the scale stays at the first overflow

    def zero(self):
        """The block zero_optimization, without the stage."""
        made = {"reduce_bucket_size": self.option("reduce_bucket_size", 10 ** 6)}  # 5e8: a buffer of 2 GB per rank
        for key in ("overlap_comm", "round_robin_gradients"):
            if key in self.case.options:
                made[key] = self.option(key, False)
        for what in self.offloads:
            if self.case.sharding.offload == "cpu" or self.option(f"offload_{what}", False):
                made[f"offload_{what}"] = {"device": "cpu"}
        return made

    # ---- training ----
    def communication(self, sync):
        """Says to the engine whether the next backward ends a step. A stage that reduces in every backward, and is
        asked not to, collects the gradients of the step first."""
        if self.plain:
            return nullcontext()
        if not sync and self.stage >= 1 and not self.coalescing:
            self.coalescing = self.engine.coalesce_grad_reduction()
            self.coalescing.__enter__()
        if not self.coalescing:
            self.engine.set_gradient_accumulation_boundary(self.last())
        return nullcontext()

    def last(self):
        """Whether the next backward is the last before a step; without a program each is."""
        return not self.case.program or self.backwards in self.ends

    def backward(self, loss):
        if self.plain:
            return super().backward(loss)
        self.engine.backward(loss, scale_wrt_gas=False)  # the case's losses add up
        last, self.pending = self.last(), True
        self.backwards += 1
        if last and self.coalescing:
            self.coalescing.__exit__(None, None, None)
            self.coalescing = None
            self.engine.set_gradient_accumulation_boundary(True)

    def watch(self, optimizer, *_):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.seen[id(p)] = p.grad.detach().clone()

    def engine_step(self):
        scale = self.loss_scale()
        self.seen, self.norm = {}, None
        original = deepspeed.runtime.engine.clip_grad_norm_

        def recorded(*arguments, **named):  # fp32 without ZeRO: the norm is computed and dropped
            self.norm = original(*arguments, **named)
            return self.norm

        with patch.object(deepspeed.runtime.engine, "clip_grad_norm_", recorded):
            self.engine.step()
        self.pending = False
        return not self.engine.was_step_applied(), scale

    def loss_scale(self):
        return float(getattr(self.engine.optimizer, "loss_scale", 1.0)) if self.case.precision.loss_scale.mode != "none" else 1.0

    def clip(self, norm, limit):
        if self.plain:
            return super().clip(norm, limit)
        self.stepped = self.engine_step()
        reported = self.engine.get_global_grad_norm()
        return float(self.norm if reported is None else reported)

    def step(self):
        if self.plain:
            return super().step()
        done, self.stepped = self.stepped or self.engine_step(), None
        return done

    def zero_grad(self):
        """engine.step() has done it."""
        if self.plain:
            super().zero_grad()
        elif self.pending:
            raise RuntimeError("zero_grad without a step: DeepSpeed clears gradients in engine.step() alone")

    # ---- checkpoints: DeepSpeed's own; another number of ranks loads a universal one ----
    def loads_from_elsewhere(self):
        verbs = [i.verb for i in self.case.program]
        return "load" in verbs and "save" not in verbs[:verbs.index("load")]

    def save(self, folder):
        if self.plain:
            return super().save(folder)
        self.engine.save_checkpoint(folder, tag=TAG)

    def load(self, folder):
        if self.plain:
            return super().load(folder)
        if self.loads_from_elsewhere():
            self.world.barrier()
            if self.world.rank == 0 and not os.path.exists(os.path.join(folder, "latest_universal")):
                to_universal(folder)
            self.world.barrier()
        path, _ = self.engine.load_checkpoint(folder, tag=None if self.loads_from_elsewhere() else TAG)
        if path is None:
            raise RuntimeError(f"load_checkpoint found nothing in {folder}")

    # ---- what is held ----
    def configured(self):
        if self.plain:
            return super().configured()
        engine, zero = self.engine, self.engine._config.zero_config
        model, accumulate = (DTYPE_NAMES[dtype] for dtype in engine.get_data_types())
        offloaded = [what for what in self.offloads if getattr(zero, f"offload_{what}") is not None]
        chosen = any(name.startswith("offload_") for name in self.case.options)  # by a variant, whatever the case says
        return {"strategy": self.strategy if engine.zero_optimization_stage() == self.stage else f"stage {engine.zero_optimization_stage()}",
                "zero_stage": str(int(engine.zero_optimization_stage())), "mesh": self.mesh(), "compute": model,
                "parameter": self.master_type(), "reduce": DTYPE_NAMES[engine.communication_data_type], "optimizer_state": self.master_type(),
                **({} if chosen else {"offload": "cpu" if offloaded and offloaded == list(self.offloads) else "none"}), "offloaded": " ".join(offloaded),
                "gradient_accumulation": accumulate, "optimizer": type(engine.optimizer).__name__, "basic_optimizer": type(self.base).__name__,
                "gradient_clipping": str(engine.gradient_clipping()), "reduce_bucket_size": str(int(zero.reduce_bucket_size)),
                "overlap_comm": str(bool(zero.overlap_comm)).lower(), **self.configured_checkpointing()}

    def mesh(self):
        size = deepspeed.comm.get_world_size(group=self.engine.seq_data_parallel_group)
        return f"{size}x1" if self.strategy == "none" else f"1x{size}"

    def configured_checkpointing(self):
        self.model, engine = self.raw if not self.plain else self.model, self.model
        try:
            return super().configured_checkpointing()
        finally:
            self.model = engine

    @property
    def mixed(self):
        return self.case.precision.compute != "f32"

    def updated_tensors(self):
        """What the optimizer updates, once it has been asked to: the first tells their type."""
        return [p for group in self.base.param_groups for p in group["params"]]

    def master_type(self):
        return DTYPE_NAMES[self.updated_tensors()[0].dtype]

    def unscaled_gradient(self, grad):
        """Gradients of fp16 carry the loss scale until the step."""
        scale = self.loss_scale()
        return grad if scale == 1.0 else grad.to(torch.float32) / scale


def ends_of_steps(program):
    """Numbers, from 0, of the backward passes after which a step follows before another one."""
    ends, count = set(), 0
    for i in program:
        if i.verb in ("micro", "backward"):
            count += 1
        elif i.verb in ("clip", "step") and count:
            ends.add(count - 1)
    return ends


def to_universal(folder):
    """DeepSpeed's conversion as its command line does it, with --inject_missing_state, and without worker processes and progress bars."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        ds_to_universal.main(SimpleNamespace(
            input_folder=os.path.join(folder, TAG), output_folder=os.path.join(folder, TAG + "_universal"), num_extract_workers=1,
            num_merge_workers=1, keep_temp_folder=False, strict=True, inject_missing_state=True))
