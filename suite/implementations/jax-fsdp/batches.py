"""The rows of the global batch as arrays over all ranks, and what the losses are multiplied with.

Rank r of N takes rows floor(r G / N) to floor((r + 1) G / N). An array over all ranks has equal parts, so all ranks get as many rows as the
largest part has; what is missing has weight 0.
"""

import jax
import numpy as np


class Batches:
    def __init__(self, case, tensors, world, sharding, dtype):
        self.case, self.data, self.world, self.sharding, self.dtype = case, tensors, world, sharding, np.dtype(dtype)
        n, rows = case.world_size, case.global_rows
        self.spans = [(r * rows // n, (r + 1) * rows // n) for r in range(n)]
        self.rows = max(end - first for first, end in self.spans)

    def array(self, own, cast=None):
        """This rank's rows as its part of an array of all ranks'."""
        whole = np.zeros((self.rows, *own.shape[1:]), cast or own.dtype)
        whole[:len(own)] = own
        return jax.make_array_from_process_local_data(self.sharding, whole, (self.rows * self.case.world_size, *own.shape[1:]))

    def part(self, name, step, micro, cast=None):
        first, end = self.spans[self.world.rank]
        return self.array(self.data[name][step, micro, first:end], cast)

    def at(self, step, micro):
        factor = np.full(1, self.factor(step, micro), np.float64 if self.dtype == np.float64 else np.float32)
        batch = {"weight": self.part("weight", step, micro),
                 "factor": jax.make_array_from_process_local_data(self.sharding, factor, (self.case.world_size,))}
        kind = self.case.model.kind
        if kind == "witness":
            return batch | {"inputs": {name[2:]: self.part(name, step, micro, self.dtype) for name in self.data if name.startswith("x/")}}
        if kind == "mlp":
            return batch | {"inputs": self.part("input", step, micro, self.dtype), "target": self.part("target", step, micro)}
        return batch | {"inputs": self.part("tokens", step, micro), "target": self.part("targets", step, micro)}

    def tokens(self, step, micro):
        first, end = self.spans[self.world.rank]
        return self.data["weight"][step, micro, first:end].size

    def factor(self, step, micro):
        """What the weighted sum of this rank's losses is multiplied with; shares add up to the global loss."""
        weight = self.data["weight"].astype(np.float64)
        if self.case.loss == "sum":
            return 1.0
        if self.case.loss == "mean_of_tokens":
            return 1.0 / weight[step].sum()
        first, end = self.spans[self.world.rank]
        return 1.0 / (self.case.world_size * weight[step, micro, first:end].sum())
