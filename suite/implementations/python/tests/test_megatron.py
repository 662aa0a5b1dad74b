"""The Megatron adapters on exact integer data, against the plain model on one rank; and where their parts lie."""

import unittest
from importlib.util import find_spec

import jobs
import torch
from jobs import case

SYNCED = jobs.program(2, 2, sync=True)
ONCE = jobs.program(2, 1)


def fsdp_cases(n, strategy="full"):
    return [case("sync", n, strategy=strategy, program=SYNCED), case("reused", n, jobs.REUSED, strategy, program=jobs.program(1, 1)),
            case("unused", n, jobs.UNUSED, strategy, program=ONCE), case("witness", n, jobs.WITNESS, strategy, program=ONCE),
            case("checkpointing", n, strategy=strategy, program=ONCE, sharding__activation_checkpointing=True)]


def core_cases(n, strategy="none"):
    return [case("mlp", n, strategy=strategy), case("reused", n, jobs.REUSED, strategy, steps=1),
            case("clip", n, strategy=strategy, clip={"norm": "2", "limit": 1e6}, program=jobs.program(1, 2, clip=True))]


def staged_cases(n, strategy="none"):
    """On n ranks in two stages; on one the plain model."""
    return [case("staged", n, strategy=strategy, mesh=[(n + 1) // 2, 1], sharding__pipeline=min(n, 2)),
            case("staged-witness", n, jobs.WITNESS, strategy, mesh=[(n + 1) // 2, 1], sharding__pipeline=min(n, 2))]


class Megatron(unittest.TestCase):
    def check(self, implementation, n, cases):
        status, plain, log = jobs.run(implementation, cases(1, "none"))
        self.assertEqual(status, [0], log)
        status, sharded, log = jobs.run(implementation, cases(n))
        self.assertEqual(status, [0] * n, log)
        for made in cases(n):
            a, b = plain[made["id"]], sharded[made["id"]]
            with self.subTest(implementation=implementation, case=made["id"]):
                self.assertEqual(b.end(), {"done"})
                self.assertEqual(a.labels(), b.labels())
                for label in a.labels():
                    for name, tensor in a.full(label).items():
                        self.assertTrue(torch.equal(tensor, b.full(label)[name]), f"{label}: {name}")
        return sharded

    @unittest.skipUnless(find_spec("megatron_fsdp"), "megatron-fsdp is not installed")
    def test_fsdp(self):
        sharded = self.check("megatron-fsdp", 3, fsdp_cases)
        held = [sum(length for ranges in sharded["sync"].find("shards", rank)[0]["parts"].values() for _, length in ranges) for rank in range(3)]
        self.assertEqual(sum(held), sum(torch.Size(p["shape"]).numel() for p in case("x", 1)["parameters"]))
        self.assertLess(max(held), sum(held))
        if not torch.cuda.is_available():
            self.assertIn("on CPU through a stand-in for torch.cuda", sharded["sync"].find("hello")[0]["note"])

    @unittest.skipUnless(find_spec("megatron_fsdp"), "megatron-fsdp is not installed")
    def test_what_its_documentation_forbids_is_said(self):
        status, got, log = jobs.run("megatron-fsdp", [case("twice", 2, strategy="optimizer", program=SYNCED)])
        self.assertEqual(status, [0, 0], log)
        self.assertIn("its documentation forbids", got["twice"].find("unsupported")[0]["reason"])

    @unittest.skipUnless(find_spec("megatron.core") if find_spec("megatron") else None, "megatron-core is not installed")
    def test_core(self):
        self.check("megatron-core", 3, core_cases)

    @unittest.skipUnless(find_spec("megatron.core") if find_spec("megatron") else None, "megatron-core is not installed")
    def test_core_in_stages(self):
        staged = self.check("megatron-core", 4, staged_cases)
        held = [{name for name, ranges in staged["staged"].find("shards", rank)[0]["parts"].items() if ranges} for rank in range(4)]
        self.assertEqual(held, [{"layers.0.weight", "layers.0.bias"}] * 2 + [{"layers.1.weight", "layers.1.bias"}] * 2)
        losses = [sum(event["loss"] for event in staged["staged"].find("micro", rank)) for rank in range(4)]
        self.assertEqual(losses[:2], [0, 0])
        self.assertTrue(all(losses[2:]))

    @unittest.skipUnless(find_spec("megatron.core") if find_spec("megatron") else None, "megatron-core is not installed")
    def test_core_takes_adam_alone(self):
        status, got, log = jobs.run("megatron-core", [case("sgd", 2, strategy="optimizer")])
        self.assertEqual(status, [0, 0], log)
        self.assertIn("takes Adam alone", got["sgd"].find("unsupported")[0]["reason"])


if __name__ == "__main__":
    unittest.main()
