"""Megatron-Core (package megatron-core) under the worker protocol: DistributedDataParallel and the optimizer of get_megatron_optimizer.

Strategy none is DistributedDataParallel alone (gradients all-reduced in a buffer), optimizer is use_distributed_optimizer: gradients are
reduce-scattered, each rank updates its part of the flat buffer, and parameters are gathered. The model is the case's own module.
With tensor ranks its layers are Megatron's (tensor_model.py), with stages its parts run in Megatron's schedule (pipeline.py). On the CPU
torch.cuda is a stand-in's.
"""

import sys
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from fsdpmark_adapter import cuda_stand_in

STAND_IN = cuda_stand_in.install()
if STAND_IN:
    cuda_stand_in.CudaToCpu().__enter__()  # for the life of the process

import torch
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer.clip_grads import clip_grad_by_total_norm_fp32
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.transformer import TransformerConfig

from fsdpmark_adapter.job import place
from fsdpmark_adapter.subject import DTYPE_NAMES, DTYPES, STATE_KEYS, Subject, word
from fsdpmark_adapter.worker import serve

sys.path.insert(0, str(Path(__file__).resolve().parent))
import checkpoint
import pipeline
import tensor_model

FORMED = []  # the tensor and pipeline ranks that parallel_state is formed for now


def synced_backwards(program):
    """The most backwards of one step that are asked to communicate."""
    most = count = 0
    for i in program:
        count = 0 if i.verb == "step" else count + (i.verb in ("micro", "backward") and i.sync)
        most = max(most, count)
    return most


class MegatronCore(Subject):
    implementation = "megatron-core"
    version = version("megatron-core")
    note = STAND_IN
    axes = ("tensor", "pipeline")
    options = {"overlap_grad_reduce": bool, "overlap_param_gather": bool, "average_in_collective": bool, "checkpoint_format": str, "load_without_grad": bool}

    @classmethod
    def unsupported(cls, case):
        verbs = [i.verb for i in case.program]
        if case.world_size == 1 and case.sharding.strategy == "none" and "load" in verbs and "save" not in verbs:
            return "the plain model on one rank loads torch's checkpoints, not those of megatron.core.dist_checkpointing"
        return super().unsupported(case)

    @classmethod
    def unsupported_sharded(cls, case):
        sharding, precision = case.sharding, case.precision
        narrow = precision.compute != precision.parameter
        if sharding.strategy not in ("none", "optimizer"):
            return f"DistributedDataParallel shards nothing and DistributedOptimizer the optimizer, asked for strategy {sharding.strategy}"
        if sharding.layout != "any":
            return f"DistributedOptimizer has a layout of its own, asked for {sharding.layout}"
        if sharding.strategy == "optimizer" and case.optimizer.kind != "adamw":
            return "DistributedOptimizer takes Adam alone (distrib_optimizer.py: Only Adam and HybridDeviceOptimizer currently supported)"
        if precision.parameter != "f32" or (narrow and precision.compute not in ("bf16", "f16")):
            return f"its main parameters are float32 and compute is float32, bf16 or fp16, asked for {precision.parameter} and {precision.compute}"
        if precision.reduce not in ("f32", precision.compute):
            return f"its gradients are float32 or of the compute type, asked for {precision.reduce}"
        if synced_backwards(case.program) > 1:
            return "its gradient buffer is reduced in place, so once a step (DistributedDataParallel.finish_grad_sync)"
        if case.clip and case.clip.norm != "2":
            return "its optimizer clips by the 2-norm alone (MegatronOptimizer.clip_grad_norm)"
        cut = tensor_model.reason(case.model, sharding.tensor) if sharding.tensor > 1 else None
        return cut or (pipeline.reason(case) if sharding.pipeline > 1 else None)

    # ---- wrapping ----
    def form_groups(self):
        tensor, stages = self.case.sharding.tensor, self.case.sharding.pipeline
        if FORMED != [tensor, stages]:
            if FORMED:
                parallel_state.destroy_model_parallel()
            parallel_state.initialize_model_parallel(tensor, stages, create_gloo_process_groups=False)
            FORMED[:] = [tensor, stages]

    def wrap(self, model):
        case, precision = self.case, self.case.precision
        self.form_groups()
        self.sharded = case.sharding.strategy == "optimizer"
        self.stages, self.stage = case.sharding.pipeline, place(case, self.world.rank).stage
        config = TransformerConfig(
            num_layers=self.stages, hidden_size=8 * case.sharding.tensor, num_attention_heads=case.sharding.tensor,  # of no layer here, but checked
            tensor_model_parallel_size=case.sharding.tensor, pipeline_model_parallel_size=self.stages, use_cpu_initialization=True,
            pipeline_dtype=torch.float32 if case.model.kind == "witness" else self.compute,  # a witness hands on losses
            params_dtype=self.compute, bf16=precision.compute == "bf16", fp16=precision.compute == "f16",
            gradient_accumulation_fusion=False)
        self.cuts = {}
        if case.sharding.tensor > 1:
            config.params_dtype = DTYPES[precision.parameter]
            self.cuts = tensor_model.cut_model(model, case.model, config, parallel_state.get_tensor_model_parallel_rank(), case.sharding.tensor)
            config.params_dtype = self.compute
        if self.stages > 1:
            model = pipeline.make_stage(case, model, self.stage)
        self.wide = {name: p.detach().clone() for name, p in model.named_parameters()}
        model = model.to(self.world.device, self.compute)
        self.ddp_config = DistributedDataParallelConfig(
            grad_reduce_in_fp32=precision.reduce == "f32", use_distributed_optimizer=self.sharded,
            overlap_grad_reduce=self.option("overlap_grad_reduce", False), overlap_param_gather=self.option("overlap_param_gather", False) and self.sharded,
            average_in_collective=self.option("average_in_collective", False))
        wrapped = DistributedDataParallel(config, self.ddp_config, model)
        if case.divergent_init:
            wrapped.broadcast_params()
        self.pending = False
        return wrapped

    def named_parameters(self):
        parameters = {name.removeprefix("module."): p for name, p in super().named_parameters().items()}
        tied = {p.name: p.tied_to for p in self.case.parameters if p.tied_to}
        return {tied.get(name, name): p for name, p in parameters.items()}

    def make_optimizer(self):
        if self.plain:
            return super().make_optimizer()
        spec, scale, precision = self.case.optimizer, self.case.precision.loss_scale, self.case.precision
        config = OptimizerConfig(
            optimizer="adam" if spec.kind == "adamw" else "sgd", lr=spec.lr, min_lr=spec.lr, weight_decay=spec.weight_decay, clip_grad=0.0,
            adam_beta1=getattr(spec, "beta1", 0.9), adam_beta2=getattr(spec, "beta2", 0.999), adam_eps=getattr(spec, "eps", 1e-8),
            sgd_momentum=getattr(spec, "momentum", 0.0), bf16=precision.compute == "bf16", fp16=precision.compute == "f16", params_dtype=self.compute,
            use_distributed_optimizer=self.sharded, overlap_param_gather=self.ddp_config.overlap_param_gather,
            loss_scale=scale.initial if scale.mode == "static" else None, initial_loss_scale=scale.initial, min_loss_scale=1.0,
            loss_scale_window=scale.interval, hysteresis=1)
        optimizer = get_megatron_optimizer(config, [self.model], config_overrides=None if spec.no_decay else {}, use_gloo_process_groups=False)
        if self.sharded and self.compute != torch.float32:
            optimizer.chained_optimizers[0].reload_model_params({"model": self.wide})
        # constant rates: what gives each group its weight decay
        OptimizerParamScheduler(optimizer, init_lr=spec.lr, max_lr=spec.lr, min_lr=spec.lr, lr_warmup_steps=0, lr_decay_steps=1, lr_decay_style="constant",
                                start_wd=spec.weight_decay, end_wd=spec.weight_decay, wd_incr_steps=0, wd_incr_style="constant")
        return optimizer

    def make_scaler(self):
        return super().make_scaler() if self.plain else None  # Megatron's optimizer has its own

    # ---- training ----
    def loss(self, batches, step, micro):
        if self.plain or self.stages == 1:
            return super().loss(batches, step, micro)
        return pipeline.run(self, self.model.config, self.stage, batches, step, micro)

    def communication(self, sync):
        self.sync = sync
        return nullcontext() if self.plain else self.microbatch(sync)

    @contextmanager
    def microbatch(self, sync):
        with nullcontext() if sync else self.model.no_sync():
            yield
        if sync and self.pending:
            self.model.finish_grad_sync()
            self.pending = False

    def backward(self, loss):
        if self.plain:
            return super().backward(loss)
        if self.stages > 1:
            return  # the schedule has done it, and finished the gradients
        self.pending = True
        self.optimizer.scale_loss(loss).backward()

    def unscale(self):
        """Megatron hands its gradients to the optimizer and takes the scale out of them in one call."""
        if self.plain:
            return super().unscale()
        if not self.unscaled:
            self.scale = float(self.optimizer.get_loss_scale())
            self.found_inf = bool(self.optimizer.prepare_grads())
            self.unscaled = True

    def clip(self, norm, limit):
        if self.plain:
            return super().clip(norm, limit)
        total = self.optimizer.get_grad_norm()
        for part in self.optimizer.chained_optimizers:
            clip_grad_by_total_norm_fp32(part.get_parameters(), limit, total)
        return total

    def step(self):
        if self.plain:
            return super().step()
        if not self.found_inf:
            self.optimizer.step_with_ready_grads()
        self.unscaled = False
        return self.found_inf, self.scale

    def zero_grad(self):
        if not self.plain:
            self.model.zero_grad_buffer()
        self.optimizer.zero_grad()

    # ---- checkpoints ----
    def save(self, folder):
        super().save(folder) if self.plain else checkpoint.save(self, folder)

    def load(self, folder):
        super().load(folder) if self.plain else checkpoint.load(self, folder)

    # ---- what is held ----
    def main(self, p):
        """The tensor that the inner optimizer updates for a parameter of the model, or None where this rank has no part of it."""
        if not self.sharded:
            return getattr(p, "main_param", p)
        optimizer = self.optimizer.chained_optimizers[0]
        if p not in optimizer.model_param_group_index_map:
            return None
        group, order = optimizer.model_param_group_index_map[p]
        return optimizer.optimizer.param_groups[group]["params"][order]

    def span(self, p):
        """(offset, length) of the rank's part of the optimizer in the parameter of the model."""
        if not self.sharded:
            return 0, p.numel()
        if self.main(p) is None:
            return 0, 0
        part = self.optimizer.chained_optimizers[0]._get_model_param_range_map(p)["param"]
        return part.start, part.size

    def whole(self, what):
        """float32 parameters are complete on every rank between steps, unless they are gathered with the next forward."""
        return what == "param" and self.compute == torch.float32 and not self.ddp_config.overlap_param_gather

    def part(self, name, what):
        if self.plain:
            return super().part(name, what)
        if name not in self.parameters:  # another stage's
            return 0, 0
        p = self.parameters[name]
        begin, length = (0, p.numel()) if self.whole(what) else self.span(p)
        rank = parallel_state.get_tensor_model_parallel_rank()
        if name not in self.cuts:
            return begin, length
        if self.cuts[name] == 0:
            return rank * p.numel() + begin, length
        columns = p.shape[1]
        every = columns * self.case.sharding.tensor
        cut = []  # a range of each row
        while length > 0:
            row, column = divmod(begin, columns)
            count = min(length, columns - column)
            cut.append((row * every + rank * columns + column, count))
            begin, length = begin + count, length - count
        return cut

    def held(self, name):
        return super().held(name) if self.plain else self.part(name, "param")

    def local(self, name, what):
        if self.plain:
            return super().local(name, what)
        if name not in self.parameters:
            return None
        p = self.parameters[name]
        main = self.main(p)
        if self.whole(what):
            tensor = p
        elif main is None:
            return None
        elif what == "param":
            tensor = main
        else:
            tensor = main.grad if what in ("grad", "clipped") else self.optimizer.optimizer.state.get(main, {}).get(STATE_KEYS[what])
        return None if tensor is None else self.flatten(tensor.detach())

    def configured(self):
        if self.plain:
            return super().configured()
        ddp, p = self.model, next(iter(self.parameters.values()))
        optimizer = self.optimizer.chained_optimizers[0]
        strategy = "optimizer" if isinstance(optimizer, DistributedOptimizer) and ddp.ddp_config.use_distributed_optimizer else "none"
        ranks, buffer = ddp.dp_group.size(), ddp.buffers[0]
        inner = [q for group in optimizer.optimizer.param_groups for q in group["params"]]
        return {"strategy": strategy, "mesh": f"{ranks}x1" if strategy == "none" else f"1x{ranks}",
                "tensor": str(parallel_state.get_tensor_model_parallel_world_size()),
                "pipeline": str(parallel_state.get_pipeline_model_parallel_world_size()),
                "parameter": DTYPE_NAMES[inner[0].dtype] if inner else "f32", "compute": DTYPE_NAMES[p.dtype], "reduce": DTYPE_NAMES[buffer.grad_dtype],
                "optimizer_state": DTYPE_NAMES[inner[0].dtype] if inner else "f32", "offload": "none", "layout": "any", **self.configured_checkpointing(),
                "optimizer": type(optimizer).__name__, "bucket_elements": str(sum(b.numel for b in ddp.buffers)),
                "held_by_optimizer": str(sum(q.numel() for q in inner)),
                "overlap_grad_reduce": word(ddp.ddp_config.overlap_grad_reduce), "overlap_param_gather": word(ddp.ddp_config.overlap_param_gather),
                "average_in_collective": word(ddp.ddp_config.average_in_collective)}


if __name__ == "__main__":
    serve(MegatronCore)
