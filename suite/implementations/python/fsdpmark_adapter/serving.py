"""Serves the cases of one start, one after another: what every adapter in Python does alike, with whatever framework.

    serve(begin, run_case, Answer, implementation="name", version="1.0")

    begin(job) -> world                           once, before the first case; world.close() after the last
    run_case(job, world, case_id, answer, hello)  one case; calls hello(configured) when it is set up
    Answer(case folder, rank)                     an Events

A case that is not to be run raises Unsupported(reason). Any other exception is answered as an error and ends the rank: its
groups may be half made. Standard library only, so that adapters without PyTorch can use it.
"""

import os
import sys
import traceback

from .job import InputError, Job
from .marks import mark


class Unsupported(Exception):
    """The framework cannot run the case as it is meant; the reason."""


class Hello:
    """The event `hello`, said once. What is known before the first case: implementation, version; `note` may be set until it is said."""

    def __init__(self, answer, job, case_id, known):
        self.answer, self.said = answer, False
        self.fields = {"case": case_id, "rank": job.rank, "world_size": job.world_size, **known}

    def note(self, text):
        self.fields["note"] = text

    def __call__(self, configured):
        if not self.said:
            self.said = True
            self.answer.event("hello", **self.fields, configured=configured)


def leave(status):
    """Ends at once: a framework's threads and half-made groups cannot hold the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve_case(job, world, case_id, run_case, answer, hello):
    try:
        run_case(job, world, case_id, answer, hello)
        answer.event("done")
    except Unsupported as reason:
        hello({})
        answer.event("unsupported", reason=str(reason))
    except Exception as error:
        hello({})
        traceback.print_exc()
        answer.event("error", message=f"{type(error).__name__}: {' '.join(str(error).split())[:800]}")
        leave(1)


def serve(begin, run_case, make_answer, **known):
    try:
        job = Job()
    except InputError as error:
        print(error, file=sys.stderr)
        leave(2)
    world = begin(job)
    for place, case_id in enumerate(job.cases):
        mark("case", place)
        answer = make_answer(job.case_folder(case_id), job.rank)
        serve_case(job, world, case_id, run_case, answer, Hello(answer, job, case_id, known))
        answer.close()
    world.close()
    leave(0)
