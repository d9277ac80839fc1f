"""Channel pairs of a plan, in plain PyTorch: for gradients of tables and for the fallback.

``plan`` is a :class:`Geometry`, or a Plan, which has its fields."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Geometry(NamedTuple):
    """The fields of a plan that say which channels form a pair."""

    offset: int
    rotary_dim: int
    block_width: int
    pairing: str
    arithmetic: str
    rotates: bool

    @property
    def pairs(self) -> int:
        return self.rotary_dim // 2


def _orders(plan: Geometry, inverse: bool) -> tuple[bool, bool]:
    """Whether pairs are (read, written) interleaved."""
    if plan.pairing == "interleaved_to_half":
        return not inverse, inverse
    return (plan.pairing == "interleaved",) * 2


def _split(x: Tensor, plan: Geometry, interleaved: bool) -> tuple[Tensor, Tensor]:
    window = x[..., plan.offset : plan.offset + plan.rotary_dim]
    if interleaved:
        return window.unflatten(-1, (-1, 2)).unbind(-1)
    blocks = window.unflatten(-1, (-1, 2, (plan.block_width or plan.rotary_dim) // 2))
    first, second = blocks.unbind(-2)
    return first.flatten(-2), second.flatten(-2)


def split_read(x: Tensor, plan: Geometry, inverse: bool) -> tuple[Tensor, Tensor]:
    """First and second channels of the pairs that a rotation reads: (…, pairs) each."""
    return _split(x, plan, _orders(plan, inverse)[0])


def split_written(y: Tensor, plan: Geometry, inverse: bool) -> tuple[Tensor, Tensor]:
    """The same of the pairs that it writes."""
    return _split(y, plan, _orders(plan, inverse)[1])


def join_written(first: Tensor, second: Tensor, x: Tensor, plan: Geometry, inverse: bool) -> Tensor:
    """x with the pairs replaced."""
    if _orders(plan, inverse)[1]:
        window = torch.stack([first, second], dim=-1).flatten(-2)
    else:
        half = (plan.block_width or plan.rotary_dim) // 2
        blocks = [half_of.unflatten(-1, (-1, half)) for half_of in (first, second)]
        window = torch.stack(blocks, dim=-2).flatten(-3)
    before = x[..., : plan.offset]
    after = x[..., plan.offset + plan.rotary_dim :]
    return torch.cat([before, window.to(x.dtype), after], dim=-1)
