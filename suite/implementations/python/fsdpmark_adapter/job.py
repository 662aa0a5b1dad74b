"""Reads job.json and case.json: every field present, of its type, and none besides.

The schema below is the table of docs/protocol.md. A type is a Python type, a set of allowed
values, a list of one element type, a dict of fields, or a function of the value that gives one of these.
"""

import json
import os
from types import SimpleNamespace

DTYPES = {"f32", "f64", "bf16", "f16"}
NUMBER = (int, float)


class InputError(Exception):
    """One line: where, what was found, what was expected."""


class Null:
    """Either null or the type."""

    def __init__(self, kind):
        self.kind = kind


class Map:
    """An object with free keys and values of one type."""

    def __init__(self, kind):
        self.kind = kind


def by(field, table):
    """The fields of an object whose own `field` says which they are."""

    def choose(value, where):
        if not isinstance(value, dict) or value.get(field) not in table:
            raise InputError(f"{where}: found {field} {short((value or {}).get(field) if isinstance(value, dict) else value)}, "
                             f"expected one of {', '.join(sorted(table))}")
        return {field: str, **table[value[field]]}

    return choose


MODEL = by("kind", {
    "witness": {"units": [{"name": str, "parameters": [{"name": str, "shape": [int]}]}]},
    "mlp": {"sizes": [int], "bias": bool, "calls": [int], "unused": int},
    "transformer": {
        "layers": int, "dim": int, "heads": int, "kv_heads": int, "ffn": int, "vocab": int, "context": int,
        "norm": {"layernorm", "rmsnorm"}, "position": {"learned", "rope"}, "activation": {"gelu", "swiglu"},
        "bias": bool, "tied": bool, "norm_eps": NUMBER, "rope_theta": NUMBER},
})
SHARDING = {
    "strategy": {"none", "optimizer", "grad", "full", "hybrid"}, "mesh": [int], "tensor": int, "pipeline": int,
    "layout": {"per_parameter", "flat", "any"}, "reshard_after_forward": bool, "reshard_ranks": int,
    "wrap": {"policy": {"block", "root", "size", "pattern"}, "min_parameters": int, "pattern": str},
    "prefetch": {"forward": int, "backward": int}, "offload": {"none", "cpu"}, "activation_checkpointing": bool}
PRECISION = {
    "parameter": DTYPES, "compute": DTYPES, "reduce": DTYPES, "optimizer_state": DTYPES,
    "loss_scale": {"mode": {"none", "static", "dynamic"}, "initial": NUMBER, "growth": NUMBER, "backoff": NUMBER,
                   "interval": int}}
OPTIMIZER = by("kind", {
    "sgd": {"lr": NUMBER, "momentum": NUMBER, "weight_decay": NUMBER, "no_decay": bool},
    "adamw": {"lr": NUMBER, "beta1": NUMBER, "beta2": NUMBER, "eps": NUMBER, "weight_decay": NUMBER, "no_decay": bool},
})
INSTRUCTION = by("verb", {
    "micro": {"step": int, "micro": int, "sync": bool},
    "forward": {"step": int, "micro": int, "slot": int},
    "backward": {"slot": int, "sync": bool},
    "eval": {"step": int, "micro": int},
    "clip": {"step": int},
    "step": {"step": int},
    "zero_grad": {},
    "freeze": {"pattern": str},
    "unfreeze": {"pattern": str},
    "save": {},
    "load": {},
    "observe": {"label": str, "what": [{"param", "grad", "clipped", "exp_avg", "exp_avg_sq", "momentum"}], "local": bool},
    "stop": {},
})
CASE = {
    "protocol": {1}, "id": str, "family": str, "layer": {"exact", "witness", "calibrated", "measured"}, "world_size": int,
    "global_rows": int, "seed": int, "model": MODEL,
    "parameters": [{"name": str, "shape": [int], "unit": str, "tied_to": Null(str), "decay": bool}],
    "sharding": SHARDING, "precision": PRECISION, "optimizer": OPTIMIZER,
    "clip": Null({"norm": {"1", "2", "inf"}, "limit": NUMBER}),
    "loss": {"sum", "mean_of_tokens", "mean_of_ranks"}, "divergent_init": bool, "data": Map(object),
    "program": [INSTRUCTION], "checkpoint": str, "options": Map(str)}
JOB = {"protocol": {1}, "world_size": int, "cases": [str]}


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def accept(value, kind, where):
    """The value with objects turned into namespaces (maps stay dicts); InputError where it does not fit."""
    if callable(kind) and not isinstance(kind, type):
        kind = kind(value, where)
    if isinstance(kind, Null):
        return None if value is None else accept(value, kind.kind, where)
    if isinstance(kind, Map):
        expect(value, dict, where)
        return {name: accept(item, kind.kind, f"{where}.{name}") for name, item in value.items()}
    if isinstance(kind, dict):
        expect(value, dict, where)
        for name in [*value, *kind]:
            if name not in kind:
                raise InputError(f"{where}: found unknown field {name!r}, expected {', '.join(kind) or 'none'}")
            if name not in value:
                raise InputError(f"{where}: found no field {name!r}, expected one")
        return SimpleNamespace(**{name: accept(value[name], kind[name], f"{where}.{name}") for name in kind})
    if isinstance(kind, list):
        expect(value, list, where)
        return [accept(item, kind[0], f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(kind, set):
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value not in kind:
            raise InputError(f"{where}: found {short(value)}, expected one of {', '.join(sorted(map(str, kind)))}")
        return value
    if kind is NUMBER and value in ("nan", "inf", "-inf"):
        return float(value)
    expect(value, kind, where)
    return value


def expect(value, kind, where):
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds and object not in kinds):
        raise InputError(f"{where}: found {short(value)}, expected {' or '.join(k.__name__ for k in kinds)}")


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise InputError(f"found field {next(n for n in names if names.count(n) > 1)!r} twice, expected it once")
    return dict(pairs)


def read(path, kind):
    try:
        with open(path, encoding="utf-8") as file:
            return accept(json.load(file, object_pairs_hook=unique), kind, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a readable file") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: found no JSON ({error.msg}), expected one object") from None


def read_case(path):
    case = read(path, CASE)
    sharding = case.sharding
    for axis in ("tensor", "pipeline"):
        if getattr(sharding, axis) < 1:
            raise InputError(f"{path}.sharding.{axis}: found {getattr(sharding, axis)}, expected at least 1")
    if case.world_size % (sharding.tensor * sharding.pipeline):
        raise InputError(f"{path}.sharding: found tensor {sharding.tensor} and pipeline {sharding.pipeline}, expected a product that divides {case.world_size}")
    if len(sharding.mesh) != 2 or sharding.mesh[0] * sharding.mesh[1] != data_ranks(case):
        raise InputError(f"{path}.sharding.mesh: found {sharding.mesh}, expected two sizes whose product is {data_ranks(case)}")
    shards, group = sharding.mesh[1], sharding.reshard_ranks
    if group and (not 1 < group < shards or shards % group):
        raise InputError(f"{path}.sharding.reshard_ranks: found {group}, expected 0 or a true divisor of {shards}")
    return case


def data_ranks(case):
    """D: the ranks that share the rows; without tensor and pipeline ranks all of them."""
    return case.world_size // (case.sharding.tensor * case.sharding.pipeline)


def place(case, rank):
    """Where a rank stands: rank = (stage D + data) T + tensor."""
    data, tensor = data_ranks(case), case.sharding.tensor
    return SimpleNamespace(stage=rank // (tensor * data), data=rank // tensor % data, tensor=rank % tensor)


def environment(name):
    value = os.environ.get(name, "")
    if not value.isdigit():
        raise InputError(f"environment: found {name}={value!r}, expected a number")
    return int(value)


class Job:
    """The start that this process is a rank of."""

    def __init__(self):
        self.folder = os.environ.get("FSDPMARK_JOB", "")
        if not os.path.isabs(self.folder):
            raise InputError(f"environment: found FSDPMARK_JOB={self.folder!r}, expected an absolute path")
        self.rank, self.world_size = environment("RANK"), environment("WORLD_SIZE")
        self.local_rank = environment("LOCAL_RANK")
        self.local_world_size = environment("LOCAL_WORLD_SIZE")
        self.fault = os.environ.get("FSDPMARK_FAULT", "")
        path = os.path.join(self.folder, "job.json")
        job = read(path, JOB)
        if job.world_size != self.world_size:
            raise InputError(f"{path}.world_size: found {job.world_size}, expected WORLD_SIZE={self.world_size}")
        self.cases = job.cases

    def case_folder(self, case_id):
        return os.path.join(self.folder, case_id)
