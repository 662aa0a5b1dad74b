"""Makes job folders with exact integer data and runs adapters on them, without the harness.

Exact: weights and inputs are small integers, the loss is a sum of squares times N, the learning rate a power of two, so that every
sum is exact in float32 in any order. Sharded and plain runs must then agree in every bit.
"""

import copy
import json
import os
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from fsdpmark_adapter import models
from fsdpmark_adapter.job import MODEL, accept

warnings.filterwarnings("ignore", category=ResourceWarning)  # folders go when the last result does
IMPLEMENTATIONS = Path(__file__).resolve().parents[2]

MLP = {"kind": "mlp", "sizes": [6, 5, 4], "bias": True, "calls": [0, 1], "unused": 0}
REUSED = {"kind": "mlp", "sizes": [5, 5, 5], "bias": True, "calls": [0, 1, 0], "unused": 0}
UNUSED = {"kind": "mlp", "sizes": [6, 5, 4], "bias": True, "calls": [0, 1], "unused": 1}
WITNESS = {"kind": "witness", "units": [{"name": "u0", "parameters": [{"name": "w", "shape": [5, 3]}, {"name": "b", "shape": [1]}]},
                                        {"name": "u1", "parameters": [{"name": "w", "shape": [7]}]}]}
TRANSFORMER = {"kind": "transformer", "layers": 2, "dim": 16, "heads": 4, "kv_heads": 2, "ffn": 24, "vocab": 13, "context": 6,
               "norm": "layernorm", "position": "learned", "activation": "gelu", "bias": True, "tied": False, "norm_eps": 1e-5,
               "rope_theta": 10000}
LLAMA = {**TRANSFORMER, "norm": "rmsnorm", "position": "rope", "activation": "swiglu", "bias": False, "tied": True}
ADAMW = {"kind": "adamw", "lr": 0.0078125, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "no_decay": True}


def program(steps, micros, sync=False, clip=False, states=()):
    verbs = [{"verb": "observe", "label": "init", "what": ["param"], "local": True}]
    for k in range(steps):
        verbs += [{"verb": "micro", "step": k, "micro": m, "sync": sync or m == micros - 1} for m in range(micros)]
        verbs += [{"verb": "observe", "label": f"s{k}.grad", "what": ["grad"], "local": True}]
        if clip:
            verbs += [{"verb": "clip", "step": k}, {"verb": "observe", "label": f"s{k}.clipped", "what": ["clipped"], "local": False}]
        verbs += [{"verb": "step", "step": k}, {"verb": "observe", "label": f"s{k}", "what": ["param", *states], "local": True},
                  {"verb": "zero_grad"}]
    return verbs + [{"verb": "stop"}]


def case(case_id, n, model=MLP, strategy="full", mesh=None, steps=2, micros=2, **changes):
    """A case as case.json; dotted names in changes go into nested objects."""
    mesh = mesh or ([n, 1] if strategy == "none" else [1, n])
    made = {
        "protocol": 1, "id": case_id, "family": "test", "layer": "exact", "world_size": n, "global_rows": 12, "seed": 1,
        "model": copy.deepcopy(model), "parameters": models.table(accept(model, MODEL, "model")),
        "sharding": {"strategy": strategy, "mesh": mesh, "tensor": 1, "pipeline": 1, "layout": "any", "reshard_after_forward": True, "reshard_ranks": 0,
                     "wrap": {"policy": "block", "min_parameters": 0, "pattern": ""}, "prefetch": {"forward": 0, "backward": 0},
                     "offload": "none", "activation_checkpointing": False},
        "precision": {"parameter": "f32", "compute": "f32", "reduce": "f32", "optimizer_state": "f32",
                      "loss_scale": {"mode": "none", "initial": 1, "growth": 2, "backoff": 0.5, "interval": 2000}},
        "optimizer": {"kind": "sgd", "lr": 0.125, "momentum": 0, "weight_decay": 0, "no_decay": False},
        "clip": None, "loss": "sum", "divergent_init": False, "data": {"recipe": "given"},
        "program": program(steps, micros), "checkpoint": "/nonexistent", "options": {}}
    for path, value in changes.items():
        *parents, leaf = path.split("__")
        place = made
        for parent in parents:
            place = place[parent]
        place[leaf] = value
    return made


def tensors(made, steps=2, micros=2):
    """(init, data) of a case: integers, the same for every world size."""
    generator = torch.Generator().manual_seed(7)
    rows, model = made["global_rows"], made["model"]
    shape = (steps, micros, rows)

    def integers(low, high, size):
        return torch.randint(low, high + 1, size, generator=generator).float()

    if model["kind"] == "transformer":
        init = {p["name"]: torch.randn(p["shape"], generator=generator) * 0.2 for p in made["parameters"] if not p["tied_to"]}
        init |= {name: 1 + value * 0.1 for name, value in init.items() if "norm" in name and name.endswith("weight")}
        tokens = torch.randint(0, model["vocab"], (*shape, model["context"]), generator=generator).int()
        return init, {"tokens": tokens, "targets": tokens.flip(-1).contiguous(),
                      "weight": integers(0, 1, (*shape, model["context"]))}
    init = {p["name"]: integers(-1, 1, p["shape"]) for p in made["parameters"]}
    if model["kind"] == "witness":
        return init, {**{"x/" + p["name"]: integers(-9, 9, (*shape, *p["shape"])) for p in made["parameters"]}, "weight": torch.ones(shape)}
    sizes = model["sizes"]
    return init, {"input": integers(0, 1, (*shape, sizes[0])), "target": integers(-2, 2, (*shape, sizes[-1])), "weight": torch.ones(shape)}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prepare(cases, folder):
    """The job folder of a start that serves the cases."""
    n = cases[0]["world_size"]
    (folder / "job.json").write_text(json.dumps({"protocol": 1, "world_size": n, "cases": [c["id"] for c in cases]}))
    for c in cases:
        (folder / c["id"] / "out").mkdir(parents=True)
        (folder / c["id"] / "case.json").write_text(json.dumps(c))
        steps = 1 + max((v.get("step", 0) for v in c["program"]), default=0)
        micros = 1 + max((v.get("micro", 0) for v in c["program"]), default=0)
        init, data = tensors(c, steps, micros)
        save_file(init, folder / c["id"] / "init.safetensors")
        save_file({name: value + 1 for name, value in init.items()}, folder / c["id"] / "init.other.safetensors")
        save_file(data, folder / c["id"] / "data.safetensors")


def environment_of(folder, rank, n, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(n), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "FSDPMARK_JOB": str(folder), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def start(implementation, cases, folder, extra=None, timeout=300):
    """Runs the cases in one start of the adapter; returns the ranks' exit statuses."""
    prepare(cases, folder)
    n, port, ranks = cases[0]["world_size"], free_port(), []
    for rank in range(n):
        environment = {**os.environ, **environment_of(folder, rank, n, port), **(extra or {})}
        with open(folder / f"rank{rank}.log", "w") as log:
            ranks.append(subprocess.Popen([sys.executable, IMPLEMENTATIONS / implementation / "adapter.py"], cwd=folder,
                                          env=environment, stdout=log, stderr=subprocess.STDOUT))
    try:
        return [rank.wait(timeout) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


class Result:
    """What the ranks answered to one case."""

    def __init__(self, folder, made):
        self.out, self.n = folder / made["id"] / "out", made["world_size"]
        self.events = [[json.loads(line) for line in (self.out / f"rank{r}.jsonl").read_text().splitlines()] for r in range(self.n)]

    def end(self):
        return {events[-1]["event"] for events in self.events}

    def find(self, event, rank=0):
        return [e for e in self.events[rank] if e["event"] == event]

    def labels(self):
        return [e["label"] for e in self.find("observed") if ".rank" not in e["file"]]

    def full(self, label):
        return load_file(self.out / f"{label}.safetensors")

    def local(self, label, rank):
        return load_file(self.out / f"{label}.rank{rank}.safetensors")


def run(implementation, cases, **extra):
    """{case id: Result} of one start; the folder lives as long as the results."""
    folder = tempfile.TemporaryDirectory(prefix="fsdpmark-test-")
    path = Path(folder.name)
    status = start(implementation, cases, path, **extra)
    logs = "".join((path / f"rank{r}.log").read_text()[-1500:] for r in range(cases[0]["world_size"]))
    results = {c["id"]: Result(path, c) for c in cases if (path / c["id"] / "out" / "rank0.jsonl").exists()}
    for result in results.values():
        result.folder = folder
    return status, results, logs
