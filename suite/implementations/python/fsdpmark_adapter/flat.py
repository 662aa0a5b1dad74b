"""Flat parameters: several tensors, one after another in one that the optimizer sees, cut equally over the ranks."""

from fnmatch import fnmatchcase


def require_grad(owners, pattern, wanted):
    """Freezes, or unfreezes, the flat parameters whose tensors match; owners: name -> flat parameter."""
    for flat in {id(flat): flat for flat in owners.values()}.values():
        names = [name for name, owner in owners.items() if owner is flat]
        matches = {fnmatchcase(name, pattern) for name in names}
        if len(matches) > 1:
            raise RuntimeError(f"{pattern}: matches a part of the flat parameter of {names[0]}, which is frozen whole or not at all")
        if matches == {True}:
            flat.requires_grad_(wanted)


def overlap(offset, count, shard, size):
    """The part of a tensor at `offset` of the flat parameter that shard number `shard`, of `size` elements, holds:
    (offset in the tensor, offset in the shard, length)."""
    begin, end = max(offset, shard * size), min(offset + count, (shard + 1) * size)
    return (begin - offset, begin - shard * size, end - begin) if end > begin else (0, 0, 0)
