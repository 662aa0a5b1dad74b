"""The ranks of this start: device, process groups, meshes. Groups are made once and serve all cases."""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


class World:
    def __init__(self, rank, size, local_rank, local_size):
        self.rank, self.size = rank, size
        gpu = torch.cuda.is_available() and torch.cuda.device_count() >= local_size
        self.device = torch.device("cuda", local_rank) if gpu else torch.device("cpu")
        if gpu:
            torch.cuda.set_device(self.device)
        self.meshes = {}
        self.backend = "nccl" if gpu else "gloo"  # of the model's collectives
        # gloo beside NCCL: observations travel as objects on the CPU
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", rank=rank, world_size=size,
                                timeout=timedelta(minutes=5))
        self.objects = dist.new_group(backend="gloo") if gpu else dist.group.WORLD

    def mesh(self, shape, names=None):
        """The device mesh (N) or (replicate, shard); rank r sits at replica r / S, shard r % S. Other axes by their names,
        the last one running fastest."""
        shape, names = tuple(shape), names or (("shard",) if len(shape) == 1 else ("replicate", "shard"))
        if (shape, names) not in self.meshes:
            self.meshes[shape, names] = init_device_mesh(self.device.type, shape, mesh_dim_names=names)
        return self.meshes[shape, names]

    def gather(self, thing):
        """On rank 0 the list of all ranks' things, elsewhere None."""
        if self.size == 1:
            return [thing]
        things = [None] * self.size if self.rank == 0 else None
        dist.gather_object(thing, things, dst=0, group=self.objects)
        return things

    def barrier(self):
        dist.barrier(group=self.objects)

    def close(self):
        self.barrier()
        dist.destroy_process_group()
