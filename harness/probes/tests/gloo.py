"""One rank of the test of what gloo sends: python gloo.py RANK RANKS FILE.

Each collective runs alone in a phase of its own, "forward" with the number of the collective in the order below and of the size. The test
(test_gloo.c) compares the bytes of each phase with the formulas of docs/probes.md.
"""
import ctypes
import sys

import torch
import torch.distributed as dist

SIZES = (4096, 65536, 1 << 20, 6 << 20)  # bytes of the whole tensor, about: a multiple of the ranks' elements


def main():
    rank, ranks, rendezvous = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=ranks)
    mark = ctypes.CDLL(None).fsdpmark_mark
    dist.all_reduce(torch.ones(1))  # connects all
    dist.barrier()
    mark(b"case", 0)
    step = 0
    for size in SIZES:
        part = torch.ones(size // 4 // ranks)
        whole = torch.ones(part.numel() * ranks)
        for call in (
            lambda: dist.all_gather_into_tensor(whole, part),
            lambda: dist.reduce_scatter_tensor(part, whole),
            lambda: dist.all_reduce(whole),
            lambda: dist.broadcast(whole, 0),
        ):
            dist.barrier()
            mark(b"forward", step)
            call()
            mark(b"observe", step)
            step += 1
    dist.barrier()
    mark(b"end", -1)
    dist.destroy_process_group()


main()
