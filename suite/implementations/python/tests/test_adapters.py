"""Each adapter on exact integer data: what N ranks reach is bitwise what the plain model reaches on one, and
each rank's own part is the part of the whole that it says it holds."""

import unittest
from importlib.util import find_spec

import jobs
import torch
from jobs import case

ADAPTERS = {"pytorch-ddp": "none", "pytorch-zero1": "optimizer", "pytorch-fsdp1": "full", "pytorch-fsdp2": "full",
            "deepspeed-zero3": "full"}
RANKS = 3


def cases(n, strategy):
    clip = {"clip": {"norm": "2", "limit": 1e6}, "program": jobs.program(1, 2, clip=True)}
    # Synced microbatches: DDP averages what it averaged before once more, which rounds unless N is a power of two.
    synced = [] if strategy in ("none", "optimizer") else [case("sync", n, strategy=strategy, program=jobs.program(2, 2, sync=True))]
    return [case("mlp", n, strategy=strategy), *synced,
            case("reused", n, jobs.REUSED, strategy, steps=1), case("unused", n, jobs.UNUSED, strategy),
            case("witness", n, jobs.WITNESS, strategy), case("clip", n, strategy=strategy, **clip),
            case("checkpointing", n, strategy=strategy, sharding__activation_checkpointing=True)]


class Adapters(unittest.TestCase):
    def same(self, plain, sharded):
        self.assertEqual(plain.labels(), sharded.labels())
        for label in plain.labels():
            a, b = plain.full(label), sharded.full(label)
            self.assertEqual(a.keys(), b.keys(), label)
            for name in a:
                self.assertTrue(torch.equal(a[name], b[name]), f"{label}: {name}")

    def parts(self, sharded):
        """The union of the ranks' parts is the whole, and each part lies where its rank says."""
        for rank in range(sharded.n):
            held = sharded.find("shards", rank)[0]["parts"]
            local, full = sharded.local("init", rank), sharded.full("init")
            for name, ranges in held.items():
                spans = [full["param/" + name].flatten()[o:o + length] for o, length in ranges]
                mine = local.get("param/" + name, torch.empty(0))
                self.assertTrue(torch.equal(mine, torch.cat(spans) if spans else torch.empty(0)), f"rank {rank}: {name}")

    def check(self, implementation, without=(), **options):
        strategy = ADAPTERS[implementation]
        wanted = [{**made, "options": options} for made in cases(RANKS, strategy) if made["id"] not in without]
        alone = [{**made, "sharding": case("x", 1, strategy="none")["sharding"], "world_size": 1} for made in wanted]
        status, plain, log = jobs.run(implementation, alone)
        self.assertEqual(status, [0], log)
        status, sharded, log = jobs.run(implementation, wanted)
        self.assertEqual(status, [0] * RANKS, log)
        for made in wanted:
            with self.subTest(implementation=implementation, case=made["id"]):
                self.assertEqual(sharded[made["id"]].end(), {"done"})
                self.same(plain[made["id"]], sharded[made["id"]])
                self.parts(sharded[made["id"]])

    def test_ddp(self):
        self.check("pytorch-ddp")

    def test_zero1(self):
        self.check("pytorch-zero1")

    def test_fsdp1(self):
        self.check("pytorch-fsdp1")

    def test_fsdp1_with_flat_parameters(self):
        self.check("pytorch-fsdp1", use_orig_params="false")

    def test_fsdp2(self):
        self.check("pytorch-fsdp2")

    @unittest.skipUnless(find_spec("deepspeed"), "deepspeed is not installed")
    def test_deepspeed(self):
        self.check("deepspeed-zero3", without=["unused"])  # its gradient of an unused parameter is there, and zero

    def test_what_cannot_be_done_is_said(self):
        status, got, log = jobs.run("pytorch-fsdp2", [case("stage", 1, strategy="optimizer", mesh=[1, 1]), case("after", 1, strategy="full")])
        self.assertEqual(status, [0], log)
        self.assertEqual([e["event"] for e in got["stage"].events[0]], ["hello", "unsupported"])
        self.assertIn("fully_shard always shards parameters", got["stage"].find("unsupported")[0]["reason"])
        self.assertEqual(got["after"].end(), {"done"})

    def test_an_error_ends_the_process_after_its_event(self):
        status, got, _ = jobs.run("pytorch-ddp", [case("bad", 1, strategy="none", options={"speed": "3"})])
        self.assertEqual(status, [1])
        self.assertEqual([e["event"] for e in got["bad"].events[0]], ["hello", "error"])
        self.assertIn("options: found 'speed'", got["bad"].find("error")[0]["message"])

    def test_a_fault_changes_what_is_trained(self):
        status, right, log = jobs.run("pytorch-ddp", [case("a", 1, strategy="none")])
        status, wrong, log = jobs.run("pytorch-ddp", [case("a", 1, strategy="none", options={"fault": "optimizer-over-copies"})])
        self.assertEqual(status, [0], log)
        self.assertFalse(all(torch.equal(right["a"].full("s0")[k], wrong["a"].full("s0")[k]) for k in right["a"].full("s0")))


if __name__ == "__main__":
    unittest.main()
