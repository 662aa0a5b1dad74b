"""DTensor tensor parallelism and fully_shard on one mesh (replicate, shard, tensor), under the worker protocol.

First parallelize_module over the tensor axis, then fully_shard over the data axes, as torchtitan does. The plan of a
transformer: queries, keys, values, gate and up by columns (heads split), output and down by rows, embeddings by rows of the
vocabulary, the output layer by columns, norms with SequenceParallel, so that activations between blocks are cut along
the sequence. Option `sequence: false` leaves norms out of the plan: plain tensors on the data mesh, activations whole.
An mlp alternates columns and rows. A witness, which has no layer to parallelise, has a style of its own: parameters cut along
dim 0, the partial losses added up.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, ParallelStyle, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)

from fsdpmark_adapter.sibling import adapter
from fsdpmark_adapter.subject import word
from fsdpmark_adapter.worker import serve

Fsdp2 = adapter("pytorch-fsdp2").Fsdp2


class WitnessParallel(ParallelStyle):
    """Each parameter cut along dim 0; a row's loss is then a sum over the tensor axis."""

    def _apply(self, module, mesh):
        def cut(name, unit, mesh):
            for key, p in list(unit.named_parameters(recurse=False)):
                unit.register_parameter(key, nn.Parameter(distribute_tensor(p, mesh, [Shard(0)])))

        def whole_input(unit, inputs, mesh):
            return {name: DTensor.from_local(x, mesh, [Replicate()], run_check=False) for name, x in inputs[0].items()}

        def whole_output(unit, losses, mesh):
            return losses.redistribute(placements=[Replicate()]).to_local()

        return distribute_module(module, mesh, cut, whole_input, whole_output)


def transformer_plan(model, sequence):
    """Layouts of activations between the modules: cut along the sequence, or whole."""
    between = Shard(1) if sequence else Replicate()
    plan = {"embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
            "head": ColwiseParallel(input_layouts=between, output_layouts=Replicate())}
    if hasattr(model, "position"):  # (T, C): the sequence is dim 0
        plan["position"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0) if sequence else Replicate())
    for i in range(len(model.blocks)):
        at = f"blocks.{i}."
        for name in ("attention.query", "attention.key", "attention.value", "mlp.gate", "mlp.up"):
            plan[at + name] = ColwiseParallel()
        for name in ("attention.output", "mlp.down"):
            plan[at + name] = RowwiseParallel(output_layouts=between)
        if sequence:
            for name in ("attention", "mlp"):
                plan[at + name] = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
            plan[at + "norm1"] = plan[at + "norm2"] = SequenceParallel()
    if sequence:
        plan["norm"] = SequenceParallel()
    return plan


def mlp_plan(model):
    last = len(model.layers) - 1
    return {f"layers.{i}": RowwiseParallel() if i % 2 else ColwiseParallel(output_layouts=Replicate() if i == last else Shard(-1))
            for i in range(last + 1)}


def ranges_of(block, shape):
    """The elements of a block, (start, length) of each dimension, as [offset, length] ranges of the whole tensor."""
    if 0 in (length for _, length in block):
        return []
    row = torch.Size(shape[1:]).numel()
    (first, rows), inner = block[0], block[1:]
    if [length for _, length in inner] == list(shape[1:]):
        return [[first * row, rows * row]]
    return [[r * row + offset, length] for r in range(first, first + rows) for offset, length in ranges_of(inner, shape[1:])]


class Fsdp2Tensor(Fsdp2):
    implementation = "pytorch-fsdp2-tp"
    axes = ("tensor",)
    options = {"sequence": bool}

    @classmethod
    def unsupported_sharded(cls, case):
        sharding, model = case.sharding, case.model
        if sharding.tensor == 1:
            return "without tensor ranks it is pytorch-fsdp2"
        if model.kind == "transformer" and (model.heads % sharding.tensor or model.kv_heads % sharding.tensor):
            return f"heads are split: {model.heads} query and {model.kv_heads} key heads do not divide by {sharding.tensor}"
        if model.kind == "mlp" and model.calls != list(range(len(model.sizes) - 1)):
            return "a layer that is called out of order would be cut by columns and by rows"
        return super().unsupported_sharded(case)

    def mesh(self):
        sharding = self.case.sharding
        hybrid = sharding.strategy == "hybrid"
        return self.world.mesh([*(sharding.mesh if hybrid else sharding.mesh[1:]), sharding.tensor],
                               (*(("replicate", "shard") if hybrid else ("shard",)), "tensor"))

    def data_mesh(self):
        return self.mesh()[("replicate", "shard") if self.case.sharding.strategy == "hybrid" else "shard"]

    def wrap(self, model):
        kind, mesh = self.case.model.kind, self.mesh()["tensor"]
        if kind == "witness":
            plan = {name: WitnessParallel() for name, _ in model.named_children()}
        else:
            plan = mlp_plan(model) if kind == "mlp" else transformer_plan(model, self.option("sequence", True))
        real = {name.replace("_checkpoint_wrapped_module.", ""): name for name, _ in model.named_modules()}
        parallelize_module(model, mesh, {real[name]: style for name, style in plan.items() if name in real})
        if kind == "transformer":
            self.split_heads(model)
        return super().wrap(model)

    def split_heads(self, model):
        """A rank computes its own heads; tied weights, which parallelize_module has made two of, are one again."""
        for block in model.blocks:
            attention = getattr(block, "_checkpoint_wrapped_module", block).attention
            attention.heads //= self.case.sharding.tensor
            attention.kv_heads //= self.case.sharding.tensor
        if self.case.model.tied:
            model.head.weight = model.embed.weight

    def held(self, name):
        """The tensor axis cuts first, the data axes what it leaves: the order in which the parameter was made."""
        p = self.parameters[name]
        if not isinstance(p, DTensor):
            return super().held(name)
        mesh, block = p.device_mesh, [(0, n) for n in p.shape]
        for axis in reversed(range(mesh.ndim)):
            placement = p.placements[axis]
            if placement.is_replicate():
                continue
            (start, length), size, own = block[placement.dim], mesh.size(axis), mesh.get_local_rank(axis)
            chunk = -(-length // size)
            first, end = min(own * chunk, length), min((own + 1) * chunk, length)
            block[placement.dim] = (start + first, end - first)
        return ranges_of(block, list(p.shape))

    def split_mesh(self):
        return next(p.device_mesh for p in self.parameters.values() if "tensor" in p.device_mesh.mesh_dim_names)

    def shard_shape(self):
        *data, _ = self.split_mesh().shape
        return len(data) == 2, data if len(data) == 2 else [1, *data]

    def configured(self):
        own = {} if self.plain else {"tensor": str(self.split_mesh()["tensor"].size()), "sequence": word(self.option("sequence", True))}
        return {**super().configured(), **own}


if __name__ == "__main__":
    serve(Fsdp2Tensor)
