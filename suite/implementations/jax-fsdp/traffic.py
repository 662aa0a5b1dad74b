"""What XLA really sends: the collectives of a compiled program, read from its HLO text.

    collectives(text) -> {"all-gather.f32.count": 4, "all-gather.f32.bytes": 384, ...}

Bytes are those of the whole tensors: what an all-gather gives, what an all-reduce or a reduce-scatter takes, on one rank. Counts are those
of the program's text: one for tensors that XLA has combined, under the type of the first; one for a collective in a loop.
"""

import math
import re

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
LINE = re.compile(r"^\s*(?:ROOT )?%?[\w.\-]+ = (?P<type>.*?) (?P<kind>" + "|".join(KINDS) + r")\((?P<arguments>.*)$")
SHAPE = re.compile(r"\b(pred|bf16|[fsuc]\d+)\[([\d,]*)\]")
GROUPS = re.compile(r"replica_groups=(?:\{\{(?P<list>[\d,]+)\}|\[\d+,(?P<size>\d+)\]|mesh\[(?P<mesh>[^\]]*)\] ?\{(?P<axes>[^}]*)\})")
BYTES = {"pred": 1, "bf16": 2}


def group_size(line):
    """Ranks that take part in the collective, 0 where the line does not say."""
    found = GROUPS.search(line)
    if not found:
        return 0
    if found["list"]:
        return len(found["list"].split(","))
    if found["size"]:
        return int(found["size"])
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", found["mesh"]))
    return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", found["axes"]))


def collectives(text):
    found = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        kind = match["kind"]
        ranks = group_size(line) if kind == "reduce-scatter" else 1  # its result is one part
        shapes = SHAPE.findall(match["type"])  # several where XLA has combined collectives
        for i, (dtype, dims) in enumerate(shapes):
            size = math.prod(int(n) for n in dims.split(",") if n) * (BYTES.get(dtype) or int(dtype[1:]) // 8)
            for unit, amount in (("count", i == 0), ("bytes", size * ranks)):
                found[f"{kind}.{dtype}.{unit}"] = found.get(f"{kind}.{dtype}.{unit}", 0) + amount
    return found
