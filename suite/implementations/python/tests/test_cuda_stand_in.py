"""The stand-in for torch.cuda: it changes no tensor's value, it says that it is there, and it stays away from a GPU."""

import os
import unittest
from unittest.mock import patch

import torch
import torch.distributed as dist

from fsdpmark_adapter import cuda_stand_in
from jobs import free_port


def train():
    """Gradients and parameters of a small model, on whatever streams there are."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.GELU(), torch.nn.Linear(7, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 5)).square().sum().backward()
        optimizer.step()
    return [t.clone() for p in model.parameters() for t in (p.detach(), p.grad)]


@unittest.skipIf(torch.cuda.is_available(), "there is a GPU: the stand-in is never installed")
class StandIn(unittest.TestCase):
    def setUp(self):
        for owner, name, _ in cuda_stand_in.replacements():
            self.addCleanup(setattr, owner, name, getattr(owner, name))

    def test_values_are_those_without_it(self):
        before = train()
        self.assertEqual(cuda_stand_in.install(), "on CPU through a stand-in for torch.cuda")
        with torch.cuda.stream(torch.cuda.Stream()), cuda_stand_in.CudaToCpu():
            after = train()
        self.assertEqual(len(before), 8)
        for a, b in zip(before, after):
            self.assertTrue(torch.equal(a, b))

    def test_waiting_does_nothing_to_a_tensor(self):
        cuda_stand_in.install()
        x, stream = torch.arange(6.0), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        event = stream.record_event()
        event.wait()
        torch.cuda.synchronize()
        self.assertIs(x.cuda(), x)
        self.assertEqual(x.tolist(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(torch.cuda.current_device(), 0)

    def test_a_cuda_device_is_the_cpu(self):
        with cuda_stand_in.CudaToCpu():
            self.assertEqual(torch.ones(2, dtype=torch.bfloat16).type(), "torch.cuda.BFloat16Tensor")
            self.assertEqual(torch.ones(2).type(torch.float64).dtype, torch.float64)
            made = [torch.full((3,), 2.5, device=device) for device in ("cuda", "cuda:1", torch.device("cuda"), 0, "cpu", None)]
        for tensor in made:
            self.assertEqual(tensor.device.type, "cpu")
            self.assertEqual(tensor.tolist(), [2.5, 2.5, 2.5])

    def test_premultiplied_sums(self):
        """At one rank the sum is the product alone; the input of a reduce-scatter is left as it was, as NCCL leaves it."""
        cuda_stand_in.install()
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), GLOO_SOCKET_IFNAME="lo")
        dist.init_process_group("gloo", rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)
        third = 1.0 / 3.0
        x, out = torch.tensor([3.0, 7.0, -1.0]), torch.zeros(3)
        expected = x * torch.tensor(third)
        dist.reduce_scatter_tensor(output=out, input=x, op=dist._make_nccl_premul_sum(third))
        self.assertTrue(torch.equal(out, expected))
        self.assertEqual(x.tolist(), [3, 7, -1])
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(third))
        self.assertTrue(torch.equal(x, expected))
        dist.all_reduce(x, op=dist.ReduceOp.SUM)
        self.assertTrue(torch.equal(x, expected))

    def test_it_stays_away_from_a_gpu(self):
        before = [getattr(owner, name) for owner, name, _ in cuda_stand_in.replacements()]
        with patch("torch.cuda.is_available", return_value=True):
            self.assertEqual(cuda_stand_in.install(), "")
        for (owner, name, _), value in zip(cuda_stand_in.replacements(), before):
            self.assertIs(getattr(owner, name), value, name)


if __name__ == "__main__":
    unittest.main()
