"""The case's optimizer, of optax's transformations.

optax.adamw takes 1 - beta^t in float32 (`optax.tree.bias_correction`), where beta = 0.999 rounded to float32 is already off by 1e-8: the
denominator of the first step, 0.001, is then off by 1e-5. `exact` computes the same correction as -expm1(t log beta), with the
logarithm taken in float64.
"""

import math

import jax
import jax.numpy as jnp
import optax


def scale_by_exact_adam(b1, b2, eps):
    """optax.scale_by_adam, its moments and its state, with bias corrections that are right to a rounding."""
    adam = optax.scale_by_adam(b1, b2, eps)

    def update(gradients, state, parameters=None):
        _, after = adam.update(gradients, state, parameters)
        first, second = (-jnp.expm1(after.count * math.log(b)) if b else 1.0 for b in (b1, b2))
        step = jax.tree.map(lambda m, v: (m / first / (jnp.sqrt(v / second) + eps)).astype(m.dtype), after.mu, after.nu)
        return step, after

    return optax.GradientTransformation(adam.init, update)


def optimizer(case, exact):
    spec = case.optimizer
    decays = {p.name: p.decay or not spec.no_decay for p in case.parameters if p.tied_to is None}

    def mask(tree):
        return {name: decays[name] for name in tree}

    if spec.kind == "adamw" and exact:
        return optax.chain(scale_by_exact_adam(spec.beta1, spec.beta2, spec.eps), optax.add_decayed_weights(spec.weight_decay, mask),
                           optax.scale_by_learning_rate(spec.lr))
    if spec.kind == "adamw":
        return optax.adamw(spec.lr, b1=spec.beta1, b2=spec.beta2, eps=spec.eps, weight_decay=spec.weight_decay, mask=mask)
    decay = [optax.add_decayed_weights(spec.weight_decay, mask)] if spec.weight_decay else []
    return optax.chain(*decay, optax.sgd(spec.lr, momentum=spec.momentum or None))
