"""The same functions with their collectives written out, by jax.shard_map: each rank differentiates its own share of the loss, and its gradients
are reduced by psum_scatter or psum in the type that the case asks for.

Gradients are taken with respect to `sinks`: zeros in the shape of the whole parameters, one set a rank, in the type of the reduction. The gather of a
parameter passes the gradient of its whole to its sink. So a gradient stays on its rank until the reduction, whatever uses the parameter
has, and may wait there (`pending`) for further microbatches: no_sync. The update stays automatic: its operations are elementwise.
"""

import jax
import jax.numpy as jnp

from functions import ALL, DTYPES, Functions


class Manual(Functions):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.reduce_type = DTYPES[self.case.precision.reduce]
        strategy = self.case.sharding.strategy
        self.parameters_cut, self.gradients_cut = strategy in ("full", "hybrid"), strategy in ("grad", "full", "hybrid")

    def specs(self, tree, shardings):
        return {name: shardings[name].spec for name in tree}

    def gather(self, name, both):
        """The whole parameter of (stored, sink); the stored one gets no gradient."""
        shape, compute, d = self.shapes[name], self.compute, self.rule.dimension(self.shapes[name])

        @jax.custom_vjp
        def whole(stored, sink):
            x = stored.astype(compute)
            if self.parameters_cut:
                x = jax.lax.all_gather(x, "shard", axis=d, tiled=True)
            return jax.lax.slice(x, (0,) * x.ndim, shape)

        whole.defvjp(lambda stored, sink: (whole(stored, sink), stored),
                     lambda stored, g: (jnp.zeros_like(stored), g.astype(self.reduce_type)[None]))
        return whole(*both)

    def local_shares(self, stored, sinks, batch):
        return super().shares({name: (x, sinks[name]) for name, x in stored.items()}, batch)

    def shares_and_sinks(self, stored, batch, sinks):
        return jax.shard_map(self.local_shares, mesh=self.mesh, in_specs=(self.specs(stored, self.parameter_sharding), ALL, ALL),
                             out_specs=ALL, check_vma=False)(stored, sinks, batch)

    def sinks(self, stored):
        return {name: jax.lax.with_sharding_constraint(jnp.zeros((self.case.world_size, *self.shapes[name]), self.reduce_type), self.rows_sharding)
                for name in stored}

    def shares(self, stored, batch):
        return self.shares_and_sinks(stored, batch, self.sinks(stored))

    def scaled(self, sinks, stored, scale, batch):
        shares = self.shares_and_sinks(stored, batch, {**self.sinks(stored), **sinks})
        return self.loss_scale(scale).scale(shares.sum()), shares

    def reduced(self, total, gradients, scale):
        """The gradients so far plus these, summed over the ranks."""
        def reduce(local):
            result = {}
            for name, (x,) in local.items():
                if self.gradients_cut:
                    d = self.rule.dimension(self.shapes[name])
                    x = jnp.pad(x, [(0, n - m) for n, m in zip(self.stored[name], x.shape)])
                    x = jax.lax.psum_scatter(x, "shard", scatter_dimension=d, tiled=True)
                    x = jax.lax.psum(x, "replicate") if self.mesh.shape["replicate"] > 1 else x
                else:
                    x = jnp.pad(jax.lax.psum(x, ("replicate", "shard")), [(0, n - m) for n, m in zip(self.stored[name], x.shape)])
                result[name] = x.astype(total[name].dtype)
            return result

        summed = jax.shard_map(reduce, mesh=self.mesh, in_specs=(ALL,), out_specs=self.specs(total, self.gradient_sharding),
                               check_vma=False)(gradients)
        return self.add(total, self.loss_scale(scale).unscale(summed))

    def local(self, trained, frozen, scale, batch, pending):
        sinks = self.sinks(trained)
        gradients, shares = jax.grad(self.scaled, has_aux=True)(sinks, {**trained, **frozen}, scale, batch)
        return (self.add(pending, gradients) if pending else gradients), shares

    def micro(self, trained, frozen, total, scale, batch, pending):
        gradients, shares = self.local(trained, frozen, scale, batch, pending)
        return self.reduced(total, gradients, scale), shares

    def forward(self, trained, frozen, scale, batch):
        _, backward, shares = jax.vjp(lambda sinks: self.scaled(sinks, {**trained, **frozen}, scale, batch), self.sinks(trained), has_aux=True)
        return backward, shares

    def wait(self, backward, pending):
        """The backward without a reduction."""
        gradients, = backward(self.one())
        return self.add(pending, gradients) if pending else gradients

    def backward(self, backward, total, scale, pending):
        return self.reduced(total, self.wait(backward, pending), scale)
