"""Parts of several ranges: reported, written and put together as what a block of a matrix is; places of ranks and their rows."""

import unittest
from types import SimpleNamespace

import torch

from fsdpmark_adapter.batch import Batches
from fsdpmark_adapter.job import data_ranks, place
from fsdpmark_adapter.program import Program
from fsdpmark_adapter.sibling import adapter

WHOLE = torch.arange(12.0).reshape(3, 4)


class Half:
    """Holds columns [first, first + 2) of a matrix of 3 rows, and nothing of another."""

    def __init__(self, first):
        self.first = first

    def local(self, name, what):
        return WHOLE[:, self.first:self.first + 2].reshape(-1) if name == "w" else None

    def part(self, name, what):
        return [[4 * row + self.first, 2] for row in range(3)] if name == "w" else []


def program(subject):
    case = SimpleNamespace(parameters=[SimpleNamespace(name=name, shape=[3, 4], tied_to=None) for name in ("w", "elsewhere")])
    return Program(case, subject, None, None, SimpleNamespace(rank=0))


class Ranges(unittest.TestCase):
    def test_columns_are_one_range_a_row(self):
        ranges, local = program(Half(2)).parts(["param"])["param/w"]
        self.assertEqual(ranges, [[2, 2], [6, 2], [10, 2]])
        self.assertEqual(local.tolist(), [2, 3, 6, 7, 10, 11])

    def test_halves_make_the_whole(self):
        halves = [program(Half(first)).parts(["param"]) for first in (0, 2)]
        self.assertTrue(torch.equal(program(None).assemble(halves)["param/w"], WHOLE))
        with self.assertRaisesRegex(RuntimeError, "param/w: element 2 is held by no rank"):
            program(None).assemble(halves[:1])

    def test_a_part_of_another_size_is_refused(self):
        subject = Half(0)
        subject.part = lambda name, what: [[0, 5]]
        with self.assertRaisesRegex(RuntimeError, "found 6 elements, expected the 5 that this rank holds"):
            program(subject).parts(["param"])

    def test_blocks_of_tensors(self):
        ranges_of = adapter("pytorch-fsdp2-tp").ranges_of
        for block, shape, expected in (
                ([(1, 2)], [5], [[1, 2]]), ([(1, 2), (0, 3)], [4, 3], [[3, 6]]), ([(0, 2), (1, 2)], [2, 3], [[1, 2], [4, 2]]),
                ([(0, 0), (0, 3)], [4, 3], []), ([(1, 1), (0, 2), (1, 1)], [2, 2, 2], [[5, 1], [7, 1]])):
            self.assertEqual(ranges_of(block, shape), expected)


class Places(unittest.TestCase):
    def test_tensor_runs_fastest_and_stages_slowest(self):
        case = SimpleNamespace(world_size=12, global_rows=6, sharding=SimpleNamespace(tensor=2, pipeline=2))
        self.assertEqual(data_ranks(case), 3)
        self.assertEqual([(p.stage, p.data, p.tensor) for p in (place(case, r) for r in range(12))],
                         [(r // 6, r // 2 % 3, r % 2) for r in range(12)])
        rows = [Batches(case, {}, r, "cpu") for r in range(12)]
        self.assertEqual([(b.first, b.end) for b in rows], [(r // 2 % 3 * 2, r // 2 % 3 * 2 + 2) for r in range(12)])


if __name__ == "__main__":
    unittest.main()
