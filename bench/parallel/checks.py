"""Correctness: split over heads or tokens, the block and its rotation are those of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from context_attention import ContextParallelAttention
from setting import DTYPES, Rank, Shape, block_of, rotary_of
from single import Comparison, single

import ropewalk
from ropewalk.parallel import (
    contiguous_tokens,
    join_tokens,
    packed_tokens,
    split_tensor,
    zigzag_tokens,
)

TOKENS = 32
CU_SEQLENS = (0, 8, 8, 32)

Splits = dict[str, Callable[[int, int], torch.Tensor]]


def token_splits() -> Splits:
    return {
        "contiguous": lambda rank, world: contiguous_tokens(TOKENS, rank, world),
        "zigzag": lambda rank, world: zigzag_tokens(TOKENS, rank, world),
        "packed": lambda rank, world: packed_tokens(CU_SEQLENS, rank, world, order="contiguous"),
        "packed_zigzag": lambda rank, world: packed_tokens(CU_SEQLENS, rank, world),
    }


def inputs(shape: Shape, rank: Rank, batch: int = 2):
    generator = torch.Generator().manual_seed(11)
    x, gradient = torch.randn(2, batch, TOKENS, shape.hidden, generator=generator).double()
    return x.to(rank.device), gradient.to(rank.device)


def same_bits_everywhere(rank: Rank, equal: bool) -> dict:
    flag = torch.tensor([int(equal)], device=rank.device)
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return {"passed": bool(flag.item()), "bits": "equal" if flag.item() else "differ"}


def heads(rank: Rank, dtype: str, kv_heads: int) -> dict:
    """Tensor parallelism, forward and backward."""
    shape = Shape(kv_heads=kv_heads)
    x, gradient = inputs(shape, rank)
    positions = torch.arange(100_000, 100_000 + TOKENS, device=rank.device)
    kind = DTYPES[dtype]
    reference = single(shape, x, positions, gradient, torch.float64, reversed_sums=True)
    unsplit = single(shape, x, positions, gradient, kind)
    block = block_of(shape, rank, kind)
    mine = x.to(kind, copy=True).requires_grad_()
    y = block(mine, positions)
    y.backward(gradient.to(kind))
    comparison = Comparison(rank.world, kind, reference, unsplit)
    comparison.add("y", y.detach())
    comparison.add("x", mine.grad)
    for name, of in (("q", block.heads), ("k", block.kv_heads), ("v", block.kv_heads)):
        comparison.add(name, getattr(block, name).grad, block.channels(of))
    comparison.add("o", block.o.grad, (slice(None), block.channels(block.heads)))
    return comparison.result()


def rotated_heads(rank: Rank, dtype: str) -> dict:
    """The bits of this rank's rotated heads are those of one process."""
    shape = Shape()
    rotary = rotary_of(shape)
    generator = torch.Generator().manual_seed(13)
    q = torch.randn(2, shape.heads, TOKENS, shape.head_dim, generator=generator)
    q = q.to(rank.device, DTYPES[dtype])
    whole = rotary(q, offset=2**20)
    run = shape.heads // rank.world
    part = rotary(q[:, rank.rank * run : (rank.rank + 1) * run], offset=2**20)
    parts = [torch.empty_like(part) for _ in range(rank.world)]
    dist.all_gather(parts, part.contiguous())
    return same_bits_everywhere(rank, torch.equal(torch.cat(parts, 1), whole))


def rotated_tokens(rank: Rank, dtype: str, split: str, axes: int = 1) -> dict:
    """Gathering the ranks' rotated tokens gives the bits of one process."""
    if axes == 1:
        rotary = rotary_of(Shape())
    else:
        plan = ropewalk.plan_from_config(MROPE)
        rotary = ropewalk.RotaryEmbedding.from_plan(plan)
    generator = torch.Generator().manual_seed(17)
    q = torch.randn(2, 3, TOKENS, rotary.plan.head_dim, generator=generator)
    q = q.to(rank.device, DTYPES[dtype])
    if axes > 1:
        positions = torch.randint(0, 2**16, (axes, 2, TOKENS), generator=generator)
    elif split.startswith("packed"):
        bounds = torch.tensor(CU_SEQLENS)
        positions = ropewalk.positions_from_cu_seqlens(bounds, TOKENS)
    else:
        positions = torch.arange(TOKENS)
    positions = positions.to(rank.device)
    whole = rotary(q, positions=positions)
    all_tokens = [token_splits()[split](r, rank.world) for r in range(rank.world)]
    mine = all_tokens[rank.rank]
    part = rotary(split_tensor(q, mine, 2), positions=split_tensor(positions, mine))
    parts = [torch.empty_like(part) for _ in range(rank.world)]
    dist.all_gather(parts, part)
    return same_bits_everywhere(rank, torch.equal(join_tokens(parts, all_tokens, 2), whole))


MROPE = {
    "model_type": "qwen2_vl", "hidden_size": 128, "num_attention_heads": 2,
    "num_key_value_heads": 2, "num_hidden_layers": 1, "max_position_embeddings": 4096,
    "rope_theta": 10000.0, "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
}  # fmt: skip


def tokens(rank: Rank, dtype: str, split: str) -> dict:
    """Context parallelism of the whole block, forward and backward."""
    shape, kind = Shape(), DTYPES[dtype]
    x, gradient = inputs(shape, rank, batch=1)
    sequence = torch.zeros(TOKENS, dtype=torch.int64, device=rank.device)
    positions = torch.arange(TOKENS, device=rank.device)
    if split.startswith("packed"):
        bounds = torch.tensor(CU_SEQLENS, device=rank.device)
        sequence = torch.searchsorted(bounds, positions, right=True)
        positions = ropewalk.positions_from_cu_seqlens(bounds, TOKENS)
    index = torch.arange(TOKENS, device=rank.device)
    mask = (index[:, None] >= index) & (sequence[:, None] == sequence)
    reference = single(shape, x, positions, gradient, torch.float64, reversed_sums=True, mask=mask)
    unsplit = single(shape, x, positions, gradient, kind, mask=mask)

    all_tokens = [token_splits()[split](r, rank.world).to(rank.device) for r in range(rank.world)]
    mine = all_tokens[rank.rank]
    block = ContextParallelAttention(shape, kind, rank.device)
    part = split_tensor(x, mine, 1).to(kind).requires_grad_()
    y = block(part, split_tensor(positions, mine), all_tokens, mask[mine])
    y.backward(split_tensor(gradient, mine, 1).to(kind))
    comparison = Comparison(rank.world, kind, reference, unsplit)
    rows = (slice(None), mine)
    comparison.add("y", y.detach(), rows)
    comparison.add("x", part.grad, rows)
    for name, weight in block.weights.items():
        dist.all_reduce(weight.grad)
        comparison.add(name, weight.grad)
    return comparison.result()


def checks_of(rank: Rank, dtypes: list[str]) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Name and check, for each that this world size allows. All ranks run all, in this order."""
    world = rank.world
    divided = [n for n in (8, 4) if n % world == 0]
    replicated = [n for n in (2, 1) if world % n == 0 and n < world]
    for dtype in dtypes:
        for kind, kv_heads in (
            *(("divided", n) for n in divided[-1:]), *(("replicated", n) for n in replicated)
        ):  # fmt: skip
            yield (
                f"block by heads, {kv_heads} KV heads {kind}, {dtype}",
                lambda dtype=dtype, kv_heads=kv_heads: heads(rank, dtype, kv_heads),
            )
        yield f"rotated heads, {dtype}", lambda dtype=dtype: rotated_heads(rank, dtype)
        for split in token_splits():
            if split.endswith("zigzag") and CU_SEQLENS[1] % (2 * world):
                continue
            both = {"dtype": dtype, "split": split}
            yield f"rotated tokens, {split}, {dtype}", lambda b=both: rotated_tokens(rank, **b)
            yield (
                f"rotated tokens, {split}, three axes, {dtype}",
                lambda b=both: rotated_tokens(rank, **b, axes=3),
            )
            yield f"block by tokens, {split}, {dtype}", lambda b=both: tokens(rank, **b)


def run_checks(rank: Rank, dtypes: list[str]) -> list[dict]:
    return [{"check": name, **check()} for name, check in checks_of(rank, dtypes)]
