"""The models of docs/protocol.md in jax.numpy, as functions of a flat dict of parameters.

    rows(spec, inputs, target, call) -> the losses of rows (or tokens), in float32 or wider

`call(unit, body, *activations)` runs a block: it hands the block's full parameters, by their names within the unit, to
body(own, *activations); of the root, which runs in two pieces, those whose first word is in `only`. How they come to be full,
and what is computed again in the backward, is the caller's matter (functions.py): a model knows nothing of sharding.
"""

import jax
import jax.numpy as jnp
import optax


def wide(x):
    """At least float32: losses and statistics are computed in it."""
    return x if x.dtype == jnp.float64 else x.astype(jnp.float32)


def linear(own, prefix, x):
    """x W^T + b; the contraction names the axes, so that no transposed copy of W is kept for the backward."""
    y = jax.lax.dot_general(x, own[prefix + "weight"], (((x.ndim - 1,), (1,)), ((), ())))
    bias = own.get(prefix + "bias")
    return y if bias is None else y + bias


def witness(spec, inputs, target, call):
    total = 0.0
    for unit in spec.units:
        names = [p.name for p in unit.parameters]
        x = {name: inputs[f"{unit.name}.{name}"] for name in names}
        total += call(unit.name, lambda own, x: sum(
            wide(x[n].astype(own[n].dtype) * own[n]).reshape(x[n].shape[0], -1).sum(1) for n in x), x)
    return total


def mlp(spec, inputs, target, call):
    x = inputs
    for i, layer in enumerate(spec.calls):
        x = call(f"layers.{layer}", lambda own, x: linear(own, "", x), jax.nn.relu(x) if i else x)
    y = wide(x)
    return jnp.square(y - target.astype(y.dtype)).sum(-1)


def norm(spec, own, name, x):
    """Statistics in float32 or wider, as flax computes them."""
    y = wide(x)
    if spec.norm == "layernorm":
        y = y - y.mean(-1, keepdims=True)
    y = y * jax.lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + spec.norm_eps) * wide(own[name + ".weight"])
    bias = own.get(name + ".bias")
    return (y if bias is None else y + wide(bias)).astype(x.dtype)


def rotate(x, theta):
    """x (B, T, H, D): the pair (i, i + D/2) turned by t theta^(-2i/D)."""
    half = x.shape[-1] // 2
    y = wide(x)
    position, exponent = jnp.arange(x.shape[1], dtype=y.dtype), jnp.arange(half, dtype=y.dtype) / half
    angle = position[:, None, None] * jnp.asarray(theta, y.dtype) ** -exponent  # (T, 1, D/2)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a, b = y[..., :half], y[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


def attend(q, k, v):
    """Causal attention; q (B, T, H, D), k and v (B, T, Hkv, D). JAX's own takes the softmax in float32 whatever its inputs are."""
    if q.dtype != jnp.float64:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
    k, v = (jnp.repeat(y, q.shape[2] // y.shape[2], axis=2) for y in (k, v))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1), v)


def attention(spec, own, x):
    b, t, _ = x.shape
    q = linear(own, "attention.query.", x).reshape(b, t, spec.heads, -1)     # (B, T, H, D)
    k = linear(own, "attention.key.", x).reshape(b, t, spec.kv_heads, -1)    # (B, T, Hkv, D)
    v = linear(own, "attention.value.", x).reshape(b, t, spec.kv_heads, -1)
    if spec.position == "rope":
        q, k = rotate(q, spec.rope_theta), rotate(k, spec.rope_theta)
    return linear(own, "attention.output.", attend(q, k, v).reshape(b, t, -1))


def feed_forward(spec, own, x):
    up = linear(own, "mlp.up.", x)
    if spec.activation == "swiglu":
        return linear(own, "mlp.down.", jax.nn.silu(linear(own, "mlp.gate.", x)) * up)
    return linear(own, "mlp.down.", jax.nn.gelu(up, approximate=True))


def transformer(spec, inputs, target, call):
    def embed(own, tokens):
        x = own["embed.weight"][tokens]                                      # (B, T, C)
        return x + own["position.weight"][None] if spec.position == "learned" else x

    def block(own, x):
        x = x + attention(spec, own, norm(spec, own, "norm1", x))
        return x + feed_forward(spec, own, norm(spec, own, "norm2", x))

    def head(own, x):
        tied = {"head.weight": own["embed.weight"]} if spec.tied else {}
        return wide(linear({**own, **tied}, "head.", norm(spec, own, "norm", x)))  # (B, T, V)

    x = call("", embed, inputs, only=("embed", "position"))
    for i in range(spec.layers):
        x = call(f"blocks.{i}", block, x)
    logits = call("", head, x, only=("norm", "embed" if spec.tied else "head"))
    return optax.softmax_cross_entropy_with_integer_labels(logits, target)


KINDS = {"witness": witness, "mlp": mlp, "transformer": transformer}


def rows(spec, inputs, target, call):
    return KINDS[spec.kind](spec, inputs, target, call)
