"""The ranks of this start as one JAX program of many processes: the coordinator, the meshes, and a way to rank 0 for observations."""

import os
import pickle

import jax
import numpy as np
from jax._src import distributed  # the key-value store of the coordinator has no public name
from jax.sharding import Mesh


class World:
    def __init__(self, rank, size):
        self.rank, self.size, self.meshes, self.messages = rank, size, {}, 0
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.config.update("jax_default_matmul_precision", "highest")
        if size > 1:
            jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", size, rank,
                                       cluster_detection_method="deactivate")
        self.devices = sorted(jax.devices(), key=lambda d: d.process_index)
        if len(self.devices) != size:
            raise RuntimeError(f"found {len(self.devices)} devices, expected one on each of {size} ranks")

    def mesh(self, shape):
        """Rank r sits at replica r / S, shard r % S."""
        if tuple(shape) not in self.meshes:
            self.meshes[tuple(shape)] = Mesh(np.array(self.devices).reshape(shape), ("replicate", "shard"))
        return self.meshes[tuple(shape)]

    def gather(self, thing):
        """On rank 0 the list of all ranks' things, elsewhere None. Not by a collective: what is observed must not pass through XLA."""
        self.messages += 1
        if self.rank:
            distributed.global_state.client.key_value_set_bytes(f"fsdpmark/{self.messages}/{self.rank}", pickle.dumps(thing))
            return None
        return [thing, *(self.receive(rank) for rank in range(1, self.size))]

    def receive(self, rank):
        key = f"fsdpmark/{self.messages}/{rank}"
        data = distributed.global_state.client.blocking_key_value_get_bytes(key, 300_000)
        distributed.global_state.client.key_value_delete(key)
        return pickle.loads(data)

    def close(self):
        if self.size > 1:
            jax.distributed.shutdown()
