"""The rows of the global batch that a rank works on, and what its loss is multiplied with.

Rank r of N takes rows floor(r G / N) to floor((r + 1) G / N); with tensor or pipeline ranks r and N count the data ranks. The factors make the *mean over ranks*
of the gradients the gradient of the global loss (docs/protocol.md, The loss).
"""

import torch

from .job import data_ranks, place


class Extra:
    """Targets and loss weights. No container that frameworks look into: they are to stay in float32
    where a framework casts the inputs of a forward pass."""

    def __init__(self, weight, target=None):
        self.weight, self.target = weight, target


class Batches:
    def __init__(self, case, tensors, rank, device):
        self.case, self.rank, self.device = case, rank, device
        self.data = tensors
        rows, self.ranks, own = case.global_rows, data_ranks(case), place(case, rank).data
        self.first, self.end = own * rows // self.ranks, (own + 1) * rows // self.ranks

    def part(self, name, step, micro):
        return self.data[name][step, micro, self.first:self.end].to(self.device)

    def at(self, step, micro, compute):
        """Model inputs in the compute dtype, and the Extra."""
        kind = self.case.model.kind
        weight = self.part("weight", step, micro)
        if kind == "witness":
            names = [name for name in self.data if name.startswith("x/")]
            return {name[2:]: self.part(name, step, micro).to(compute) for name in names}, Extra(weight)
        if kind == "mlp":
            return self.part("input", step, micro).to(compute), Extra(weight, self.part("target", step, micro))
        return self.part("tokens", step, micro).long(), Extra(weight, self.part("targets", step, micro).long())

    def tokens(self, step, micro):
        return self.data["weight"][step, micro, self.first:self.end].numel()

    def scale(self, step, micro):
        """What the weighted sum of this rank's losses is multiplied with."""
        n, weight = self.ranks, self.data["weight"].to(torch.float64)
        if self.case.loss == "sum":
            return float(n)
        if self.case.loss == "mean_of_tokens":
            return n / float(weight[step].sum())
        return 1.0 / float(weight[step, micro, self.first:self.end].sum())
