"""How far two results are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Outcome(NamedTuple):
    """Of one case in one dtype."""

    same_bits: bool
    #: Largest difference, in units in the last place of the larger value's pair norm.
    ulps: float


def compare(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> Outcome:
    """Every element of every tensor. Raises where shapes or dtypes differ or a value is not finite."""
    ulps, same = 0.0, True
    if len(ours) != len(theirs):
        raise AssertionError(f"expected {len(theirs)} tensors, got {len(ours)}")
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise AssertionError(
                f"expected {b.dtype} {tuple(b.shape)}, got {a.dtype} {tuple(a.shape)}"
            )
        if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
            raise AssertionError("a result is not finite")
        same = same and torch.equal(a, b)
        scale = torch.maximum(a.double().abs(), b.double().abs()).amax(-1, keepdim=True)
        unit = torch.finfo(a.dtype).eps * torch.exp2(torch.floor(torch.log2(scale)))
        ulps = max(ulps, float(((a.double() - b.double()).abs() / unit).max()))
    return Outcome(same, ulps)
