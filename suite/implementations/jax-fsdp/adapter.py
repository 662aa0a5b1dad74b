"""JAX with sharded arrays (the "FSDP" of JAX) under the worker protocol: one process per rank, gloo between them.

    models.py     the models in jax.numpy
    storage.py    how a tensor is kept and cut
    functions.py  the functions that XLA compiles
    trainer.py    a case's arrays and compiled functions
    traffic.py    the collectives of a compiled function
    program.py    the verbs
    world.py      the processes
"""

import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import jax

from fsdpmark_adapter.job import InputError, Job, read_case
from functions import DTYPES
from program import Answer, Batches, Program, read_tensors
from trainer import Trainer
from world import World

OPTIONS = {"uneven": ("pad", "largest")}


def option(case, name):
    value = case.options.get(name, OPTIONS[name][0])
    if value not in OPTIONS[name]:
        raise InputError(f"options.{name}: found {value!r}, expected one of {', '.join(OPTIONS[name])}")
    return value


def unsupported(case):
    """The reason why this case cannot be run as it is meant, or None."""
    precision, scale = case.precision, case.precision.loss_scale
    if precision.optimizer_state != precision.parameter:
        return "optax keeps both moments in the parameters' type"
    if scale.mode == "dynamic" and (scale.growth != int(scale.growth) or scale.backoff != 1 / scale.growth):
        return "jmp.DynamicLossScale grows by a whole factor and shrinks by its inverse"
    return None


def run_case(job, world, case_id, answer):
    """Returns False where the case is unsupported."""
    folder = job.case_folder(case_id)
    hello = {"case": case_id, "rank": job.rank, "world_size": job.world_size, "implementation": "jax-fsdp", "version": jax.__version__}
    try:
        case = read_case(os.path.join(folder, "case.json"))
        case.options.pop("fault", None)
        for name in case.options:
            if name not in OPTIONS:
                raise InputError(f"options: found {name!r}, expected one of {', '.join(OPTIONS)}")
        reason = unsupported(case)
        if reason:
            answer.event("hello", **hello, configured={})
            answer.event("unsupported", reason=reason)
            return False
        jax.config.update("jax_enable_x64", "f64" in (case.precision.parameter, case.precision.compute))
        trainer = Trainer(case, world, option(case, "uneven"))
        initial = read_tensors(folder, "init.other.safetensors" if case.divergent_init and job.rank else "init.safetensors")
        batches = Batches(case, read_tensors(folder, "data.safetensors"), world, trainer.functions.rows_sharding, DTYPES[case.precision.compute])
        trainer.build(initial)
        answer.event("hello", **hello, configured=trainer.configured())
        hello = None
        Program(case, trainer, batches, answer, world).run()
    except BaseException:
        if hello:
            answer.event("hello", **hello, configured={})
        raise
    return True


def leave(status):
    """Ends at once: a framework's threads cannot hold the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve():
    try:
        job = Job()
    except InputError as error:
        print(error, file=sys.stderr)
        leave(2)
    world = World(job.rank, job.world_size)
    for case_id in job.cases:
        answer = Answer(job.case_folder(case_id), job.rank)
        try:
            if run_case(job, world, case_id, answer):
                answer.event("done")
        except Exception as error:
            traceback.print_exc()
            answer.event("error", message=f"{type(error).__name__}: {' '.join(str(error).split())[:800]}")
            leave(1)
        answer.close()
    world.close()
    leave(0)


if __name__ == "__main__":
    serve()
