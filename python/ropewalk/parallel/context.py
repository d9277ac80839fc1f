"""Which tokens each rank holds under context parallelism.

The functions return global token indices (local token), int64, in the order in which the rank holds
them. Without positions of its own a token's position is its index, so that the index is what to pass
as ``positions=``; otherwise ``split_tensor(positions, tokens)``. Every rank holds equally many
tokens, as collectives want: lengths that do not divide are refused, pad first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor


def _check(rank: int, world: int) -> None:
    if world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank: expected 0 to world - 1 = {world - 1}, got {rank}")


def _per_part(total: int, parts: int, name: str) -> int:
    if total % parts:
        raise ValueError(f"{name}: expected a multiple of {parts}, got {total}")
    return total // parts


def contiguous_tokens(
    total: int, rank: int, world: int, *, device: torch.device | str | None = None
) -> Tensor:
    """Rank r holds the r-th of ``world`` equal runs of tokens."""
    _check(rank, world)
    run = _per_part(total, world, "total")
    return torch.arange(rank * run, (rank + 1) * run, device=device)


def zigzag_tokens(
    total: int, rank: int, world: int, *, device: torch.device | str | None = None
) -> Tensor:
    """Rank r holds the runs r and 2 · world − 1 − r of 2 · world, so that causal attention costs
    every rank the same."""
    _check(rank, world)
    run = _per_part(total, 2 * world, "total")
    token = torch.arange(run, device=device)
    return torch.cat([rank * run + token, (2 * world - 1 - rank) * run + token])


def packed_tokens(
    cu_seqlens: Tensor | Sequence[int], rank: int, world: int, *, order: str = "zigzag",
    device: torch.device | str | None = None,
) -> Tensor:  # fmt: skip
    """Every sequence of a packed batch is split by itself, ``zigzag`` or ``contiguous``: rank r
    holds its share of the first sequence, then of the second, and so on.

    Their boundaries on a rank are ``cu_seqlens // world``; their positions are
    ``split_tensor(positions_from_cu_seqlens(cu_seqlens, total), tokens)``.
    """
    splits = {"zigzag": zigzag_tokens, "contiguous": contiguous_tokens}
    if order not in splits:
        raise ValueError(f"order: expected zigzag or contiguous, got {order!r}")
    _check(rank, world)
    bounds = cu_seqlens.tolist() if isinstance(cu_seqlens, Tensor) else list(cu_seqlens)
    if isinstance(cu_seqlens, Tensor) and device is None:
        device = cu_seqlens.device
    parts = world * (2 if order == "zigzag" else 1)
    tokens = []
    for sequence, (first, end) in enumerate(itertools.pairwise(bounds)):
        _per_part(end - first, parts, f"cu_seqlens: the length of sequence {sequence}")
        tokens.append(first + splits[order](end - first, rank, world, device=device))
    return torch.cat(tokens) if tokens else torch.empty(0, dtype=torch.int64, device=device)


def split_tensor(whole: Tensor, tokens: Tensor, dim: int = -1) -> Tensor:
    """A rank's part of a tensor: positions of any form, (token), (batch, token) or
    (axes, batch, token), with the default ``dim``; hidden states with the dimension named."""
    return whole.index_select(dim, tokens.to(whole.device))


def join_tokens(parts: Sequence[Tensor], tokens: Sequence[Tensor], dim: int) -> Tensor:
    """The whole tensor again from the parts of all ranks and the indices each rank holds."""
    order = torch.cat(list(tokens))
    if not torch.equal(order.sort().values, torch.arange(order.numel(), device=order.device)):
        raise ValueError("tokens: expected every index from 0 to the last once over all ranks")
    return torch.cat(list(parts), dim).index_select(dim, order.argsort().to(parts[0].device))
