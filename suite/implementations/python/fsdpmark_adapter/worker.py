"""One rank's process: serves the cases of its job, one after another, in one process group.

    if __name__ == "__main__":
        serve(MySubject)
"""

import os
import warnings

import torch
import torch._dynamo  # torch.optim imports it with the first optimizer: once is enough (template.py)

from . import faults, serving
from .answer import Answer, read_tensors
from .batch import Batches
from .job import InputError, read_case
from .program import Program, forget
from .template import fork_ranks
from .world import World


def run_case(subject_class, job, world, case_id, answer, hello):
    if subject_class.note:
        hello.note(subject_class.note)
    folder = job.case_folder(case_id)
    case = read_case(os.path.join(folder, "case.json"))
    fault = case.options.pop("fault", job.fault)
    for name in case.options:
        if name not in subject_class.options:
            raise InputError(f"options: found {name!r}, expected one of {', '.join(subject_class.options) or 'none'}")
    reason = subject_class.unsupported(case)
    if reason:
        raise serving.Unsupported(reason)
    subject = subject_class(case, world)
    with faults.seeded(fault, subject):
        initial = read_tensors(folder, "init.other.safetensors" if case.divergent_init and job.rank else "init.safetensors")
        batches = Batches(case, read_tensors(folder, "data.safetensors"), job.rank, world.device)
        subject.build(initial)
        del initial  # as large as the model: what a probe sees from here on is the subject's
        hello({**subject.configured(), "backend": world.backend})
        Program(case, subject, batches, answer, world).run()


def serve(subject_class):
    fork_ranks()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)

    def run(*arguments):
        try:
            run_case(subject_class, *arguments)
        finally:
            forget()

    serving.serve(lambda job: World(job.rank, job.world_size, job.local_rank, job.local_world_size), run, Answer,
                  implementation=subject_class.implementation, version=subject_class.version)
