"""Runs a case's program on one rank: one method per verb, and the observations.

Full tensors are put together on rank 0 from the parts that the ranks hold, read locally before any
collective: what is observed is the storage itself, not what a framework's getter makes of it.
"""

import gc
import time

import torch

from .marks import mark


class Stop(Exception):
    """The verb stop."""


class Program:
    def __init__(self, case, subject, batches, answer, world):
        self.case, self.subject, self.batches, self.answer, self.world = case, subject, batches, answer, world
        self.names = [p.name for p in case.parameters if p.tied_to is None]
        self.shapes = {p.name: p.shape for p in case.parameters}
        self.slots, self.reported = {}, set()

    def run(self):
        mark("observe")
        self.report_shards("parameter", ["param"])
        try:
            for self.position, instruction in enumerate(self.case.program):
                mark("forward" if instruction.verb == "micro" else instruction.verb, getattr(instruction, "step", -1))
                getattr(self, "do_" + instruction.verb)(instruction)
        except Stop:
            pass
        mark("end")
        if self.subject.padding("parameter")[0]:
            self.report_shards("parameter", ["param"], again=True)

    def now(self):
        if self.world.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    # ---- training ----
    def loss(self, step, micro):
        return self.subject.loss(self.batches, step, micro)

    def report_micro(self, i, loss, begin):
        self.answer.event("micro", step=i.step, micro=i.micro, loss=float(loss.detach()) / self.batches.ranks,
                          tokens=self.batches.tokens(i.step, i.micro), seconds=self.now() - begin)

    def ends_step(self):
        """Whether something else than another microbatch comes next; observing it counts for nothing."""
        coming = next((j.verb for j in self.case.program[self.position + 1:] if j.verb != "observe"), "stop")
        return coming not in ("micro", "forward", "backward")

    def do_micro(self, i):
        begin = self.now()
        self.subject.ends_step = self.ends_step()
        with self.subject.communication(i.sync):
            loss = self.loss(i.step, i.micro)
            mark("backward", i.step)
            self.subject.backward(loss)
        self.report_micro(i, loss, begin)

    def do_forward(self, i):
        begin = self.now()
        rest = self.case.program[self.position + 1:]
        sync = next((b.sync for b in rest if b.verb == "backward" and b.slot == i.slot), True)
        with self.subject.communication(sync):
            self.slots[i.slot] = i, self.loss(i.step, i.micro), begin

    def do_backward(self, i):
        forward, loss, begin = self.slots.pop(i.slot)
        self.subject.ends_step = self.ends_step()
        with self.subject.communication(i.sync):
            self.subject.backward(loss)
        self.report_micro(forward, loss, begin)

    def do_eval(self, i):
        self.subject.model.eval()
        with torch.no_grad():
            loss = self.loss(i.step, i.micro)
        self.subject.model.train()
        self.answer.event("eval", step=i.step, micro=i.micro, loss=float(loss) / self.batches.ranks)

    def do_clip(self, i):
        self.subject.unscale()
        clip = self.case.clip
        self.answer.event("clip", step=i.step, norm=float(self.subject.clip(clip.norm, clip.limit)))

    def do_step(self, i):
        begin = self.now()
        self.subject.unscale()
        mark("observe", i.step)
        self.report_shards("gradient", ["grad"])
        mark("step", i.step)
        skipped, scale = self.subject.step()
        self.answer.event("step", step=i.step, skipped=skipped, loss_scale=scale, seconds=self.now() - begin)
        mark("observe", i.step)
        self.report_shards("optimizer", ["exp_avg", "exp_avg_sq", "momentum"])

    def do_zero_grad(self, i):
        self.subject.zero_grad()

    def do_freeze(self, i):
        self.subject.require_grad(i.pattern, False)

    def do_unfreeze(self, i):
        self.subject.require_grad(i.pattern, True)

    def do_stop(self, i):
        raise Stop

    def do_save(self, i):
        self.subject.save(self.case.checkpoint)

    def do_load(self, i):
        self.subject.load(self.case.checkpoint)

    # ---- observation ----
    def parts(self, whats):
        """{what/name: (ranges, elements)} of what this rank holds, copied; empty parts and absent tensors left out."""
        parts = {}
        for what in whats:
            for name in self.names:
                local = self.subject.local(name, what)
                if local is None:
                    continue
                held = self.subject.part(name, what)
                ranges = [list(r) for r in ([held] if isinstance(held, tuple) else held) if r[1]]
                length = sum(length for _, length in ranges)
                if local.numel() != length:
                    raise RuntimeError(f"{what}/{name}: found {local.numel()} elements, expected the {length} that this rank holds")
                if length:
                    parts[f"{what}/{name}"] = ranges, local.cpu().clone()
        return parts

    def ranges(self, whats):
        return {key.partition("/")[2]: ranges for key, (ranges, _) in self.parts(whats).items()}

    def updated(self):
        """The ranges that this rank's optimizer updates, whether or not it keeps anything for them."""
        spans = {name: self.subject.part(name, "exp_avg") for name in self.names}
        spans = {name: [span] if isinstance(span, tuple) else span for name, span in spans.items()}
        return {name: [list(r) for r in span] for name, span in spans.items() if any(length for _, length in span)}

    def graded(self):
        """The ranges of gradients that this rank has, or will have."""
        spans = {name: self.subject.part(name, "grad") for name in self.names}
        return {name: [[offset, length]] for name, (offset, length) in spans.items() if length}

    def report_shards(self, of, whats, again=False):
        """Once: the ranges of the tensors that are really there. An optimizer without state holds the parameters that it updates."""
        if of in self.reported and not again:
            return
        self.reported.add(of)
        parts = self.ranges(whats) or (self.updated() if of == "optimizer" else {})
        elements, largest = self.subject.padding(of)
        if of == "parameter":
            parts = {name: [] for name in self.names} | parts
        elif any(i.verb == "unfreeze" for i in self.case.program):
            # what is frozen now gets its gradient and state later, cut as the parameter is
            parts = (self.updated() if of == "optimizer" else self.graded()) | parts
            elements = self.subject.padding("parameter")[0] if of == "gradient" else elements
        self.answer.event("shards", of=of, parts=parts, padding=elements, **({"padding_max": largest} if elements else {}))

    def do_observe(self, i):
        if {"grad", "clipped"} & set(i.what):
            self.subject.unscale()
            self.report_shards("gradient", ["grad"])
        parts = self.parts(i.what)
        if i.local:
            self.answer.tensors(i.label, {key: local for key, (_, local) in parts.items()}, self.world.rank)
        gathered = self.world.gather(parts)
        if self.world.rank == 0:
            self.answer.tensors(i.label, self.assemble(gathered))

    def assemble(self, gathered):
        """Full tensors from the ranks' parts; of replicas the lowest rank's counts. What no rank holds of an
        absent gradient counts as zero, which is what an optimizer makes of it; a parameter must be whole."""
        full = {}
        for key in dict.fromkeys(key for parts in gathered for key in parts):
            shape = self.shapes[key.partition("/")[2]]
            dtype = next(parts[key][1].dtype for parts in gathered if key in parts)
            count = torch.Size(shape).numel()
            tensor, covered = torch.zeros(count, dtype=dtype), torch.zeros(count, dtype=torch.bool)
            for ranges, local in (parts[key] for parts in gathered if key in parts):
                for (offset, length), piece in zip(ranges, local.split([length for _, length in ranges])):
                    span = slice(offset, offset + length)
                    fresh = ~covered[span]
                    tensor[span][fresh] = piece[fresh]
                    covered[span] = True
            if not covered.all() and not key.startswith(("grad/", "clipped/")):
                raise RuntimeError(f"{key}: element {int((~covered).nonzero()[0])} is held by no rank")
            full[key] = tensor.view(shape)
        return full


def forget():
    """Frees what a case left in reference cycles, so that cases do not add up."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
