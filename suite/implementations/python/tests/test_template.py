"""fork_ranks: the template of docs/protocol.md, driven as the harness drives it, with workers of a few lines and with an adapter."""

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import jobs

PACKAGE = Path(__file__).resolve().parents[1]
HEAD = f"import os, random, signal, sys, threading, time\nsys.path.insert(0, {str(PACKAGE)!r})\nfrom fsdpmark_adapter.template import fork_ranks\n"

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # as the harness sets them: a template has no second thread


class Template:
    """The harness's side."""

    def __init__(self, command, **environment):
        ours, theirs = socket.socketpair()
        ours.settimeout(240)
        self.lines = ours.makefile("rw", buffering=1)
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **ONE_THREAD, **environment, "FSDPMARK_TEMPLATE": str(theirs.fileno())})
        theirs.close()
        ours.close()

    def hear(self):
        return self.lines.readline().rstrip("\n")

    def start(self, folder, ranks, environment=lambda rank: {}, verb="start"):
        """What it tells: {rank: how it ended}."""
        for rank in range(ranks):
            pairs = {"RANK": str(rank), "WORLD_SIZE": str(ranks), **environment(rank)}
            (folder / f"rank{rank}.environ").write_bytes(b"".join(f"{name}={value}".encode() + b"\0" for name, value in pairs.items()))
        print(f"{verb} {ranks} {folder}", file=self.lines)
        self.started = self.hear().split(" ")
        if self.started[0] != "started":
            return None
        words = [self.hear().split(" ", 2) for _ in range(ranks)]
        assert all(word == "ended" for word, _, _ in words), words
        return {int(rank): end for _, rank, end in words}

    def end(self):
        self.lines.close()
        try:
            return self.process.wait(60), self.process.stderr.read()
        finally:
            self.process.stderr.close()
            self.process.kill()


class Forking(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="fsdpmark-test-")
        self.addCleanup(place.cleanup)
        self.place, self.count = Path(place.name), 0

    def folder(self):
        self.count += 1
        made = self.place / f"job {self.count}"
        made.mkdir()
        return made

    def template(self, script, **environment):
        made = Template([sys.executable, "-c", HEAD + script], **environment)
        self.addCleanup(made.process.kill)
        self.assertEqual(made.hear(), "ready")
        return made

    def log(self, folder, rank):
        return (folder / f"rank{rank}.log").read_text()

    def test_starts_of_any_size_one_after_another(self):
        template = self.template("fork_ranks()\nprint(os.getppid(), os.getpid() == os.getpgid(0), os.getcwd(), sorted(os.environ.items()))\n"
                                 "print('err', file=sys.stderr)", LEFT_BEHIND="1")
        for ranks in (2, 1, 5):
            folder = self.folder()
            self.assertEqual(template.start(folder, ranks, lambda _: {"OF_THE_START": str(ranks)}), {r: "exit 0" for r in range(ranks)})
            for rank in range(ranks):
                pairs = [("OF_THE_START", str(ranks)), ("RANK", str(rank)), ("WORLD_SIZE", str(ranks))]
                out, err = sorted(self.log(folder, rank).splitlines(), reverse=True)
                self.assertEqual((out, err), ("err", f"{template.process.pid} True {folder} {pairs}"))
        self.assertEqual(template.end(), (0, ""))

    def test_without_a_template_it_returns_at_once(self):
        out = subprocess.run([sys.executable, "-c", HEAD + "fork_ranks()\nprint('rank')"], capture_output=True, text=True, timeout=60)
        self.assertEqual((out.returncode, out.stdout, out.stderr), (0, "rank\n", ""))

    def test_how_ranks_end(self):
        template = self.template("fork_ranks()\nrank = int(os.environ['RANK'])\nif rank == 1: sys.exit(7)\n"
                                 "if rank == 2: os.kill(os.getpid(), signal.SIGSEGV)\nif rank == 3: raise ValueError('no')")
        folder = self.folder()
        self.assertEqual(template.start(folder, 4), {0: "exit 0", 1: "exit 7", 2: "signal 11", 3: "exit 1"})
        self.assertIn("ValueError: no", self.log(folder, 3))
        self.assertEqual(template.end(), (0, ""))

    def test_ranks_die_with_their_template(self):
        template = self.template("fork_ranks()\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
        folder = self.folder()
        (folder / "rank0.environ").write_bytes(b"RANK=0\0")
        print(f"start 1 {folder}", file=template.lines)
        self.assertEqual(template.hear(), "started")
        while not (folder / "rank0.log").exists() or not self.log(folder, 0).endswith("\n"):
            self.assertIsNone(template.process.poll())
        rank = os.pidfd_open(int(self.log(folder, 0)))
        template.process.kill()
        self.assertEqual(template.process.wait(60), -signal.SIGKILL)
        self.assertEqual(select.select([rank], [], [], 60)[0], [rank])
        os.close(rank)
        template.end()

    def hosts(self, count):
        """Processes in network namespaces of their own, and the lines that name these; None where this may not be."""
        own = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "uts")}
        made = []
        for _ in range(count):
            holder = subprocess.Popen(["unshare", "--net", "--uts", "sleep", "600"], stderr=subprocess.PIPE)
            self.addCleanup(holder.stderr.close)
            self.addCleanup(holder.wait)
            self.addCleanup(holder.kill)
            there = {}
            while holder.poll() is None and Path(f"/proc/{holder.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.01)
            if holder.poll() is not None:
                return None
            for kind, mine in own.items():
                there[kind] = os.readlink(f"/proc/{holder.pid}/ns/{kind}")
                self.assertNotEqual(there[kind], mine)
            made.append("".join(f"{kind} /proc/{holder.pid}/ns/{kind} {link[5:-1]}\n" for kind, link in there.items()))
        return made

    def test_ranks_are_forked_on_their_hosts(self):
        hosts = self.hosts(2)
        if hosts is None:
            self.skipTest("no network namespaces here without root")
        template = self.template("fork_ranks()\nprint(os.getpid(), *(os.readlink('/proc/self/ns/' + kind) for kind in ('net', 'uts')))")
        for of in ([0, 0, 1, 1], [1], [0, 1]):
            folder = self.folder()
            for rank, host in enumerate(of):
                (folder / f"rank{rank}.namespaces").write_text(hosts[host])
            self.assertEqual(template.start(folder, len(of), verb="enter"), {r: "exit 0" for r in range(len(of))})
            for rank, host in enumerate(of):
                inodes = [line.split()[2] for line in hosts[host].splitlines()]
                self.assertEqual(self.log(folder, rank), f"{template.started[1 + rank]} net:[{inodes[0]}] uts:[{inodes[1]}]\n")
        self.assertEqual(template.end(), (0, ""))

    def test_a_rank_elsewhere_ends_itself(self):
        hosts = self.hosts(1)
        if hosts is None:
            self.skipTest("no network namespaces here without root")
        template = self.template("fork_ranks()\nprint('here')")
        folder = self.folder()
        lines = [line.rsplit(" ", 1)[0] + " 1\n" for line in hosts[0].splitlines()]
        (folder / "rank0.namespaces").write_text(hosts[0])
        (folder / "rank1.namespaces").write_text("".join(lines))
        self.assertEqual(template.start(folder, 2, verb="enter"), {0: "exit 0", 1: "exit 1"})
        self.assertEqual(self.log(folder, 0), "here\n")
        inode = hosts[0].split()[2]
        self.assertEqual(self.log(folder, 1), f"rank 1 is in net:[{inode}], expected [1] ({hosts[0].split()[1]})\n")
        template.end()

    def test_a_host_that_is_gone(self):
        template = self.template("fork_ranks()")
        folder = self.folder()
        (folder / "rank0.namespaces").write_text("net /proc/self/stat 1\n")
        self.assertIsNone(template.start(folder, 1, verb="enter"))
        status, said = template.end()
        self.assertEqual((status, said), (1, "template: rank 0 cannot enter /proc/self/stat: Invalid argument\n"))

    def test_an_unknown_verb(self):
        template = self.template("fork_ranks()")
        self.assertIsNone(template.start(self.folder(), 1, verb="begin"))
        self.assertEqual(template.end(), (1, "template: found 'begin' on the channel, expected start or enter\n"))

    def test_threads_are_refused(self):
        template = self.template("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nfork_ranks()")
        self.assertIsNone(template.start(self.folder(), 2))
        status, said = template.end()
        self.assertEqual((status, said), (1, "template: found 2 threads, expected 1: what a thread holds locked stays locked in a forked rank\n"))

    def test_each_rank_draws_its_own_random_numbers(self):
        template = self.template("import numpy\nfork_ranks()\nprint(random.random(), numpy.random.random())")
        drawn = set()
        for _ in range(2):
            folder = self.folder()
            template.start(folder, 2)
            drawn |= {number for rank in range(2) for number in self.log(folder, rank).split()}
        self.assertEqual(len(drawn), 8)
        template.end()

    def test_an_adapter_serves_starts(self):
        """One case in several starts, the second with a fault in its environment: it is in that start alone."""
        adapter = jobs.IMPLEMENTATIONS / "pytorch-ddp" / "adapter.py"
        template = Template([sys.executable, str(adapter)], TORCH_CPP_LOG_LEVEL="ERROR")
        self.addCleanup(template.process.kill)
        self.assertEqual(template.hear(), "ready")
        states = []
        for ranks, fault in ((1, ""), (1, "optimizer-over-copies"), (2, ""), (1, "")):
            folder, made = self.folder(), jobs.case("a", ranks, strategy="none")
            jobs.prepare([made], folder)
            port = jobs.free_port()
            ends = template.start(folder, ranks, lambda rank: {**jobs.environment_of(folder, rank, ranks, port), "FSDPMARK_FAULT": fault})
            self.assertEqual(ends, {r: "exit 0" for r in range(ranks)}, self.log(folder, 0))
            states.append(jobs.Result(folder, made).full("s0"))
        self.assertEqual(template.end(), (0, ""))
        same = [all(states[0][name].equal(state[name]) for name in states[0]) for state in states]
        self.assertEqual(same, [True, False, True, True])


if __name__ == "__main__":
    unittest.main()
