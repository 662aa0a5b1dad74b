"""How a tensor is kept: its stored shape, its sharding over the mesh, and which elements of it a rank then holds.

A NamedSharding cuts a dimension into equal parts and refuses any other (`NamedSharding.shard_shape`). Two ways out that JAX's
users take are here, as rules:

    pad       dimension 0 is padded with zeros to a multiple of the shards (as vocabularies are); the rest is cut like torch.chunk
    largest   the largest dimension that the shards divide is cut (the rule of big_vision's and others' fsdp shardings); where none
              is, the tensor would stay whole on every rank, so the case is not supported

Ranges are read back from the arrays' own shardings, never from the rule.
"""

import math

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P


class Rule:
    """Of one case: from a parameter's shape to (stored shape, PartitionSpec)."""

    def __init__(self, kind, shards):
        self.kind, self.shards = kind, shards

    def dimension(self, shape):
        """The dimension to cut, None where there is none."""
        if self.kind == "pad":
            return 0
        fitting = [d for d in np.argsort(shape, kind="stable")[::-1] if shape[d] % self.shards == 0]
        return int(fitting[0]) if fitting else None

    def stored(self, shape):
        if self.kind != "pad":
            return tuple(shape)
        return (-(-shape[0] // self.shards) * self.shards, *shape[1:])

    def spec(self, shape):
        d = self.dimension(shape)
        return P() if d is None else P(*[None] * d, "shard")


def replicated(mesh):
    return NamedSharding(mesh, P())


def place(value, stored, sharding):
    """An array of all ranks from a full NumPy value that each of them has; zeros where it is padded."""
    whole = np.zeros(stored, value.dtype)
    whole[tuple(slice(0, n) for n in value.shape)] = value
    return jax.make_array_from_callback(tuple(stored), sharding, lambda index: whole[index])


def own_part(array):
    """(index, data) of this rank's part of an array: each process has one device."""
    shard, = array.addressable_shards
    return shard.index, np.asarray(shard.data)


def elements(index, shape, stored):
    """Offsets in the true tensor, by position in the flattened part; -1 in the padding."""
    offsets = np.full(stored, -1, np.int64)
    offsets[tuple(slice(0, n) for n in shape)] = np.arange(math.prod(shape)).reshape(shape)
    return offsets[index].reshape(-1)


def ranges(offsets):
    """Ascending offsets as [offset, length] of their runs."""
    if not offsets.size:
        return []
    starts = np.flatnonzero(np.diff(offsets, prepend=offsets[0] - 2) != 1)
    lengths = np.diff(starts, append=offsets.size)
    return [[int(offsets[s]), int(n)] for s, n in zip(starts, lengths)]
