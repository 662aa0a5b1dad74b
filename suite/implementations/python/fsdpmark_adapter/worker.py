"""One rank's process: serves the cases of its job, one after another, in one process group.

    if __name__ == "__main__":
        serve(MySubject)
"""

import os
import sys
import traceback
import warnings

import torch
import torch._dynamo  # torch.optim imports it with the first optimizer: once is enough (template.py)

from . import faults
from .answer import Answer, read_tensors
from .batch import Batches
from .job import InputError, Job, read_case
from .program import Program, forget
from .template import fork_ranks
from .world import World


def run_case(subject_class, job, world, case_id, answer):
    """Returns False where the case is unsupported."""
    folder = job.case_folder(case_id)
    hello = {"case": case_id, "rank": job.rank, "world_size": job.world_size,
             "implementation": subject_class.implementation, "version": subject_class.version,
             **({"note": subject_class.note} if subject_class.note else {})}
    try:
        case = read_case(os.path.join(folder, "case.json"))
        fault = case.options.pop("fault", job.fault)
        for name in case.options:
            if name not in subject_class.options:
                raise InputError(f"options: found {name!r}, expected one of {', '.join(subject_class.options) or 'none'}")
        reason = subject_class.unsupported(case)
        if reason:
            answer.event("hello", **hello, configured={})
            answer.event("unsupported", reason=reason)
            return False
        subject = subject_class(case, world)
        with faults.seeded(fault, subject):
            initial = read_tensors(folder, "init.other.safetensors" if case.divergent_init and job.rank else "init.safetensors")
            batches = Batches(case, read_tensors(folder, "data.safetensors"), job.rank, world.device)
            subject.build(initial)
            answer.event("hello", **hello, configured=subject.configured())
            hello = None
            Program(case, subject, batches, answer, world).run()
    except BaseException:
        if hello:
            answer.event("hello", **hello, configured={})
        raise
    return True


def serve_case(subject_class, job, world, case_id):
    answer = Answer(job.case_folder(case_id), job.rank)
    try:
        if run_case(subject_class, job, world, case_id, answer):
            answer.event("done")
    except Exception as error:
        traceback.print_exc()
        answer.event("error", message=f"{type(error).__name__}: {' '.join(str(error).split())[:800]}")
        leave(1)
    answer.close()
    forget()


def leave(status):
    """Ends at once: a framework's threads and half-made groups cannot hold the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve(subject_class):
    fork_ranks()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)
    try:
        job = Job()
    except InputError as error:
        print(error, file=sys.stderr)
        leave(2)
    world = World(job.rank, job.world_size, job.local_rank, job.local_world_size)
    for case_id in job.cases:
        serve_case(subject_class, job, world, case_id)
    world.close()
    leave(0)
