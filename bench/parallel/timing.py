"""Times of a Llama-3.1-8B-shaped attention layer: the block, the rotation in it, the all-reduce, and
the whole step captured in one CUDA graph, collectives included."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from setting import LLAMA, Rank, Shape, block_of, rotary_of

from ropewalk.parallel import contiguous_tokens, zigzag_tokens


def _synchronise(rank: Rank) -> None:
    if rank.on_cuda:
        torch.cuda.synchronize()


def median_us(rank: Rank, body, repeats: int) -> float:
    """Median over repeats of the slowest rank, in microseconds."""
    for _ in range(3):
        body()
    times = []
    for _ in range(repeats):
        dist.barrier()
        _synchronise(rank)
        if rank.on_cuda:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            body()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3)
        else:
            began = time.perf_counter()
            body()
            times.append((time.perf_counter() - began) * 1e6)
    slowest = torch.tensor(times, device=rank.device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest.median())


def time_block(rank: Rank, shape: Shape, tokens: int, dtype: torch.dtype, repeats: int) -> dict:
    block = block_of(shape, rank, dtype, load=False)
    for weight in block.parameters():
        torch.nn.init.normal_(weight, std=shape.hidden**-0.5)
    x = torch.randn(1, tokens, shape.hidden, dtype=dtype, device=rank.device)
    positions = torch.arange(tokens, device=rank.device)
    result = {"what": "block by heads", "tokens": tokens, "dtype": str(dtype)}
    with torch.no_grad():
        q, k, _ = block.project(x)
        y = torch.empty_like(x)
        result["block_us"] = median_us(rank, lambda: block(x, positions), repeats)
        result["rotation_us"] = median_us(rank, lambda: block.rotary(q, k, positions), repeats)
        result["all_reduce_us"] = median_us(rank, lambda: dist.all_reduce(y), repeats)
    result["rotation_share"] = result["rotation_us"] / result["block_us"]
    return result


def time_split(rank: Rank, shape: Shape, tokens: int, dtype: torch.dtype, repeats: int) -> dict:
    """The rotation of a rank's tokens: with explicit positions, as the split needs."""
    local = tokens // rank.world
    q = torch.randn(1, shape.heads, local, shape.head_dim, dtype=dtype, device=rank.device)
    k = torch.randn(1, shape.kv_heads, local, shape.head_dim, dtype=dtype, device=rank.device)
    rotary = rotary_of(shape)
    result = {"what": "rotation by tokens", "tokens": tokens, "dtype": str(dtype)}
    for name, split in (("contiguous", contiguous_tokens), ("zigzag", zigzag_tokens)):
        positions = split(tokens, rank.rank, rank.world, device=rank.device)
        result[f"{name}_us"] = median_us(rank, lambda p=positions: rotary(q, k, p), repeats)
    return result


def graph_of_step(rank: Rank, shape: Shape, tokens: int, dtype: torch.dtype) -> dict:
    """One graph of the whole block with its all-reduce, replayed with new positions."""
    block = block_of(shape, rank, dtype, load=False)
    generator = torch.Generator(rank.device).manual_seed(1 + rank.rank)
    for weight in block.parameters():
        torch.nn.init.normal_(weight, std=shape.hidden**-0.5, generator=generator)
    same = torch.Generator(rank.device).manual_seed(7)
    x = torch.randn(1, tokens, shape.hidden, dtype=dtype, device=rank.device, generator=same)
    positions = torch.arange(tokens, device=rank.device)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                block(x, positions)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # NCCL's watchdog makes CUDA calls of its own; they must not end this thread's capture.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            y = block(x, positions)
        equal = True
        for start in (0, 4097, 2**20):
            positions.copy_(torch.arange(start, start + tokens, device=rank.device))
            graph.replay()
            equal &= torch.equal(y, block(x, positions))
        eager = median_us(rank, lambda: block(x, positions), 20)
        replayed = median_us(rank, graph.replay, 20)
    flag = torch.tensor([int(equal)], device=rank.device)
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return {
        "what": "one CUDA graph of the step", "tokens": tokens, "dtype": str(dtype),
        "passed": bool(flag.item()), "eager_us": eager, "graph_us": replayed,
        "speed_up": eager / replayed,
    }  # fmt: skip


def run_timings(rank: Rank, lengths: list[int]) -> list[dict]:
    if not rank.on_cuda:
        shape, dtype, repeats = Shape(), torch.float32, 3
    else:
        shape, dtype, repeats = LLAMA, torch.bfloat16, 10
    results = []
    for tokens in lengths:
        results.append(time_block(rank, shape, tokens, dtype, repeats))
        results.append(time_split(rank, shape, tokens, dtype, repeats))
    if rank.on_cuda:
        results += [graph_of_step(rank, shape, tokens, dtype) for tokens in (1, 16, 64)]
    return results
