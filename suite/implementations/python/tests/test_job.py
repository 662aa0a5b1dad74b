"""Bad input: every wrong case is one line that says where, what was found and what was expected."""

import copy
import json
import tempfile
import unittest
from pathlib import Path

import jobs
from fsdpmark_adapter.job import InputError, read_case


def change(path, value):
    def apply(made):
        *parents, leaf = path
        for parent in parents:
            made = made[parent]
        if value is None:
            del made[leaf]
        else:
            made[leaf] = value
    return apply


WRONG = [
    (change(["protocol"], 2), "case.json.protocol: found 2, expected one of 1"),
    (change(["seed"], None), "case.json: found no field 'seed', expected one"),
    (change(["color"], 1), "case.json: found unknown field 'color', expected protocol, id"),
    (change(["world_size"], "two"), 'case.json.world_size: found "two", expected int'),
    (change(["world_size"], True), "case.json.world_size: found true, expected int"),
    (change(["sharding", "strategy"], "zero"), 'case.json.sharding.strategy: found "zero", expected one of full, grad, hybrid'),
    (change(["sharding", "mesh"], [2, 2]), "case.json.sharding.mesh: found [2, 2], expected two sizes whose product is 2"),
    (change(["sharding", "tensor"], 2), "case.json.sharding.mesh: found [1, 2], expected two sizes whose product is 1"),
    (change(["sharding", "tensor"], 0), "case.json.sharding.tensor: found 0, expected at least 1"),
    (change(["sharding", "pipeline"], 4), "case.json.sharding: found tensor 1 and pipeline 4, expected a product that divides 2"),
    (change(["sharding", "pipeline"], None), "case.json.sharding: found no field 'pipeline', expected one"),
    (change(["model", "kind"], "cnn"), 'case.json.model: found kind "cnn", expected one of mlp, transformer, witness'),
    (change(["model", "bias"], 1), "case.json.model.bias: found 1, expected bool"),
    (change(["program", 0, "verb"], "fly"), 'case.json.program[0]: found verb "fly", expected one of backward, clip'),
    (change(["program", 1, "sync"], None), "case.json.program[1]: found no field 'sync', expected one"),
    (change(["precision", "compute"], "f8"), 'case.json.precision.compute: found "f8", expected one of bf16, f16, f32, f64'),
    (change(["sharding", "reshard_ranks"], 2), "case.json.sharding.reshard_ranks: found 2, expected 0 or a true divisor of 2"),
    (change(["options"], {"fault": 3}), "case.json.options.fault: found 3, expected str"),
    (change(["clip"], {"norm": "3", "limit": 1}), 'case.json.clip.norm: found "3", expected one of 1, 2, inf'),
]


class BadCases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "case.json"

    def complaint(self, text):
        self.path.write_text(text)
        with self.assertRaises(InputError) as caught:
            read_case(str(self.path))
        return str(caught.exception).replace(str(self.path), "case.json")

    def test_each_is_refused_in_words(self):
        for apply, expected in WRONG:
            made = copy.deepcopy(jobs.case("c", 2))
            apply(made)
            with self.subTest(expected):
                self.assertTrue(self.complaint(json.dumps(made)).startswith(expected), self.complaint(json.dumps(made)))

    def test_text_that_is_no_json(self):
        self.assertTrue(self.complaint('{\n"a": }').startswith("case.json:2: found no JSON"))
        self.assertEqual(self.complaint('{"a": 1, "a": 2}'), "found field 'a' twice, expected it once")

    def test_a_right_one_is_read(self):
        self.path.write_text(json.dumps(jobs.case("c", 2, jobs.LLAMA, optimizer=jobs.ADAMW, clip={"norm": "2", "limit": "inf"})))
        case = read_case(str(self.path))
        self.assertEqual((case.model.layers, case.clip.limit, case.parameters[-1].tied_to), (2, float("inf"), "embed.weight"))


if __name__ == "__main__":
    unittest.main()
