"""A rank is killed in the middle; the others must end with a clear error within the time-out."""

from __future__ import annotations

import os
import signal
import time

import torch
import torch.distributed as dist
from setting import Rank, Shape, block_of


def step_until_killed(rank: Rank) -> dict:
    """Runs steps; the last rank kills itself in the third. What the others report comes back."""
    block = block_of(Shape(kv_heads=8), rank, torch.float32)
    x = torch.ones(1, 8, Shape().hidden, device=rank.device)
    began = time.monotonic()
    try:
        for step in range(1000):
            if step == 2 and rank.rank == rank.world - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            block(x).sum().item()
            began = time.monotonic()
            dist.barrier()
    except (RuntimeError, dist.DistError) as error:
        waited = time.monotonic() - began
        return {
            "error": str(error).splitlines()[0], "type": type(error).__name__,
            "seconds_until_error": waited,
        }  # fmt: skip
    return {"error": None}
