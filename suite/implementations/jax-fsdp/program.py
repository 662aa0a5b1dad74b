"""Runs a case's program on one rank: one method per verb, and the observations.

Full tensors are put together on rank 0 from the parts that the ranks hold, which are read from the arrays' own shards.
"""

import math
import os
import time

import jax
import numpy as np
from safetensors.numpy import load_file, save_file

from fsdpmark_adapter.events import Events
from fsdpmark_adapter.marks import mark
from storage import ranges
from trainer import KINDS


class Answer(Events):
    def tensors(self, label, tensors, rank=None):
        self.publish(label, rank, lambda path: save_file({key: np.ascontiguousarray(t) for key, t in tensors.items()}, path))


def read_tensors(folder, name):
    return load_file(os.path.join(folder, name))


class Program:
    def __init__(self, case, trainer, batches, answer, world):
        self.case, self.trainer, self.batches, self.answer, self.world = case, trainer, batches, answer, world
        self.slots, self.reported = {}, set()

    def run(self):
        mark("observe")
        self.report_shards("parameter")
        for i in self.case.program:
            if i.verb == "stop":
                break
            mark("forward" if i.verb == "micro" else i.verb, getattr(i, "step", -1))
            getattr(self, "do_" + i.verb)(i)
        mark("end")
        if self.trainer.padding("parameter")[0]:
            self.report_shards("parameter", again=True)
        if self.world.size > 1:
            self.answer.event("traffic", **{f"{name}.{what}": amount for name, sent in self.trainer.traffic.items() for what, amount in sent.items()})

    # ---- training ----
    def report_micro(self, i, loss, begin):
        self.answer.event("micro", step=i.step, micro=i.micro, loss=loss, tokens=self.batches.tokens(i.step, i.micro),
                          seconds=time.perf_counter() - begin)

    def do_micro(self, i):
        begin = time.perf_counter()
        loss = self.trainer.micro(self.batches.at(i.step, i.micro), i.sync)
        self.report_micro(i, loss, begin)

    def do_forward(self, i):
        begin = time.perf_counter()
        backward, loss = self.trainer.forward(self.batches.at(i.step, i.micro))
        self.slots[i.slot] = i, backward, loss, begin

    def do_backward(self, i):
        forward, backward, loss, begin = self.slots.pop(i.slot)
        self.trainer.backward(backward, i.sync)
        self.report_micro(forward, loss, begin)

    def do_eval(self, i):
        self.answer.event("eval", step=i.step, micro=i.micro, loss=self.trainer.evaluate(self.batches.at(i.step, i.micro)))

    def do_clip(self, i):
        self.answer.event("clip", step=i.step, norm=self.trainer.clip())

    def do_step(self, i):
        begin = time.perf_counter()
        mark("observe", i.step)
        self.report_shards("gradient")
        mark("step", i.step)
        skipped, scale = self.trainer.step()
        self.answer.event("step", step=i.step, skipped=skipped, loss_scale=scale, seconds=time.perf_counter() - begin)
        mark("observe", i.step)
        self.report_shards("optimizer")

    def do_zero_grad(self, i):
        self.trainer.zero_grad()

    def do_freeze(self, i):
        self.trainer.freeze(i.pattern, False)

    def do_unfreeze(self, i):
        self.trainer.freeze(i.pattern, True)

    def do_save(self, i):
        self.trainer.save(self.case.checkpoint)

    def do_load(self, i):
        self.trainer.load(self.case.checkpoint)

    # ---- observation ----
    def parts(self, whats):
        """{what/name: (offsets, elements)} of what this rank holds; empty parts and absent tensors left out."""
        return {f"{what}/{name}": (offsets, part) for what in whats for name, (offsets, part) in self.trainer.local(what).items() if len(part)}

    def report_shards(self, of, again=False):
        """Once: the ranges of the arrays that are really there. An optimizer without state holds what it updates."""
        if of in self.reported and not again:
            return
        self.reported.add(of)
        held = {key.partition("/")[2]: offsets for key, (offsets, _) in self.parts(KINDS[of]).items()}
        if of == "optimizer" and not held:
            held = {name: offsets for name, offsets in self.trainer.updated().items() if len(offsets)}
        parts = {name: ranges(offsets) for name, offsets in held.items()}
        if of == "parameter":
            parts = {name: [] for name in self.trainer.functions.shapes} | parts
        elif any(i.verb == "unfreeze" for i in self.case.program):
            # what is frozen now gets its gradient and state later, cut as these are
            sharding = self.trainer.functions.gradient_sharding if of == "gradient" else self.trainer.functions.state_sharding
            parts = {name: ranges(offsets) for name, offsets in self.trainer.cut(sharding).items() if len(offsets)} | parts
        elements, largest = self.trainer.padding(of)
        self.answer.event("shards", of=of, parts=parts, padding=elements, **({"padding_max": largest} if elements else {}))

    def do_observe(self, i):
        if {"grad", "clipped"} & set(i.what):
            self.report_shards("gradient")
        parts = self.parts(i.what)
        if i.local:
            self.answer.tensors(i.label, {key: part for key, (_, part) in parts.items()}, self.world.rank)
        gathered = self.world.gather(parts)
        if gathered:
            self.answer.tensors(i.label, self.assemble(gathered))

    def assemble(self, gathered):
        """Full tensors from the ranks' parts; of replicas the lowest rank's counts."""
        full = {}
        for key in dict.fromkeys(key for parts in gathered for key in parts):
            shape = self.trainer.functions.shapes[key.partition("/")[2]]
            dtype = next(parts[key][1].dtype for parts in gathered if key in parts)
            tensor, covered = np.zeros(math.prod(shape), dtype), np.zeros(math.prod(shape), bool)
            for offsets, part in (parts[key] for parts in gathered[::-1] if key in parts):
                tensor[offsets] = part
                covered[offsets] = True
            if not covered.all():
                raise RuntimeError(f"{key}: element {int(np.flatnonzero(~covered)[0])} is held by no rank")
            full[key] = tensor.reshape(shape)
        return full
