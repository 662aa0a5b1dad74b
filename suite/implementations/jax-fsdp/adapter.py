"""JAX with sharded arrays (the "FSDP" of JAX) under the worker protocol: one process per rank, gloo between them.

    models.py     the models in jax.numpy
    storage.py    how a tensor is kept and cut
    functions.py  the functions that XLA compiles and partitions
    manual.py     the same with collectives written out
    optimizer.py  optax
    trainer.py    a case's arrays and compiled functions
    traffic.py    the collectives of a compiled function
    batches.py    the rows of a rank
    program.py    the verbs
    faults.py     seeded bugs
    world.py      the processes
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import jax

from fsdpmark_adapter import serving
from fsdpmark_adapter.job import InputError, read_case
from fsdpmark_adapter.template import fork_ranks
from batches import Batches
from faults import seed
from functions import DTYPES
from program import Answer, Program, read_tensors
from storage import Rule
from trainer import Trainer
from world import World

NOTE = ("reshard_after_forward is asked of XLA by recomputing gathers (jax.checkpoint); XLA on the CPU may merge them again: "
        "the traffic event has the counts")
# name -> its values, the first one the default
OPTIONS = {"partitioning": ("automatic", "manual"), "uneven": ("pad", "largest"), "bias_correction": ("optax", "exact")}


def options_of(case):
    for name, value in case.options.items():
        if value not in OPTIONS.get(name, ()):
            raise InputError(f"options: found {name}={value!r}, expected " + ", ".join(f"{n}={'|'.join(v)}" for n, v in OPTIONS.items()))
    return {name: case.options.get(name, values[0]) for name, values in OPTIONS.items()}


def unsupported(case, options):
    """The reason why this case cannot be run as it is meant, or None."""
    precision, scale, shards = case.precision, case.precision.loss_scale, case.sharding.mesh[1]
    if precision.optimizer_state != precision.parameter:
        return "optax keeps both moments in the parameters' type"
    if scale.mode == "dynamic" and (scale.growth != int(scale.growth) or scale.backoff != 1 / scale.growth):
        return "jmp.DynamicLossScale grows by a whole factor and shrinks by its inverse"
    if options["partitioning"] == "automatic":
        if not all(getattr(i, "sync", True) for i in case.program):
            return "what a jitted function returns is reduced: gradients cannot wait on their ranks"
        if precision.reduce not in (precision.compute, precision.parameter):
            return f"the type of a reduction is that of the product before it, {precision.compute}: there is no option for {precision.reduce}"
    whole = next((p for p in case.parameters if Rule(options["uneven"], shards).dimension(p.shape) is None), None)
    if whole and case.sharding.strategy != "none":
        return f"NamedSharding cuts into equal parts only, and {shards} divides no dimension of {whole.name} {whole.shape}"
    return None


def run_case(job, world, case_id, answer, hello):
    folder = job.case_folder(case_id)
    case = read_case(os.path.join(folder, "case.json"))
    if case.sharding.strategy in ("full", "hybrid") and case.sharding.reshard_after_forward:
        hello.note(NOTE)
    fault = case.options.pop("fault", job.fault)
    options = options_of(case)
    reason = unsupported(case, options)
    if reason:
        raise serving.Unsupported(reason)
    jax.config.update("jax_enable_x64", "f64" in (case.precision.parameter, case.precision.compute))
    trainer = Trainer(case, world, {**options, "fault": fault})
    seed(fault, trainer)
    initial = read_tensors(folder, "init.other.safetensors" if case.divergent_init and job.rank else "init.safetensors")
    batches = Batches(case, read_tensors(folder, "data.safetensors"), world, trainer.functions.rows_sharding, DTYPES[case.precision.compute])
    trainer.build(initial)
    hello(trainer.configured())
    Program(case, trainer, batches, answer, world).run()


if __name__ == "__main__":
    if "FSDPMARK_TEMPLATE" in os.environ:
        import orbax.checkpoint  # noqa: F401  once for all ranks that will need it
    fork_ranks()
    serving.serve(lambda job: World(job.rank, job.world_size), run_case, Answer, implementation="jax-fsdp", version=jax.__version__)
