"""torch.nn.parallel.DistributedDataParallel under the worker protocol.

Everything is replicated; gradients are averaged by all-reducing buckets. Options: bucket_cap_mb,
gradient_as_bucket_view, static_graph, find_unused_parameters, as DDP itself names them.
A reduction in a narrower type than the parameters' is DDP's own compression hook; a narrower compute type is
DDP's mixed_precision.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from fsdpmark_adapter.subject import DTYPE_NAMES, Subject
from fsdpmark_adapter.worker import serve

HOOKS = {"bf16": default_hooks.bf16_compress_hook, "f16": default_hooks.fp16_compress_hook}


class Ddp(Subject):
    implementation = "pytorch-ddp"
    options = {"bucket_cap_mb": float, "gradient_as_bucket_view": bool, "static_graph": bool, "find_unused_parameters": bool}

    @classmethod
    def unsupported_sharded(cls, case):
        if case.sharding.strategy != "none":
            return f"DistributedDataParallel shards nothing, asked for strategy {case.sharding.strategy}"
        return cls.unsupported_replicated(case)

    @classmethod
    def unsupported_replicated(cls, case):
        precision = case.precision
        if case.sharding.offload != "none":
            return "DistributedDataParallel has no offload"
        if precision.compute != precision.parameter:
            return f"DistributedDataParallel has no public option for compute in {precision.compute} over parameters in {precision.parameter}"
        if precision.reduce != precision.parameter and (precision.parameter != "f32" or precision.reduce not in HOOKS):
            return f"DistributedDataParallel reduces in {precision.parameter} or with its compression hooks, asked for {precision.reduce}"
        return None

    def wrap(self, model):
        case = self.case
        freezes = any(i.verb == "freeze" for i in case.program)
        self.ddp = DistributedDataParallel(
            model,
            device_ids=[self.world.device] if self.world.device.type == "cuda" else None,
            bucket_cap_mb=self.option("bucket_cap_mb", None),
            gradient_as_bucket_view=self.option("gradient_as_bucket_view", False),
            static_graph=self.option("static_graph", False),
            # needed wherever a backward may leave a parameter out, says its documentation
            find_unused_parameters=self.option("find_unused_parameters", freezes or getattr(case.model, "unused", 0) > 0))
        if case.precision.reduce != case.precision.parameter:
            self.ddp.register_comm_hook(None, HOOKS[case.precision.reduce])
        return self.ddp

    def named_parameters(self):
        return {name.removeprefix("module."): p for name, p in super().named_parameters().items()}

    def communication(self, sync):
        return nullcontext() if sync or self.plain else self.ddp.no_sync()

    def configured(self):
        if self.plain:
            return super().configured()
        hooked = self.case.precision.reduce != self.case.precision.parameter
        reduce = self.case.precision.reduce if hooked else DTYPE_NAMES[next(iter(self.parameters.values())).dtype]
        return {**super().configured(), "mesh": f"{self.ddp.process_group.size()}x1", "reduce": reduce,
                "bucket_bytes": str(self.ddp.bucket_bytes_cap), "find_unused_parameters": str(self.ddp.find_unused_parameters).lower()}


if __name__ == "__main__":
    serve(Ddp)
