#!/usr/bin/env python3
"""An adapter, whole, in plain Python: read it top to bottom, then write your own.

An adapter is the program that the harness starts once per rank. It reads a case (files in a folder), trains as the case says,
and writes down what happened (files in the same folder). docs/protocol.md is the contract; this file is one way to fulfil it.
It trains the models `witness` and `mlp` under the strategies `none` (data parallel) and `optimizer` (ZeRO-1: every rank has all
parameters and gradients, but updates only its own rows and then gathers the rest). Ranks talk through sockets on the loopback
interface, the simplest transport that every machine has; your framework brings its own (sections 2 and 3 go away).

Arithmetic is Python's float64; what a case holds in float32 (parameters, gradients, momentum) is rounded on each store. That is a
correct float32 program: on the exact cases, where every sum is exact, it reaches the same bits as any other.

Sections: 1 files of tensors, 2 talking between ranks, 3 the models, 4 sharding and the optimizer, 5 answering,
6 the program of a case, 7 start. An adapter of a framework needs 1 (or the safetensors package), 5, 6 and 7.
"""
import fnmatch
import json
import math
import os
import socket
import struct
import sys
import time
from array import array


# ---- 1 ---- Tensors in files: safetensors is a length, a JSON header and the bytes. Here a tensor is (shape, list of numbers).

KINDS = {"F32": "f", "F64": "d", "I32": "i"}


def read_tensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        values = array(KINDS[entry["dtype"]])
        values.frombytes(data[slice(*entry["data_offsets"])])
        out[name] = (entry["shape"], list(values))
    return out


def write_tensors(path, tensors):
    """Everything is float32 here. Written under another name and renamed when whole: the harness never sees half a file."""
    header, blobs, at = {}, [], 0
    for name, (shape, values) in tensors.items():
        blob = array("f", values).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    with open(path + ".tmp", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    os.rename(path + ".tmp", path)


def f32(values):
    """Rounds to float32, to nearest even."""
    return list(array("f", values))


# ---- 2 ---- Talking: rank 0 is the hub at MASTER_ADDR:MASTER_PORT, which the harness has chosen and every rank knows.


class World:
    def __init__(self):
        # The names are torchrun's; under mpirun the harness sets the same.
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.peers = []
        if self.size == 1:
            return
        if self.rank == 0:
            with socket.create_server(address) as server:
                links = [server.accept()[0] for _ in range(self.size - 1)]
            # Sums are taken in the order of ranks, so that two runs give the same bits.
            self.peers = sorted(links, key=lambda link: struct.unpack("<q", self.receive(link, 8)))
        else:
            link = self.connect(address)
            link.sendall(struct.pack("<q", self.rank))
            self.peers = [link]
        for link in self.peers:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def connect(address):
        for _ in range(3000):  # the hub may start later than we do
            try:
                return socket.create_connection(address)
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise TimeoutError("rank 0 does not listen at %s:%d" % address)

    @staticmethod
    def receive(link, size):
        out = bytearray()
        while len(out) < size:
            part = link.recv(size - len(out))
            if not part:
                raise ConnectionError("a peer has gone")
            out += part
        return bytes(out)

    def sum(self, values):
        """All-reduce: every rank gets the sum over ranks of its list."""
        if self.size == 1:
            return list(values)
        size = 8 * len(values)
        own = array("d", values)
        if self.rank == 0:
            parts = [own] + [array("d", self.receive(link, size)) for link in self.peers]
            total = array("d", (sum(column) for column in zip(*parts)))
            for link in self.peers:
                link.sendall(total.tobytes())
            return list(total)
        self.peers[0].sendall(own.tobytes())
        return list(array("d", self.receive(self.peers[0], size)))


# ---- 3 ---- The models: the loss of a row and its gradient. In your adapter these are modules of your framework.


class Witness:
    """The loss of a row is the sum over parameters of <w, x_row>, so the gradient of w is the weighted sum of the x."""

    def __init__(self, case, data):
        self.data = data
        self.names = [p["name"] for p in case["parameters"]]

    def backward(self, parameters, at, rows, scale, wanted):
        """Adds scale * gradient of sum(weight * loss) to wanted[name]; returns sum(weight * loss)."""
        loss = 0.0
        for row in rows:
            weight = pick(self.data["weight"], at, row)[0]
            for name in self.names:
                x, w = pick(self.data["x/" + name], at, row), parameters[name]
                loss += weight * sum(a * b for a, b in zip(w, x))
                if name in wanted:
                    wanted[name] = [g + scale * weight * v for g, v in zip(wanted[name] or [0.0] * len(w), x)]
        return loss


class Mlp:
    """y = x W^T + b, ReLU between the calls, squared error at the end. A layer may be called several times."""

    def __init__(self, case, data):
        self.data, model = data, case["model"]
        self.sizes, self.calls, self.bias = model["sizes"], model["calls"], model["bias"]

    def forward(self, parameters, x):
        inputs = []
        for number, layer in enumerate(self.calls):
            inputs.append(x)
            columns = len(x)
            weight = parameters["layers.%d.weight" % layer]
            x = [sum(w * v for w, v in zip(weight[i * columns:(i + 1) * columns], x)) for i in range(len(weight) // columns)]
            if self.bias:
                x = [a + b for a, b in zip(x, parameters["layers.%d.bias" % layer])]
            if number + 1 < len(self.calls):
                x = [max(v, 0.0) for v in x]
        return inputs, x

    def backward(self, parameters, at, rows, scale, wanted):
        loss = 0.0
        for row in rows:
            weight = pick(self.data["weight"], at, row)[0]
            target = pick(self.data["target"], at, row)
            inputs, y = self.forward(parameters, pick(self.data["input"], at, row))
            loss += weight * sum((a - t) ** 2 for a, t in zip(y, target))
            dy = [2 * scale * weight * (a - t) for a, t in zip(y, target)]
            for number in reversed(range(len(self.calls))):
                dy = self.layer_backward(parameters, self.calls[number], inputs[number], dy, wanted)
                if number > 0:  # through the ReLU that made this input: it let through what is above 0
                    dy = [d if v > 0 else 0.0 for d, v in zip(dy, inputs[number])]
        return loss

    def layer_backward(self, parameters, layer, x, dy, wanted):
        name, bias = "layers.%d.weight" % layer, "layers.%d.bias" % layer
        weight, columns = parameters[name], len(x)
        if name in wanted:
            outer = (d * v for d in dy for v in x)
            wanted[name] = [g + o for g, o in zip(wanted[name] or [0.0] * len(weight), outer)]
        if self.bias and bias in wanted:
            wanted[bias] = [g + d for g, d in zip(wanted[bias] or [0.0] * len(dy), dy)]
        return [sum(dy[i] * weight[i * columns + j] for i in range(len(dy))) for j in range(columns)]


def pick(tensor, at, row):
    """The row of one (step, micro) of a tensor (steps, micros, G, ...), flat."""
    shape, values = tensor
    step, micro = at
    size = math.prod(shape[3:])
    first = ((step * shape[1] + micro) * shape[2] + row) * size
    return values[first:first + size]


# ---- 4 ---- Sharding. Who holds what is decided once, and told to the harness in the `shards` events.


def chunk(shape, rank, ranks):
    """Elements [first, end) of a rank: chunks of ceil(d0 / N) rows of dimension 0; the last may be shorter or empty."""
    row = math.prod(shape[1:])
    rows = -(-shape[0] // ranks)
    return min(rank * rows, shape[0]) * row, min((rank + 1) * rows, shape[0]) * row


class Trainer:
    def __init__(self, case, world, init, data):
        self.case, self.world = case, world
        self.table = {p["name"]: p for p in case["parameters"]}
        self.sharded = case["sharding"]["strategy"] == "optimizer"
        self.model = {"witness": Witness, "mlp": Mlp}[case["model"]["kind"]](case, data)
        self.weights = data["weight"]
        # All ranks start from what rank 0 has, whatever they have read: the initial synchronisation.
        self.parameters = {n: f32(world.sum([v if world.rank == 0 else 0.0 for v in init[n][1]])) for n in self.table}
        self.momentum = {}
        self.frozen = set()
        self.zero_grad()

    def part(self, name):
        """What this rank updates, and holds the optimizer's state of."""
        shape = self.table[name]["shape"]
        return chunk(shape, self.world.rank, self.world.size) if self.sharded else (0, math.prod(shape))

    def zero_grad(self):
        # gradients: reduced, what the optimizer sees. local: not yet reduced (microbatches without sync).
        self.gradients = {n: None for n in self.table}
        self.local = {n: None for n in self.table}

    def rows(self):
        """The global batch is given whole; a rank takes its own rows of it."""
        g, r, n = self.case["global_rows"], self.world.rank, self.world.size
        return range(r * g // n, (r + 1) * g // n)

    def scale(self, at):
        """What the sum over this rank's rows is multiplied with, so that the mean over ranks of the gradients is right."""
        shape, weights = self.weights
        if self.case["loss"] == "sum":
            return self.world.size
        if self.case["loss"] == "mean_of_tokens":  # weights of all ranks and all microbatches of the step
            size = shape[1] * shape[2]
            total = sum(weights[at[0] * size:(at[0] + 1) * size])
            return self.world.size / total if total else 0.0
        total = sum(pick(self.weights, at, row)[0] for row in self.rows())
        return 1.0 / total if total else 0.0

    def micro(self, at, sync):
        scale = self.scale(at)
        wanted = {n: g for n, g in self.local.items() if n not in self.frozen}
        loss = self.model.backward(self.parameters, at, self.rows(), scale, wanted)
        self.local.update(wanted)
        if sync:
            self.reduce()
        return scale * loss / self.world.size

    def reduce(self):
        for name, own in self.local.items():
            if own is None:  # no forward has used it: the same on every rank, so no rank waits
                continue
            mean = [v / self.world.size for v in self.world.sum(own)]
            self.gradients[name] = f32(a + b for a, b in zip(self.gradients[name] or [0.0] * len(mean), mean))
            self.local[name] = None

    def evaluate(self, at):
        scale = self.scale(at)
        return scale * self.model.backward(self.parameters, at, self.rows(), scale, {}) / self.world.size

    def clip(self):
        kind, limit = self.case["clip"]["norm"], self.case["clip"]["limit"]
        every = [abs(v) for g in self.gradients.values() if g is not None for v in g]
        norm = {"1": sum(every), "2": math.sqrt(sum(v * v for v in every)), "inf": max(every, default=0.0)}[kind]
        factor = min(1.0, limit / (norm + 1e-6))
        if factor < 1.0:
            self.gradients = {n: None if g is None else f32(factor * v for v in g) for n, g in self.gradients.items()}
        return norm

    def step(self):
        o = self.case["optimizer"]
        for name, gradient in self.gradients.items():
            if gradient is None:
                continue
            first, end = self.part(name)
            decay = 0.0 if o["no_decay"] and not self.table[name]["decay"] else o["weight_decay"]
            p = self.parameters[name][first:end]
            g = [v + decay * w for v, w in zip(gradient[first:end], p)]
            if o["momentum"]:
                old = self.momentum.get(name)
                g = self.momentum[name] = f32(g if old is None else (o["momentum"] * m + v for m, v in zip(old, g)))
            self.parameters[name][first:end] = f32(w - o["lr"] * v for w, v in zip(p, g))
            if self.sharded:
                self.parameters[name] = self.gather(name, self.parameters[name][first:end])

    def gather(self, name, part):
        """The whole tensor from every rank's part: zeros elsewhere, then a sum."""
        first, end = self.part(name)
        whole = [0.0] * math.prod(self.table[name]["shape"])
        if self.sharded:
            whole[first:end] = part
            return f32(self.world.sum(whole))
        return list(part)

    def observed(self, what):
        """(full tensors, this rank's part of each) by the protocol's names. Collective: every rank calls it."""
        full, own = {}, {}
        for kind in what:
            for name, entry in self.table.items():
                if kind == "momentum":
                    if name in self.momentum:
                        full["momentum/" + name] = (entry["shape"], self.gather(name, self.momentum[name]))
                        own["momentum/" + name] = ([len(self.momentum[name])], self.momentum[name])
                    continue
                values = (self.parameters if kind == "param" else self.gradients)[name]
                if values is not None:  # an absent gradient is left out
                    full[kind + "/" + name] = (entry["shape"], values)
                    own[kind + "/" + name] = ([len(values)], values)
        # A rank that holds nothing of a tensor leaves it out of its part.
        return full, {n: t for n, t in own.items() if t[1]}


# ---- 5 ---- Answering: one JSON object a line, flushed, in out/rank<R>.jsonl.


class Answer:
    def __init__(self, folder, rank):
        self.folder = os.path.join(folder, "out")
        self.file = open(os.path.join(self.folder, "rank%d.jsonl" % rank), "a")

    def say(self, event, **fields):
        for name, value in fields.items():
            if isinstance(value, float) and not math.isfinite(value):
                fields[name] = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        self.file.write(json.dumps({"event": event, **fields}) + "\n")
        self.file.flush()


def unsupported(case):
    """Why this case cannot be served, or None. The manifest says it for most; this is for what it has no word for."""
    if case["optimizer"]["kind"] != "sgd":
        return "the skeleton has no optimizer %s" % case["optimizer"]["kind"]
    return None


def introduce(answer, case, world, trainer):
    sharding, precision = case["sharding"], case["precision"]
    # What was really configured: the harness compares it with what the case asks for.
    configured = {"strategy": sharding["strategy"], "mesh": "%dx%d" % tuple(sharding["mesh"])}
    configured.update({k: precision[k] for k in ("parameter", "compute", "reduce", "optimizer_state")})
    answer.say("hello", case=case["id"], rank=world.rank, world_size=world.size, implementation="skeleton", version="1",
               configured=configured, note="float64 arithmetic, rounded to float32 on every store")
    whole = {n: [[0, math.prod(p["shape"])]] for n, p in trainer.table.items()}
    parts = {n: [[trainer.part(n)[0], trainer.part(n)[1] - trainer.part(n)[0]]] for n in trainer.table}
    answer.say("shards", of="parameter", parts=whole, padding=0)
    answer.say("shards", of="gradient", parts=whole, padding=0)
    answer.say("shards", of="optimizer", parts=parts, padding=0)


# ---- 6 ---- The program: the steps are data, so an adapter only obeys verbs.


def obey(item, trainer, answer, world):
    verb, at, start = item["verb"], (item.get("step"), item.get("micro")), time.perf_counter()
    if verb == "micro":
        loss = trainer.micro(at, item["sync"])
        answer.say("micro", step=at[0], micro=at[1], loss=loss, tokens=len(trainer.rows()), seconds=time.perf_counter() - start)
    elif verb == "eval":
        answer.say("eval", step=at[0], micro=at[1], loss=trainer.evaluate(at))
    elif verb == "clip":
        answer.say("clip", step=at[0], norm=trainer.clip())
    elif verb == "step":
        trainer.step()
        answer.say("step", step=at[0], skipped=False, loss_scale=1, seconds=time.perf_counter() - start)
    elif verb == "zero_grad":
        trainer.zero_grad()
    elif verb == "freeze":
        trainer.frozen |= {n for n in trainer.table if fnmatch.fnmatchcase(n, item["pattern"])}
    elif verb == "unfreeze":
        trainer.frozen -= {n for n in trainer.table if fnmatch.fnmatchcase(n, item["pattern"])}
    elif verb == "observe":
        observe(item, trainer, answer, world)
    else:
        raise ValueError("verb '%s' is not known here" % verb)


def observe(item, trainer, answer, world):
    full, own = trainer.observed(item["what"])
    name = item["label"] + ".safetensors"
    if world.rank == 0:
        write_tensors(os.path.join(answer.folder, name), full)
    if item["local"]:
        local = "%s.rank%d.safetensors" % (item["label"], world.rank)
        write_tensors(os.path.join(answer.folder, local), own)
        name = name if world.rank == 0 else local
    if world.rank == 0 or item["local"]:
        answer.say("observed", label=item["label"], file=name)


def serve(folder, world):
    with open(os.path.join(folder, "case.json")) as file:
        case = json.load(file)
    answer = Answer(folder, world.rank)
    try:
        other = case["divergent_init"] and world.rank > 0
        init = read_tensors(os.path.join(folder, "init.other.safetensors" if other else "init.safetensors"))
        data = read_tensors(os.path.join(folder, "data.safetensors"))
        trainer = Trainer(case, world, init, data)
        introduce(answer, case, world, trainer)
        reason = unsupported(case)
        if reason:  # every rank says it, and goes on with the next case
            answer.say("unsupported", reason=reason)
            return
        for item in case["program"]:
            if item["verb"] == "stop":
                break
            obey(item, trainer, answer, world)
        answer.say("done")
    except Exception as error:
        # The case is lost, and so is this start: the harness ends the other ranks and starts again with the remaining cases.
        answer.say("error", message="%s: %s" % (type(error).__name__, error))
        raise


# ---- 7 ---- Start: one start serves many cases.


def main():
    job = os.environ["FSDPMARK_JOB"]
    with open(os.path.join(job, "job.json")) as file:
        cases = json.load(file)["cases"]
    world = World()
    for case in cases:
        serve(os.path.join(job, case), world)
    return 0


if __name__ == "__main__":
    sys.exit(main())
