"""Positions of tokens, from what a batch usually carries."""

from __future__ import annotations

import torch
from torch import Tensor


def positions_from_mask(mask: Tensor, padding: int = 0) -> Tensor:
    """Positions (batch, token), int64, from an attention mask (batch, token).

    Tokens where the mask is 0 or False are padding and get ``padding`` (pass the same value as
    ``padding=`` to a rotation, e.g. -1, to leave those rows alone). The others are counted from 0,
    wherever padding lies. In a packed batch an integer mask numbers its sequences 1, 2, …, and each
    is counted from 0.
    """
    if mask.dim() != 2 or mask.is_floating_point():
        raise ValueError(f"mask: expected bool or integers (batch, token), got {mask.dtype} "
                         f"with {mask.dim()} dimensions")  # fmt: skip
    mask = mask.long()
    real = mask != 0
    count = real.long().cumsum(1) - 1  # tokens before this one, in its row
    index = torch.arange(mask.size(1), device=mask.device).expand_as(mask)
    latest = torch.where(real, index, -1).cummax(1).values  # last real token up to here
    before = torch.cat([latest.new_full((mask.size(0), 1), -1), latest[:, :-1]], dim=1)
    sequence_before = torch.where(before < 0, 0, mask.gather(1, before.clamp(min=0)))
    begins = real & (mask != sequence_before)
    first = torch.where(begins, count, 0).cummax(1).values
    return torch.where(real, count - first, padding)


def positions_from_cu_seqlens(
    cu_seqlens: Tensor, total: int, starts: Tensor | None = None
) -> Tensor:
    """Positions (total,) of packed sequences: token t of sequence s stands at t - cu_seqlens[s]
    (+ starts[s])."""
    token = torch.arange(total, device=cu_seqlens.device)
    sequence = torch.searchsorted(cu_seqlens, token, right=True) - 1
    positions = token - cu_seqlens.long()[sequence]
    return positions if starts is None else positions + starts.long()[sequence]
