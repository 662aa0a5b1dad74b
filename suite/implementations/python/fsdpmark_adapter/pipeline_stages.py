"""The stages of a pipeline: an equal share of consecutive blocks each, of a transformer the embeddings too in the first, the last norm and
the output layer in the last.

    STAGES[case.model.kind](model, stage_modules(case, stage))     the part of the model, a module

A stage gets what the stage before it returned, the first one the inputs; `loss` is of what the last one returned.
"""

import torch
import torch.nn.functional as F
from torch import nn

from . import models


def own_units(case, stage):
    """The blocks of a stage: an equal share, consecutive."""
    units, stages = models.units(case), case.sharding.pipeline
    return [name for i, name in enumerate(units) if i * stages // len(units) == stage]


def stage_modules(case, stage):
    """The modules that a stage holds, by name, blocks and what lies around them."""
    names = own_units(case, stage)
    if case.model.kind != "transformer":
        return names
    first = ["embed", *(["position"] if case.model.position == "learned" else [])] if stage == 0 else []
    return [*first, *names, *(["norm", "head"] if stage == case.sharding.pipeline - 1 else [])]


class Stage(nn.Module):
    """What a stage holds, under the names that it has in the whole model: containers with the stage's blocks only."""

    def __init__(self, model, names):
        super().__init__()
        for name in names:
            parent, _, leaf = name.rpartition(".")
            if not parent:
                self.add_module(leaf, model.get_submodule(name))
                continue
            if not hasattr(self, parent):
                self.add_module(parent, nn.ModuleDict())
            getattr(self, parent)[leaf] = model.get_submodule(name)


class WitnessStage(Stage):
    """Adds the losses of its units to those of the stages before; every stage gets the data of its own."""
    loss = staticmethod(models.weighted)

    def forward(self, losses, x):
        return losses + sum(unit(x) for unit in self.children())


class MlpStage(Stage):
    loss = staticmethod(models.squared_error)

    def forward(self, x):
        for index, layer in self.layers.items():
            x = layer(F.relu(x) if int(index) else x)
        return x


class TransformerStage(Stage):
    loss = staticmethod(models.cross_entropy)

    def forward(self, x):
        if hasattr(self, "embed"):
            tokens, x = x, self.embed(x)
            if hasattr(self, "position"):
                x = x + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks.values():
            x = block(x)
        return self.head(self.norm(x)) if hasattr(self, "head") else x


STAGES = {"witness": WitnessStage, "mlp": MlpStage, "transformer": TransformerStage}
