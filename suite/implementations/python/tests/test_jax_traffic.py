"""The collectives that the JAX adapter reads from HLO text."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jax-fsdp"))
from traffic import collectives
sys.path.pop(0)


class Traffic(unittest.TestCase):
    def test_one_gather(self):
        """The whole tensor is what a gather gives."""
        self.assertEqual(collectives("  %all-gather.1 = f32[9,5]{1,0} all-gather(%p), channel_id=1, replica_groups=mesh['a'=3] {'a'}, dimensions={0}"),
                         {"all-gather.f32.count": 1, "all-gather.f32.bytes": 180})

    def test_combined_reductions_count_once(self):
        self.assertEqual(collectives("ROOT %all-reduce = (bf16[4]{0}, f32[]) all-reduce(%a, %b), replica_groups={{0,1}}, to_apply=%add"),
                         {"all-reduce.bf16.count": 1, "all-reduce.bf16.bytes": 8, "all-reduce.f32.count": 0, "all-reduce.f32.bytes": 4})

    def test_a_scatter_takes_the_whole(self):
        """Its result is one part, whichever way the groups are written."""
        for groups, ranks in (("{{0,1,2}}", 3), ("[2,2]<=[4]", 2), ("mesh['a'=2,'b'=4] {'b'}", 4)):
            line = f"%reduce-scatter.7 = f32[3]{{0}} reduce-scatter(%x), channel_id=9, replica_groups={groups}, dimensions={{0}}, to_apply=%add"
            self.assertEqual(collectives(line), {"reduce-scatter.f32.count": 1, "reduce-scatter.f32.bytes": 12 * ranks}, groups)

    def test_what_is_no_collective(self):
        self.assertEqual(collectives("%fusion = f32[3]{0} fusion(%all-gather.1), kind=kLoop\n%x = f32[] add(%all-reduce, %y)"), {})


if __name__ == "__main__":
    unittest.main()
