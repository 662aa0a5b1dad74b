"""torch.distributed.optim.ZeroRedundancyOptimizer over DistributedDataParallel under the worker protocol.

Strategy optimizer: parameters and gradients are replicated, each parameter belongs to one rank, whose local
optimizer alone updates it and keeps its state; then that rank broadcasts it. Whole parameters are dealt out, the largest
first to the rank with the fewest elements so far, so the shards are neither chunks of dim 0 nor flat. Option:
parameters_as_bucket_view. Checkpoints are those of its documentation: the state consolidated on rank 0, in one file.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer

from fsdpmark_adapter.sibling import adapter
from fsdpmark_adapter.subject import STATE_KEYS, word
from fsdpmark_adapter.worker import serve

Ddp = adapter("pytorch-ddp").Ddp


class Zero1(Ddp):
    implementation = "pytorch-zero1"
    options = {**Ddp.options, "parameters_as_bucket_view": bool}

    @classmethod
    def unsupported_sharded(cls, case):
        if case.sharding.strategy != "optimizer":
            return f"ZeroRedundancyOptimizer shards the optimizer's state, asked for strategy {case.sharding.strategy}"
        if case.sharding.layout != "any":
            return f"ZeroRedundancyOptimizer deals out whole parameters, asked for the {case.sharding.layout} layout"
        return cls.unsupported_replicated(case)

    def optimizer_class(self, kind):
        if self.plain:
            return super().optimizer_class(kind)
        view = self.option("parameters_as_bucket_view", False)
        return lambda groups, **settings: ZeroRedundancyOptimizer(
            groups, optimizer_class=kind, process_group=self.ddp.process_group, parameters_as_bucket_view=view, **settings)

    def save(self, folder):
        if self.plain:
            return super().save(folder)
        os.makedirs(folder, exist_ok=True)
        self.optimizer.consolidate_state_dict(to=0)
        if self.world.rank == 0:
            torch.save({"model": self.ddp.module.state_dict(), "optimizer": self.optimizer.state_dict()}, Path(folder, "checkpoint.pt"))
        self.world.barrier()

    def load(self, folder):
        if self.plain:
            return super().load(folder)
        state = torch.load(Path(folder, "checkpoint.pt"), map_location=self.world.device)
        self.ddp.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def part(self, name, what):
        if self.plain or what not in STATE_KEYS:
            return super().part(name, what)
        mine = any(p is self.parameters[name] for group in self.optimizer.optim.param_groups for p in group["params"])
        return 0, self.parameters[name].numel() if mine else 0

    def state(self, p):
        return super().state(p) if self.plain else self.optimizer.optim.state.get(p, {})

    def configured(self):
        if self.plain:
            return super().configured()
        zero = self.optimizer
        return {**super().configured(), "strategy": "optimizer", "mesh": f"1x{zero.world_size}", "layout": "whole_parameters",
                "optimizer": type(zero.optim).__name__, "parameters_as_bucket_view": word(zero.parameters_as_bucket_view)}


if __name__ == "__main__":
    serve(Zero1)
