"""FSDP2 over two processes (gloo)."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import ropewalk


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = torch.nn.Linear(32, 64)
        self.rotary = ropewalk.RotaryEmbedding(16)

    def forward(self, x):
        q, k = self.qk(x).unflatten(-1, (4, 16)).transpose(1, 2).chunk(2, dim=1)
        q, k = self.rotary(q, k)
        return torch.nn.functional.scaled_dot_product_attention(q, k, k).square().mean()


def make():
    torch.manual_seed(3)
    return Attention(), torch.randn(2, 6, 32)


def worker(rank, init_file, result):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=2)
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        model, x = make()
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        model(x[rank : rank + 1]).backward()
        gradient = model.qk.weight.grad.full_tensor()
        if rank == 0:
            torch.save(gradient, result)
    finally:
        dist.destroy_process_group()


def test_fsdp2_on_two_processes(tmp_path):
    result = tmp_path / "gradient.pt"
    mp.spawn(worker, (str(tmp_path / "rendezvous"), str(result)), nprocs=2)
    model, x = make()
    torch.stack([model(x[:1]), model(x[1:])]).mean().backward()
    torch.testing.assert_close(torch.load(result), model.qk.weight.grad)
