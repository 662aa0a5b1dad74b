"""Seeded bugs of this adapter: each turns one real mistake into a patch of one trainer, before anything is compiled. suite/faults/jax-fsdp.yaml
says where each must be found."""

import jax
import jax.numpy as jnp

from fsdpmark_adapter.job import InputError

FAULTS = {}


def fault(function):
    FAULTS[function.__name__.replace("_", "-")] = function
    return function


@fault
def last_microbatch_only(trainer):
    """The gradient of a microbatch takes the place of those before it (Z04)."""
    trainer.functions.add = lambda total, gradients: gradients


@fault
def bf16_masters(trainer):
    """The updated parameters are kept in bf16 (Z20)."""
    update = trainer.functions.update

    def rounded(*arguments):
        stepped, *rest = update(*arguments)
        return jax.tree.map(lambda p: p.astype(jnp.bfloat16).astype(p.dtype), stepped), *rest
    trainer.functions.update = rounded


@fault
def state_not_loaded(trainer):
    """A load brings the parameters back and leaves the optimizer's state as it is (Z26)."""
    load = trainer.load

    def parameters_only(folder):
        state = trainer.state
        load(folder)
        trainer.state = state
    trainer.load = parameters_only


def seed(name, trainer):
    if name and name not in FAULTS:
        raise InputError(f"fault: found {name!r}, expected one of {', '.join(sorted(FAULTS))}")
    if name:
        FAULTS[name](trainer)
