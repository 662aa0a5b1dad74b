"""The case's model with Megatron's tensor-parallel layers in the place of torch's, under the same names.

A pair of linear layers is cut as Megatron-LM cuts it: the first by rows of its weight (ColumnParallelLinear), the second by columns
(RowParallelLinear), heads and hidden units staying where they are in between. The embedding is cut by its vocabulary, and the
last layer by its rows, its output gathered for the loss. Everything else, norms and biases after a sum, is on every rank.
"""

import torch
from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding


class Column(ColumnParallelLinear):
    def forward(self, x):
        return super().forward(x)[0]


class Row(RowParallelLinear):
    def forward(self, x):
        return super().forward(x)[0]


def nothing(tensor):
    """Initialises nothing. The layers mark their parameters as cut where they initialise them, so they must."""
    return tensor


def place_of(name, model):
    """What the layer of this name becomes: (class, arguments), or None."""
    column, row, last = (Column, {"gather_output": False}), (Row, {"input_is_parallel": True}), (Column, {"gather_output": True})
    leaf = name.rpartition(".")[2]
    if model.kind == "mlp":
        index, count = int(leaf), len(model.sizes) - 1
        return row if index % 2 else last if index == count - 1 else column
    return {"query": column, "key": column, "value": column, "gate": column, "up": column, "output": row, "down": row, "head": last}.get(leaf)


def cut(weight, rank, size, dim):
    return weight.chunk(size, dim)[rank].detach().clone()


def replaced(name, layer, spec, config, rank, size):
    """The parallel layer with this rank's part of the layer's values, or None where the layer stays."""
    if isinstance(layer, torch.nn.Embedding):
        if name != "embed":
            return None
        made = VocabParallelEmbedding(layer.num_embeddings, layer.embedding_dim, init_method=nothing, config=config)
        made.weight.data.copy_(cut(layer.weight, rank, size, 0))
        return made
    if not isinstance(layer, torch.nn.Linear):
        return None
    kind, arguments = place_of(name, spec)
    made = kind(layer.in_features, layer.out_features, config=config, init_method=nothing, bias=layer.bias is not None,
                skip_bias_add=False, **arguments)
    made.weight.data.copy_(cut(layer.weight, rank, size, 0 if kind is Column else 1))
    if layer.bias is not None:
        made.bias.data.copy_(cut(layer.bias, rank, size, 0) if kind is Column else layer.bias.detach())
    return made


def reason(spec, size):
    """Why the model cannot be cut so, or None."""
    if spec.kind == "witness":
        return "a witness has no layers that Megatron's tensor parallelism cuts"
    if spec.kind == "mlp":
        odd = [n for n in spec.sizes[1:] if n % size]
        return "tensor parallel layers in pairs have no reused or unused layer" if spec.unused or spec.calls != list(range(len(spec.sizes) - 1)) \
            else f"{odd[0]} units are not cut into {size}" if odd else None
    if spec.tied:
        return "the adapter ties no embedding that is cut"
    odd = [n for n in (spec.heads, spec.kv_heads, spec.ffn, spec.vocab) if n % size]
    return f"{odd[0]} heads, units or words are not cut into {size}" if odd else None


def cut_model(model, spec, config, rank, size):
    """Replaces the layers in place; returns the dimension that each cut parameter is cut along."""
    for name, layer in list(model.named_modules()):
        made = replaced(name, layer, spec, config, rank, size)
        if made is not None:
            holder, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(holder), leaf, made)
        if hasattr(layer, "kv_heads"):
            layer.heads, layer.kv_heads = layer.heads // size, layer.kv_heads // size
    return {name: p.partition_dim for name, p in model.named_parameters() if getattr(p, "tensor_model_parallel", False)}
