"""Tokens per second of an adapter's optimizer step, on the same models as the cases.

    python -m fsdpmark_adapter.bench --implementation NAME --model JSON --batch B --steps K [--strategy S] [--free]

Run once per rank with torchrun's environment (RANK, WORLD_SIZE, MASTER_ADDR, ...; alone: one rank). MODEL is the object of
case.json; B rows per rank, AdamW, float32, one thread. A step is from barrier to barrier: zero_grad, forward,
backward, optimizer. Every rank prints one line of JSON a step after a first one that is not counted:
{"implementation", "rank", "world_size", "strategy", "step", "seconds", "processor_seconds", "tokens", "tokens_per_second", "loss"}; tokens are this rank's.
With the probes loaded every other step is not recorded, as r u u r r u u r ..., and "recorded" says which: what the probes cost.

--free: on PyTorch's "fake" process group, whose collectives move nothing and end at once. What is trained then is wrong on purpose and only timed:
the step less this one is the communication that computation does not hide. Denormal numbers, which buffers that nobody fills may hold, count as 0.
"""

import argparse
import json
import os
import sys
import time

import torch

from . import models
from .batch import Batches
from .marks import mark, pause
from .job import CASE, InputError, accept
from .sibling import subject_class
from .serving import leave
from .world import World

DEFAULT_STRATEGY = {"pytorch-ddp": "none", "pytorch-zero1": "optimizer", "deepspeed-zero0": "none", "deepspeed-zero1": "optimizer",
                    "deepspeed-zero2": "grad"}


def make_case(model, world_size, batch, strategy):
    sharding = {"strategy": strategy, "mesh": [world_size, 1] if strategy == "none" else [1, world_size], "tensor": 1, "pipeline": 1, "layout": "any",
                "reshard_after_forward": True, "reshard_ranks": 0,
                "wrap": {"policy": "block", "min_parameters": 0, "pattern": ""},
                "prefetch": {"forward": 0, "backward": 1}, "offload": "none", "activation_checkpointing": False}
    model = accept(model, CASE["model"], "--model")
    return accept({
        "protocol": 1, "id": "bench", "family": "bench", "layer": "calibrated", "world_size": world_size,
        "global_rows": batch * world_size, "seed": 1, "model": json.loads(json.dumps(model, default=vars)),
        "parameters": models.table(model), "sharding": sharding,
        "precision": {"parameter": "f32", "compute": "f32", "reduce": "f32", "optimizer_state": "f32",
                      "loss_scale": {"mode": "none", "initial": 1, "growth": 2, "backoff": 0.5, "interval": 2000}},
        "optimizer": {"kind": "adamw", "lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "no_decay": True},
        "clip": None, "loss": "mean_of_tokens", "divergent_init": False, "data": {}, "program": [], "checkpoint": "/nonexistent",
        "options": {}}, CASE, "bench")


def make_tensors(case):
    """Random parameters N(0, 0.02^2), norms 1, biases 0; random inputs of one step, used again in each."""
    torch.manual_seed(case.seed)
    model, shape = case.model, (1, 1, case.global_rows)
    init = {p.name: torch.randn(p.shape) * 0.02 if len(p.shape) > 1 else torch.full(p.shape, float(p.name.endswith("weight")))
            for p in case.parameters if p.tied_to is None}
    if model.kind == "transformer":
        tokens = torch.randint(0, model.vocab, (*shape, model.context), dtype=torch.int32)
        return init, {"tokens": tokens, "targets": tokens.roll(-1, dims=-1), "weight": torch.ones(*shape, model.context)}
    if model.kind == "mlp":
        return init, {"input": torch.randn(*shape, model.sizes[0]), "target": torch.randn(*shape, model.sizes[-1]), "weight": torch.ones(shape)}
    return init, {**{"x/" + p.name: torch.randn(*shape, *p.shape) for p in case.parameters}, "weight": torch.ones(shape)}


class FreeWorld(World):
    def __init__(self, rank, size):
        from torch.testing._internal.distributed.fake_pg import FakeStore  # registers the backend
        self.rank, self.size, self.device, self.meshes = rank, size, torch.device("cpu"), {}
        torch.set_flush_denormal(True)
        torch.distributed.init_process_group("fake", rank=rank, world_size=size, store=FakeStore())
        self.objects = torch.distributed.group.WORLD


def step(subject, batches):
    mark("zero_grad")
    subject.zero_grad()
    mark("forward", 0)
    with subject.communication(True):
        inputs, extra = batches.at(0, 0, subject.compute)
        loss = subject.forward(inputs, extra) * batches.scale(0, 0)
        mark("backward", 0)
        subject.backward(loss)
    mark("step", 0)
    subject.step()
    return float(loss.detach()) / subject.case.world_size


def arguments():
    parser = argparse.ArgumentParser(prog="fsdpmark_adapter.bench")
    parser.add_argument("--implementation", required=True)
    parser.add_argument("--model", required=True, type=json.loads, help="the model object of case.json")
    parser.add_argument("--batch", required=True, type=int, help="rows per rank")
    parser.add_argument("--steps", required=True, type=int)
    parser.add_argument("--free", action="store_true", help="collectives that move nothing")
    parser.add_argument("--strategy", help="default full, none for pytorch-ddp; one rank alone is never sharded by default")
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(1)
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0" if size == 1 else "29500")
    strategy = options.strategy or ("none" if size == 1 else DEFAULT_STRATEGY.get(options.implementation, "full"))
    try:
        make = subject_class(options.implementation)
        case = make_case(options.model, size, options.batch, strategy)
        reason = make.unsupported(case)
        if reason:
            raise InputError(f"--implementation {options.implementation}: {reason}")
    except InputError as error:
        print(error, file=sys.stderr)
        leave(2)
    world = FreeWorld(rank, size) if options.free else World(rank, size, int(os.environ.get("LOCAL_RANK", rank)), int(os.environ.get("LOCAL_WORLD_SIZE", size)))
    subject = make(case, world)
    init, data = make_tensors(case)
    subject.build(init)
    batches = Batches(case, data, rank, world.device)
    for k in range(options.steps + 1):
        recorded = pause(k & 1 ^ k >> 1 & 1)
        world.barrier()
        begin, processor = time.perf_counter(), time.process_time()
        loss = step(subject, batches)
        if world.device.type == "cuda":
            torch.cuda.synchronize()
        world.barrier()
        seconds, processor = time.perf_counter() - begin, time.process_time() - processor
        if k:
            tokens = batches.tokens(0, 0)
            print(json.dumps({"implementation": make.implementation, "rank": rank, "world_size": size, "strategy": strategy, "step": k - 1,
                              "seconds": seconds, "processor_seconds": processor, "tokens": tokens, "tokens_per_second": tokens / seconds, "loss": loss, **recorded}), flush=True)
    world.close()
    leave(0)


if __name__ == "__main__":
    main()
