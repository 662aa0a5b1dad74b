"""The models of docs/protocol.md in torch.nn. Blocks are submodules, so that a framework can wrap them;
the root's forward returns the weighted sum of the losses, in float32 or wider.

    forward(inputs, extra) -> scalar;  extra.weight, extra.target as batch.Extra says
"""

import torch
import torch.nn.functional as F
from torch import nn


def wide(x):
    """At least float32: losses are summed in it."""
    return x if x.dtype == torch.float64 else x.float()


PREFIXES = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.", "_witness_")


def clean(name):
    """A parameter's name in the parameter table: without what wrappers, and WitnessUnit, put in."""
    for prefix in PREFIXES:
        name = name.replace(prefix, "")
    return name


def weighted(losses, extra):
    return (losses * extra.weight.to(losses.dtype)).sum()


def squared_error(y, extra):
    y = wide(y)
    return weighted((y - extra.target.to(y.dtype)).square().sum(-1), extra)


def cross_entropy(logits, extra):
    losses = F.cross_entropy(wide(logits).flatten(0, 1), extra.target.flatten(), reduction="none")
    return weighted(losses.view(extra.weight.shape), extra)


class WitnessUnit(nn.Module):
    """The sum over the unit's parameters of <w, x_row>: the gradient of w is the weighted x. Attributes have
    a prefix, since a parameter may be called like a method of nn.Module (double, half)."""

    def __init__(self, unit):
        super().__init__()
        self.keys = {"_witness_" + parameter.name: f"{unit.name}.{parameter.name}" for parameter in unit.parameters}
        for parameter in unit.parameters:
            self.register_parameter("_witness_" + parameter.name, nn.Parameter(torch.zeros(parameter.shape)))

    def forward(self, x):
        # by attribute: where a framework flattens parameters, the attributes are views that are no parameters
        return sum(wide((x[key].to(getattr(self, name).dtype) * getattr(self, name)).flatten(1)).sum(1) for name, key in self.keys.items())


class Witness(nn.Module):
    def __init__(self, spec):
        super().__init__()
        for unit in spec.units:
            self.add_module(unit.name, WitnessUnit(unit))

    def forward(self, x, extra):
        return weighted(sum(unit(x) for unit in self.children()), extra)


class Mlp(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.calls = spec.calls
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=spec.bias) for a, b in zip(spec.sizes, spec.sizes[1:]))
        if spec.unused:
            self.unused = nn.ModuleList(nn.Linear(spec.sizes[0], spec.sizes[0], bias=False) for _ in range(spec.unused))

    def forward(self, x, extra):
        for i, layer in enumerate(self.calls):
            x = self.layers[layer](F.relu(x) if i else x)
        return squared_error(x, extra)


def norm(spec):
    if spec.norm == "rmsnorm":
        return nn.RMSNorm(spec.dim, eps=spec.norm_eps)
    return nn.LayerNorm(spec.dim, eps=spec.norm_eps, bias=spec.bias)


def rotate(x, theta):
    """x (B, H, T, D): the pair (i, i + D/2) turned by t theta^(-2i/D)."""
    half = x.shape[-1] // 2
    exponent = torch.arange(half, device=x.device, dtype=torch.float64) / half
    angle = torch.arange(x.shape[-2], device=x.device, dtype=torch.float64)[:, None] * theta ** -exponent  # (T, D/2)
    cos, sin = angle.cos().to(wide(x).dtype), angle.sin().to(wide(x).dtype)
    a, b = wide(x[..., :half]), wide(x[..., half:])
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.heads, self.kv_heads, self.width = spec.heads, spec.kv_heads, spec.dim // spec.heads
        self.theta = spec.rope_theta if spec.position == "rope" else None
        self.query = nn.Linear(spec.dim, self.heads * self.width, bias=spec.bias)
        self.key = nn.Linear(spec.dim, self.kv_heads * self.width, bias=spec.bias)
        self.value = nn.Linear(spec.dim, self.kv_heads * self.width, bias=spec.bias)
        self.output = nn.Linear(self.heads * self.width, spec.dim, bias=spec.bias)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.query(x).view(b, t, self.heads, self.width).transpose(1, 2)     # (B, H, T, D)
        k = self.key(x).view(b, t, self.kv_heads, self.width).transpose(1, 2)    # (B, Hkv, T, D)
        v = self.value(x).view(b, t, self.kv_heads, self.width).transpose(1, 2)
        if self.theta is not None:
            q, k = rotate(q, self.theta), rotate(k, self.theta)
        if self.kv_heads != self.heads:  # query head h uses key/value head h / (heads / kv_heads)
            k, v = (y.repeat_interleave(self.heads // self.kv_heads, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).reshape(b, t, self.heads * self.width))


class FeedForward(nn.Module):
    def __init__(self, spec):
        super().__init__()
        if spec.activation == "swiglu":
            self.gate = nn.Linear(spec.dim, spec.ffn, bias=spec.bias)
        self.up = nn.Linear(spec.dim, spec.ffn, bias=spec.bias)
        self.down = nn.Linear(spec.ffn, spec.dim, bias=spec.bias)

    def forward(self, x):
        if hasattr(self, "gate"):
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.norm1, self.attention = norm(spec), Attention(spec)
        self.norm2, self.mlp = norm(spec), FeedForward(spec)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.embed = nn.Embedding(spec.vocab, spec.dim)
        if spec.position == "learned":
            self.position = nn.Embedding(spec.context, spec.dim)
        self.blocks = nn.ModuleList(Block(spec) for _ in range(spec.layers))
        self.norm = norm(spec)
        self.head = nn.Linear(spec.dim, spec.vocab, bias=False)
        if spec.tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens, extra):
        x = self.embed(tokens)                                                   # (B, T, C)
        if hasattr(self, "position"):
            x = x + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return cross_entropy(self.head(self.norm(x)), extra)                     # (B, T, V)


KINDS = {"witness": Witness, "mlp": Mlp, "transformer": Transformer}


def build(case, initial, dtype, device):
    """The case's model with the given initial values, in the dtype. The parameter table must be the model's own."""
    model = KINDS[case.model.kind](case.model)
    own = {clean(name): list(p.shape) for name, p in model.named_parameters()}
    table = {p.name: p.shape for p in case.parameters if p.tied_to is None}
    if own != table:
        odd = next(name for name in [*own, *table] if own.get(name) != table.get(name))
        raise ValueError(f"parameter table: found {odd} {table.get(odd)}, expected {own.get(odd)}")
    with torch.no_grad():
        for name, p in ((clean(name), p) for name, p in model.named_parameters()):
            if list(initial[name].shape) != own[name]:
                raise ValueError(f"init: found {name} {list(initial[name].shape)}, expected {own[name]}")
            p.copy_(initial[name])
    return model.to(device=device, dtype=dtype)


def units(case):
    """Names of the blocks, in table order, without the root's."""
    return list(dict.fromkeys(p.unit for p in case.parameters if p.unit))


def unit_of(name):
    """The block that a parameter belongs to, by its name: of witnesses, mlps and transformer blocks."""
    head, *rest = name.split(".")
    return f"{head}.{rest[0]}" if head in ("layers", "unused", "blocks") else "" if head in ("embed", "position", "norm", "head") else head


def table(spec):
    """The parameter table of a model, as case.json has it."""
    rows, first = [], {}
    for name, p in KINDS[spec.kind](spec).named_parameters(remove_duplicate=False):
        name = clean(name)
        rows.append({"name": name, "shape": list(p.shape), "unit": unit_of(name), "tied_to": first.get(id(p)),
                     "decay": p.dim() > 1 or spec.kind == "witness"})
        first.setdefault(id(p), name)
    return rows
