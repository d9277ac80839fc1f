"""What every check and every timing of one rank needs: the process group, a device, shapes."""

from __future__ import annotations

import datetime
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import ropewalk
from ropewalk.parallel import TensorParallelAttention

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Shape:
    """An attention layer. The default is small enough for CI; LLAMA is Llama-3.1-8B's."""

    hidden: int = 64
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 16
    base: float = 10000.0


LLAMA = Shape(hidden=4096, heads=32, kv_heads=8, head_dim=128, base=500000.0)


@dataclass
class Rank:
    rank: int
    world: int
    backend: str
    device: torch.device
    timeout_s: float

    @property
    def on_cuda(self) -> bool:
        return self.device.type == "cuda"


def start_rank(
    rank: int, world: int, backend: str, rendezvous: str, timeout_s: float, blocking: bool
) -> Rank:
    torch.set_num_threads(1)
    # NVLink multicast (NVLS) is left off: not every host allows it.
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    # A collective that times out raises in the rank that waits, instead of ending the process.
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1" if blocking else "0"
    device = torch.device("cpu")
    options = {}
    if backend == "nccl":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
        options["device_id"] = device
    dist.init_process_group(
        backend, init_method=f"file://{rendezvous}", rank=rank, world_size=world,
        timeout=datetime.timedelta(seconds=timeout_s), **options,
    )  # fmt: skip
    return Rank(rank, world, backend, device, timeout_s)


def rotary_of(shape: Shape) -> ropewalk.RotaryEmbedding:
    return ropewalk.RotaryEmbedding(shape.head_dim, base=shape.base)


def weights_of(shape: Shape, seed: int = 5) -> dict[str, torch.Tensor]:
    """The whole block's weights in float64, the same on every rank."""
    generator = torch.Generator().manual_seed(seed)
    rows = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
    weights = {
        name: torch.randn(heads * shape.head_dim, shape.hidden, generator=generator).double()
        for name, heads in rows.items()
    }
    width = shape.heads * shape.head_dim
    weights["o"] = torch.randn(shape.hidden, width, generator=generator).double()
    return {name: w / w.size(1) ** 0.5 for name, w in weights.items()}


def block_of(shape: Shape, rank: Rank, dtype: torch.dtype, load: bool = True):
    block = TensorParallelAttention(
        shape.hidden, shape.heads, shape.kv_heads, rotary_of(shape), dtype=dtype,
        device=rank.device,
    )  # fmt: skip
    if load:
        block.load(**weights_of(shape))
    return block
