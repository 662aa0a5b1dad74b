"""The functions of a case that XLA compiles: gradient, clipping, update, evaluation. Pure; arrays in, arrays out.

JAX has no FSDP object. It is a way to write the step: parameters, gradients and optimizer state carry a sharding, `gather` says where
a parameter must be whole, and the compiler inserts the collectives. A loss is global: the sum over all ranks' rows. This is automatic
partitioning; manual.py writes the collectives out.

    strategy      parameters    gradients     optimizer state
    none          whole         whole         whole
    optimizer     whole         whole         cut
    grad          whole         cut           cut
    full, hybrid  cut           cut           cut
"""

import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

import models
from optimizer import optimizer
from storage import replicated

DTYPES = {"f32": jnp.float32, "f64": jnp.float64, "bf16": jnp.bfloat16, "f16": jnp.float16}
DTYPE_NAMES = {jnp.dtype(dtype): name for name, dtype in DTYPES.items()}
ALL = P(("replicate", "shard"))  # rows: rank r holds the r-th part


def keep_activations(primitive, *_, **parameters):
    """What a block may keep for its backward: all but the steps of a gather, so that the cut parameter is kept and gathered again.
    (jax.checkpoint_policies.save_anything_except_these_names keeps the excepted names too in JAX 0.10.2: it returns True for anything.)"""
    return primitive.name not in ("sharding_constraint", "all_gather", "convert_element_type", "slice", "custom_vjp_call")


class Functions:
    """Of one case on one mesh. `trained` and `frozen` are dicts name -> stored parameter."""

    def __init__(self, case, mesh, rule, exact):
        self.case, self.mesh, self.rule = case, mesh, rule
        strategy = case.sharding.strategy
        self.shapes = {p.name: tuple(p.shape) for p in case.parameters if p.tied_to is None}
        self.stored = {name: rule.stored(shape) for name, shape in self.shapes.items()}
        cut = {name: NamedSharding(mesh, rule.spec(shape)) for name, shape in self.shapes.items()}
        whole = {name: replicated(mesh) for name in self.shapes}
        self.parameter_sharding = cut if strategy in ("full", "hybrid") else whole
        self.gradient_sharding = cut if strategy in ("grad", "full", "hybrid") else whole
        self.state_sharding = cut
        self.rows_sharding = NamedSharding(mesh, ALL)
        self.compute = DTYPES[case.precision.compute]
        self.transformation = optimizer(case, exact)

    # ---- the model over stored parameters ----
    def loss_scale(self, leaves):
        """jmp's object from what travels between the compiled functions: the scale, and for a dynamic one the count of finite steps."""
        scale = self.case.precision.loss_scale
        if scale.mode == "dynamic":
            return jmp.DynamicLossScale(*leaves, period=scale.interval, factor=int(scale.growth))
        return jmp.StaticLossScale(*leaves) if leaves else jmp.NoOpLossScale()

    @property
    def regathers(self):
        """Are parameters gathered for the forward and once more for the backward?"""
        return self.case.sharding.strategy in ("full", "hybrid") and self.case.sharding.reshard_after_forward

    def gather(self, name, stored):
        """The whole parameter in the compute type, without its padding."""
        whole = jax.lax.with_sharding_constraint(stored.astype(self.compute), replicated(self.mesh))
        return jax.lax.slice(whole, (0,) * whole.ndim, self.shapes[name])

    def caller(self, stored):
        """What models.py calls for a block. Resharding after the forward is recomputation of the gather alone; activation checkpointing
        is recomputation of the block."""
        recompute = self.case.sharding.activation_checkpointing

        def call(unit, body, *activations, only=None):
            names = {p.name: p.name[len(unit) + 1:] if unit else p.name for p in self.case.parameters
                     if p.unit == unit and p.tied_to is None and (only is None or p.name.split(".")[0] in only)}
            own = {name: stored[name] for name in names}

            def gathered(own):
                return {names[name]: self.gather(name, w) for name, w in own.items()}

            if self.regathers:
                policy = None if recompute else keep_activations
                return jax.checkpoint(lambda own, *x: body(gathered(own), *x), policy=policy)(own, *activations)
            if recompute:
                return jax.checkpoint(body)(gathered(own), *activations)
            return body(gathered(own), *activations)

        return call

    def shares(self, stored, batch):
        """Each rank's share of the global loss (N)."""
        losses = models.rows(self.case.model, batch["inputs"], batch.get("target"), self.caller(stored))
        weighted = losses * batch["weight"].astype(losses.dtype)
        return weighted.reshape(*batch["factor"].shape, -1).sum(1) * batch["factor"].astype(losses.dtype)

    def scaled_loss(self, trained, frozen, scale, batch):
        shares = self.shares({**trained, **frozen}, batch)
        return self.loss_scale(scale).scale(shares.sum()), shares

    # ---- what is compiled ----
    def micro(self, trained, frozen, total, scale, batch, pending):
        """Forward and backward of one microbatch: the gradients so far plus its own, unscaled, and the shares of the loss.
        Nothing is ever pending here: what a compiled function returns is reduced."""
        gradients, shares = jax.grad(self.scaled_loss, has_aux=True)(trained, frozen, scale, batch)
        return self.add(total, self.loss_scale(scale).unscale(gradients)), shares

    def add(self, total, gradients):
        return jax.tree.map(jnp.add, total, gradients)

    def forward(self, trained, frozen, scale, batch):
        """The forward alone, and its backward as a function of the saved activations."""
        _, backward, shares = jax.vjp(lambda t: self.scaled_loss(t, frozen, scale, batch), trained, has_aux=True)
        return backward, shares

    def one(self):
        return jnp.ones((), jnp.float64 if self.case.precision.compute == "f64" else jnp.float32)

    def backward(self, backward, total, scale, pending):
        gradients, = backward(self.one())
        return self.add(total, self.loss_scale(scale).unscale(gradients))

    def evaluate(self, stored, batch):
        return self.shares(stored, batch)

    def clip(self, gradients):
        clipped, _ = optax.clip_by_global_norm(self.case.clip.limit).update(gradients, optax.EmptyState())
        return clipped, optax.global_norm(gradients)

    def constrain(self, tree):
        return {name: jax.lax.with_sharding_constraint(x, self.state_sharding[name]) for name, x in tree.items()}

    def update(self, trained, gradients, state, scale):
        """The optimizer step, each rank on its cut. Under loss scaling it is skipped where a gradient is not finite."""
        trained, gradients = self.constrain(trained), self.constrain(gradients)
        updates, after = self.transformation.update(gradients, state, trained)
        stepped = optax.apply_updates(trained, updates)
        if not scale:
            return stepped, after, scale, jnp.zeros((), bool)
        finite = jmp.all_finite(gradients)
        stepped, after = jmp.select_tree(finite, (stepped, after), (trained, state))
        adjusted = self.loss_scale(scale).adjust(finite)
        return stepped, after, [adjusted.loss_scale, *([adjusted.counter] if len(scale) > 1 else [])], ~finite
