"""Import once, fork the ranks: with the launcher `fork` a worker serves one start after another (docs/protocol.md, Templates).

    import a_framework_that_takes_seconds
    from fsdpmark_adapter.template import fork_ranks

    if __name__ == "__main__":
        fork_ranks()    # with the launcher `fork` only the forked ranks return from here; with another one it returns at once
        ...             # a rank as ever: environment, working directory and output are its own

Whatever the ranks import is best imported before. What must not exist before a fork: threads (they are not copied, but
what they hold locked is), process groups, a CUDA context. Threads are looked for; the others bring threads with them.
On a virtual cluster each rank is forked on its host (hosts.py).
Standard library only, so that adapters without PyTorch can use it.
"""

import ctypes
import gc
import os
import signal
import sys

from . import hosts

PR_SET_PDEATHSIG = 1  # prctl(2)
prctl = ctypes.CDLL(None, use_errno=True).prctl


def fork_ranks():
    number = os.environ.pop("FSDPMARK_TEMPLATE", None)
    if number is None:
        return
    os.set_inheritable(int(number), False)
    channel = open(int(number), "r+b", buffering=0)
    # What lives by now is never collected: a rank does not copy its pages to look at them.
    gc.collect()
    gc.freeze()
    channel.write(b"ready\n")
    for line in channel:
        verb, ranks, folder = os.fsdecode(line.rstrip(b"\n")).split(" ", 2)
        if verb not in ("start", "enter"):
            sys.exit(f"template: found {verb!r} on the channel, expected start or enter")
        if fork_start(channel, int(ranks), folder, on_hosts=verb == "enter"):
            return
    os._exit(0)


def fork_start(channel, ranks, folder, on_hosts):
    """True in a rank; False, in the template, when all its ranks have ended."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"template: found {threads} threads, expected 1: what a thread holds locked stays locked in a forked rank")
    sys.stdout.flush()
    sys.stderr.flush()
    template, rank_of = os.getpid(), {}
    for rank in range(ranks):
        if on_hosts:
            hosts.enter(folder, rank)
        pid = os.fork()
        if pid == 0:
            channel.close()
            become_rank(template, rank, folder)
            if on_hosts:
                hosts.verify(folder, rank)
            return True
        rank_of[pid] = rank
    channel.write(" ".join(["started", *(map(str, rank_of) if on_hosts else ())]).encode() + b"\n")
    while rank_of:
        pid, status = os.wait()
        if pid in rank_of:
            code = os.waitstatus_to_exitcode(status)
            end = f"exit {code}" if code >= 0 else f"signal {-code}"
            channel.write(f"ended {rank_of.pop(pid)} {end}\n".encode())
    return False


def become_rank(template, rank, folder):
    """What the launcher `local` does between fork and exec."""
    os.setpgid(0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != template:
        os._exit(125)
    log = os.open(f"{folder}/rank{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(folder)
    with open(f"rank{rank}.environ", "rb") as file:
        pairs = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if pair)
    os.environ.clear()
    os.environb.update(pairs)
    # As in an interpreter of its own; the module random does so by itself.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
