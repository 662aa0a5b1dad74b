"""torch.distributed.pipelining with fully_shard in each stage, under the worker protocol.

A stage is an equal share of consecutive blocks (of a transformer the embeddings too in the first, the last norm and the output
layer in the last), fully_shard over the data ranks of the stage. A case's microbatch is one step of the schedule, which
cuts its rows into microbatches of its own: the largest divisor of the rows up to 2 P. Option `schedule`: 1F1B or GPipe. Losses are
sums, so scale_grads is off. Without sync: finalize_gradients=False, the schedule's own way to go on accumulating.
torch's clip_grad_norm_ knows the parameters of its own stage only, so the norm is reduced over the stages
here, as torchtitan's distributed/utils.py does.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor

from fsdpmark_adapter import models
from fsdpmark_adapter.batch import Extra
from fsdpmark_adapter.job import place
from fsdpmark_adapter.pipeline_stages import STAGES, own_units, stage_modules
from fsdpmark_adapter.sibling import adapter
from fsdpmark_adapter.worker import serve

Fsdp2 = adapter("pytorch-fsdp2").Fsdp2

SCHEDULES = {"1F1B": Schedule1F1B, "GPipe": ScheduleGPipe}


class Fsdp2Pipeline(Fsdp2):
    implementation = "pytorch-fsdp2-pp"
    axes = ("pipeline",)
    options = {"schedule": str}
    # by parameter: lists of groups, which stages save under the same names, would overwrite each other
    state_options = StateDictOptions(flatten_optimizer_state_dict=True)
    note = "the norm to clip by is reduced over the stages by the adapter: clip_grad_norm_ knows one stage"

    @classmethod
    def unsupported_sharded(cls, case):
        model, stages = case.model, case.sharding.pipeline
        if stages == 1:
            return "without stages it is pytorch-fsdp2"
        if len(models.units(case)) < stages:
            return f"{len(models.units(case))} blocks are fewer than {stages} stages"
        if model.kind == "transformer" and model.tied:
            return "torch.distributed.pipelining does not add up the gradients of a weight that the first and the last stage share"
        if model.kind == "mlp" and (model.unused or model.calls != list(range(len(model.sizes) - 1))):
            return "stages run their layers once and in order"
        if any(i.verb == "forward" for i in case.program):
            return "a schedule runs forward and backward together"
        return super().unsupported_sharded(case)

    # ---- wrapping ----
    def mesh(self):
        sharding = self.case.sharding
        data = sharding.mesh if sharding.strategy == "hybrid" else sharding.mesh[1:]
        return self.world.mesh([sharding.pipeline, *data], ("pipeline", *(("replicate", "shard")[-len(data):])))

    def data_mesh(self):
        return self.mesh()[("replicate", "shard") if self.case.sharding.strategy == "hybrid" else "shard"]

    def unit_names(self):
        return own_units(self.case, place(self.case, self.world.rank).stage)

    def wrap(self, model):
        index, stages = place(self.case, self.world.rank).stage, self.case.sharding.pipeline
        wrapped = super().wrap(STAGES[self.case.model.kind](model, stage_modules(self.case, index)))
        self.group = self.mesh()["pipeline"].get_group()
        self.stage = PipelineStage(wrapped, index, stages, self.world.device, group=self.group)
        self.schedules = {}
        return wrapped

    def schedule(self, rows):
        """One for each number of rows. torch asks for equal microbatches."""
        if rows not in self.schedules:
            stages = self.case.sharding.pipeline
            count = max(n for n in range(1, 2 * stages + 1) if rows % n == 0)
            kind = SCHEDULES[self.option("schedule", "1F1B")]
            self.schedules[rows] = kind(self.stage, count, loss_fn=self.stage_loss, scale_grads=False)
        return self.schedules[rows]

    # ---- training ----
    def communication(self, sync):
        self.sync = sync
        return nullcontext() if not self.plain else super().communication(sync)

    def stage_loss(self, output, rows):
        """The schedule hands on one tensor beside the output: the rows' numbers."""
        extra = self.extra
        return self.model.loss(output, Extra(extra.weight[rows], None if extra.target is None else extra.target[rows])) * self.factor

    def loss(self, batches, step, micro):
        if self.plain:
            return super().loss(batches, step, micro)
        inputs, self.extra = batches.at(step, micro, self.compute)
        self.factor = batches.scale(step, micro)
        rows = torch.arange(len(self.extra.weight), device=self.world.device)
        schedule = self.schedule(len(rows))
        parts, losses, feed = rows.chunk(schedule._n_microbatches), [], {}
        if self.case.model.kind == "witness":
            feed["kwarg_mbs"] = [{"x": {name: x[part] for name, x in inputs.items()}} for part in parts]
            inputs = torch.zeros(len(rows), device=self.world.device)
        if self.stage.is_first:
            feed["arg_mbs"] = [(inputs[part],) for part in parts]
        if self.stage.is_last:
            feed["target_mbs"] = list(parts)
        if torch.is_grad_enabled():
            schedule.step(losses=losses, finalize_gradients=self.sync, return_outputs=False, **feed)
        else:
            schedule.eval(losses=losses, **feed)
        return sum((loss.detach() for loss in losses), torch.zeros(()))

    def backward(self, loss):
        """The schedule has done it."""
        if self.plain:
            super().backward(loss)

    def clip(self, norm, limit):
        if self.plain:
            return super().clip(norm, limit)
        parameters, p = list(self.parameters.values()), float(norm)
        total = torch.nn.utils.get_total_norm([q.grad for q in parameters if q.grad is not None], p)
        total = total.full_tensor() if isinstance(total, DTensor) else total
        if p == float("inf"):
            dist.all_reduce(total, dist.ReduceOp.MAX, group=self.group)
        else:
            total = total**p
            dist.all_reduce(total, group=self.group)
            total = total ** (1 / p)
        torch.nn.utils.clip_grads_with_norm_(parameters, limit, total)
        return float(total)

    # ---- what is held ----
    def held(self, name):
        return super().held(name) if name in self.parameters else []

    def local(self, name, what):
        return super().local(name, what) if name in self.parameters else None

    def configured(self):
        if self.plain:
            return super().configured()
        return {**super().configured(), "pipeline": str(self.stage.num_stages), "schedule": self.option("schedule", "1F1B")}


if __name__ == "__main__":
    serve(Fsdp2Pipeline)
